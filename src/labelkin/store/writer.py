"""Adding, correcting and removing documents, one transaction per batch."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from labelkin.corpus.document import CorpusItem, Correction, Deletion, Document
from labelkin.corpus.language import clear_language, usual_languages
from labelkin.corpus.text import is_valid_id
from labelkin.exceptions import InputError
from labelkin.store.changes import Stored, changes_by_id
from labelkin.store.collection import Collection
from labelkin.store.database import DELETIONS_TABLE, MOVES_TABLE, REVIVALS_TABLE
from labelkin.store.reader import Generation
from labelkin.store.reports import AddReport, RemoveReport
from labelkin.store.rows import (
    DOCUMENT_COLUMNS,
    ResolvedLabels,
    Values,
    checked_values,
    concept_to_json,
    corrected_values,
    document_values,
)
from labelkin.vocab.concept import Concept
from labelkin.vocab.names import Match, Resolution
from labelkin.vocab.vocabulary import Vocabulary
from labelkin.wording import shortened

# Label sets stay in the database until this many rows make a segment.
_ROWS_A_SEGMENT = 50_000
_CHARACTERS_A_BATCH = 20_000_000
# Where `document_values` has the checksum of the stored values.
_CHECKSUM = -2
# And the language, the columns of the labels and the checksum of the text.
_LANGUAGE, _LABELS, _TEXT = 4, 6, -1

Progress = Callable[[AddReport], None]
Item = TypeVar("Item")


def add_documents(
    collection: Collection,
    items: Iterable[CorpusItem],
    *,
    keep_unknown: bool | None = None,
    take_older: bool = False,
    progress: Progress | None = None,
) -> AddReport:
    """Store `items` in order, one transaction per batch; known ids are replaced.

    A correction replaces the labels of the document that precedes it or is stored.
    Unchanged documents are skipped, so repeating an interrupted `add` only
    stores what is missing; so are items with an older revision than the stored
    document, unless `take_older`. `keep_unknown` turns labels that the vocabulary
    lacks into new concepts (default: as configured).
    """
    started = time.monotonic()
    if keep_unknown is None:
        keep_unknown = collection.config.labels.unknown == "keep"
    collection.upgrade()
    report = AddReport()
    limits = collection.config.documents
    vocabulary = _WriterVocabulary(collection)
    first_row = collection.generation().next_row
    cut = _cut(items, limits.max_characters, report)
    # Closed at once if a batch fails, and with it the file that is being read.
    with closing(_batches(cut, limits.batch_size)) as batches:
        for batch in batches:
            writing = _Batch(collection, vocabulary, keep_unknown, take_older, first_row)
            report.merge(writing.store(batch))
            if collection.pending_rows() >= _ROWS_A_SEGMENT:
                collection.flush_label_sets()
            if progress is not None:
                progress(report)
    if collection.pending_rows():
        collection.flush_label_sets()
    report.seconds = time.monotonic() - started
    return report


def _cut(
    items: Iterable[CorpusItem], max_characters: int, report: AddReport
) -> Iterator[CorpusItem]:
    """The same items, one at a time, with no text longer than allowed."""
    for item in items:
        if isinstance(item, Document):
            document = item.cut(max_characters)
            if document is not item:
                report.cut.append(item.id)
            yield document
        elif isinstance(item, Correction | Deletion):
            yield item
        else:
            raise InputError(f"{shortened(repr(item))} is not a Document; nothing of it is stored")


def remove_documents(collection: Collection, identifiers: Iterable[str]) -> RemoveReport:
    """Remove the documents with these ids; the report lists unknown ids."""
    wanted = list(dict.fromkeys(identifiers))
    collection.upgrade()
    removed: set[str] = set()
    vocabulary = _WriterVocabulary(collection)
    for batch in _batches(wanted, collection.config.documents.batch_size):
        _Batch(collection, vocabulary).store(list(map(Deletion, batch)), removed)
    return RemoveReport(
        removed=len(removed),
        missing=tuple(identifier for identifier in wanted if identifier not in removed),
    )


class _WriterVocabulary:
    """The vocabulary that a writer resolves labels with, and the languages it expects.

    The vocabulary is copied before the first new concept is added: the shared vocabulary
    never changes.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._languages: Counter[str] | None = None
        self._is_own = False
        self._vocabulary = Vocabulary()
        self._changed = 0

    def at(self, generation: Generation) -> Vocabulary:
        """The vocabulary of the collection's present state."""
        changed = self._collection.concepts_changed()
        if len(self._vocabulary) != generation.next_column or changed != self._changed:
            self._vocabulary = self._collection.vocabulary
            self._changed = changed
            self._is_own = False
        return self._vocabulary

    def expected_languages(self, documents: Sequence[Document]) -> tuple[str, ...]:
        """The usual languages of the collection and of new documents; counts these as stored.

        Empty if no language has to be detected. The collection is asked once.
        """
        if self._collection.config.collection.language != "auto":
            return ()
        if self._languages is None:
            if all(document.language for document in documents):
                return ()
            self._languages = self._collection.language_counts()
        for document in documents:
            language = document.language or clear_language(document.text)
            if language:
                self._languages[language] += 1
        return usual_languages(self._languages)

    def add(self, concept: Concept) -> int:
        """Append a concept; its column."""
        if not self._is_own:
            self._vocabulary = self._vocabulary.extended(())
            self._is_own = True
        return self._vocabulary.add(concept)

    def column_of_undone(self, label: str) -> int | None:
        """The column of the undone concept with this id, whose place no other can take."""
        return self._vocabulary.column(label) if label in self._vocabulary else None

    def names(self, column: int) -> Mapping[str, str]:
        """The preferred names of the concept in a column."""
        return self._vocabulary[column].names

    def resolve(self, label: str, name: str, language: str, *, guess: bool) -> Resolution:
        """The concept that a label stands for, or the one that has replaced it."""
        resolution = self._vocabulary.resolve(label, name, language, guess=guess)
        if resolution.column is None:
            return resolution
        return replace(resolution, column=self._vocabulary.successor(resolution.column))


