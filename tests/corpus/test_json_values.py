from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labelkin.corpus.json_values import (
    RepeatedKeys,
    parse_json,
    parse_line,
    spans_lines,
    stream_values,
)
from labelkin.corpus.record import RecordError
from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError

Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ("[1, 2]", [[1, 2]]),
        ('{"a": 1}{"b": 2} , {"c": "},{"},', [{"a": 1}, {"b": 2}, {"c": "},{"}]),
    ],
)
def test_lines(line: str, expected: list[Any]) -> None:
    assert parse_line(line) == expected


@pytest.mark.parametrize(
    "line", ['"a": 1,', '"a",', '{"a": 1}{', '{"a": 1} x', "1 2", ",", "", "{" * 100_000]
)
def test_lines_that_are_not_records(line: str) -> None:
    with pytest.raises(RecordError, match="JSON"):
        parse_line(line)


def test_repeated_keys() -> None:
    value = parse_json('{"a": 1, "b": 2, "b": 3, "a": {"c": 1}}')
    assert isinstance(value, RepeatedKeys)
    assert (value, value.key) == ({"a": {"c": 1}, "b": 3}, "a")
    assert type(value["a"]) is dict
    assert json.dumps(value) == '{"a": {"c": 1}, "b": 3}'


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'{\n  "id": "a"\n}\n', True),
        (b'{ "id": "a",\n"title": "x"}\n', True),
        (b'{"id": "a"}\n{"id": "b"}\n', False),
        (b'{"id": "a", "title": "never closed\n{"id": "b"}\n', False),
        (b'{"id": "a"', False),
        (b'[{\n"id": "a"}]', False),
    ],
)
def test_records_over_several_lines(head: bytes, expected: bool) -> None:
    assert spans_lines(head) is expected


def test_streams(write: Write) -> None:
    text = f'{{"n": [1.5, {10**30}], "x": {{"y": -2e3}}}}\n[0.25]\n{{'
    values = []
    with (
        pytest.raises(DamagedFileError, match="broken JSON after record 2"),
        Source(write("a.json", text)) as source,
    ):
        values.extend(stream_values(source))
    assert values == [{"n": [1.5, 10**30], "x": {"y": -2000.0}}, [0.25]]
    assert [type(number) for number in values[0]["n"]] == [float, int]
