"""Changing a collection: documents in, documents out, a batch to a transaction."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from labelkin.corpus.document import Deletion, Document
from labelkin.exceptions import InputError
from labelkin.store.collection import Collection, Generation
from labelkin.store.label_sets import COLUMN_TYPE, Columns
from labelkin.store.reports import AddReport, RemoveReport
from labelkin.store.rows import Values, concept_to_json, document_values, storable
from labelkin.vocab.concept import Concept
from labelkin.vocab.names import Match
from labelkin.vocab.vocabulary import Vocabulary

# Label sets wait in the database until this many rows are worth a segment.
_ROWS_A_SEGMENT = 50_000
_CHARACTERS_A_BATCH = 20_000_000

Progress = Callable[[AddReport], None]
Item = TypeVar("Item")


def add_documents(
    collection: Collection,
    items: Iterable[Document | Deletion],
    *,
    keep_unknown: bool | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Store `items` in order, a transaction a batch; an id that is there is replaced.

    A document that is stored as it is already is left alone, so the same `add`
    after an interruption only completes what is missing. `keep_unknown` makes
    labels that the vocabulary lacks new concepts (default: as configured).
    """
    started = time.monotonic()
    if keep_unknown is None:
        keep_unknown = collection.config.labels.unknown == "keep"
    report = AddReport()
    limits = collection.config.documents
    try:
        for batch in _batches(_cut(items, limits.max_characters, report), limits.batch_size):
            report.merge(_Batch(collection, keep_unknown).store(batch))
            if collection.pending_rows() >= _ROWS_A_SEGMENT:
                collection.flush_label_sets()
            if progress is not None:
                progress(report)
        if collection.pending_rows():
            collection.flush_label_sets()
    except BaseException:
        collection.forget_vocabulary()
        raise
    report.seconds = time.monotonic() - started
    return report


def _cut(
    items: Iterable[Document | Deletion], max_characters: int, report: AddReport
) -> Iterator[Document | Deletion]:
    """The same items, one at a time, with no text longer than allowed."""
    for item in items:
        if isinstance(item, Document):
            document = item.cut(max_characters)
            if document is not item:
                report.cut.append(item.id)
            yield document
        else:
            yield item


def remove_documents(collection: Collection, identifiers: Iterable[str]) -> RemoveReport:
    """Take the documents with these ids out; ids that are not there are listed."""
    wanted = list(dict.fromkeys(map(storable, identifiers)))
    removed: set[str] = set()
    for batch in _batches(wanted, collection.config.documents.batch_size):
        _Batch(collection, keep_unknown=False).store(map(Deletion, batch), removed)
    return RemoveReport(
        removed=len(removed),
        missing=tuple(identifier for identifier in wanted if identifier not in removed),
    )


class _Batch:
    """One transaction's worth of changes."""

    def __init__(self, collection: Collection, keep_unknown: bool) -> None:
        self._collection = collection
        self._keep_unknown = keep_unknown
        self._report = AddReport()
        self._new_concepts: list[tuple[int, Concept]] = []

    def store(
        self, items: Iterable[Document | Deletion], removed: set[str] | None = None
    ) -> AddReport:
        """Write the batch; `removed` collects the ids that deletions really took out."""
        latest: dict[str, Document | Deletion] = {}
        for item in items:
            if not item.id.strip():
                raise InputError("a document without an id cannot be stored")
            earlier = latest.pop(item.id, None)
            if isinstance(earlier, Document) and isinstance(item, Document) and earlier != item:
                self._report.replaced += 1
            latest[item.id] = item
        with self._collection.database.transaction() as connection:
            before = self._collection.generation()
            vocabulary = self._collection.vocabulary
            stored = _stored(connection, latest)
            added: list[Values] = []
            dropped: list[int] = []
            for item in latest.values():
                row, digest = stored.get(item.id, (None, None))
                if isinstance(item, Document):
                    values = self._values(item, vocabulary)
                    if digest == values[-1]:
                        self._report.unchanged += 1
                        continue
                    added.append(values)
                    self._report.added += row is None
                    self._report.replaced += row is not None
                elif row is not None:
                    self._report.removed += 1
                    if removed is not None:
                        removed.add(item.id)
                if row is not None:
                    dropped.append(row)
            if added or dropped or self._new_concepts:
                self._write(connection, before, added, dropped)
        return self._report

    def _write(
        self,
        connection: sqlite3.Connection,
        before: Generation,
        added: list[Values],
        dropped: list[int],
    ) -> None:
        number = before.number + 1
        connection.executemany(
            "INSERT INTO tombstones VALUES (?, ?)", ((row, number) for row in dropped)
        )
        connection.executemany("DELETE FROM documents WHERE row = ?", ((row,) for row in dropped))
        connection.executemany(
            "INSERT INTO concepts VALUES (?, ?, ?)",
            (
                (column, concept.id, concept_to_json(concept))
                for column, concept in self._new_concepts
            ),
        )
        connection.executemany(
            "INSERT INTO documents (row, id, title, body, fields, language, metadata, labels, "
            "unresolved, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((row, *values) for row, values in enumerate(added, start=before.next_row)),
        )
        connection.execute(
            "INSERT INTO changes VALUES (?, ?, ?, ?, datetime('now'))",
            (
                number,
                before.next_row + len(added),
                before.next_column + len(self._new_concepts),
                secrets.token_hex(8),
            ),
        )
        self._report.new_concepts = len(self._new_concepts)

    def _values(self, document: Document, vocabulary: Vocabulary) -> Values:
        document = self._collection.in_its_language(document)
        columns, unresolved = self._resolve(document, vocabulary)
        self._report.without_labels += len(columns) == 0
        return document_values(document, columns, unresolved)

    def _resolve(
        self, document: Document, vocabulary: Vocabulary
    ) -> tuple[Columns, dict[str, str]]:
        columns: set[int] = set()
        unresolved: dict[str, str] = {}
        for label in document.labels:
            name = document.label_names.get(label, "")
            # Where unknown ids are kept, none must be swallowed by a homonym or a look-alike.
            guess = not self._keep_unknown
            resolution = vocabulary.resolve(label, name, document.language or "", guess=guess)
            column = resolution.column
            if column is None and self._keep_unknown and resolution.match is Match.UNKNOWN:
                concept = _ad_hoc_concept(label, name, document.language)
                column = vocabulary.add(concept)
                self._new_concepts.append((column, concept))
            if column is not None:
                columns.add(column)
                continue
            unresolved[label] = name
            ambiguous = resolution.match is Match.AMBIGUOUS
            shown = f"{name} ({label})" if name else label
            (self._report.ambiguous if ambiguous else self._report.unresolved)[shown] += 1
        self._report.labels_resolved += len(columns)
        return np.array(sorted(columns), dtype=COLUMN_TYPE), unresolved


def _ad_hoc_concept(label: str, name: str, language: str | None) -> Concept:
    """A concept for a label that only documents know: its id is the label itself."""
    shown = name or ("" if "://" in label else label)
    return Concept(id=label, names={language or "en": shown} if shown else {})


def _stored(
    connection: sqlite3.Connection, identifiers: Iterable[str]
) -> dict[str, tuple[int, bytes]]:
    wanted = list(identifiers)
    marks = ", ".join("?" * len(wanted))
    found = connection.execute(
        f"SELECT id, row, digest FROM documents WHERE id IN ({marks})", wanted
    )
    return {identifier: (row, digest) for identifier, row, digest in found}


def _batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
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
