"""Arrays that are written in parts, with checksums: .npy files that can be mapped into memory."""

from __future__ import annotations

import os
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelkin.atomic import sync_folder
from labelkin.checksums import BLOCK, BlockChecksums, ChecksumWriter, write_array_header

Arrays = dict[str, npt.NDArray[Any]]
Checksums = dict[str, BlockChecksums]


class ArrayFile:
    """A new .npy file; an array without a shape has one dimension and becomes as long as it gets.

    Nothing is sure to be on the disk before `sync_files`.
    """

    def __init__(
        self, path: Path, kind: np.dtype[Any], shape: tuple[int, ...] | None = None
    ) -> None:
        self._path = path
        self._kind = kind
        self._shape = shape
        self._count = 0
        self._file = path.open("w+b")
        self._writer = ChecksumWriter(self._file)
        self._header = _header(shape or (0,), kind)
        self._writer.write(self._header)
        self._checksums = BlockChecksums()

    @property
    def checksums(self) -> Checksums:
        """The checksums of a file that is complete, by its name."""
        return {self._path.name: self._checksums}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with self._file:
            if kind is None:
                self._finish()

    def write(self, values: npt.NDArray[Any]) -> None:
        """Append some values."""
        self._writer.write(np.ascontiguousarray(values, dtype=self._kind).tobytes())
        self._count += values.size

    def _finish(self) -> None:
        self._checksums = self._writer.checksums()
        if self._shape is not None:
            return
        # NumPy leaves room in the header for any length.
        header = _header((self._count,), self._kind)
        if len(header) != len(self._header):
            raise ValueError(f"{self._path}: no room for the length {self._count}")
        self._file.seek(0)
        self._file.write(header)
        self._file.seek(0)
        first = zlib.crc32(self._file.read(BLOCK))
        size, blocks = self._checksums.size, self._checksums.blocks
        self._checksums = BlockChecksums(size, (first, *blocks[1:]))


def _header(shape: tuple[int, ...], kind: np.dtype[Any]) -> bytes:
    content = BytesIO()
    write_array_header(ChecksumWriter(content), shape, kind)
    return content.getvalue()


def write_arrays(folder: Path, arrays: Arrays) -> Checksums:
    """Write arrays into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    checksums: Checksums = {}
    for name, values in arrays.items():
        with ArrayFile(folder / f"{name}.npy", values.dtype, values.shape) as file:
            file.write(values)
        checksums |= file.checksums
    return checksums


def sync_files(folder: Path) -> None:
    """Have the files of a folder written to the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sync_folder(folder)
