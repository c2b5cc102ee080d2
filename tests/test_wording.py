from __future__ import annotations

import pytest

from labelkin.wording import counted, listed, shortened


@pytest.mark.parametrize(
    ("count", "nouns", "expected"),
    [
        (0, ("document",), "0 documents"),
        (1, ("document",), "1 document"),
        (2000, ("document",), "2,000 documents"),
        (1, ("entry", "entries"), "1 entry"),
        (2, ("entry", "entries"), "2 entries"),
    ],
)
def test_counted(count: int, nouns: tuple[str, ...], expected: str) -> None:
    assert counted(count, *nouns) == expected


def test_shortened() -> None:
    assert shortened("short\n text") == "short text"
    assert shortened("a" * 80) == "a" * 80
    cut = shortened("begin " + "x" * 5000 + " end")
    assert len(cut) <= 80
    assert cut.startswith("begin x")
    assert cut.endswith("x end")
    assert " … " in cut
    assert len(shortened("x" * 50, 8)) <= 8


def test_listed() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(list("abcd")) == "a, b, c, …"
    assert len(listed(["x" * 9999] * 9)) < 300
