"""The labelled documents of a collection as vectors, by row: a derived store.

Removed rows stay in the file; searches skip them.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.vector_file import (
    RECORD_NAME,
    VECTOR_TYPE,
    StoredVectors,
    VectorFile,
    VectorsGoneError,
)
from labelkin.represent.cache import text_checksum
from labelkin.represent.encoder import Encoder, Vectors
from labelkin.store.database import WRITER_PATIENCE_SECONDS
from labelkin.store.derived import BuildProgress, DerivedStore, StoreDamagedError, StoreState
from labelkin.store.locks import FileLock, beside
from labelkin.store.reader import Generation, Reader

logger = logging.getLogger(__name__)

_PREFIX = "vectors-"
_CHECKSUM_TYPE = np.dtype("V16")


class VectorIndex(DerivedStore):
    """The vectors of all documents that have labels."""

    noun = "vectors"

    def __init__(self, reader: Reader, encoder: Encoder) -> None:
        super().__init__(reader.path / "indexes" / _folder_name(encoder))
        self._encoder = encoder
        self._read_only = reader.read_only
        self._file = VectorFile(self.folder, np.int64, self.report_damage)
        self.stored = self._empty()

    def close(self) -> None:
        """Release the memory-mapped files."""
        with self.lock:
            self.stored = self._empty()
            self.state = StoreState()

    def at(self, reader: Reader) -> StoredVectors:
        """The vectors of exactly the rows that the reader sees, removed ones included."""
        with self.lock:
            self.catch_up(reader)
            return self.stored

    def catch_up(self, reader: Reader, progress: BuildProgress | None = None) -> int:
        """Encode the documents that are missing; how many there were."""
        added = super().catch_up(reader, progress)
        if added and not reader.read_only:
            self._drop_other_versions()
        return added

    @property
    def file_stem(self) -> Path:
        """The path of the vectors on disk, without a suffix."""
        return self.folder / (self.stored.name.partition("+")[0] or "none")

    def read_state(self, reader: Reader) -> StoreState:  # noqa: ARG002
        """What the file's record says; nothing for vectors of another version of the encoder."""
        self.stored = self._read()
        record = self.stored.record
        if not record and (self.folder / RECORD_NAME).exists():
            raise StoreDamagedError(
                self._file.damage or f"{self.folder}: the vectors cannot be read"
            )
        return StoreState(
            int(record.get("generation", 0)),
            str(record.get("token", "")),
            int(record.get("next_row", 0)),
        )

    def apply(self, reader: Reader, progress: BuildProgress | None) -> int:
        """Append the missing vectors in batches, each recorded when it is durable."""
        generation = reader.generation()
        if reader.read_only:
            return self._apply_in_memory(reader)
        added = 0
        try:
            for batch in self._missing(reader, progress):
                vectors = self._encoder.encode([document for _, document in batch])
                rows = np.array([row for row, _ in batch], dtype=np.int64)
                record = self._record(generation, batch[-1][0] + 1)
                self.stored = self._file.append(rows, vectors, record, after=self.stored)
                self.state = StoreState.of(generation, batch[-1][0] + 1)
                added += len(batch)
            record = self._record(generation, generation.next_row)
            if dict(self.stored.record) != record:
                self.stored = self._file.append(
                    self.stored.keys[:0], self.stored.vectors[:0], record, after=self.stored
                )
        except VectorsGoneError as error:
            raise StoreDamagedError(str(error)) from error
        self.state = StoreState.of(generation)
        return added

    def start_over(self) -> None:
        """Delete all vectors; a reader only leaves them out."""
        if not self._read_only:
            self._file.clear()
        self.stored = self._empty()
        self.state = StoreState()

    def _apply_in_memory(self, reader: Reader) -> int:
        generation = reader.generation()
        rows, parts = [self.stored.keys], [self.stored.vectors]
        added = 0
        for batch in self._missing(reader, None):
            vectors = self._encoder.encode([document for _, document in batch])
            rows.append(np.array([row for row, _ in batch], dtype=np.int64))
            parts.append(vectors.astype(VECTOR_TYPE))
            added += len(batch)
        self.stored = replace(self.stored, record=self._record(generation, generation.next_row))
        if added:
            # A name of its own: the file on disk may continue differently.
            self.stored = replace(
                self.stored,
                keys=np.concatenate(rows),
                vectors=np.concatenate([part for part in parts if len(part)]),
                name=f"{self.stored.name}+{generation.token}",
            )
        self.state = StoreState.of(generation)
        return added

    def _missing(
        self, reader: Reader, progress: BuildProgress | None
    ) -> Iterator[list[tuple[int, Document]]]:
        """Batches of documents to be encoded."""
        first, end = self.state.next_row, reader.generation().next_row
        size = reader.config.dense.batch_size
        for page in reader.labelled_texts(first, end):
            for start in range(0, len(page), size):
                batch = page[start : start + size]
                yield batch
                if progress is not None:
                    progress(batch[-1][0] + 1 - first, end - first)

    def _record(self, generation: Generation, next_row: int) -> dict[str, object]:
        return {
            "encoder": self._encoder.name,
            "version": self._encoder.version,
            "next_row": next_row,
            "generation": generation.number,
            "token": generation.token,
        }

    def _read(self) -> StoredVectors:
        stored = self._file.read()
        if stored.record and stored.record.get("version") != self._encoder.version:
            return StoredVectors(stored.keys[:0], stored.vectors[:0])
        return stored

    def _empty(self) -> StoredVectors:
        return StoredVectors(np.empty(0, np.int64), np.empty((0, 0), VECTOR_TYPE))

    def _drop_other_versions(self) -> None:
        """Remove vectors of other versions of the encoder, unless a process is making them."""
        for other in self.folder.parent.glob(f"{_PREFIX}*"):
            record = VectorFile(other, np.int64).record()
            if other == self.folder or record.get("encoder") != self._encoder.name:
                continue
            with FileLock(beside(other, "write")) as lock:
                if lock.take():
                    shutil.rmtree(other, ignore_errors=True)
                    beside(other, "write").unlink(missing_ok=True)


