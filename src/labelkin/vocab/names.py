"""Finding a concept by what a document calls it.

The steps, in order: id or URI; notation; preferred name; synonym; both again
with words turned at the comma (`Diabetes Mellitus, Type 2` = `Type 2 Diabetes
Mellitus`); and the last part of a URI. From names on, case, white space and
Unicode form do not matter, names in the document's own language come before
those in others, names of current concepts before those of deprecated ones, and
a name that two concepts share in one step resolves to neither.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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
    URI_TAIL = "last part of a URI"
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


@dataclass(slots=True)
class _Names:
    """The names of one group of concepts, each with its column."""

    preferred: dict[str, int] = field(default_factory=dict)
    synonyms: dict[str, int] = field(default_factory=dict)
    turned: dict[str, int] = field(default_factory=dict)

    def add(self, column: int, names: Iterable[str], synonyms: Iterable[str]) -> None:
        keys = [name_key(name) for name in names]
        synonym_keys = [name_key(name) for name in synonyms]
        _enter(self.preferred, keys, column)
        _enter(self.synonyms, synonym_keys, column)
        inverted = [turned(key) for key in (*keys, *synonym_keys) if ", " in key]
        _enter(self.turned, inverted, column)

    def steps(self, key: str) -> Iterator[tuple[int | None, Match]]:
        yield self.preferred.get(key), Match.NAME
        yield self.synonyms.get(key), Match.SYNONYM
        direct = turned(key)
        for table in (self.preferred, self.synonyms, self.turned):
            yield table.get(direct), Match.TURNED


class NameIndex:
    """All ways to call the concepts of a vocabulary."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._tails: dict[str, int] = {}
        self._notations: dict[str, int] = {}
        self._current = _Names()
        self._by_language: dict[str, _Names] = {}
        self._deprecated = _Names()

    def add(self, column: int, concept: Concept) -> None:
        """Make `concept` findable."""
        self._ids[concept.id] = column
        _enter(self._tails, [uri_tail(concept.id)], column)
        _enter(self._notations, concept.notations, column)
        every = [name for names in concept.synonyms.values() for name in names]
        if concept.deprecated:
            self._deprecated.add(column, concept.names.values(), every)
            return
        self._current.add(column, concept.names.values(), every)
        for language in {**concept.names, **concept.synonyms}:
            own = self._by_language.setdefault(language, _Names())
            name = [concept.names[language]] if language in concept.names else []
            own.add(column, name, concept.synonyms.get(language, ()))

    def resolve(self, label: str, language: str = "", *, guess: bool = True) -> Resolution:
        """The concept that `label` means, first of all in `language`.

        Without `guess`, URIs are taken at their word: no other URI, and no
        bare id, stands for them.
        """
        if label in self._ids:
            return Resolution(self._ids[label], Match.ID)
        if guess and "://" in label:
            column = self._uri(label)
            return Resolution(column, Match.UNKNOWN if column is None else Match.URI_TAIL)
        ambiguous = False
        for column, match in self._steps(label, language):
            if column == _AMBIGUOUS:
                ambiguous = True
            elif column is not None and not ambiguous:
                return Resolution(column, match)
        column = self._tails.get(label) if guess and not ambiguous else None
        if column is not None and column != _AMBIGUOUS:
            return Resolution(column, Match.URI_TAIL)
        return Resolution(None, Match.AMBIGUOUS if ambiguous else Match.UNKNOWN)

    def _steps(self, label: str, language: str) -> Iterator[tuple[int | None, Match]]:
        key = name_key(label)
        yield self._notations.get(label), Match.NOTATION
        if language in self._by_language:
            yield from self._by_language[language].steps(key)
        yield from self._current.steps(key)
        yield from self._deprecated.steps(key)

    def _uri(self, label: str) -> int | None:
        """A URI that differs in scheme or a final slash only, or ends in a bare id."""
        rest = label.split("://", 1)[1]
        for scheme in ("http", "https"):
            for variant in (f"{scheme}://{rest.rstrip('/')}", f"{scheme}://{rest.rstrip('/')}/"):
                if variant in self._ids:
                    return self._ids[variant]
        return self._ids.get(uri_tail(label))


def _enter(table: dict[str, int], keys: Iterable[str], column: int) -> None:
    for key in keys:
        if key and table.setdefault(key, column) != column:
            table[key] = _AMBIGUOUS
