"""A collection: one folder with a vocabulary, indexed documents and all that follows from them.

    NAME/
      manifest.json       format version and identity
      labelkin.toml       settings
      documents.sqlite    documents, vocabulary, change log: the source of truth
      labels/             label sets by row, memory-mapped
      indexes/ models/    whatever was built or trained

Everything but the database and the settings can be made anew from them.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from labelkin._version import __version__
from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.corpus.language import detect_language
from labelkin.exceptions import (
    CollectionDamagedError,
    CollectionExistsError,
)
from labelkin.store.config import CONFIG_NAME, Config, read_config, write_config
from labelkin.store.database import DATABASE_NAME, IS_DEPRECATED, Database
from labelkin.store.folder import empty_folder, folder_errors_explained
from labelkin.store.label_order import LabelOrder
from labelkin.store.label_sets import (
    COLUMN_TYPE,
    LabelSets,
    Milestone,
    Rows,
    Segment,
    SegmentFolder,
)
from labelkin.store.manifest import Manifest, read_manifest, write_manifest
from labelkin.store.rows import (
    DOCUMENT_COLUMNS,
    concept_from_json,
    concept_to_json,
    document_from_values,
    storable,
    text_from_values,
)
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

_PAGE = 1000
_SEGMENT_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class Generation:
    """One state of a collection: the last entry of its change log."""

    number: int
    next_row: int
    next_column: int
    token: str


class Collection(Closing):
    """An open collection folder. Use it as a context manager, or close it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.manifest = read_manifest(path)
        self.config: Config = read_config(path / CONFIG_NAME)
        if not (path / DATABASE_NAME).is_file():
            raise CollectionDamagedError(f"{path}: {DATABASE_NAME} is missing")
        self.database = Database(path / DATABASE_NAME, read_only=read_only)
        self._segment_folder = SegmentFolder(path / "labels")
        self._vocabulary = Vocabulary()
        self._label_sets: tuple[int, LabelSets] | None = None
        self._tombstones: tuple[int, Rows] = (0, np.empty(0, dtype=np.int64))

    @classmethod
    def create(cls, path: Path, vocabulary: Vocabulary, config: Config) -> Collection:
        """A new collection at `path`, which must not exist or be an empty folder.

        It is made under another name and renamed, or filled with the manifest
        last where the folder is there already: it is a collection whole or not at all.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise CollectionExistsError(f"{path}: already there; choose another name or remove it")
        with folder_errors_explained(path):
            folder = path.resolve()
            if not path.exists():
                folder = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
                folder.mkdir(parents=True)
            try:
                cls._fill(folder, vocabulary, config)
                if not path.exists():
                    folder.replace(path)
            except BaseException:
                empty_folder(folder)
                if not path.exists():
                    folder.rmdir()
                raise
        return cls(path)

    @staticmethod
    def _fill(folder: Path, vocabulary: Vocabulary, config: Config) -> None:
        for name in ("labels", "indexes", "models"):
            (folder / name).mkdir()
        write_config(config, folder / CONFIG_NAME)
        database = Database.create(folder / DATABASE_NAME)
        try:
            with database.transaction() as connection:
                connection.executemany(
                    "INSERT INTO concepts VALUES (?, ?, ?)",
                    (
                        (column, concept.id, concept_to_json(concept))
                        for column, concept in enumerate(vocabulary)
                    ),
                )
                connection.execute("UPDATE changes SET next_column = ?", (len(vocabulary),))
        finally:
            database.close()
        manifest = Manifest(
            uid=uuid.uuid4().hex,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            created_by=f"labelkin {__version__}",
        )
        write_manifest(manifest, folder)

    def close(self) -> None:
        """Let go of the files."""
        self.database.close()

    def generation(self) -> Generation:
        """The latest committed state."""
        with self.database.errors_explained():
            found = self.database.connection.execute(
                "SELECT generation, next_row, next_column, token FROM changes "
                "ORDER BY generation DESC LIMIT 1"
            ).fetchone()
        if found is None:
            raise CollectionDamagedError(f"{self.database.path}: the change log is empty")
        return Generation(*found)

    @property
    def vocabulary(self) -> Vocabulary:
        """All concepts of the latest generation, those that others added included."""
        known = len(self._vocabulary)
        if known < self.generation().next_column:
            with self.database.errors_explained():
                new = self.database.connection.execute(
                    'SELECT concept FROM concepts WHERE "column" >= ? ORDER BY "column"', (known,)
                )
                for (text,) in new:
                    self._vocabulary.add(concept_from_json(text))
        return self._vocabulary

    def concepts(self, columns: Sequence[int]) -> dict[int, Concept]:
        """Some concepts by column, without reading the whole vocabulary."""
        found: dict[int, Concept] = {}
        for start in range(0, len(columns), _PAGE):
            wanted = list(columns[start : start + _PAGE])
            marks = ", ".join("?" * len(wanted))
            with self.database.errors_explained():
                page = self.database.connection.execute(
                    f'SELECT "column", concept FROM concepts WHERE "column" IN ({marks})', wanted
                )
                found.update((column, concept_from_json(text)) for column, text in page)
        return found

    def label_order(self) -> LabelOrder:
        """The order of concept ids, by vocabulary column."""
        return LabelOrder(self.database, self.generation().next_column)

    def columns_by_id(self) -> dict[str, int]:
        """The column of every concept, without reading the concepts themselves."""
        with self.database.errors_explained():
            return dict(self.database.connection.execute('SELECT id, "column" FROM concepts'))

    def vocabulary_state(self) -> str:
        """Changes whenever the vocabulary does; in another collection it is another one."""
        width = self.generation().next_column
        with self.database.errors_explained():
            (token,) = self.database.connection.execute(
                "SELECT token FROM changes WHERE next_column = ? ORDER BY generation LIMIT 1",
                (width,),
            ).fetchone()
        return f"{self.manifest.uid} {width} {token}"

    def has_deprecated_concepts(self) -> bool:
        """Whether any concept has been replaced or given up."""
        with self.database.errors_explained():
            found = self.database.connection.execute(
                f"SELECT 1 FROM concepts WHERE {IS_DEPRECATED} LIMIT 1"
            ).fetchone()
        return found is not None

    def only_language(self) -> str | None:
        """The language that all documents share, None where there are several."""
        with self.database.errors_explained():
            first, last = self.database.connection.execute(
                "SELECT (SELECT min(language) FROM documents), "
                "(SELECT max(language) FROM documents)"
            ).fetchone()
        return str(first) if first is not None and first == last else None

    def in_its_language(self, document: Document, expected: str | None = None) -> Document:
        """`document` with its language: its own, else the collection's, else a detected one.

        `expected` is taken instead of detecting one.
        """
        if document.language:
            return document
        language = self.config.collection.language
        if language == "auto" and expected is not None:
            language = expected
        if language == "auto":
            language = detect_language(document.text) or "en"
        return replace(document, language=language)

    def forget_vocabulary(self) -> None:
        """Read the vocabulary anew: a rolled-back transaction may have added to it."""
        self._vocabulary = Vocabulary()

    def count(self) -> int:
        """How many documents there are."""
        with self.database.errors_explained():
            (gone,) = self.database.connection.execute("SELECT count(*) FROM tombstones").fetchone()
        return self.generation().next_row - int(gone)

    def document(self, identifier: str) -> Document | None:
        """The document with this id."""
        with self.database.errors_explained():
            values = self.database.connection.execute(
                f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE id = ?", (identifier,)
            ).fetchone()
        return document_from_values(values, self.vocabulary) if values else None

    def documents(self) -> Iterator[Document]:
        """All documents in row order, a page at a time; others may write meanwhile."""
        after = -1
        while True:
            with self.database.errors_explained():
                page = self.database.connection.execute(
                    f"SELECT {DOCUMENT_COLUMNS}, row FROM documents WHERE row > ? "
                    "ORDER BY row LIMIT ?",
                    (after, _PAGE),
                ).fetchall()
            if not page:
                return
            vocabulary = self.vocabulary
            for *values, _ in page:
                yield document_from_values(tuple(values), vocabulary)
            after = page[-1][-1]

    def labelled_texts(self, first: int, end: int) -> Iterator[list[tuple[int, Document]]]:
        """Pages of documents that have labels, with their rows, but without the labels.

        For whatever is made from texts; `first` and `end` (exclusive) are rows.
        """
        while first < end:
            with self.database.errors_explained():
                page = self.database.connection.execute(
                    "SELECT row, id, title, body, fields, language FROM documents "
                    "WHERE row >= ? AND row < ? AND length(labels) > 0 ORDER BY row LIMIT ?",
                    (first, end, _PAGE),
                ).fetchall()
            if not page:
                return
            yield [(row, text_from_values(tuple(values))) for row, *values in page]
            first = page[-1][0] + 1

    def texts_of(self, rows: Sequence[int]) -> dict[int, Document]:
        """The documents in these rows, without their labels; rows that are gone are left out."""
        found: dict[int, Document] = {}
        for start in range(0, len(rows), _PAGE):
            wanted = [int(row) for row in rows[start : start + _PAGE]]
            marks = ", ".join("?" * len(wanted))
            with self.database.errors_explained():
                page = self.database.connection.execute(
                    "SELECT row, id, title, body, fields, language FROM documents "
                    f"WHERE row IN ({marks})",
                    wanted,
                )
                found.update((row, text_from_values(tuple(values))) for row, *values in page)
        return found

    def rows_of(self, identifiers: Sequence[str]) -> dict[str, int]:
        """The rows of the documents with these ids."""
        found: dict[str, int] = {}
        for start in range(0, len(identifiers), _PAGE):
            wanted = [storable(name) for name in identifiers[start : start + _PAGE]]
            marks = ", ".join("?" * len(wanted))
            with self.database.errors_explained():
                found.update(
                    self.database.connection.execute(
                        f"SELECT id, row FROM documents WHERE id IN ({marks})", wanted
                    )
                )
        return found

    def identifiers(self) -> Iterator[tuple[str, int]]:
        """Ids and rows of all documents, from the index alone."""
        with self.database.errors_explained():
            yield from self.database.connection.execute("SELECT id, row FROM documents")

    def tombstones_since(self, generation: int) -> list[int]:
        """Rows that have gone after `generation`."""
        with self.database.errors_explained():
            rows = self.database.connection.execute(
                "SELECT row FROM tombstones WHERE generation > ?", (generation,)
            )
            return [row for (row,) in rows]

    def tombstones(self, generation: Generation) -> Rows:
        """Rows that are gone as of `generation`, ascending."""
        applied, rows = self._tombstones
        if applied < generation.number:
            with self.database.errors_explained():
                new = self.database.connection.execute(
                    "SELECT row FROM tombstones WHERE generation > ? AND generation <= ?",
                    (applied, generation.number),
                ).fetchall()
            fresh = np.array([row for (row,) in new], dtype=np.int64)
            rows = np.sort(np.concatenate((rows, fresh)))
            self._tombstones = (generation.number, rows)
        return rows

    def label_sets(self) -> LabelSets:
        """Label sets of every row up to the latest generation."""
        generation = self.generation()
        if self._label_sets is None or self._label_sets[0] != generation.number:
            segments = self._segments()
            tail = self._segment(_end(segments), generation.next_row)
            self._label_sets = (generation.number, LabelSets([*segments, tail]))
        return self._label_sets[1]

    def knows(self, generation: int, token: str) -> bool:
        """Whether this generation is in the collection's past, not in that of a lost future."""
        with self.database.errors_explained():
            found = self.database.connection.execute(
                "SELECT token FROM changes WHERE generation = ?", (generation,)
            ).fetchone()
        return found is not None and str(found[0]) == token

    def pending_rows(self) -> int:
        """Rows whose label sets are not in a segment yet."""
        return self.generation().next_row - _end(self._segments())

    def flush_label_sets(self) -> None:
        """Write the label sets of the newest rows into segments."""
        with self.database.transaction(), folder_errors_explained(self.path):
            generation = self.generation()
            for first in range(_end(self._segments()), generation.next_row, _SEGMENT_ROWS):
                end = min(first + _SEGMENT_ROWS, generation.next_row)
                milestone = Milestone(generation.number, generation.token, end)
                self._segment_folder.save(self._segments(), self._segment(first, end), milestone)

    def _segments(self) -> list[Segment]:
        return self._segment_folder.load(lambda past: self.knows(past.generation, past.token))

    def _segment(self, first: int, end: int) -> Segment:
        """The label sets of some rows, from the database; rows that are gone have none."""
        lengths = np.zeros(end - first, dtype=np.int64)
        blobs = []
        with self.database.errors_explained():
            found = self.database.connection.execute(
                "SELECT row, labels FROM documents WHERE row >= ? AND row < ? ORDER BY row",
                (first, end),
            )
            for row, blob in found:
                lengths[row - first] = len(blob) // COLUMN_TYPE.itemsize
                blobs.append(blob)
        return Segment.from_bytes(first, lengths, b"".join(blobs))

    def disk_bytes(self) -> int:
        """The size of all files in the folder."""
        total = 0
        for path in self.path.rglob("*"):
            with suppress(FileNotFoundError):
                total += path.stat().st_size if path.is_file() else 0
        return total


def _end(segments: list[Segment]) -> int:
    return segments[-1].end if segments else 0
