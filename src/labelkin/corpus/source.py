"""A corpus file open for reading, compressed or not, from disk or standard input."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.closing import Closing
from labelkin.corpus.compression import (
    MAGIC_BYTES,
    CompressedDataError,
    compression_of,
    without_suffix,
)
from labelkin.corpus.foreign import foreign_kind
from labelkin.exceptions import DamagedFileError, FormatError, InputError, WrongKindError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

HEAD_BYTES = 1 << 16
MAX_LINE_BYTES = 1 << 28
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class _Rewound(io.RawIOBase):
    """A stream with bytes that were already read put back in front."""

    def __init__(self, head: bytes, rest: io.BufferedIOBase) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        # read1 gives what there is before damage, where read would lose it.
        chunk = self._head[: len(view)] if self._head else self._rest.read1(len(view))
        self._head = self._head[len(chunk) :]
        view[: len(chunk)] = chunk
        return len(chunk)


def _first_bytes(stream: io.BufferedIOBase) -> bytes:
    """Up to HEAD_BYTES; less if the file is shorter or damaged earlier."""
    head = b""
    try:
        while len(head) < HEAD_BYTES and (chunk := stream.read1(HEAD_BYTES - len(head))):
            head += chunk
    except CompressedDataError:
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
            self._raw: io.BufferedIOBase = (
                sys.stdin.buffer if str(path) == "-" else path.open("rb")  # type: ignore[assignment]
            )
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
            magic = self._raw.read(MAGIC_BYTES)
            whole = io.BufferedReader(_Rewound(magic, self._raw))
            compression = compression_of(magic)
            plain: io.BufferedIOBase = compression.open(whole) if compression else whole
            head = _first_bytes(plain)
        if (foreign := foreign_kind(head)) is not None:
            raise WrongKindError(f"{self.name}: {foreign.message}", foreign.kind)
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
        """The file's name without the suffix of its compression and its extension."""
        return Path(without_suffix(printable(self.path))).stem

    @property
    def position(self) -> int:
        """The number of the file's own (compressed) bytes read so far."""
        return self._raw.tell() if self.size and not self._raw.closed else 0

    @contextmanager
    def damage_reported(self, where: str | Callable[[], str]) -> Iterator[None]:
        """Raise the various errors of a broken file as DamagedFileError."""
        try:
            yield
        except CompressedDataError as error:
            place = where if isinstance(where, str) else where()
            raise DamagedFileError(f"damaged {place}: {error}") from error

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
