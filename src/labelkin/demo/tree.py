"""Tree numbers in the manner of MeSH: one for each place that a heading has in the hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_LARGEST_STEP = 50
_THREE_DIGITS = 999


def tree_numbers(
    tops: Mapping[str, str], children: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """The tree numbers of every heading that can be reached from the tops.

    `tops` maps a category's letter to the heading at its head, which gets the number `A01`;
    a heading below `A01` gets `A01.050` and so on, in the order of `children`. A heading with two
    parents has a number below each place of each of them, as have all headings below it.
    """
    numbers: dict[str, list[str]] = {}
    pending = [(heading, f"{letter}01") for letter, heading in tops.items()]
    while pending:
        heading, number = pending.pop()
        numbers.setdefault(heading, []).append(number)
        below = children.get(heading, ())
        step = min(_LARGEST_STEP, _THREE_DIGITS // (len(below) + 1))
        pending.extend(
            (child, f"{number}.{position * step:03d}")
            for position, child in reversed(list(enumerate(below, start=1)))
        )
    return {heading: tuple(sorted(places)) for heading, places in numbers.items()}
