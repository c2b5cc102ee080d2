"""Numbers with nouns and long values, as messages show them."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 80


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 document`, `2,000 documents`; `plural` for nouns that do not just take an s."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """`text` on one line, without its middle if it is longer than `longest` characters."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    begin, end = (longest * 2) // 3, longest // 3 - 3
    return f"{line[:begin].rstrip()} … {line[-end:].lstrip()}" if end > 0 else f"{line[:begin]}…"


def listed(names: Sequence[str], shown: int = 3) -> str:
    """The first few of some names, each shortened, and … if there are more."""
    first = ", ".join(shortened(name) for name in names[:shown])
    return f"{first}, …" if len(names) > shown else first
