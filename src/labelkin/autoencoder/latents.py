"""Latent vectors of all stored documents: a derived store.

    models/label-ae/latents.json      which model, up to which row and generation
    models/label-ae/latents-….f16     a vector per row in float16, memory-mapped

Rows are never reused, so vectors are only ever appended. The description is
replaced atomically after them; leftovers of a crash are overwritten.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_text
from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionFullError,
    CollectionReadOnlyError,
)
from labelkin.store.derived import (
    BuildProgress,
    DerivedStore,
    SnapshotOutdatedError,
    StoreDamagedError,
    StoreState,
)
from labelkin.store.label_sets import LabelSets
from labelkin.store.locks import FileLock
from labelkin.store.reader import Reader

logger = logging.getLogger(__name__)

_CHUNK = 4096
_PATIENCE = 10.0
# Fewer new vectors are faster to compute than to write.
_WORTH_WRITING = 256

Halves = npt.NDArray[np.float16]


class Latents:
    """Latent vectors by row, for one state of a collection."""

    def __init__(
        self,
        stored: Halves,
        rest: Halves,
        corrected: tuple[npt.NDArray[np.int64], Halves] | None = None,
    ) -> None:
        self._stored = stored
        self._rest = rest
        self._corrected = corrected

    def __len__(self) -> int:
        return len(self._stored) + len(self._rest)

    def rest_from(self, first: int) -> Halves:
        """The vectors from row `first` on that are in memory."""
        if first < len(self._stored):
            return self._rest[:0]
        return self._rest[first - len(self._stored) :]

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The vectors of `rows`, which may hold a row several times."""
        flat = rows.ravel()
        vectors = np.empty((len(flat), self._rest.shape[1]), dtype=np.float32)
        is_stored = flat < len(self._stored)
        vectors[is_stored] = self._stored[flat[is_stored]]
        vectors[~is_stored] = self._rest[flat[~is_stored] - len(self._stored)]
        if self._corrected is not None:
            known, corrections = self._corrected
            places = np.minimum(np.searchsorted(known, flat), len(known) - 1)
            is_corrected = known[places] == flat
            vectors[is_corrected] = corrections[places[is_corrected]]
        return vectors.reshape(*rows.shape, vectors.shape[1])


