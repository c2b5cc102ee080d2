"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .throughput import ratios


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(header)} |"
    yield "|" + "---|" * len(header)
    for line in lines:
        yield f"| {' | '.join(line)} |"


def ratio_table(
    rates: dict[str, float | None], ours: Sequence[str], others: Sequence[str]
) -> Iterator[str]:
    """Ratios of throughput: a row per method, a column per peer."""
    found = ratios(rates, ours, others)
    yield from table(
        ["", *others],
        [
            [row, *("" if one is None else f"{one:.2f}" for one in found[row].values())]
            for row in ours
        ],
    )
