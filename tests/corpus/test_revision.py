from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.corpus.revision import is_older, parse_revision, sort_key


@pytest.mark.parametrize(
    ("value", "revision"),
    [
        ("2024-03-05", "2024-03-05"),
        (" 2024/03/05 ", "2024-03-05"),
        ("2024-03", "2024-03"),
        ("2024-03-05T10:30:00", "2024-03-05T10:30:00"),
        ("2024-03-05 10:30", "2024-03-05T10:30:00"),
        ("2024-03-05T10:30:00Z", "2024-03-05T10:30:00"),
        ("2024-03-05T00:30:00+02:00", "2024-03-04T22:30:00"),
        ("20240305103000.0", "20240305103000.0"),
        (7, "7"),
        (1.5, "1.5"),
        ("v1.4.2", "1.4.2"),
        ("2024", "2024"),
        ("", None),
        ("draft", None),
        ("2024-13-01", None),
        ("2024-13", None),
        ("2024-02-30", None),
        ("0001-01-01T00:00:00+02:00", None),
        ("-1", None),
        (-1, None),
        (True, None),
        (None, None),
        ([2024], None),
        (float("inf"), None),
        ("9" * 100, None),
        ("٣", None),
    ],
)
def test_parse(value: Any, revision: str | None) -> None:
    assert parse_revision(value) == revision
    if revision is not None:
        assert parse_revision(revision) == revision


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2023-12-31", "2024-01-01"),
        ("2023-12", "2024-01-15"),
        ("2024-03-05T10:29:59", "2024-03-05T10:30:00"),
        ("9", "10"),
        ("1.9", "1.10"),
        ("1.2", "1.2.1"),
        ("2023", "2024"),
        ("2023", "2024-03-05"),
        ("2023-12-31T10:00:00", "2024"),
    ],
)
def test_order(older: str, newer: str) -> None:
    assert is_older(older, newer)
    assert not is_older(newer, older)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2024-03-05", "2024-03-05"),
        ("2024-03-05", "2024-03-05T10:30:00"),
        ("2024-03", "2024-03-05"),
        ("2024-03-05T10:30:00", "2024-03-05T10:30:00.250000"),
        ("1.2", "1.2.0"),
        ("007", "7"),
        ("2024", "2024-03-05"),
        ("7", "2024-03-05"),
        (None, "7"),
        (None, None),
    ],
)
def test_neither_is_older(one: str | None, other: str | None) -> None:
    assert not is_older(one, other)
    assert not is_older(other, one)


@given(st.text() | st.integers() | st.floats() | st.datetimes().map(str) | st.dates().map(str))
def test_what_is_parsed_can_be_compared(value: Any) -> None:
    revision = parse_revision(value)
    if revision is not None:
        assert parse_revision(revision) == revision
        for other in ("2024-03-05", "7"):
            assert not (is_older(revision, other) and is_older(other, revision))


def test_sort_keys() -> None:
    ordered = ["1", "1.4", "1.10", "2.0", "2023", "2023-05", "2024-03-05", "2024-03-05T10:30:00"]
    assert sorted({*ordered}, key=sort_key) == ordered
    assert sort_key("2.0") == sort_key("2")
    # Beside a date, four digits are a year, as `is_older` has it; else a number as any other.
    dated = ["7", "2018-12", "2019-05-01", "2023", "2023-01-01"]
    assert sorted({*dated}, key=lambda one: sort_key(one, among_dates=True)) == dated
    assert sort_key("9999") < sort_key("10000")
