"""Compressed files as streams: gzip, bzip2, xz and Zstandard, recognised by their first bytes."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Enough to recognise every format below.
MAGIC_BYTES = 10
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
_CHUNK = 1 << 16
# xz -9 needs 65 MiB; a hostile file may ask for gigabytes.
_MAX_MEMORY = 1 << 28


class CompressedDataError(Exception):
    """Compressed data that are truncated or corrupt."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Compression:
    """A way to compress files: how it is recognised, and what decompresses one stream of it."""

    name: str
    is_start: Callable[[bytes], bool]
    decompressor: Callable[[], _Decompressor] | None = None

    def open(self, stream: IO[bytes]) -> io.BufferedIOBase:
        """The decompressed content, read as it is needed."""
        if self.decompressor is None:
            return _Gzip(fileobj=stream)
        return io.BufferedReader(_Decompressed(stream, self), buffer_size=_CHUNK)


def compression_of(start: bytes) -> Compression | None:
    """How a file with these first bytes is compressed."""
    return next((known for known in _COMPRESSIONS if known.is_start(start)), None)


def without_suffix(name: str) -> str:
    """A file name without the suffix of its compression: `a.tsv.gz` → `a.tsv`."""
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


class _Gzip(gzip.GzipFile):
    """A gzip file whose errors are CompressedDataError."""

    def read1(self, size: int = -1) -> bytes:
        try:
            return super().read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            truncated = isinstance(error, EOFError)
            reason = "the gzip data is truncated" if truncated else str(error)
            raise CompressedDataError(reason) from error


class _Decompressed(io.RawIOBase):
    """The content of one or more compressed streams, one after the other."""

    def __init__(self, stream: IO[bytes], compression: Compression) -> None:
        assert compression.decompressor is not None  # noqa: S101
        self._stream = stream
        self._compression = compression
        self._new_decompressor = compression.decompressor
        self._decompressor = compression.decompressor()
        self._pending = b""
        self._error: CompressedDataError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        chunk = self._next(len(view))
        view[: len(chunk)] = chunk
        return len(chunk)

    def _next(self, size: int) -> bytes:
        """Up to `size` bytes, none at the end; an error is raised again at every later call."""
        if self._error is not None:
            raise self._error
        try:
            chunk = b""
            while not chunk and not (self._decompressor.eof and not self._next_stream()):
                packed = self._packed()
                chunk = self._decompressor.decompress(packed, size)
        except CompressedDataError as error:
            self._error = error
            raise
        except Exception as error:  # each library has its own; bz2 raises OSError
            self._error = CompressedDataError(f"{self._compression.name}: {error}")
            raise self._error from error
        return chunk

    def _packed(self) -> bytes:
        if not self._decompressor.needs_input:
            return b""
        packed, self._pending = self._pending or self._stream.read(_CHUNK), b""
        if not packed:
            raise CompressedDataError(f"the {self._compression.name} data is truncated")
        return packed

    def _next_stream(self) -> bool:
        """Begin the stream that follows the one that has ended; False if there is none."""
        rest = self._decompressor.unused_data.lstrip(b"\x00")
        while not rest:
            rest = self._stream.read(_CHUNK)
            if not rest:
                return False
            rest = rest.lstrip(b"\x00")
        rest += self._stream.read(MAGIC_BYTES) if len(rest) < MAGIC_BYTES else b""
        if not self._compression.is_start(rest):
            reason = f"what follows the {self._compression.name} data is not compressed"
            raise CompressedDataError(reason)
        self._decompressor = self._new_decompressor()
        self._pending = rest
        return True


def _bzip2() -> _Decompressor:
    import bz2

    return bz2.BZ2Decompressor()


def _xz() -> _Decompressor:
    import lzma

    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_MEMORY)


def _zstandard() -> _Decompressor:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdDecompressor()


def _is_bzip2(start: bytes) -> bool:
    # A block, or the end of an empty file; text that begins with `BZh` has neither.
    return start[:3] == b"BZh" and start[4:10] in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")


def _is_zstandard(start: bytes) -> bool:
    skippable = start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F
    return skippable or start.startswith(b"\x28\xb5\x2f\xfd")


_COMPRESSIONS = (
    Compression("gzip", lambda start: start.startswith(b"\x1f\x8b")),
    Compression("bzip2", _is_bzip2, _bzip2),
    Compression("xz", lambda start: start.startswith(b"\xfd7zXZ\x00"), _xz),
    Compression("Zstandard", _is_zstandard, _zstandard),
)
