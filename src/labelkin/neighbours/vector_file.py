"""Vectors under keys, append-only and memory-mapped.

    FOLDER/labelkin.json    the number of vectors, and a record of the writer
    FOLDER/XXXX.keys        a key per vector
    FOLDER/XXXX.vectors     float16, one after another

Vectors that labelkin.json counts never change: a reader maps them, a writer
appends after them and then replaces labelkin.json by an atomic rename.
Leftovers of a crash are overwritten. Starting over, and dropping vectors, uses
new file names.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakMethod

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_text
from labelkin.checksums import (
    SMALL,
    BlockChecksums,
    ChecksumError,
    ChecksumWriter,
    read_sealed,
    sealed,
)
from labelkin.exceptions import CollectionDamagedError
from labelkin.store.background import verify_later
from labelkin.store.folder import file_signature

RECORD_NAME = "labelkin.json"
VECTOR_TYPE = np.dtype("<f2")
_FORMAT_VERSION = 1
_DELETION_SECONDS = 0.2
_CHUNK = 1 << 16
_NAMED = re.compile(r"[0-9a-f]{8}\.")


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
    checksums: Mapping[Path, BlockChecksums] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)


class VectorFile:
    """The vectors in one folder, for any number of readers and one writer at a time.

    Small files are verified when they are read, others in the background;
    `report` is called with the damage that is found there.
    """

    def __init__(
        self, folder: Path, key_type: npt.DTypeLike, report: Callable[[str], None] | None = None
    ) -> None:
        self.folder = folder
        self._key_type = np.dtype(key_type)
        self._report = None if report is None else WeakMethod(report)
        self._verified: dict[str, int] = {}
        #: Why the vectors could not be read last time.
        self.damage: str | None = None

    def record(self) -> Mapping[str, Any]:
        """The record of the writer alone; empty if it cannot be read."""
        try:
            record: Mapping[str, Any] = read_sealed(self.folder / RECORD_NAME)["note"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return record

    def read(self) -> StoredVectors:
        """All vectors; none if they cannot be read or are damaged."""
        signature = None
        # Between reading the record and opening the files, another process may replace both.
        while signature != (signature := file_signature(self.folder / RECORD_NAME)):
            stored = self._read()
            if stored is not None:
                return stored
        return self._nothing()

    def _read(self) -> StoredVectors | None:
        """All vectors, None if a file is not there."""
        self.damage = None
        try:
            content = read_sealed(self.folder / RECORD_NAME)
            if content["format_version"] != _FORMAT_VERSION:
                return self._nothing()
            count, width = content["count"], content["width"]
            if not count:
                return StoredVectors(*self._empty(width), content["note"])
            keys_path, vectors_path = self._paths(content["name"])
            checksums = self._checksums(content)
            for path, recorded in checksums.items():
                self._verify(path, recorded)
            keys = np.memmap(keys_path, self._key_type, "r", shape=(count,))
            vectors = np.memmap(vectors_path, VECTOR_TYPE, "r", shape=(count, width))
            return StoredVectors(keys, vectors, content["note"], content["name"], checksums)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            place = "" if isinstance(error, ChecksumError) else f"{self.folder}: "
            self.damage = f"{place}{error}"
            return self._nothing()

    def verify(self) -> bool:
        """Raise ChecksumError if a file is damaged; whether checksums are recorded.

        Without a record nothing is stored yet, or not any more.
        """
        before: Mapping[str, Any] | None = None
        content: Mapping[str, Any] = {}
        while (self.folder / RECORD_NAME).exists():
            try:
                content = read_sealed(self.folder / RECORD_NAME)
                checksums = self._checksums(content) if content["count"] else {}
                for path, recorded in checksums.items():
                    recorded.verify(path)
                return bool(checksums) or not content["count"]
            except FileNotFoundError:
                if content == before:
                    raise
                # Another process may be replacing or deleting the vectors.
                before = content
                time.sleep(_DELETION_SECONDS)
        return True

    def _checksums(self, content: Mapping[str, Any]) -> dict[Path, BlockChecksums]:
        recorded = content.get("checksums", ())
        paths = self._paths(content["name"])
        return {
            path: BlockChecksums.from_json(one) for path, one in zip(paths, recorded, strict=False)
        }

    def _verify(self, path: Path, recorded: BlockChecksums) -> None:
        """Verify what has not been verified before, now or in the background."""
        before = self._verified.get(path.name, 0)
        if recorded.size == before:
            return
        if path.stat().st_size < recorded.size:
            raise ChecksumError(path)
        report = None if self._report is None else self._report()
        if recorded.size - before <= SMALL or report is None:
            recorded.verify(path, before)
        else:
            verify_later(partial(recorded.verify, path, before), report)
        self._verified = {
            name: size for name, size in self._verified.items() if name[:8] == path.name[:8]
        }
        self._verified[path.name] = recorded.size

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
        checksums = []
        for path, array, kind in zip(
            self._paths(name),
            (keys, vectors),
            (self._key_type, VECTOR_TYPE),
            strict=True,
        ):
            each = kind.itemsize * (1 if array.ndim == 1 else width)
            before = stored.checksums.get(path)
            if before is None and len(stored):
                before = BlockChecksums.of_file(path, len(stored) * each)
            with path.open("r+b" if path.exists() else "w+b") as file:
                file.truncate(len(stored) * each)
                file.seek(0, os.SEEK_END)
                writer = ChecksumWriter(file, before)
                writer.write(np.ascontiguousarray(array, dtype=kind).tobytes())
                file.flush()
                os.fsync(file.fileno())
            checksums.append(writer.checksums())
        self._write_record(name, len(stored) + len(keys), width, record, checksums)
        return self.read()

    def keep(self, is_kept: npt.NDArray[np.bool_], record: Mapping[str, Any]) -> StoredVectors:
        """Rewrite the vectors without some, with a new record; returns the others.

        Readers that have mapped them keep them. ChecksumError if they are damaged: new
        checksums must not cover that.
        """
        stored = self.read()
        for path, recorded in stored.checksums.items():
            recorded.verify(path)
        name = secrets.token_hex(4)
        checksums = []
        for path, array in zip(self._paths(name), (stored.keys, stored.vectors), strict=True):
            with path.open("w+b") as file:
                writer = ChecksumWriter(file)
                for start in range(0, len(array), _CHUNK):
                    part = slice(start, start + _CHUNK)
                    writer.write(array[part][is_kept[part]].tobytes())
                file.flush()
                os.fsync(file.fileno())
            checksums.append(writer.checksums())
        # Indexes of earlier versions do not say to which vectors they belong.
        for path in self.folder.glob("*.faiss"):
            path.unlink(missing_ok=True)
        width = stored.vectors.shape[1]
        self._write_record(name, int(is_kept.sum()), width, record, checksums)
        for path in self.leftovers():
            path.unlink(missing_ok=True)
        return self.read()

    def leftovers(self) -> list[Path]:
        """Files that do not belong to the vectors, as a killed process leaves them."""
        try:
            name = str(read_sealed(self.folder / RECORD_NAME)["name"])
        except (OSError, ValueError, KeyError):
            return []
        # An earlier version's index has no name of vectors in its own.
        files = [path for path in self.folder.glob("[!.]*") if path.name != RECORD_NAME]
        return [path for path in files if path.name[:8] != name and _NAMED.match(path.name)]

    def _write_record(
        self,
        name: str,
        count: int,
        width: int,
        record: Mapping[str, Any],
        checksums: Sequence[BlockChecksums],
    ) -> None:
        content = {
            "format_version": _FORMAT_VERSION,
            "name": name,
            "count": count,
            "width": width,
            "note": dict(record),
            "checksums": [one.to_json() for one in checksums],
        }
        with atomic_text(self.folder / RECORD_NAME) as text:
            text.write(sealed(content))

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
