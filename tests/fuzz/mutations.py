"""Random changes of a file: of its bytes, of its lines, of the values in its JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

# What readers stumble over: marks, numbers at limits, long and deep things, names of other files.
TOKENS = [
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\\ud800", b"\r", b"\n", b"\t"),
    *(
        b'"',
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
        b"<",
        b">",
        b"&",
        b"&#0;",
        b"&x;",
        b"%",
        b"|",
        b",",
        b":",
    ),
    *(b"null", b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"-1", b"0", b"true", b"[]", b"{}"),
    *(b"../../../etc/passwd", b"/etc/passwd", b"file:///etc/passwd", b"\\x1b[2J"),
    *(b"[" * 3000, b"{" * 3000, b'{"a":' * 3000, b"<a>" * 3000, b"x" * 70_000),
    b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY x SYSTEM "file:///etc/passwd">]>',
]
VALUES: list[Any] = [
    *(None, True, -1, 2**63, 2**70, -(2**63), 1.5, 1e308, "", " ", "\x00", "\ud800", "../../x"),
    *([], {}, [[]], {"": ""}, ["a"] * 300, "x" * 5000, [None], [1], {"id": {}}, "1", 0),
]


def _place(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 8))):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _cut(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted((_place(data, chance), _place(data, chance)))
    return chance.choice((data[:end], data[start:], data[:start] + data[end:]))


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted((_place(data, chance), _place(data, chance)))
    return data[:end] + data[start:end] * chance.choice((1, 2, 50)) + data[end:]


def _insert(data: bytes, chance: random.Random) -> bytes:
    place = _place(data, chance)
    return data[:place] + chance.choice(TOKENS) + data[place:]


def _replace(data: bytes, chance: random.Random) -> bytes:
    """Put something else for a word or a sign."""
    place = _place(data, chance)
    end = place
    while end < len(data) and data[end : end + 1].isalnum():
        end += 1
    return data[:place] + chance.choice(TOKENS) + data[max(end, place + 1) :]


def _lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines[: chance.randrange(len(lines) + 1)])


def _json(data: bytes, chance: random.Random) -> bytes:
    """Change values within the JSON of a file, or of one of its lines."""
    lines = data.splitlines(keepends=True)
    try:
        return _dumped(_changed(json.loads(data), chance))
    except (ValueError, RecursionError):
        pass
    if not lines:
        return data
    number = chance.randrange(len(lines))
    try:
        lines[number] = _dumped(_changed(json.loads(lines[number]), chance)) + b"\n"
    except (ValueError, RecursionError):
        return _replace(data, chance)
    return b"".join(lines)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        kind = chance.random()
        if kind < 0.1:
            return {one: two for one, two in value.items() if one != key}
        if kind < 0.2:
            return {**value, str(chance.choice(TOKENS[:20])): value[key]}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], _changed(value[place], chance), *value[place + 1 :]]
    return chance.choice(VALUES)


_MUTATIONS: Sequence[Callable[[bytes, random.Random], bytes]] = (
    *(_flip, _cut, _repeat, _insert, _replace, _replace, _lines, _json, _json, _json),
)


def mutated(seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """One of the seeds after one to four changes, at most 200,000 bytes of it."""
    data = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 2, 4))):
        data = chance.choice(_MUTATIONS)(data, chance)[:200_000]
    return data
