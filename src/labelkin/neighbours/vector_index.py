"""The documents of a collection as vectors, by row: a derived store like the BM25 index.

It notes the generation it reflects and applies what it has missed. Vectors are
appended in batches, each durable when it is noted, so that an interrupted build
goes on where it was. Rows that are gone stay in the file and are left out of
every search.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.search import BuildProgress
from labelkin.neighbours.vector_file import (
    VECTOR_TYPE,
    StoredVectors,
    VectorFile,
    VectorsGoneError,
)
from labelkin.represent.cache import text_digest
from labelkin.represent.encoder import Encoder, Vectors
from labelkin.store.collection import Collection, Generation
from labelkin.store.database import WRITER_PATIENCE_SECONDS
from labelkin.store.folder import folder_errors_explained
from labelkin.store.locks import FileLock, beside

logger = logging.getLogger(__name__)

_PREFIX = "vectors-"
_DIGEST_TYPE = np.dtype("V16")


class VectorIndex:
    """The vectors of all documents that have labels."""

    def __init__(self, collection: Collection, encoder: Encoder) -> None:
        self._collection = collection
        self._encoder = encoder
        self.folder = collection.path / "indexes" / _folder_name(encoder)
        self._file = VectorFile(self.folder, np.int64)
        self.stored = self._read()

    @property
    def generation(self) -> int:
        """The generation whose documents are all in."""
        return int(self.stored.note.get("generation", 0))

    @property
    def token(self) -> str:
        """The token of that generation."""
        return str(self.stored.note.get("token", ""))

    def catch_up(self, progress: BuildProgress | None = None) -> int:
        """Encode the documents that are missing; how many there were."""
        generation = self._collection.generation()
        if self._reflects(generation):
            return 0
        if self._collection.database.read_only:
            self.stored = self._read()
            if self._is_lost():
                self.stored = StoredVectors(self.stored.keys[:0], self.stored.vectors[:0])
            return 0 if self._reflects(generation) else self._catch_up_in_memory(generation)
        with self._write_lock(), folder_errors_explained(self._collection.path):
            self.stored = self._read()
            generation = self._collection.generation()
            if self._is_lost():
                logger.warning("%s: the database has gone another way", self.folder)
                self._start_over()
            try:
                added = self._apply(generation, progress)
            except VectorsGoneError as error:
                logger.warning("%s; they are made anew", error)
                self._start_over()
                added = self._apply(generation, progress)
        self._drop_other_versions()
        return added

    def _apply(self, generation: Generation, progress: BuildProgress | None) -> int:
        added = 0
        for batch, note in self._missing(generation, progress):
            vectors = self._encoder.encode([document for _, document in batch])
            rows = np.array([row for row, _ in batch], dtype=np.int64)
            self.stored = self._file.append(rows, vectors, note, after=self.stored)
            added += len(batch)
        if not self._reflects(generation):
            done = self._note(generation, generation.next_row)
            self.stored = self._file.append(
                self.stored.keys[:0], self.stored.vectors[:0], done, after=self.stored
            )
        return added

    def _start_over(self) -> None:
        self._file.clear()
        self.stored = self._file.read()

    def _catch_up_in_memory(self, generation: Generation) -> int:
        rows, parts = [self.stored.keys], [self.stored.vectors]
        added = 0
        for batch, _ in self._missing(generation, None):
            vectors = self._encoder.encode([document for _, document in batch])
            rows.append(np.array([row for row, _ in batch], dtype=np.int64))
            parts.append(vectors.astype(VECTOR_TYPE))
            added += len(batch)
        self.stored = replace(self.stored, note=self._note(generation, generation.next_row))
        if added:
            # A name of its own: what is on disk may go on otherwise.
            self.stored = replace(
                self.stored,
                keys=np.concatenate(rows),
                vectors=np.concatenate([part for part in parts if len(part)]),
                name=f"{self.stored.name}+{generation.token}",
            )
        return added

    def _missing(
        self, generation: Generation, progress: BuildProgress | None
    ) -> Iterator[tuple[list[tuple[int, Document]], dict[str, object]]]:
        """Batches of what is to be encoded, each with the note that it makes true."""
        first = int(self.stored.note.get("next_row", 0))
        size = self._collection.config.dense.batch_size
        for page in self._collection.labelled_texts(first, generation.next_row):
            for start in range(0, len(page), size):
                batch = page[start : start + size]
                yield batch, self._note(generation, batch[-1][0] + 1)
                if progress is not None:
                    progress(batch[-1][0] + 1 - first, generation.next_row - first)

    def _note(self, generation: Generation, next_row: int) -> dict[str, object]:
        return {
            "encoder": self._encoder.name,
            "version": self._encoder.version,
            "next_row": next_row,
            "generation": generation.number,
            "token": generation.token,
        }

    def _reflects(self, generation: Generation) -> bool:
        return dict(self.stored.note) == self._note(generation, generation.next_row)

    def _is_lost(self) -> bool:
        """Whether the vectors are of a past that the database does not know."""
        known = self._collection.knows(self.generation, self.token)
        return bool(self.stored.note) and not known

    def _read(self) -> StoredVectors:
        found = self._file.read()
        if found.note and found.note.get("version") != self._encoder.version:
            return StoredVectors(found.keys[:0], found.vectors[:0])
        return found

    @contextmanager
    def _write_lock(self) -> Iterator[None]:
        self.folder.parent.mkdir(exist_ok=True)
        with FileLock(beside(self.folder, "write")) as lock:
            if not lock.take(WRITER_PATIENCE_SECONDS):
                raise CollectionBusyError(
                    f"{self._collection.path}: another process is building the index; "
                    "try again when it is done"
                )
            yield

    def _drop_other_versions(self) -> None:
        """Remove the vectors of the same encoder as it was before, unless someone makes them."""
        for other in self.folder.parent.glob(f"{_PREFIX}*"):
            note = VectorFile(other, np.int64).read().note
            if other == self.folder or note.get("encoder") != self._encoder.name:
                continue
            with FileLock(beside(other, "write")) as lock:
                if lock.take():
                    shutil.rmtree(other, ignore_errors=True)
                    beside(other, "write").unlink(missing_ok=True)


class VectorCache:
    """Vectors of texts that are not in the collection, by a digest of the text."""

    def __init__(self, collection: Collection, encoder: Encoder) -> None:
        self._encoder = encoder
        self._read_only = collection.database.read_only
        self._batch = collection.config.dense.batch_size
        self._file = VectorFile(collection.path / "cache" / _folder_name(encoder), _DIGEST_TYPE)

    def vectors(self, documents: Sequence[Document], *, store: bool = False) -> Vectors:
        """A vector for each document; with `store`, new ones are kept for the next time."""
        if not documents:
            return np.empty((0, 0), dtype=np.float32)
        digests = [text_digest(document) for document in documents]
        found = self._known(set(digests))
        missing = {
            digest: document
            for digest, document in zip(digests, documents, strict=True)
            if digest not in found
        }
        names = list(missing)
        for start in range(0, len(names), self._batch):
            part = names[start : start + self._batch]
            fresh = self._encoder.encode([missing[digest] for digest in part])
            if store and not self._read_only:
                self._keep(part, fresh)
            found.update(zip(part, fresh.astype(VECTOR_TYPE), strict=True))
        return np.stack([found[digest] for digest in digests]).astype(np.float32)

    def _known(self, wanted: set[bytes]) -> dict[bytes, np.ndarray]:
        stored = self._file.read()
        if stored.note.get("version") != self._encoder.version:
            return {}
        # The first half of a digest tells nearly all apart, and is quick to compare.
        asked = np.frombuffer(b"".join(wanted), dtype=np.uint64)[::2]
        places = np.flatnonzero(np.isin(stored.keys.view(np.uint64)[::2], asked))
        found = {stored.keys[place].tobytes(): stored.vectors[place] for place in places}
        return {digest: vector for digest, vector in found.items() if digest in wanted}

    def _keep(self, digests: Sequence[bytes], vectors: Vectors) -> None:
        """Store new vectors; a disk that takes no more is no reason not to search."""
        try:
            self._file.folder.parent.mkdir(exist_ok=True)
            with FileLock(beside(self._file.folder, "write")) as lock:
                if lock.take(WRITER_PATIENCE_SECONDS):
                    self._append(digests, vectors)
        except OSError as error:
            logger.warning("%s: %s; vectors are not cached", self._file.folder, error)

    def _append(self, digests: Sequence[bytes], vectors: Vectors) -> None:
        if self._file.read().note.get("version") != self._encoder.version:
            self._file.clear()
        known = self._known(set(digests))
        new = [place for place, digest in enumerate(digests) if digest not in known]
        if new:
            keys = np.frombuffer(b"".join(digests[place] for place in new), dtype=_DIGEST_TYPE)
            self._file.append(keys, vectors[new], {"version": self._encoder.version})


def indexed_encoders(collection: Collection) -> list[str]:
    """Names of the encoders whose vectors are there, for people."""
    folders = (collection.path / "indexes").glob(f"{_PREFIX}*")
    notes = [VectorFile(folder, np.int64).read().note for folder in folders]
    return sorted(str(note["encoder"]) for note in notes if note)


def _folder_name(encoder: Encoder) -> str:
    content = f"{encoder.name}\n{encoder.version}"
    return _PREFIX + hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
