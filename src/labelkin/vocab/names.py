"""Finding a concept by what a document calls it.

The steps, in order: id or URI; the last part of a URI; notation; preferred
name; synonym; and both again with words turned at the comma (`Diabetes
Mellitus, Type 2` = `Type 2 Diabetes Mellitus`). From names on, case, white
space and Unicode form do not matter, and a name that two concepts share in one
step resolves to neither.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from labelkin.vocab.concept import Concept

_AMBIGUOUS = -1


class Match(Enum):
    """By what a label was found, or why it was not."""

    ID = "id"
    NOTATION = "notation"
    NAME = "name"
    SYNONYM = "synonym"
    TURNED = "turned at the comma"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The column of a label's concept (None where it has none) and how it was found."""

    column: int | None
    match: Match


def name_key(name: str) -> str:
    """`name` without regard to case, white space and Unicode form."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def turned(key: str) -> str:
    """`b, a` → `a b`; a name without a comma stays as it is."""
    return " ".join(reversed(key.split(", "))) if ", " in key else key


def uri_tail(identifier: str) -> str:
    """What follows the last `/` or `#` of a URI, nothing for other identifiers."""
    if "://" not in identifier:
        return ""
    return identifier.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]


class NameIndex:
    """All ways to call the concepts of a vocabulary, each with its column."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._tails: dict[str, int] = {}
        self._notations: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._synonyms: dict[str, int] = {}
        self._turned: dict[str, int] = {}

    def add(self, column: int, concept: Concept) -> None:
        """Make `concept` findable."""
        self._ids[concept.id] = column
        _enter(self._tails, [uri_tail(concept.id)], column)
        _enter(self._notations, concept.notations, column)
        names = [name_key(name) for name in concept.names.values()]
        synonyms = [name_key(name) for names in concept.synonyms.values() for name in names]
        _enter(self._names, names, column)
        _enter(self._synonyms, synonyms, column)
        _enter(self._turned, [turned(key) for key in (*names, *synonyms) if ", " in key], column)

    def resolve(self, label: str) -> Resolution:
        """The concept that `label` means."""
        for table, key in (
            (self._ids, label),
            (self._tails, label),
            (self._ids, uri_tail(label)),
            (self._tails, uri_tail(label)),
        ):
            if key and table.get(key, _AMBIGUOUS) != _AMBIGUOUS:
                return Resolution(table[key], Match.ID)
        key = name_key(label)
        ambiguous = False
        for table, wanted, match in (
            (self._notations, label, Match.NOTATION),
            (self._names, key, Match.NAME),
            (self._synonyms, key, Match.SYNONYM),
            (self._names, turned(key), Match.TURNED),
            (self._synonyms, turned(key), Match.TURNED),
            (self._turned, turned(key), Match.TURNED),
        ):
            column = table.get(wanted)
            if column == _AMBIGUOUS:
                ambiguous = True
            elif column is not None and not ambiguous:
                return Resolution(column, match)
        return Resolution(None, Match.AMBIGUOUS if ambiguous else Match.UNKNOWN)


def _enter(table: dict[str, int], keys: Iterable[str], column: int) -> None:
    for key in keys:
        if key and table.setdefault(key, column) != column:
            table[key] = _AMBIGUOUS
