"""Latent vectors of all stored documents, kept on disk and brought up to date when used.

    models/label-ae/latents.json      which model, up to which row and state of the collection
    models/label-ae/latents-….f16     a vector per row in float16, memory-mapped

Rows are never reused, so vectors are only ever appended. The description is
replaced in one step behind them; what a kill left beyond it is written over.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_text
from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.model import LabelModel
from labelkin.store.label_sets import LabelSets
from labelkin.store.locks import FileLock

if TYPE_CHECKING:
    from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

_CHUNK = 4096
_PATIENCE = 10.0

Halves = npt.NDArray[np.float16]


class Latents:
    """Latent vectors by row, for one state of a collection."""

    def __init__(self, stored: Halves, rest: Halves) -> None:
        self._stored = stored
        self._rest = rest

    def __len__(self) -> int:
        return len(self._stored) + len(self._rest)

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The vectors of `rows`; one of them may be asked for several times."""
        flat = rows.ravel()
        found = np.empty((len(flat), self._rest.shape[1]), dtype=np.float32)
        is_stored = flat < len(self._stored)
        found[is_stored] = self._stored[flat[is_stored]]
        found[~is_stored] = self._rest[flat[~is_stored] - len(self._stored)]
        return found.reshape(*rows.shape, found.shape[1])


class LatentFolder:
    """The latent vectors of a collection under one model."""

    def __init__(self, collection: Collection, model: LabelModel, columns: LabelColumns) -> None:
        self._collection = collection
        self._model = model
        self._columns = columns
        self._description = model.folder / "latents.json"
        self._vectors = model.folder / f"latents-{model.digest}.f16"

    def open(self, label_sets: LabelSets) -> Latents:
        """The vectors of all rows that have label sets, those that were missing encoded now.

        They are written down unless another process is at it for long, or the
        folder cannot be written to.
        """
        stored = self._stored()
        if len(stored) < label_sets.rows and not self._collection.database.read_only:
            lock = FileLock(self._model.folder / ".latents.lock")
            with lock:
                if lock.take(_PATIENCE):
                    try:
                        self._append(label_sets)
                        stored = self._stored()
                    except OSError as error:
                        logger.warning("%s: %s; not kept", self._vectors, error.strerror)
        return Latents(stored, self._encoded(label_sets, len(stored), label_sets.rows))

    def _append(self, label_sets: LabelSets) -> None:
        first, end = len(self._stored()), label_sets.rows
        if first >= end:
            return
        generation = self._collection.generation()
        size = self._model.latent * np.dtype(np.float16).itemsize
        # What was made for another past is replaced, not written over: others may map it.
        if first == 0:
            self._vectors.unlink(missing_ok=True)
        with self._vectors.open("r+b" if first else "wb") as file:
            file.seek(first * size)
            for start in range(first, end, _CHUNK):
                vectors = self._encoded(label_sets, start, min(start + _CHUNK, end))
                file.write(vectors.tobytes())
            file.flush()
            os.fsync(file.fileno())
        description = {
            "model": self._model.digest,
            "rows": end,
            "generation": generation.number,
            "token": generation.token,
        }
        with atomic_text(self._description) as text:
            json.dump(description, text)
        for path in self._vectors.parent.glob("latents-*.f16"):
            if path != self._vectors:
                path.unlink(missing_ok=True)

    def _encoded(self, label_sets: LabelSets, first: int, end: int) -> Halves:
        vectors = np.empty((max(end - first, 0), self._model.latent), dtype=np.float16)
        for start in range(0, len(vectors), _CHUNK):
            part = slice(start, min(start + _CHUNK, len(vectors)))
            rows = np.arange(first + part.start, first + part.stop)
            vectors[part] = self._model.encode(self._columns.matrix(label_sets, rows))
        return vectors

    def _stored(self) -> Halves:
        """What is on disk for this model and this collection's past; nothing if that is another."""
        nothing = np.empty((0, self._model.latent), dtype=np.float16)
        try:
            content = json.loads(self._description.read_text(encoding="utf-8"))
            known = self._collection.knows(content["generation"], content["token"])
            if content["model"] != self._model.digest or not known or not content["rows"]:
                return nothing
            shape = (content["rows"], self._model.latent)
            return np.memmap(self._vectors, dtype=np.float16, mode="r", shape=shape)
        except FileNotFoundError:
            return nothing
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s: %s; latent vectors are made anew", self._description, error)
            return nothing
