"""JSON in the layouts that people have: a record a line, several, or one over many lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from labelkin.corpus.record import RecordError
from labelkin.corpus.source import RecordStream, Source
from labelkin.exceptions import DamagedFileError

_BETWEEN_VALUES = re.compile(r"[\s,]*")
_DEEPEST = 1000
_MOST_DIGITS = 1000
_LONG_NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (_MOST_DIGITS + 1))
_LAST_NUMBER = re.compile(rb"[-+.0-9eE]*\Z")
# A complete string, whatever is escaped in it.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_OPENING = ord("[")
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(one for one in range(256) if one not in b"[]{}")


class RepeatedKeys(dict[str, Any]):
    """An object of JSON in which `key` occurs more than once; the last one counts."""

    key = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    repeated = RepeatedKeys(members)
    names = [name for name, _ in pairs]
    repeated.key = next(name for name in members if names.count(name) > 1)
    return repeated


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def parse_json(text: str) -> Any:
    """Parse `text`; RecordError if it is not valid JSON. NaN and infinities are let through."""
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise RecordError("JSON nested too deeply") from error
    except ValueError as error:
        raise RecordError(f"broken JSON ({error})") from error


def parse_line(text: str) -> list[Any]:
    """The records on one line: one, or several without line ends or with commas between them."""
    try:
        return [parse_json(text)]
    except RecordError as error:
        records = _records(text)
        if not records:
            raise
        if records[-1] is None:
            raise RecordError(str(error)) from error
        return records


def _records(text: str) -> list[Any]:
    """The objects in `text`; the last one is None if there is anything else."""
    records: list[Any] = []
    place = 0
    while (place := _next_place(text, place)) < len(text):
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            value = None
        records.append(value if isinstance(value, dict) else None)
        if records[-1] is None:
            break
    return records


def _next_place(text: str, place: int) -> int:
    between = _BETWEEN_VALUES.match(text, place)
    return between.end() if between else place


def spans_lines(head: bytes) -> bool:
    """Whether a file begins with an object whose members are on lines of their own."""
    start = head.lstrip()
    first, newline, rest = start.partition(b"\n")
    if not start.startswith(b"{") or not newline or not rest.lstrip().startswith((b'"', b"}")):
        return False
    try:
        parse_line(first.decode("utf-8", "replace"))
    except RecordError:
        return True
    return False


def stream_values(source: Source, prefix: str = "", what: str = "record") -> Iterator[Any]:
    """The values under `prefix` (as ijson names it), or all that follow each other without one.

    A syntax error raises DamagedFileError, which says after how many values.
    """
    import ijson

    number = 0
    stream = _ShallowStream(source)
    try:
        with source.damage_reported(lambda: f"after {what} {number}"):
            # ijson's own floats would limit integers to 64 bits.
            for value in ijson.items(stream, prefix, multiple_values=not prefix):
                number += 1
                stream.end_record()
                yield _with_floats(value)
    except (ijson.JSONError, UnicodeDecodeError, InvalidOperation) as error:
        is_number = isinstance(error, InvalidOperation)
        reason = "a number is out of range" if is_number else " ".join(str(error).split())
        raise DamagedFileError(f"broken JSON after {what} {number}: {reason}") from error


class _ShallowStream(RecordStream):
    """A stream of JSON that refuses what ijson cannot take.

    Deep nesting costs it quadratic time, and an integer that is longer than Python converts
    ends the process.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._depth = 0
        self._open = b""
        self._number = b""

    def read(self, size: int = -1) -> bytes:
        """What a parser asks for."""
        chunk = super().read(size)
        outside, quote, text = _STRING.sub(b"", self._open + chunk).partition(b'"')
        # The beginning of a string that goes on in the next chunk, as short as it can be.
        is_escape = (len(text) - len(text.rstrip(b"\\"))) % 2 == 1
        self._open = quote + (b"\\" if is_escape else b"")
        self._check_numbers(outside, is_open=bool(quote))
        brackets = outside.translate(_AS_BRACKETS, _NO_BRACKETS)
        deepest = self._depth
        for bracket in brackets:
            self._depth += 1 if bracket == _OPENING else -1
            deepest = max(deepest, self._depth)
        if deepest > _DEEPEST:
            raise DamagedFileError(f"values are nested more than {_DEEPEST:,} levels deep")
        return chunk

    def _check_numbers(self, outside: bytes, *, is_open: bool) -> None:
        """Refuse a long number in what is outside strings, be it in chunks before this one."""
        outside = self._number + outside
        if _LONG_NUMBER.search(outside):
            raise DamagedFileError(f"a number has more than {_MOST_DIGITS:,} digits")
        last = _LAST_NUMBER.search(outside[-_MOST_DIGITS:])
        self._number = b"" if is_open or last is None else last[0]


def _with_floats(value: Any) -> Any:
    """The value with floats for Decimals, changed in place."""
    root = [value]
    waiting: list[Any] = [root]
    while waiting:
        container = waiting.pop()
        items = container.items() if isinstance(container, dict) else enumerate(container)
        for key, item in items:
            if isinstance(item, Decimal):
                container[key] = float(item)
            elif isinstance(item, dict | list):
                waiting.append(item)
    return root[0]
