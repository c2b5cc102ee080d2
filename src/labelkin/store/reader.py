"""Reading a collection: what its latest state and its snapshots have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.corpus.language import detect_language, usual_languages
from labelkin.corpus.text import is_valid_id, text_checksum
from labelkin.exceptions import CollectionDamagedError
from labelkin.store.config import Config
from labelkin.store.database import IS_DEPRECATED, LATER_COLUMNS
from labelkin.store.label_sets import COLUMN_TYPE, LabelSets, Rows
from labelkin.store.manifest import Manifest
from labelkin.store.rows import (
    DOCUMENT_COLUMNS,
    HEADLINE_COLUMNS,
    LABEL_COLUMNS,
    Headline,
    concept_from_json,
    document_from_values,
    headline_from_values,
    text_from_values,
)
from labelkin.store.vocabulary_state import LabelOrder, VocabularyState
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

_PAGE = 1000
_IDENTIFIERS = 50_000
_MOST_COPIES = 500


@dataclass(frozen=True, slots=True)
class Generation:
    """One state of a collection: the last entry of its change log."""

    number: int
    next_row: int
    next_column: int
    token: str


class Reader(ABC):
    """Documents, labels and vocabulary of a collection, by row and column.

    Rows are never reused and concepts keep their columns, so arrays of rows
    and columns mean the same in every later state.
    """

    path: Path
    manifest: Manifest
    config: Config
    read_only: bool

    @abstractmethod
    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement selects."""

    @abstractmethod
    def generation(self) -> Generation:
        """The state that is read."""

    @abstractmethod
    def label_sets(self) -> LabelSets:
        """The label sets of every row."""

    @abstractmethod
    def tombstones(self) -> Rows:
        """Rows of removed and replaced documents, ascending."""

    @property
    @abstractmethod
    def vocabulary_state(self) -> VocabularyState:
        """The vocabulary and what depends on it alone, shared by all states that have the same."""

    @property
    def vocabulary(self) -> Vocabulary:
        """All concepts."""
        return self.vocabulary_state.vocabulary(self)

    def label_order(self) -> LabelOrder:
        """The order of concept ids, by vocabulary column."""
        return self.vocabulary_state.label_order(self)

    def columns_by_id(self) -> dict[str, int]:
        """The column of every concept, without reading the concepts themselves."""
        return self.vocabulary_state.columns_by_id(self)

    def has_deprecated_concepts(self) -> bool:
        """Whether any concept is deprecated."""
        return self.vocabulary_state.has_deprecated(self)

    def latest_generation(self) -> Generation:
        """The last entry of the change log, from the database itself."""
        entries = self._query(
            "SELECT generation, next_row, next_column, token FROM changes "
            "ORDER BY generation DESC LIMIT 1"
        )
        if not entries:
            raise CollectionDamagedError(f"{self.path}: the change log is empty")
        return Generation(*entries[0])

    def modified(self) -> datetime | None:
        """When the state that is read was written; None if the change log does not tell."""
        entries = self._query(
            "SELECT at FROM changes WHERE generation = ?", (self.generation().number,)
        )
        try:
            return datetime.fromisoformat(entries[0][0]).replace(tzinfo=UTC)
        except (IndexError, TypeError, ValueError):
            return None

    def knows(self, generation: int, token: str) -> bool:
        """Whether this generation is in the change log; a restored backup may lack it."""
        entries = self._query("SELECT token FROM changes WHERE generation = ?", (generation,))
        return bool(entries) and str(entries[0][0]) == token

    def entry(self, generation: int) -> Generation:
        """An earlier state, which the change log knows."""
        (entry,) = self._query(
            "SELECT generation, next_row, next_column, token FROM changes WHERE generation = ?",
            (generation,),
        )
        return Generation(*entry)

    def is_outdated(self, generation: int, token: str) -> bool:  # noqa: ARG002 - see Snapshot
        """Whether the collection has reached this generation since the reader's own."""
        return False

    def removed_since(self) -> list[int]:
        """Rows that have been removed since the state that is read."""
        return []

    def concepts(self, columns: Sequence[int]) -> dict[int, Concept]:
        """Some concepts by column, without reading the whole vocabulary."""
        loaded = self.vocabulary_state.loaded()
        if loaded is not None:
            return {int(column): loaded[int(column)] for column in columns}
        rows = self._selected('SELECT "column", concept FROM concepts WHERE "column"', columns)
        return {column: concept_from_json(text) for column, text in rows}

    def concepts_from(self, first: int, end: int) -> list[Concept]:
        """The concepts in the columns from `first` up to `end`, exclusive."""
        rows = self._query(
            'SELECT concept FROM concepts WHERE "column" >= ? AND "column" < ? ORDER BY "column"',
            (first, end),
        )
        return [concept_from_json(text) for (text,) in rows]

    def columns_by_id_below(self, end: int) -> list[tuple[str, int]]:
        """Id and column of the concepts below the column `end`, by id."""
        rows: list[Any] = self._query(
            'SELECT id, "column" FROM concepts WHERE "column" < ? ORDER BY id', (end,)
        )
        return rows

    def _lacking_columns(self) -> list[str]:
        """The LATER_COLUMNS that the database of an earlier version does not have yet."""
        columns = self._query("SELECT name FROM pragma_table_info('documents')")
        return [name for name in LATER_COLUMNS if (name,) not in columns]

    def _has_text_checksums(self) -> bool:
        """Whether all documents have the checksums of their texts."""
        lacking = "SELECT 1 FROM documents WHERE text_checksum IS NULL LIMIT 1"
        return "text_checksum" not in self._lacking_columns() and not self._query(lacking)

    def document_columns(self) -> str:
        """DOCUMENT_COLUMNS, with NULL for those that the database does not have."""
        return self.stored_columns(DOCUMENT_COLUMNS)

    def stored_columns(self, columns: str) -> str:
        """Columns of documents, with NULL for those that the database does not have."""
        for name in self._lacking_columns():
            columns = columns.replace(name, "NULL")
        return columns

    def in_order_of_id(self, columns: Sequence[int]) -> list[int]:
        """At most a thousand columns in the order of their concepts' ids."""
        marks = ", ".join("?" * len(columns))
        rows = self._query(
            f'SELECT "column" FROM concepts WHERE "column" IN ({marks}) ORDER BY id', columns
        )
        return [column for (column,) in rows]

    def vocabulary_token(self, width: int) -> str | None:
        """The token of the first generation of the edition with this many columns, if any."""
        # Where the vocabulary is fixed, this is the first entry of the change log.
        # Within an edition, only the revival of a concept changes one.
        entries = self._query(
            "SELECT token FROM changes WHERE next_column = ? AND generation >= ? "
            "ORDER BY generation LIMIT 1",
            (width, self.concepts_changed()),
        )
        return str(entries[0][0]) if entries else None

    def edition(self) -> int:
        """The generation that brought the edition of the vocabulary; 0 if it is the first one."""
        return self._latest_edition()[0]

    def concepts_changed(self) -> int:
        """The last generation that has changed a concept; later ones only append concepts."""
        revived = 0
        if self._has_table("revivals"):
            ((revived,),) = self._query("SELECT ifnull(max(generation), 0) FROM revivals")
        return max(self.edition(), int(revived))

    def _latest_edition(self) -> tuple[int, bool]:
        """The generation that brought the edition, and whether it can be undone."""
        if not self._has_table("editions"):
            return 0, False
        ((generation, can_be_undone),) = self._query(
            "SELECT generation, can_be_undone FROM editions ORDER BY generation DESC LIMIT 1"
        )
        return int(generation), bool(can_be_undone)

    def columns_from_labels(self) -> npt.NDArray[np.bool_]:
        """For each column, whether the label of a document has brought or revived its concept."""
        editions = set()
        if self._has_table("editions"):
            editions = set(self._query("SELECT generation FROM editions"))
        widths = self._query(
            "SELECT next_column, min(generation) FROM changes GROUP BY next_column ORDER BY 1"
        )
        # The first entry of the change log has the vocabulary that the collection began with.
        is_from_label = np.zeros(widths[-1][0], dtype=np.bool_)
        for (first, _), (end, generation) in pairwise(widths):
            is_from_label[first:end] = (generation,) not in editions
        if self._has_table("revivals"):
            revived = self._query('SELECT "column" FROM revivals')
            is_from_label[[column for (column,) in revived]] = True
        return is_from_label

    def former_concepts(self) -> dict[int, str | None] | None:
        """The concepts that the last update has changed, as they were, in JSON; by column.

        None for a new concept. None if there is nothing to undo.
        """
        if not self._latest_edition()[1]:
            return None
        return dict(self._query('SELECT "column", concept FROM former_concepts'))

    def former_names(self, before: int | None = None) -> list[tuple[int, str]]:
        """Column and name of concepts that had other names in earlier editions.

        Without those that the generation `before` and later ones have taken from them.
        """
        if not self._has_table("former_names"):
            return []
        rows: list[Any] = self._query(
            'SELECT "column", name FROM former_names WHERE generation < ifnull(?, generation + 1) '
            'ORDER BY "column", name',
            (before,),
        )
        return rows

    def rows_with_former_labels(self) -> Rows:
        """The rows of documents that the last update has given other labels."""
        rows = self._query("SELECT row FROM former_labels ORDER BY row")
        return np.array([row for (row,) in rows], dtype=np.int64)

    def former_labels(self, rows: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """LABEL_COLUMNS as they were before the last update, by row."""
        columns = f"row, {LABEL_COLUMNS}"
        selected = self._selected(f"SELECT {columns} FROM former_labels WHERE row", rows)
        return {row: tuple(values) for row, *values in selected}

    def documents_since(self, generation: int) -> tuple[Rows, Rows]:
        """The rows of documents that are new since a generation, and of those that are gone.

        A document that has only moved, because its metadata or the names of its headings have
        changed, is neither.
        """
        first = self.entry(generation).next_row
        tombstones = self.tombstones()
        new = np.setdiff1d(np.arange(first, self.generation().next_row), tombstones)
        gone = np.array(
            self.tombstones_between(generation, self.generation().number), dtype=np.int64
        )
        gone = np.sort(gone[gone < first])
        moved, origins = self._moves_from(first)
        # A row that was left before the generation has come back: it is not what is gone.
        is_same = np.isin(origins, gone) & np.isin(moved, new)
        return np.setdiff1d(new, moved[is_same]), np.setdiff1d(gone, origins[is_same])

    def _moves_from(self, first: int) -> tuple[Rows, Rows]:
        """The rows from `first` on that documents have moved to, and their first rows before."""
        if not self._has_table("moves"):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        moves = self._query("SELECT row, former FROM moves WHERE row >= ? ORDER BY row", (first,))
        rows, former = np.array(moves, dtype=np.int64).reshape(-1, 2).T
        # A document may have moved several times.
        while (again := np.isin(former, rows)).any():
            former = former.copy()
            former[again] = former[np.searchsorted(rows, former[again])]
        return rows, former

    def _has_table(self, name: str) -> bool:
        return bool(self._query("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)))

    def any_deprecated(self) -> bool:
        """Whether any concept is deprecated, from the database itself."""
        return bool(self._query(f"SELECT 1 FROM concepts WHERE {IS_DEPRECATED} LIMIT 1"))

    def only_language(self) -> str | None:
        """The language that all documents share, None if there are several."""
        ((first, last),) = self._query(
            "SELECT (SELECT min(language) FROM documents), (SELECT max(language) FROM documents)"
        )
        return str(first) if first is not None and first == last else None

    def usual_language(self) -> str:
        """The language that most documents have, English if none has one."""
        return next((language for language in self.languages() if language), "en")

    def languages(self) -> dict[str | None, int]:
        """How many documents each language has, the most frequent first."""
        return dict(
            self._query(
                "SELECT language, count(*) FROM documents GROUP BY language ORDER BY 2 DESC, 1"
            )
        )

    def count_unresolved(self) -> int:
        """How many documents have labels that the vocabulary lacks."""
        ((count,),) = self._query("SELECT count(*) FROM documents WHERE unresolved IS NOT NULL")
        return int(count)

    def count(self) -> int:
        """How many documents there are."""
        ((gone,),) = self._query("SELECT count(*) FROM tombstones")
        return self.generation().next_row - int(gone)

    def prepared(self, documents: Sequence[Document]) -> list[Document]:
        """The documents as they would be stored: not too long, and with a language.

        In a collection with one language, a text without a stated language is
        taken to be in that one: nothing else could match, and detection often
        fails on short texts.
        """
        limit = self.config.documents.max_characters
        cut = [document.cut(limit) for document in documents]
        if all(document.language for document in cut):
            return cut
        only = self.only_language() if self.config.collection.language == "auto" else None
        if only is not None:
            return [
                document if document.language else replace(document, language=only)
                for document in cut
            ]
        expected = self.expected_languages()
        return [self.in_its_language(document, expected) for document in cut]

    def in_its_language(self, document: Document, expected: Sequence[str] = ()) -> Document:
        """`document` with its language: its own, else the collection's, else a detected one.

        Detection prefers the `expected` languages.
        """
        if document.language:
            return document
        language: str | None = self.config.collection.language
        if language == "auto":
            language = detect_language(document.text, expected)
        return replace(document, language=language or next(iter(expected), "en"))

    def expected_languages(self) -> tuple[str, ...]:
        """The usual languages of the collection, the most frequent first.

        Empty if no language has to be detected.
        """
        if self.config.collection.language != "auto":
            return ()
        return usual_languages(self.language_counts())

    def language_counts(self) -> Counter[str]:
        """How many documents each language has; those without one do not count."""
        return Counter({one: count for one, count in self.languages().items() if one})

    def names_by_language(self) -> Counter[str]:
        """How many concepts have a name in each language, without reading the vocabulary."""
        return Counter(
            dict(
                self._query(
                    "SELECT key, count(*) FROM concepts, json_each(concept, '$.names') GROUP BY key"
                )
            )
        )

    def has_names_in(self, language: str) -> bool:
        """Whether any concept has a name in this language, without reading the vocabulary."""
        path = "$.names." + json.dumps(language)
        statement = "SELECT 1 FROM concepts WHERE json_type(concept, ?) IS NOT NULL LIMIT 1"
        return bool(self._query(statement, (path,)))

    def document(self, identifier: str) -> Document | None:
        """The document with this id."""
        if not is_valid_id(identifier):
            return None
        columns = self.document_columns()
        rows = self._query(f"SELECT {columns} FROM documents WHERE id = ?", (identifier,))
        return document_from_values(rows[0], self.vocabulary) if rows else None

    def documents(self) -> Iterator[Document]:
        """All documents in row order, a page at a time."""
        after = -1
        columns = self.document_columns()
        while True:
            page = self._query(
                f"SELECT {columns}, row FROM documents WHERE row > ? ORDER BY row LIMIT ?",
                (after, _PAGE),
            )
            if not page:
                return
            vocabulary = self.vocabulary
            for *values, _ in page:
                yield document_from_values(tuple(values), vocabulary)
            after = page[-1][-1]

    def documents_after(self, identifier: str, limit: int) -> list[Document]:
        """The documents that follow an id in the order of ids, at most `limit`."""
        rows = self._query(
            f"SELECT {self.document_columns()} FROM documents WHERE id > ? ORDER BY id LIMIT ?",
            (identifier, limit),
        )
        return [document_from_values(values, self.vocabulary) for values in rows]

    def labelled_texts(self, first: int, end: int) -> Iterator[list[tuple[int, Document]]]:
        """Pages of labelled documents with their rows, without the labels themselves.

        `first` and `end` (exclusive) are rows.
        """
        while first < end:
            page = self._query(
                "SELECT row, id, title, body, fields, language FROM documents "
                "WHERE row >= ? AND row < ? AND length(labels) > 0 ORDER BY row LIMIT ?",
                (first, end, _PAGE),
            )
            if not page:
                return
            yield [(row, text_from_values(tuple(values))) for row, *values in page]
            first = page[-1][0] + 1

    def texts_of(self, rows: Sequence[int]) -> dict[int, Document]:
        """The documents in these rows, without their labels; removed ones are left out."""
        selected = self._selected(
            "SELECT row, id, title, body, fields, language FROM documents WHERE row", rows
        )
        return {row: text_from_values(tuple(values)) for row, *values in selected}

    def labels_of(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """The vocabulary columns of the documents in these rows; removed ones are left out."""
        selected = self._selected("SELECT row, labels FROM documents WHERE row", rows)
        return {row: np.frombuffer(blob, dtype=COLUMN_TYPE).tolist() for row, blob in selected}

    def titles_of(self, rows: Sequence[int]) -> dict[int, Headline]:
        """Id, title and year of the documents in these rows; removed ones are left out."""
        selected = self._selected(f"SELECT row, {HEADLINE_COLUMNS} FROM documents WHERE row", rows)
        return {row: headline_from_values(tuple(values)) for row, *values in selected}

    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """The ids of the documents in these rows; removed ones are left out."""
        return dict(self._selected("SELECT row, id FROM documents WHERE row", rows))

    def rows_of(self, identifiers: Sequence[str]) -> dict[str, int]:
        """The rows of the documents with these ids."""
        names = [name for name in identifiers if is_valid_id(name)]
        return dict(self._selected("SELECT id, row FROM documents WHERE id", names))

    def known_rows(self, documents: Sequence[Document]) -> list[frozenset[int]]:
        """For each document the rows that have its id or exactly its text.

        A text that very many documents have (`[Not available]`) does not identify any.
        """
        by_id = self.rows_of([document.id for document in documents])
        limit = self.config.documents.max_characters
        checksums = [text_checksum(document.cut(limit).text) for document in documents]
        # Copies share their set: a common title may have hundreds of them.
        by_text = {
            checksum: frozenset(rows)
            for checksum, rows in self._rows_with_texts(checksums).items()
            if len(rows) <= _MOST_COPIES
        }
        known = []
        for document, checksum in zip(documents, checksums, strict=True):
            rows = by_text.get(checksum, frozenset())
            own = by_id.get(document.id)
            known.append(rows if own is None or own in rows else rows | {own})
        return known

    def _rows_with_texts(self, checksums: Sequence[int]) -> dict[int, list[int]]:
        """The rows of the documents whose texts have these checksums."""
        distinct = set(checksums)
        rows: dict[int, list[int]] = {}
        if self._has_text_checksums():
            for checksum, row in self._selected(
                "SELECT text_checksum, row FROM documents WHERE text_checksum", list(distinct)
            ):
                rows.setdefault(checksum, []).append(row)
            return rows
        # A collection of an earlier version that this process could not upgrade.
        for page in self.text_pages():
            for row, document in page:
                checksum = text_checksum(document.text)
                if checksum in distinct:
                    rows.setdefault(checksum, []).append(row)
        return rows

    def text_pages(self, condition: str = "1") -> Iterator[list[tuple[int, Document]]]:
        """Pages of documents with their rows, without labels and metadata."""
        after = -1
        while page := self._query(
            "SELECT row, id, title, body, fields, language FROM documents "
            f"WHERE row > ? AND {condition} ORDER BY row LIMIT ?",
            (after, _PAGE),
        ):
            yield [(row, text_from_values(tuple(values))) for row, *values in page]
            after = page[-1][0]

    def identifiers(self) -> Iterator[tuple[str, int]]:
        """Ids and rows of all documents, by id."""
        after = ""
        while page := self._query(
            "SELECT id, row FROM documents WHERE id > ? ORDER BY id LIMIT ?", (after, _IDENTIFIERS)
        ):
            yield from ((identifier, row) for identifier, row in page)
            after = page[-1][0]

    def tombstones_between(self, first: int, last: int) -> list[int]:
        """Rows removed after the generation `first`, up to and including `last`."""
        rows = self._query(
            "SELECT row FROM tombstones WHERE generation > ? AND generation <= ?", (first, last)
        )
        return [row for (row,) in rows]

    def last_removal(self) -> int:
        """The generation that removed a document last, 0 if none was removed."""
        ((generation,),) = self._query("SELECT max(generation) FROM tombstones")
        return int(generation or 0)

    def _read_tombstones(self) -> Rows:
        rows = self.tombstones_between(-1, self.generation().number)
        return np.sort(np.array(rows, dtype=np.int64))

    def stored_label_sets(self, first: int, end: int) -> list[tuple[int, bytes]]:
        """Row and label set of the documents from row `first` up to `end`, exclusive."""
        rows: list[Any] = self._query(
            "SELECT row, labels FROM documents WHERE row >= ? AND row < ? ORDER BY row",
            (first, end),
        )
        return rows

    def rows_with_unresolved(self) -> Rows:
        """The rows of documents with labels that the vocabulary lacks, ascending."""
        rows = self._query("SELECT row FROM documents WHERE unresolved IS NOT NULL ORDER BY row")
        return np.array([row for (row,) in rows], dtype=np.int64)

    def stored_documents(self, rows: Sequence[int]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Row and DOCUMENT_COLUMNS of the documents in these rows, as they are stored."""
        columns = self.document_columns()
        for row, *values in self._selected(f"SELECT row, {columns} FROM documents WHERE row", rows):
            yield row, tuple(values)

    def _selected(self, statement: str, keys: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of `statement IN (keys)`, a page of keys at a time."""
        for start in range(0, len(keys), _PAGE):
            page = [
                key.item() if hasattr(key, "item") else key for key in keys[start : start + _PAGE]
            ]
            marks = ", ".join("?" * len(page))
            yield from self._query(f"{statement} IN ({marks})", page)
