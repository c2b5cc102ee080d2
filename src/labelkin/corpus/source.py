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
    """A stream whose first bytes were already read, put back in front."""

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
    """Up to HEAD_BYTES; where a file is damaged early, what stands before the damage."""
    head = b""
    try:
        while len(head) < HEAD_BYTES and (chunk := stream.read1(HEAD_BYTES - len(head))):
            head += chunk
    except _DAMAGE:
        if not head:
            raise
    return head


class Source(Closing):
    """One corpus file: its decompressed bytes, its first bytes for a look, and its position.

    `position` and `size` count the file's own (compressed) bytes, so that a
    progress bar can tell how far a reader is; `size` is 0 where it is unknown.
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
        """The first bytes, and the whole stream with them put back."""
        with self.damage_reported("at its start"):
            mark = self._raw.read(len(_GZIP_MAGIC))
            whole = io.BufferedReader(_Rewound(mark, self._raw))
            plain = gzip.GzipFile(fileobj=whole) if mark == _GZIP_MAGIC else whole
            head = _first_bytes(plain)
        if head.startswith(_UTF16_MARKS):
            raise FormatError(f"{self.name}: UTF-16 text; convert it to UTF-8 first")
        head = head.removeprefix(_UTF8_MARK)
        return head, io.BufferedReader(_Rewound(head, plain), buffer_size=HEAD_BYTES)

    def _close_raw(self) -> None:
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def close(self) -> None:
        """Let go of the file."""
        self.stream.close()
        self._close_raw()

    @property
    def stem(self) -> str:
        """The file's name without `.gz` and its extension."""
        return Path(printable(self.path).removesuffix(".gz")).stem

    @property
    def position(self) -> int:
        """How many of the file's own bytes have been read."""
        return self._raw.tell() if self.size and not self._raw.closed else 0

    @contextmanager
    def damage_reported(self, where: str | Callable[[], str]) -> Iterator[None]:
        """Turn the many errors of a broken file into one DamagedFileError."""
        try:
            yield
        except _DAMAGE as error:
            place = where if isinstance(where, str) else where()
            reason = "the gzip data break off" if isinstance(error, EOFError) else str(error)
            raise DamagedFileError(f"damaged {place}: {reason}") from error

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines (from 1) without their ends; text that is not UTF-8 is read as cp1252.

        A line over 256 MiB is a sign of a binary file and ends the reading.
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
    """Text, and whether it was UTF-8; what is not is read as Windows-1252."""
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), False


def printable(path: Path) -> str:
    """The path as text, even if its name is no Unicode."""
    return os.fsencode(path).decode("utf-8", "replace")
