"""The order in which the headings below another are listed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from labelkin.vocab.concept import Concept
from labelkin.vocab.names import name_key

_NUMBER = re.compile(r"(\d+)")
# Python refuses to read numbers of thousands of digits.
_MOST_DIGITS = 18

# Texts and numbers in turn; a text and a number are never compared.
Key = tuple[tuple[str, int], ...]


def in_order(
    concepts: Iterable[Concept], language: str, parent: Concept | None = None
) -> list[Concept]:
    """Siblings by notation if all have one, else by name, with numbers by their value.

    A concept with several notations is listed by the one below its parent's.
    """
    siblings = list(concepts)
    if siblings and all(concept.notations for concept in siblings):
        return sorted(siblings, key=lambda one: (_place(one, parent), one.id))
    return sorted(siblings, key=lambda one: (natural(one.name(language)), one.id))


def natural(text: str) -> Key:
    """A key for sorting without regard to case and accents: `Type 2` before `Type 10`."""
    plain = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", name_key(text))
        if not unicodedata.combining(letter)
    )
    parts = _NUMBER.split(plain)
    numbers = [*(int(part[:_MOST_DIGITS]) for part in parts[1::2]), 0]
    return tuple(zip(parts[::2], numbers, strict=True))


def _place(concept: Concept, parent: Concept | None) -> Key:
    above = () if parent is None else parent.notations
    places = [
        place for place in concept.notations if any(place.startswith(f"{one}.") for one in above)
    ]
    return min(natural(place) for place in places or concept.notations)
