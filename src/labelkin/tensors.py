"""Arrays in a safetensors file that is mapped into memory.

What is mapped is read from disk when it is first used, shared by all processes that
map it, and given back by the system when memory is short.
"""

from __future__ import annotations

import errno
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.checksums import BlockChecksums, ChecksumError, MappedFile
from labelkin.exceptions import ConfigError

Array = npt.NDArray[Any]

_KINDS = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "U16": np.uint16,
    "U32": np.uint32,
    "U64": np.uint64,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
}
_ABOUT = "__metadata__"
# An .npz file may unpack to this many bytes, or to so many times its size.
_SMALL = 1 << 28
_MOST_UNPACKED = 100


def tensor_bytes(arrays: Mapping[str, Array], owner: str = "") -> bytes:
    """The content of a safetensors file.

    Raises ConfigError, which names the `owner` of the arrays, for one of another type than
    whole numbers, real numbers or truth values.
    """
    from safetensors.numpy import save

    for name, one in arrays.items():
        if np.asarray(one).dtype.newbyteorder("=") not in map(np.dtype, _KINDS.values()):
            known = ", ".join(np.dtype(kind).name for kind in _KINDS.values())
            raise ConfigError(
                f"{f'{owner}: ' if owner else ''}array {name!r} of type {np.asarray(one).dtype} "
                f"cannot be saved; use one of {known}"
            )
    return save({name: np.asarray(one, order="C") for name, one in arrays.items()})


class TensorFile(Mapping[str, Array]):
    """The arrays of a file by name, mapped and not verified; threads may share it.

    Raises ValueError, or OSError, for a file that is not one of safetensors, whose header
    does not fit its content, or that has another size than its checksums say.
    """

    def __init__(self, path: Path, checksums: BlockChecksums | None) -> None:
        size = path.stat().st_size
        if size < 8 or (checksums is not None and checksums.size != size):
            raise ChecksumError(path)
        self.mapped = MappedFile(path, checksums, size)
        length = int.from_bytes(self.mapped.bytes[:8].tobytes(), "little")
        self._start = 8 + length
        if self._start > size:
            raise ChecksumError(path)
        self.mapped.verify(0, self._start)
        try:
            header = json.loads(self.mapped.bytes[8 : self._start].tobytes())
            header.pop(_ABOUT, None)
            for about in header.values():
                _check_entry(about, size - self._start)
        except (AttributeError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"{path.name}: not the header of arrays ({error})") from error
        self._header: dict[str, Any] = header

    def __getitem__(self, name: str) -> Array:
        about = self._header[name]
        start, end = self.span(name)
        # Not a view of the whole file's array: SciPy copies those in each product with them.
        content = self.mapped.bytes[start:end].data
        array: Array = np.frombuffer(content, dtype=_KINDS[about["dtype"]])
        return array.reshape(about["shape"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._header)

    def __len__(self) -> int:
        return len(self._header)

    def span(self, name: str) -> tuple[int, int]:
        """Where the bytes of an array start and end in the file."""
        start, end = self._header[name]["data_offsets"]
        return self._start + start, self._start + end

    def verified(self, name: str) -> Array:
        """An array all of whose bytes have been verified; ChecksumError if they are damaged."""
        self.mapped.verify(*self.span(name))
        return self[name]


def _check_entry(about: Any, size: int) -> None:
    """Raise ValueError, KeyError or TypeError unless an array lies within the content."""
    start, end = about["data_offsets"]
    shape = about["shape"]
    numbers = [start, end, *shape]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"sizes that are no numbers: {numbers}"[:200])
    length = math.prod(shape) * np.dtype(_KINDS[about["dtype"]]).itemsize
    if end > size or end - start != length:
        raise ValueError(f"an array of {length} bytes at {start} to {end} of {size}"[:200])


def npz_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name.

    Raises ValueError, or OSError, for a file that is damaged, or that unpacks to far more
    than its size.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
        if unpacked > max(_SMALL, _MOST_UNPACKED * path.stat().st_size):
            raise ValueError(f"{path.name}: would unpack to {unpacked:,} bytes")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name]) for name in arrays.files}
    except Exception as error:
        # A place before the file's beginning is an invalid argument: damage, not a failing disk.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        # NumPy and zipfile raise a dozen kinds, TokenError among them.
        raise ValueError(f"{path.name}: not a file of arrays ({error})") from error