class LatentStore(DerivedStore):
    """The latent vectors of a collection under one model."""

    noun = "latent vectors"

    def __init__(self, model: LabelModel, columns: LabelColumns) -> None:
        super().__init__(model.folder)
        self._model = model
        self.columns = columns
        self._description = model.folder / "latents.json"
        self._vectors = model.folder / f"latents-{model.checksum}.f16"
        self._stored = self._nothing()
        self._latest: tuple[StoreState, Latents] | None = None

    def at(self, reader: Reader) -> Latents:
        """The vectors of all rows that the reader sees; the missing ones are encoded.

        They are written unless they are few, another process holds the lock
        for long, or the folder cannot be written to.
        """
        with self.lock:
            label_sets = reader.label_sets()
            try:
                self.state = self.read_state(reader)
                self._check_history(reader)
            except SnapshotOutdatedError:
                return self._at_earlier(reader)
            except StoreDamagedError as error:
                logger.warning("%s; encoding all documents again", error)
                self.start_over()
            if label_sets.rows - len(self._stored) >= _WORTH_WRITING and not reader.read_only:
                try:
                    self.catch_up(reader)
                except (CollectionBusyError, CollectionReadOnlyError, CollectionFullError) as error:
                    logger.warning("%s; the latent vectors are not written", error)
            first = len(self._stored)
            known = self._encoded_before(reader, first)
            new = self._encoded(label_sets, first + len(known), label_sets.rows)
            latents = Latents(self._stored, np.concatenate((known, new)) if len(new) else known)
            self._latest = (StoreState.of(reader.generation()), latents)
            return latents

    def _at_earlier(self, reader: Reader) -> Latents:
        """The vectors for a state that the store is ahead of.

        Documents removed since then may have been encoded without their labels.
        """
        label_sets = reader.label_sets()
        stored = self._stored[: label_sets.rows]
        removed = np.array(sorted(reader.removed_since()), dtype=np.int64)
        removed = removed[removed < len(stored)]
        corrected = None
        if len(removed):
            vectors = self._model.encode(self.columns.matrix(label_sets, removed))
            corrected = (removed, vectors.astype(np.float16))
        return Latents(stored, self._encoded(label_sets, len(stored), label_sets.rows), corrected)

    def _encoded_before(self, reader: Reader, first: int) -> Halves:
        """The vectors from row `first` on that an earlier state has encoded in memory."""
        if self._latest is None:
            return self._nothing()
        state, latents = self._latest
        if not reader.knows(state.generation, state.token):
            return self._nothing()
        return latents.rest_from(first)

    def read_state(self, reader: Reader) -> StoreState:  # noqa: ARG002
        """What the description says; nothing if it belongs to another model."""
        self._stored = self._nothing()
        try:
            content = json.loads(self._description.read_text(encoding="utf-8"))
            if content["model"] != self._model.checksum or not content["rows"]:
                return StoreState()
            shape = (content["rows"], self._model.latent)
            self._stored = np.memmap(self._vectors, dtype=np.float16, mode="r", shape=shape)
            return StoreState(content["generation"], content["token"], content["rows"])
        except FileNotFoundError:
            return StoreState()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError(f"{self._description}: {error}") from error

    def apply(self, reader: Reader, progress: BuildProgress | None) -> int:  # noqa: ARG002
        """Append the vectors of the rows that are missing."""
        label_sets, generation = reader.label_sets(), reader.generation()
        first, end = len(self._stored), label_sets.rows
        size = self._model.latent * np.dtype(np.float16).itemsize
        # Start a new file if nothing is reused: other processes may have the old one mapped.
        if first == 0:
            self._vectors.unlink(missing_ok=True)
        with self._vectors.open("r+b" if first else "wb") as file:
            file.seek(first * size)
            for start in range(first, end, _CHUNK):
                vectors = self._encoded(label_sets, start, min(start + _CHUNK, end))
                file.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
        description: dict[str, Any] = {
            "model": self._model.checksum,
            "rows": end,
            "generation": generation.number,
            "token": generation.token,
        }
        with atomic_text(self._description) as text:
            json.dump(description, text)
        for path in self._vectors.parent.glob("latents-*.f16"):
            if path != self._vectors:
                path.unlink(missing_ok=True)
        self.state = self.read_state(reader)
        return end - first

    def apply_in_memory(self, reader: Reader) -> int:  # noqa: ARG002
        """Nothing to do: `at` encodes what is missing."""
        return 0

    def start_over(self) -> None:
        """Forget all vectors; `apply` writes a new file."""
        self._stored = self._nothing()
        self.state = StoreState()

    @contextmanager
    def exclusive(self, reader: Reader) -> Iterator[None]:
        """Keep other processes from writing the vectors."""
        with FileLock(self._model.folder / ".latents.lock") as lock:
            if not lock.take(_PATIENCE):
                raise CollectionBusyError(
                    f"{reader.path}: another process is writing latent vectors; try again later"
                )
            yield

    def _encoded(self, label_sets: LabelSets, first: int, end: int) -> Halves:
        vectors = np.empty((max(end - first, 0), self._model.latent), dtype=np.float16)
        for start in range(0, len(vectors), _CHUNK):
            part = slice(start, min(start + _CHUNK, len(vectors)))
            rows = np.arange(first + part.start, first + part.stop)
            vectors[part] = self._model.encode(self.columns.matrix(label_sets, rows))
        return vectors

    def _nothing(self) -> Halves:
        return np.empty((0, self._model.latent), dtype=np.float16)
