"""A corpus file open for reading, gzipped or not, from disk or standard input."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from labelkin.closing import Closing
from labelkin.exceptions import DamagedFileError, FormatError, InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 28
_GZIP_MAGIC = b"\x1f\x8b"
_DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile)
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class _Rewound(io.RawIOBase):
    """A stream with bytes that were already read put back in front."""

    def __init__(self, head: bytes, rest: IO[bytes] | gzip.GzipFile) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        chunk = self._head[: len(view)] if self._head else self._rest.read(len(view))
        self._head = self._head[len(chunk) :]
        view[: len(chunk)] = chunk
        return len(chunk)


def _first_bytes(stream: io.BufferedReader[_Rewound] | gzip.GzipFile) -> bytes:
    """Up to HEAD_BYTES; less if the file is shorter or damaged earlier."""
    head = b""
    try:
        while len(head) < HEAD_BYTES and (chunk := stream.read1(HEAD_BYTES - len(head))):
            head += chunk
    except _DAMAGE:
        if not head:
            raise
    return head


class Source(Closing):
    """One corpus file: its decompressed stream, and `head`, its first bytes.

    `position` and `size` count the file's own (compressed) bytes, for progress
    bars; `size` is 0 if it is unknown.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = "standard input" if str(path) == "-" else printable(path)
        self.not_utf8 = 0
        try:
            self._raw: IO[bytes] = sys.stdin.buffer if str(path) == "-" else path.open("rb")
            self.size = path.stat().st_size if path.is_file() else 0
        except OSError as error:
            raise InputError(f"{self.name}: {error.strerror or error}") from error
        try:
            self.head, self.stream = self._open()
        except BaseException:
            self._close_raw()
            raise

    def _open(self) -> tuple[bytes, io.BufferedReader[_Rewound]]:
        """The first bytes, and the whole stream including them."""
        with self.damage_reported("at its start"):
            magic = self._raw.read(len(_GZIP_MAGIC))
            whole = io.BufferedReader(_Rewound(magic, self._raw))
            plain = gzip.GzipFile(fileobj=whole) if magic == _GZIP_MAGIC else whole
            head = _first_bytes(plain)
        if head.startswith(_UTF16_MARKS):
            raise FormatError(f"{self.name}: UTF-16 text; convert it to UTF-8 first")
        head = head.removeprefix(_UTF8_MARK)
        return head, io.BufferedReader(_Rewound(head, plain), buffer_size=HEAD_BYTES)

    def _close_raw(self) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self.stream.close()
        self._close_raw()

    @property
    def stem(self) -> str:
        """The file's name without `.gz` and its extension."""
        return Path(printable(self.path).removesuffix(".gz")).stem

    @property
    def position(self) -> int:
        """The number of the file's own (compressed) bytes read so far."""
        return self._raw.tell() if self.size and not self._raw.closed else 0

    @contextmanager
    def damage_reported(self, where: str | Callable[[], str]) -> Iterator[None]:
        """Raise the various errors of a broken file as DamagedFileError."""
        try:
            yield
        except _DAMAGE as error:
            place = where if isinstance(where, str) else where()
            reason = "the gzip data is truncated" if isinstance(error, EOFError) else str(error)
            raise DamagedFileError(f"damaged {place}: {reason}") from error

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines without line ends, numbered from 1; text that is not UTF-8 is read as cp1252.

        A line of 256 MiB or more indicates a binary file and raises DamagedFileError.
        """
        number = 0
        with self.damage_reported(lambda: f"after line {number}"):
            while raw := self.stream.readline(MAX_LINE_BYTES):
                number += 1
                if len(raw) == MAX_LINE_BYTES:
                    raise DamagedFileError(f"line {number} is longer than {MAX_LINE_BYTES:,} bytes")
                text, is_utf8 = decode(raw)
                self.not_utf8 += not is_utf8
                yield number, text.rstrip("\r\n")


def decode(raw: bytes) -> tuple[str, bool]:
    """Decode as UTF-8, else as Windows-1252; also returns whether it was UTF-8."""
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), False


def printable(path: Path) -> str:
    """The path as text, even if its name is not valid Unicode."""
    return os.fsencode(path).decode("utf-8", "replace")
