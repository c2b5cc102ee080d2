"""A corpus file open for reading, compressed or not, from disk or standard input."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
MAX_RECORD_BYTES = 1 << 26
_UTF8_MARK = b"\xef\xbb\xbf"
_LOST_MARK = "\ufeff"
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# So much of a file without a line feed means that its lines end otherwise.
_LOOK_AHEAD = 1 << 20


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


class _LineFeeds(io.RawIOBase):
    """A stream with a line feed for each carriage return."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        chunk = self._stream.read1(len(view)).replace(b"\r", b"\n")
        view[: len(chunk)] = chunk
        return len(chunk)


def _first_bytes(stream: io.BufferedIOBase, size: int) -> bytes:
    """Up to `size` bytes; less if the file is shorter or damaged earlier."""
    head = b""
    try:
        while len(head) < size and (chunk := stream.read1(size - len(head))):
            head += chunk
    except CompressedDataError:
        if not head:
            raise
    return head


def _wide_encoding(head: bytes) -> str | None:
    """`UTF-16` or `UTF-32` if a file with this head is text of that kind, marked or not."""
    for mark, name in _WIDE_MARKS.items():
        if head.startswith(mark):
            return name
    start = head[:1000]
    nulls = [start[place::4].count(0) for place in range(4)]
    quarter = len(start) // 4
    # Most characters of most texts are ASCII: all but one of their bytes are zero.
    empty = [count > 0.7 * quarter for count in nulls]
    if quarter < 2 or sum(nulls) == len(start):
        return None
    if sum(empty) == 3:
        return "UTF-32"
    return "UTF-16" if empty in ([True, False] * 2, [False, True] * 2) else None


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
                _standard_input() if str(path) == "-" else path.open("rb")
            )
            self.size = path.stat().st_size if path.is_file() else 0
        except OSError as error:
            raise InputError(f"{self.name}: {error.strerror or error}") from error
        try:
            self.head, self.stream = self._open()
        except BaseException:
            self._close_raw()
            raise

    def _open(self) -> tuple[bytes, io.BufferedReader[Any]]:
        """The first bytes, and the whole stream including them."""
        with self.damage_reported("at its start"):
            magic = self._raw.read(MAGIC_BYTES)
            whole = io.BufferedReader(_Rewound(magic, self._raw))
            compression = compression_of(magic)
            plain: io.BufferedIOBase = compression.open(whole) if compression else whole
            head = _first_bytes(plain, HEAD_BYTES)
        if (foreign := foreign_kind(head)) is not None:
            raise WrongKindError(f"{self.name}: {foreign.message}", foreign.kind)
        if compression is not None and compression_of(head) is not None:
            raise FormatError(f"{self.name}: compressed twice; unpack it once")
        if (encoding := _wide_encoding(head)) is not None:
            raise FormatError(f"{self.name}: {encoding} text; convert it to UTF-8 first")
        while head.startswith(_UTF8_MARK):
            head = head.removeprefix(_UTF8_MARK)
        if b"\r" in head and b"\n" not in head:
            ahead = head
            # Damage is reported where it is reached.
            with suppress(CompressedDataError):
                ahead += _first_bytes(plain, _LOOK_AHEAD)
            whole = io.BufferedReader(_Rewound(ahead, plain))
            if b"\n" not in ahead:
                # Carriage returns alone end the lines, as on an old Macintosh.
                return head.replace(b"\r", b"\n"), io.BufferedReader(_LineFeeds(whole), HEAD_BYTES)
            return head, whole
        return head, io.BufferedReader(_Rewound(head, plain), buffer_size=HEAD_BYTES)

    def _close_raw(self) -> None:
        if str(self.path) != "-":
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
        except OSError as error:
            place = where if isinstance(where, str) else where()
            reason = error.strerror or error
            raise DamagedFileError(f"cannot be read {place}: {reason}") from error

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines without line ends, numbered from 1; bytes that are not UTF-8 are read as cp1252.

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
                # Files with a byte order mark that were joined have marks between lines.
                yield number, text.rstrip("\r\n").lstrip(_LOST_MARK)


class RecordStream:
    """The stream of a source for a parser that holds one record at a time in memory.

    A small compressed file can hold a text without end: if more than 64 MiB
    are read without a record, `read` raises DamagedFileError.
    """

    def __init__(self, source: Source) -> None:
        self._stream = source.stream
        self._bytes = 0

    def read(self, size: int = -1) -> bytes:
        """What a parser asks for."""
        chunk = self._stream.read(size)
        self._bytes += len(chunk)
        if self._bytes > MAX_RECORD_BYTES:
            raise DamagedFileError(f"more than {MAX_RECORD_BYTES:,} bytes without a record")
        return chunk

    def end_record(self) -> None:
        """Begin to count anew."""
        self._bytes = 0


def _standard_input() -> io.BufferedIOBase:
    if sys.stdin is None:
        raise InputError("standard input: closed; pipe texts or a corpus into it")
    stream: io.BufferedIOBase = sys.stdin.buffer  # type: ignore[assignment]
    return stream


def decode(raw: bytes) -> tuple[str, bool]:
    """Decode as UTF-8, and what is not as Windows-1252; also returns whether all was UTF-8.

    One byte of another encoding does not spoil the other characters of its line.
    """
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", errors=_AS_WINDOWS_1252), False


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", errors="replace"), error.end


_AS_WINDOWS_1252 = "labelkin-cp1252"
codecs.register_error(_AS_WINDOWS_1252, _as_windows_1252)


def printable(path: Path) -> str:
    """The path as text, even if its name is not valid Unicode."""
    return os.fsencode(path).decode("utf-8", "replace")
