"""Resolves the labels of documents to concepts.

The steps, in order: id or URI; notation; preferred name; synonym; both again
with the words inverted at the comma (`Diabetes Mellitus, Type 2` = `Type 2
Diabetes Mellitus`); and the last part of a URI. From names on, case, white space
and Unicode form are ignored, names in the document's own language precede those
in others, names of current concepts precede those of deprecated ones, and a name
that two concepts share in one step resolves to neither. A label that nothing else
matches may be a former name, by which an earlier edition knew exactly one concept.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from labelkin.vocab.concept import Concept

_AMBIGUOUS = -1


class Match(Enum):
    """How a label was resolved, or why it was not."""

    ID = "id"
    NOTATION = "notation"
    NAME = "name"
    SYNONYM = "synonym"
    TURNED = "inverted at the comma"
    URI_TAIL = "last part of a URI"
    FORMER = "former name"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Resolution:
    """The column of a label's concept (None if unresolved) and how it was matched."""

    column: int | None
    match: Match

    @property
    def is_ambiguous(self) -> bool:
        """Whether several concepts share the name."""
        return self.match is Match.AMBIGUOUS


def name_key(name: str) -> str:
    """The key under which `name` is compared: without case, extra spaces and Unicode variants."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def turned(key: str) -> str:
    """`b, a` → `a b`; a name without a comma stays unchanged."""
    return " ".join(reversed(key.split(", "))) if ", " in key else key


def uri_tail(identifier: str) -> str:
    """The part after the last `/` or `#` of a URI; empty for other identifiers."""
    if "://" not in identifier:
        return ""
    return identifier.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]


@dataclass(slots=True)
class _Names:
    """Lookup tables from name keys to columns, for one group of concepts."""

    preferred: dict[str, int] = field(default_factory=dict)
    synonyms: dict[str, int] = field(default_factory=dict)
    turned: dict[str, int] = field(default_factory=dict)

    def add(self, column: int, names: Iterable[str], synonyms: Iterable[str]) -> None:
        keys = [name_key(name) for name in names]
        synonym_keys = [name_key(name) for name in synonyms]
        _add_keys(self.preferred, keys, column)
        _add_keys(self.synonyms, synonym_keys, column)
        inverted = [turned(key) for key in (*keys, *synonym_keys) if ", " in key]
        _add_keys(self.turned, inverted, column)

    def steps(self, key: str) -> Iterator[tuple[int | None, Match]]:
        yield self.preferred.get(key), Match.NAME
        yield self.synonyms.get(key), Match.SYNONYM
        inverted = turned(key)
        for table in (self.preferred, self.synonyms, self.turned):
            yield table.get(inverted), Match.TURNED


class NameIndex:
    """Finds concepts by id, URI, notation, name or synonym."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._tails: dict[str, int] = {}
        self._notations: dict[str, int] = {}
        self._current = _Names()
        self._by_language: dict[str, _Names] = {}
        self._deprecated = _Names()
        self._former = _Names()

    def add(self, column: int, concept: Concept) -> None:
        """Index `concept` under its column, unless its edition was undone."""
        if concept.undone:
            return
        self._ids[concept.id] = column
        _add_keys(self._tails, [uri_tail(concept.id)], column)
        _add_keys(self._notations, concept.notations, column)
        synonyms = [name for names in concept.synonyms.values() for name in names]
        if concept.deprecated:
            self._deprecated.add(column, concept.names.values(), synonyms)
            return
        self._current.add(column, concept.names.values(), synonyms)
        for language in {**concept.names, **concept.synonyms}:
            names = self._by_language.setdefault(language, _Names())
            preferred = [concept.names[language]] if language in concept.names else []
            names.add(column, preferred, concept.synonyms.get(language, ()))

    def add_former(self, column: int, name: str) -> None:
        """Index a name by which an earlier edition knew a concept."""
        self._former.add(column, (), (name,))

    def former(self, label: str) -> Resolution | None:
        """The one concept that had this name in an earlier edition, if any."""
        for column, _ in self._former.steps(name_key(label)):
            if column is not None:
                return None if column == _AMBIGUOUS else Resolution(column, Match.FORMER)
        return None

    def resolve(self, label: str, language: str = "", *, guess: bool = True) -> Resolution:
        """The concept that `label` stands for, with names in `language` preferred.

        Without `guess`, a URI has to match exactly: neither a similar URI nor a
        bare id matches it.
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
        """The column of a URI that differs only in scheme or final slash, or of its last part."""
        rest = label.split("://", 1)[1]
        for scheme in ("http", "https"):
            for variant in (f"{scheme}://{rest.rstrip('/')}", f"{scheme}://{rest.rstrip('/')}/"):
                if variant in self._ids:
                    return self._ids[variant]
        return self._ids.get(uri_tail(label))


def _add_keys(table: dict[str, int], keys: Iterable[str], column: int) -> None:
    for key in keys:
        if key and table.setdefault(key, column) != column:
            table[key] = _AMBIGUOUS
