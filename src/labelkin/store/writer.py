"""Adding, correcting and removing documents, one transaction per batch."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeVar

from labelkin.corpus.document import CorpusItem, Correction, Deletion, Document
from labelkin.corpus.language import clear_language, usual_languages
from labelkin.exceptions import InputError
from labelkin.store.changes import Change, changes_by_id
from labelkin.store.collection import Collection
from labelkin.store.reader import Generation
from labelkin.store.reports import AddReport, RemoveReport
from labelkin.store.rows import (
    DOCUMENT_COLUMNS,
    ResolvedLabels,
    Values,
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

Progress = Callable[[AddReport], None]
Item = TypeVar("Item")


def add_documents(
    collection: Collection,
    items: Iterable[CorpusItem],
    *,
    keep_unknown: bool | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Store `items` in order, one transaction per batch; known ids are replaced.

    A correction replaces the labels of the document that precedes it or is stored.
    Unchanged documents are skipped, so repeating an interrupted `add` only
    stores what is missing. `keep_unknown` turns labels that the vocabulary
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
            report.merge(_Batch(collection, vocabulary, keep_unknown, first_row).store(batch))
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
    removed: set[str] = set()
    vocabulary = _WriterVocabulary(collection)
    for batch in _batches(wanted, collection.config.documents.batch_size):
        _Batch(collection, vocabulary).store(map(Deletion, batch), removed)
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
        self._edition = 0

    def at(self, generation: Generation) -> Vocabulary:
        """The vocabulary of the collection's present state."""
        edition = self._collection.edition()
        if len(self._vocabulary) != generation.next_column or edition != self._edition:
            self._vocabulary = self._collection.vocabulary
            self._edition = edition
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
        first_row: int = 0,
    ) -> None:
        self._collection = collection
        self._vocabulary = vocabulary
        self._keep_unknown = keep_unknown
        self._first_row = first_row
        self._report = AddReport()
        self._new_concepts: list[tuple[int, Concept]] = []

    def store(self, items: Iterable[CorpusItem], removed: set[str] | None = None) -> AddReport:
        """Write the batch; `removed` collects the ids of documents that were removed."""
        changes = changes_by_id(items, self._report)
        with self._collection.database.transaction() as connection:
            before = self._collection.generation()
            if any(not isinstance(change.item, Deletion) for change in changes.values()):
                self._vocabulary.at(before)
            stored = _stored(connection, changes)
            expected = self._vocabulary.expected_languages(
                [
                    change.item
                    for identifier, change in changes.items()
                    if identifier not in stored and isinstance(change.item, Document)
                ]
            )
            added: list[Values | _Corrected] = []
            dropped: list[int] = []
            for identifier, change in changes.items():
                row, checksum, language = stored.get(identifier, (None, None, None))
                item = change.item
                self._count_superseded(change, is_stored=row is not None)
                if isinstance(item, Document):
                    # A stored document keeps its language unless its text is clearly in another.
                    values = self._values(item, (language,) if language else expected)
                    is_changed = checksum != values[_CHECKSUM]
                    if row is not None and row >= self._first_row:
                        self._report.add_duplicate(identifier)
                    elif not is_changed:
                        self._report.unchanged += 1
                    else:
                        self._report.added += row is None
                        self._report.replaced += row is not None
                    self._count_corrections(change, is_changed)
                    if not is_changed:
                        continue
                    added.append(values)
                elif isinstance(item, Correction):
                    if row is None:
                        continue
                    corrected = _Corrected(row, self._corrected(connection, row, item, language))
                    is_changed = corrected.values[-1] != checksum
                    self._count_corrections(change, is_changed)
                    if not is_changed:
                        continue
                    added.append(corrected)
                elif row is not None:
                    self._report.removed += 1
                    if removed is not None:
                        removed.add(identifier)
                if row is not None:
                    dropped.append(row)
            if added or dropped or self._new_concepts:
                self._write(connection, before, added, dropped)
        return self._report

    def _count_superseded(self, change: Change, *, is_stored: bool) -> None:
        """Count the corrections that have no effect."""
        for _ in range(change.superseded):
            if is_stored:
                self._report.add_duplicate(change.item.id)
            else:
                self._report.add_missing(change.item.id)
        if isinstance(change.item, Correction) and not is_stored:
            for _ in range(change.corrections):
                self._report.add_missing(change.item.id)

    def _count_corrections(self, change: Change, is_changed: bool) -> None:
        if is_changed:
            self._report.corrected += change.corrections
        else:
            self._report.unchanged += change.corrections

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
        connection.executemany(
            "INSERT INTO documents (row, id, title, body, fields, language, metadata, labels, "
            "unresolved, heading_order, digest, text_checksum) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((row, *values) for row, values in rows if not isinstance(values, _Corrected)),
        )
        log_change(connection, before, len(added), len(self._new_concepts))
        self._report.new_concepts = len(self._new_concepts)

    def _values(self, document: Document, expected: Sequence[str]) -> Values:
        document = self._collection.in_its_language(document, expected)
        return document_values(document, self._resolve(document, document.language))

    def _corrected(
        self, connection: sqlite3.Connection, row: int, item: Correction, language: str | None
    ) -> Values:
        (stored,) = connection.execute(
            f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE row = ?", (row,)
        )
        return corrected_values(stored, self._resolve(item, language))

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
                column = self._vocabulary.add(concept)
                self._new_concepts.append((column, concept))
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
        "digest = ? WHERE row = ?",
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


def _stored(
    connection: sqlite3.Connection, identifiers: Iterable[str]
) -> dict[str, tuple[int, bytes, str | None]]:
    wanted = list(identifiers)
    marks = ", ".join("?" * len(wanted))
    rows = connection.execute(
        f"SELECT id, row, digest, language FROM documents WHERE id IN ({marks})", wanted
    )
    return {identifier: (row, checksum, language) for identifier, row, checksum, language in rows}


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
