"""Vectors under keys, append-only and memory-mapped.

    FOLDER/labelkin.json    how many there are, and what else the writer notes
    FOLDER/XXXX.keys        a key per vector
    FOLDER/XXXX.vectors     float16, one after another

Nothing that the note counts ever changes: a reader maps that much, a writer
appends behind it and then replaces the note by an atomic rename. What a crash
left behind is overwritten. Starting over takes new names.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_text
from labelkin.exceptions import CollectionDamagedError

NOTE_NAME = "labelkin.json"
VECTOR_TYPE = np.dtype("<f2")
_FORMAT_VERSION = 1


class VectorsGoneError(CollectionDamagedError):
    """The vectors are not those that were there; they can be made anew from the documents."""


@dataclass(frozen=True)
class StoredVectors:
    """What a folder holds: keys, vectors, and the note of whoever wrote them.

    Under the same `name`, what was there before is still there.
    """

    keys: npt.NDArray[Any]
    vectors: npt.NDArray[np.float16]
    note: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __len__(self) -> int:
        return len(self.keys)


class VectorFile:
    """The vectors in one folder. A writer must be alone; readers need not care."""

    def __init__(self, folder: Path, key_type: npt.DTypeLike) -> None:
        self.folder = folder
        self._key_type = np.dtype(key_type)

    def read(self) -> StoredVectors:
        """All vectors; none where there is nothing that can be read."""
        try:
            content = json.loads((self.folder / NOTE_NAME).read_text(encoding="utf-8"))
            if content["format_version"] != _FORMAT_VERSION:
                return self._nothing()
            count, width = content["count"], content["width"]
            if not count:
                return StoredVectors(*self._empty(width), content["note"])
            keys_path, vectors_path = self._paths(content["name"])
            keys = np.memmap(keys_path, self._key_type, "r", shape=(count,))
            vectors = np.memmap(vectors_path, VECTOR_TYPE, "r", shape=(count, width))
            return StoredVectors(keys, vectors, content["note"], content["name"])
        except (OSError, ValueError, KeyError, TypeError):
            return self._nothing()

    def append(
        self,
        keys: npt.NDArray[Any],
        vectors: npt.NDArray[Any],
        note: Mapping[str, Any],
        after: StoredVectors | None = None,
    ) -> StoredVectors:
        """Add vectors behind those that are there, and replace the note; all that is there now.

        With `after`, raises VectorsGoneError where these are not what is there.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        there = self.read()
        if after is not None and (there.name, len(there)) != (after.name, len(after)):
            raise VectorsGoneError(f"{self.folder}: the vectors are gone or another writer's")
        width = vectors.shape[1] if len(keys) else there.vectors.shape[1]
        if not there.name:
            self.clear()
        name = there.name or secrets.token_hex(4)
        for path, array, kind in zip(
            self._paths(name),
            (keys, vectors),
            (self._key_type, VECTOR_TYPE),
            strict=True,
        ):
            each = kind.itemsize * (1 if array.ndim == 1 else width)
            with path.open("r+b" if path.exists() else "w+b") as file:
                file.truncate(len(there) * each)
                file.seek(0, os.SEEK_END)
                file.write(np.ascontiguousarray(array, dtype=kind).tobytes())
                file.flush()
                os.fsync(file.fileno())
        content = {
            "format_version": _FORMAT_VERSION,
            "name": name,
            "count": len(there) + len(keys),
            "width": width,
            "note": dict(note),
        }
        with atomic_text(self.folder / NOTE_NAME) as text:
            json.dump(content, text)
        return self.read()

    def clear(self) -> None:
        """Start over; who has the old vectors mapped keeps them."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                path.unlink(missing_ok=True)

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self.folder / f"{name}.keys", self.folder / f"{name}.vectors"

    def _nothing(self) -> StoredVectors:
        return StoredVectors(*self._empty(0))

    def _empty(self, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float16]]:
        return np.empty(0, self._key_type), np.empty((0, width), VECTOR_TYPE)