@dataclass(frozen=True, slots=True)
class _Corrected:
    """A stored document whose labels change: its row, and its `corrected_values`."""

    row: int
    values: Values


class _Batch:
    """One transaction's worth of changes.

    Rows from `first_row` on were stored by the same `add`.
    """

    def __init__(
        self,
        collection: Collection,
        vocabulary: _WriterVocabulary,
        keep_unknown: bool = False,
        take_older: bool = False,
        first_row: int = 0,
    ) -> None:
        self._collection = collection
        self._vocabulary = vocabulary
        self._keep_unknown = keep_unknown
        self._take_older = take_older
        self._first_row = first_row
        self._report = AddReport()
        self._new_concepts: list[tuple[int, Concept]] = []
        self._revived: dict[int, Concept] = {}

    def store(self, items: Sequence[CorpusItem], removed: set[str] | None = None) -> AddReport:
        """Write the batch; `removed` collects the ids of documents that were removed."""
        with self._collection.database.transaction() as connection:
            before = self._collection.generation()
            stored = _stored(connection, items)
            # Who removes a document with `remove` may add it again.
            deleted = _deleted(connection, items) if removed is None else {}
            before_that = dict(deleted)
            changes = changes_by_id(
                items, stored, self._report, deleted=deleted, take_older=self._take_older
            )
            if any(not isinstance(change.item, Deletion) for change in changes.values()):
                self._vocabulary.at(before)
            expected = self._vocabulary.expected_languages(
                [
                    change.item
                    for identifier, change in changes.items()
                    if identifier not in stored and isinstance(change.item, Document)
                ]
            )
            added: list[Values | _Corrected] = []
            dropped: list[int] = []
            moves: list[tuple[int, int]] = []
            relabelled: set[int] = set()
            revised: list[tuple[str | None, int]] = []
            for identifier, change in changes.items():
                known, item = stored.get(identifier), change.item
                for _ in range(change.superseded):
                    self._report.add_duplicate(identifier)
                if isinstance(item, Deletion):
                    if known is not None:
                        self._report.removed += 1
                        dropped.append(known.row)
                        if removed is not None:
                            removed.add(identifier)
                    continue
                new: Values | _Corrected | None = None
                if isinstance(item, Document):
                    new = self._document(item, known, expected)
                elif known is not None:
                    new = self._corrected(connection, item, known)
                if new is not None:
                    self._report.corrected += change.corrections
                    if known is not None and _is_moved(new, known):
                        moves.append((before.next_row + len(added), known.row))
                        if not known.has_labels_of(_labels(new)):
                            relabelled.add(known.row)
                    added.append(new)
                    dropped += [] if known is None else [known.row]
                else:
                    self._report.unchanged += change.corrections
                    if known is not None and item.revision != known.revision:
                        revised.append((item.revision, known.row))
            # What only has another revision keeps its row: nothing is derived from a revision.
            connection.executemany("UPDATE documents SET revision = ? WHERE row = ?", revised)
            for renamed in self._renamed(before, dropped):
                moves.append((before.next_row + len(added), renamed.row))
                added.append(renamed)
                dropped.append(renamed.row)
            if added or dropped or revised or self._new_concepts or self._revived:
                self._write(connection, before, added, dropped)
            if removed is None and deleted != before_that:
                _enter_deletions(connection, before_that, deleted)
            if moves:
                self._enter_moves(connection, moves, relabelled)
        return self._report

    def _renamed(self, before: Generation, dropped: Sequence[int]) -> Iterator[_Corrected]:
        """The other documents that carry a revived concept which goes by other names now.

        They get new rows: their index terms include the names of their headings.
        """
        is_renamed = np.zeros(before.next_column, dtype=np.bool_)
        for column, concept in self._revived.items():
            is_renamed[column] = concept.names != self._vocabulary.names(column)
        if not is_renamed.any():
            return
        rows = self._collection.label_sets().rows_with(is_renamed)
        gone = np.union1d(self._collection.tombstones(), dropped)
        for row, values in self._collection.stored_documents(np.setdiff1d(rows, gone).tolist()):
            yield _Corrected(row, checked_values(values, values[_LABELS:]))

    def _enter_moves(
        self,
        connection: sqlite3.Connection,
        moves: Sequence[tuple[int, int]],
        relabelled: Container[int],
    ) -> None:
        """Enter documents that have only moved, with new and former rows.

        Undoing an update still finds those whose labels are exactly as they were.
        """
        connection.execute(MOVES_TABLE)
        connection.executemany("INSERT INTO moves VALUES (?, ?)", moves)
        for table in ("former_labels", "former_rows"):
            if has_table(connection, table):
                connection.executemany(
                    f"UPDATE {table} SET row = ? WHERE row = ?",
                    (move for move in moves if move[1] not in relabelled),
                )

    def _write(
        self,
        connection: sqlite3.Connection,
        before: Generation,
        added: list[Values | _Corrected],
        dropped: list[int],
    ) -> None:
        rows = list(enumerate(added, start=before.next_row))
        add_tombstones(connection, dropped, before.number + 1)
        move_documents(
            connection,
            ((row, *one.values, one.row) for row, one in rows if isinstance(one, _Corrected)),
        )
        connection.executemany("DELETE FROM documents WHERE row = ?", ((row,) for row in dropped))
        insert_concepts(connection, self._new_concepts)
        if self._revived:
            update_concepts(connection, self._revived.items())
            connection.execute(REVIVALS_TABLE)
            connection.executemany(
                "INSERT OR REPLACE INTO revivals VALUES (?, ?)",
                ((column, before.number + 1) for column in self._revived),
            )
        connection.executemany(
            "INSERT INTO documents (row, id, title, body, fields, language, metadata, labels, "
            "unresolved, heading_order, revision, digest, text_checksum) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((row, *values) for row, values in rows if not isinstance(values, _Corrected)),
        )
        log_change(connection, before, len(added), len(self._new_concepts))
        self._report.new_concepts = len(self._new_concepts) + len(self._revived)

    def _document(
        self, document: Document, known: Stored | None, expected: Sequence[str]
    ) -> Values | None:
        """The values of a document; None if the stored one has the same."""
        # A stored document keeps its language unless its text is clearly in another.
        if known is not None and known.language:
            expected = (known.language,)
        document = self._collection.in_its_language(document, expected)
        values = document_values(document, self._resolve(document, document.language))
        is_changed = known is None or known.checksum != values[_CHECKSUM]
        if known is not None and known.row >= self._first_row:
            self._report.add_duplicate(document.id)
        elif not is_changed:
            self._report.unchanged += 1
        else:
            self._report.added += known is None
            self._report.replaced += known is not None
            if known is not None and known.has_labels and not document.labels:
                self._report.add_cleared(document.id)
        return values if is_changed else None

    def _corrected(
        self, connection: sqlite3.Connection, item: Correction, known: Stored
    ) -> _Corrected | None:
        """The stored document with other headings; None if it has them already."""
        (stored,) = connection.execute(
            f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE row = ?", (known.row,)
        )
        values = corrected_values(stored, self._resolve(item, known.language), item.revision)
        if values[-1] == known.checksum:
            return None
        if not item.labels:
            self._report.add_cleared(item.id)
        return _Corrected(known.row, values)

    def _resolve(self, item: Document | Correction, language: str | None) -> ResolvedLabels:
        labels = ResolvedLabels()
        major = set(item.major_labels)
        for label in item.labels:
            name = item.label_names.get(label, "")
            # An unknown label that is kept must not resolve to a homonym or a similar name.
            guess = not self._keep_unknown
            resolution = self._vocabulary.resolve(label, name, language or "", guess=guess)
            column = resolution.column
            if column is None and self._keep_unknown and resolution.match is Match.UNKNOWN:
                concept = _ad_hoc_concept(label, name, language)
                column = self._vocabulary.column_of_undone(label)
                if column is None:
                    column = self._vocabulary.add(concept)
                    self._new_concepts.append((column, concept))
                else:
                    self._revived.setdefault(column, concept)
            if column is not None:
                labels.add(column, is_major=label in major)
                continue
            labels.add(label, name, is_major=label in major)
            ambiguous = resolution.match is Match.AMBIGUOUS
            shown = f"{name} ({label})" if name else label
            (self._report.ambiguous if ambiguous else self._report.unresolved)[shown] += 1
        resolved = len(labels.order) - len(labels.unresolved)
        self._report.labels_resolved += resolved
        self._report.without_labels += resolved == 0
        return labels