class VectorCache:
    """Vectors of texts that are not in the collection, by a checksum of the text."""

    def __init__(self, reader: Reader, encoder: Encoder) -> None:
        self._encoder = encoder
        self._read_only = reader.read_only
        self._batch = reader.config.dense.batch_size
        self._is_damaged = False
        self._file = VectorFile(
            reader.path / "cache" / _folder_name(encoder), _CHECKSUM_TYPE, self.report_damage
        )

    def vectors(self, documents: Sequence[Document], *, store: bool = False) -> Vectors:
        """A vector for each document; with `store`, new ones are written to the cache."""
        if not documents:
            return np.empty((0, 0), dtype=np.float32)
        checksums = [text_checksum(document) for document in documents]
        vectors = self._cached(set(checksums))
        missing = {
            checksum: document
            for checksum, document in zip(checksums, documents, strict=True)
            if checksum not in vectors
        }
        unknown = list(missing)
        for start in range(0, len(unknown), self._batch):
            part = unknown[start : start + self._batch]
            encoded = self._encoder.encode([missing[checksum] for checksum in part])
            if store and not self._read_only:
                self._store(part, encoded)
            vectors.update(zip(part, encoded.astype(VECTOR_TYPE), strict=True))
        return np.stack([vectors[checksum] for checksum in checksums]).astype(np.float32)

    def report_damage(self, reason: str) -> None:
        """Log damage once; the cache is emptied when the next vectors are stored."""
        if not self._is_damaged:
            logger.error("%s; encoding the texts again", reason)
        self._is_damaged = True

    def _cached(self, wanted: set[bytes]) -> dict[bytes, np.ndarray]:
        stored = self._file.read()
        if self._file.damage is not None:
            self.report_damage(self._file.damage)
        if self._is_damaged:
            return {}
        if stored.record.get("version") != self._encoder.version:
            return {}
        # The first half of a checksum is nearly unique, and fast to compare.
        asked = np.frombuffer(b"".join(wanted), dtype=np.uint64)[::2]
        places = np.flatnonzero(np.isin(stored.keys.view(np.uint64)[::2], asked))
        vectors = {stored.keys[place].tobytes(): stored.vectors[place] for place in places}
        return {checksum: vector for checksum, vector in vectors.items() if checksum in wanted}

    def _store(self, checksums: Sequence[bytes], vectors: Vectors) -> None:
        """Write new vectors; a full disk does not stop the search."""
        try:
            self._file.folder.parent.mkdir(exist_ok=True)
            with FileLock(beside(self._file.folder, "write")) as lock:
                if lock.take(WRITER_PATIENCE_SECONDS):
                    self._append(checksums, vectors)
        except OSError as error:
            logger.warning("%s: %s; vectors are not cached", self._file.folder, error)

    def _append(self, checksums: Sequence[bytes], vectors: Vectors) -> None:
        if self._file.record().get("version") != self._encoder.version or self._is_damaged:
            self._file.clear()
            self._is_damaged = False
        known = self._cached(set(checksums))
        new = [place for place, checksum in enumerate(checksums) if checksum not in known]
        if new:
            keys = np.frombuffer(b"".join(checksums[place] for place in new), dtype=_CHECKSUM_TYPE)
            self._file.append(keys, vectors[new], {"version": self._encoder.version})


def compact_vectors(folder: Path, reader: Reader) -> int:
    """Drop the vectors of removed documents from a folder; how many there were.

    CollectionBusyError if another process is writing vectors there for long.
    """
    with FileLock(beside(folder, "write")) as lock:
        if not lock.take(WRITER_PATIENCE_SECONDS):
            raise CollectionBusyError(f"{folder}: another process is writing vectors")
        file = VectorFile(folder, np.int64)
        stored = file.read()
        record, generation = dict(stored.record), reader.generation()
        if record and reader.knows(int(record["generation"]), str(record["token"])):
            # Readers of an earlier state take a newer one when they find this record.
            record |= {"generation": generation.number, "token": generation.token}
        gone = reader.tombstones_between(-1, int(record.get("generation", 0)))
        is_dead = np.isin(stored.keys, gone)
        if is_dead.any():
            file.keep(~is_dead, record)
        return int(is_dead.sum())


def indexed_encoders(reader: Reader) -> list[str]:
    """Names of the encoders whose vectors are stored."""
    folders = (reader.path / "indexes").glob(f"{_PREFIX}*")
    records = [VectorFile(folder, np.int64).record() for folder in folders]
    return sorted(str(record["encoder"]) for record in records if record)


def _folder_name(encoder: Encoder) -> str:
    content = f"{encoder.name}\n{encoder.version}"
    return _PREFIX + hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
