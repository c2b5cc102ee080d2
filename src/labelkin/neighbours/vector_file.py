"""Vectors under keys, append-only and memory-mapped.

    FOLDER/labelkin.json    the number of vectors, and a record of the writer
    FOLDER/XXXX.keys        a key per vector
    FOLDER/XXXX.vectors     float16, one after another

Vectors that labelkin.json counts never change: a reader maps them, a writer
appends after them and then replaces labelkin.json by an atomic rename.
Leftovers of a crash are overwritten. Starting over uses new file names.
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

RECORD_NAME = "labelkin.json"
VECTOR_TYPE = np.dtype("<f2")
_FORMAT_VERSION = 1


class VectorsGoneError(CollectionDamagedError):
    """The vectors were deleted or replaced; they can be rebuilt from the documents."""


@dataclass(frozen=True)
class StoredVectors:
    """Keys and vectors in a folder, and the record of their writer.

    As long as `name` is the same, vectors are only appended.
    """

    keys: npt.NDArray[Any]
    vectors: npt.NDArray[np.float16]
    record: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __len__(self) -> int:
        return len(self.keys)


class VectorFile:
    """The vectors in one folder, for any number of readers and one writer at a time."""

    def __init__(self, folder: Path, key_type: npt.DTypeLike) -> None:
        self.folder = folder
        self._key_type = np.dtype(key_type)

    def read(self) -> StoredVectors:
        """All vectors; none if they cannot be read."""
        try:
            content = json.loads((self.folder / RECORD_NAME).read_text(encoding="utf-8"))
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
        record: Mapping[str, Any],
        after: StoredVectors | None = None,
    ) -> StoredVectors:
        """Append vectors and replace the record; returns all vectors.

        With `after`, raises VectorsGoneError if the folder holds other vectors.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        stored = self.read()
        if after is not None and (stored.name, len(stored)) != (after.name, len(after)):
            raise VectorsGoneError(
                f"{self.folder}: the vectors were deleted or replaced by another process"
            )
        width = vectors.shape[1] if len(keys) else stored.vectors.shape[1]
        if not stored.name:
            self.clear()
        name = stored.name or secrets.token_hex(4)
        for path, array, kind in zip(
            self._paths(name),
            (keys, vectors),
            (self._key_type, VECTOR_TYPE),
            strict=True,
        ):
            each = kind.itemsize * (1 if array.ndim == 1 else width)
            with path.open("r+b" if path.exists() else "w+b") as file:
                file.truncate(len(stored) * each)
                file.seek(0, os.SEEK_END)
                file.write(np.ascontiguousarray(array, dtype=kind).tobytes())
                file.flush()
                os.fsync(file.fileno())
        content = {
            "format_version": _FORMAT_VERSION,
            "name": name,
            "count": len(stored) + len(keys),
            "width": width,
            "note": dict(record),
        }
        with atomic_text(self.folder / RECORD_NAME) as text:
            json.dump(content, text)
        return self.read()

    def clear(self) -> None:
        """Delete all vectors; readers that have mapped them keep them."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                path.unlink(missing_ok=True)

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self.folder / f"{name}.keys", self.folder / f"{name}.vectors"

    def _nothing(self) -> StoredVectors:
        return StoredVectors(*self._empty(0))

    def _empty(self, width: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float16]]:
        return np.empty(0, self._key_type), np.empty((0, width), VECTOR_TYPE)