def _is_moved(new: Values | _Corrected, known: Stored) -> bool:
    """Whether a document changes neither its text and language nor its headings."""
    if isinstance(new, _Corrected):
        return bool(new.values[0] == known.labels)
    stored = (known.language, known.labels, known.text)
    return (new[_LANGUAGE], new[_LABELS], new[_TEXT]) == stored


def _labels(new: Values | _Corrected) -> Values:
    """The values of LABEL_COLUMNS."""
    return new.values[:3] if isinstance(new, _Corrected) else new[_LABELS : _LABELS + 3]


def has_table(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the database has a table."""
    statement = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(statement, (name,)).fetchone() is not None


def add_tombstones(connection: sqlite3.Connection, rows: Iterable[int], generation: int) -> None:
    """Enter rows that a generation leaves."""
    connection.executemany(
        "INSERT INTO tombstones VALUES (?, ?)", ((row, generation) for row in rows)
    )


def move_documents(connection: sqlite3.Connection, moves: Iterable[Values]) -> None:
    """Give documents other labels and new rows; their texts come along.

    A move is the new row, the `corrected_values`, and the row so far.
    """
    connection.executemany(
        "UPDATE documents SET row = ?, labels = ?, unresolved = ?, heading_order = ?, "
        "revision = ?, digest = ? WHERE row = ?",
        moves,
    )


def insert_concepts(
    connection: sqlite3.Connection, concepts: Iterable[tuple[int, Concept]]
) -> None:
    """Append concepts, each with its column."""
    connection.executemany(
        "INSERT INTO concepts VALUES (?, ?, ?)",
        ((column, concept.id, concept_to_json(concept)) for column, concept in concepts),
    )


def update_concepts(
    connection: sqlite3.Connection, concepts: Iterable[tuple[int, Concept]]
) -> None:
    """Write other concepts of the same ids into their columns."""
    connection.executemany(
        'UPDATE concepts SET concept = ? WHERE "column" = ?',
        ((concept_to_json(concept), column) for column, concept in concepts),
    )


def log_change(connection: sqlite3.Connection, before: Generation, rows: int, columns: int) -> None:
    """Enter a generation with more rows and columns into the change log."""
    token = secrets.token_hex(8)
    connection.execute(
        "INSERT INTO changes VALUES (?, ?, ?, ?, datetime('now'))",
        (before.number + 1, before.next_row + rows, before.next_column + columns, token),
    )


def _ad_hoc_concept(label: str, name: str, language: str | None) -> Concept:
    """A concept for a label that the vocabulary lacks; its id is the label itself."""
    shown = name or ("" if "://" in label else label)
    return Concept(id=label, names={language or "en": shown} if shown else {})


def _stored(connection: sqlite3.Connection, items: Iterable[CorpusItem]) -> dict[str, Stored]:
    """The documents with the ids of these items."""
    wanted = list({item.id for item in items if is_valid_id(item.id)})
    marks = ", ".join("?" * len(wanted))
    rows = connection.execute(
        "SELECT id, row, digest, language, revision, body != '' OR fields IS NOT NULL, "
        "length(labels) > 0 OR unresolved IS NOT NULL, labels, text_checksum, unresolved, "
        "heading_order "
        f"FROM documents WHERE id IN ({marks})",
        wanted,
    )
    return {identifier: Stored(*values) for identifier, *values in rows}


def _deleted(connection: sqlite3.Connection, items: Iterable[CorpusItem]) -> dict[str, str]:
    """The revisions that deleted documents had, for the ids of these items."""
    if not has_table(connection, "deletions"):
        return {}
    wanted = list({item.id for item in items if is_valid_id(item.id)})
    marks = ", ".join("?" * len(wanted))
    return dict(
        connection.execute(f"SELECT id, revision FROM deletions WHERE id IN ({marks})", wanted)
    )


def _enter_deletions(
    connection: sqlite3.Connection, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    connection.execute(DELETIONS_TABLE)
    connection.executemany(
        "DELETE FROM deletions WHERE id = ?", ((one,) for one in before if one not in after)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO deletions VALUES (?, ?)",
        (one for one in after.items() if before.get(one[0]) != one[1]),
    )


def _batches(items: Iterable[Item], size: int) -> Generator[list[Item]]:
    """Lists of at most `size` items, fewer where they are documents with very long texts."""
    batch: list[Item] = []
    characters = 0
    for item in items:
        batch.append(item)
        characters += len(item.text) if isinstance(item, Document) else 0
        if len(batch) >= size or characters >= _CHARACTERS_A_BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
