"""Finds concepts by any part of a name while it is being typed.

The keys of all names are one array of bytes. A query compares its rarest byte
with all of them, and its other bytes with the places that are left, so even one
letter takes some milliseconds over the names of MeSH.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.memo import Memo
from labelkin.vocab.concept import Concept
from labelkin.vocab.names import name_key, uri_tail

# The results of so many queries are kept: pages of one query follow one another.
_KEPT = 64
_NEWLINE, _SPACE = b"\n "
# How well a name matches, best first; without accents it matches that much worse.
_EXACT, _PREFIX, _WORD, _INSIDE = range(4)
_WORSE = 4
_LONGEST = 2**20 - 1

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A concept, and the name or code by which a search found it.

    `language` is that of the name; None for an id, a notation or the end of a URI.
    """

    concept: Concept
    name: str
    language: str | None


@dataclass(frozen=True, slots=True)
class SearchPage:
    """Some hits of a search, best first, and how many there are in total."""

    total: int
    hits: list[SearchHit]


class NameSearch:
    """An index of all names, in all languages, and of ids, notations and ends of URIs.

    Threads may share it. It is for the concepts that there are when it is made.
    """

    def __init__(self, concepts: Sequence[Concept]) -> None:
        self._concepts = concepts
        keys: list[str] = []
        lengths: list[int] = []
        first = [0]
        self._codes: dict[str, tuple[str, list[int]]] = {}
        for column, concept in enumerate(concepts):
            for _, name in _names(concept):
                keys.append(name_key(name))
                lengths.append(len(name))
            first.append(len(keys))
            for code in dict.fromkeys((concept.id, uri_tail(concept.id), *concept.notations)):
                if code:
                    _, columns = self._codes.setdefault(code.casefold(), (code, []))
                    if column not in columns[-1:]:
                        columns.append(column)
        self._first = np.array(first, dtype=np.int64)
        self._lengths = np.minimum(np.array(lengths, dtype=np.int64), _LONGEST)
        self._columns = np.repeat(np.arange(len(concepts)), np.diff(self._first))
        self._keys = _Keys(keys)
        accented = [number for number, key in enumerate(keys) if not key.isascii()]
        without = [(number, without_accents(keys[number])) for number in accented]
        changed = [(number, key) for number, key in without if key != keys[number]]
        self._accented = np.array([number for number, _ in changed], dtype=np.int64)
        self._without_accents = _Keys([key for _, key in changed])
        self._results = Memo(_KEPT)

    def page(self, query: str, offset: int = 0, limit: int = 20) -> SearchPage:
        """Hits from `offset` on, at most `limit`; see `Vocabulary.search_page`."""
        wanted = name_key(query)
        begin = max(offset, 0)
        end = begin + max(limit, 0)
        if not wanted:
            columns = range(len(self._concepts))[begin:end]
            return SearchPage(len(self._concepts), [self._whole(column) for column in columns])
        code, coded = self._codes.get(query.strip().casefold(), ("", []))
        named: Integers = self._results.get(wanted, lambda: self._named(wanted))
        if coded:
            named = named[~np.isin(self._columns[named], coded)]
        hits = [SearchHit(self._concepts[column], code, None) for column in coded[begin:end]]
        rest = slice(max(begin - len(coded), 0), max(end - len(coded), 0))
        hits += [self._hit(int(number)) for number in named[rest]]
        return SearchPage(len(coded) + len(named), hits)

    def _named(self, wanted: str) -> Integers:
        """The best matching name of each concept, best first."""
        numbers, ranks = self._keys.matches(wanted)
        matches = [(numbers, ranks)]
        bare = without_accents(wanted)
        if bare:
            numbers, ranks = self._without_accents.matches(bare)
            matches.append((self._accented[numbers], ranks + _WORSE))
            if bare != wanted:
                numbers, ranks = self._keys.matches(bare)
                matches.append((numbers, ranks + _WORSE))
        numbers = np.concatenate([numbers for numbers, _ in matches])
        ranks = np.concatenate([ranks for _, ranks in matches])
        # One integer orders by rank, then length, then column and the order of its names.
        order = (ranks << 52) | (self._lengths[numbers] << 32) | numbers
        columns = self._columns[numbers]
        best = np.full(len(self._concepts), np.iinfo(np.int64).max)
        np.minimum.at(best, columns, order)
        return np.sort(best[best != np.iinfo(np.int64).max]) & (2**32 - 1)

    def _hit(self, number: int) -> SearchHit:
        column = int(self._columns[number])
        concept = self._concepts[column]
        language, name = list(_names(concept))[number - int(self._first[column])]
        return SearchHit(concept, name, language)

    def _whole(self, column: int) -> SearchHit:
        concept = self._concepts[column]
        name = concept.name()
        tags = [tag for tag in ("en", *concept.names) if concept.names.get(tag) == name]
        return SearchHit(concept, name, next(iter(tags), None))


class _Keys:
    """Keys of names as one array of bytes, each between two line breaks."""

    def __init__(self, keys: Iterable[str]) -> None:
        text = "\n".join(("", *keys, ""))
        self._bytes = np.frombuffer(_encoded(text), dtype=np.uint8)
        self._counts = np.bincount(self._bytes, minlength=256)
        # The line break before each key.
        self._breaks = np.flatnonzero(self._bytes == _NEWLINE)

    def matches(self, wanted: str) -> tuple[Integers, Integers]:
        """The numbers of the keys that contain `wanted`, and how well they match."""
        sought = np.frombuffer(_encoded(wanted), dtype=np.uint8)
        rarest, *others = np.argsort(self._counts[sought], kind="stable").tolist()
        places = np.flatnonzero(self._bytes == sought[rarest]) - rarest
        # A match is between two line breaks.
        places = places[(places > 0) & (places + len(sought) < len(self._bytes))]
        for place in others:
            places = places[self._bytes[places + place] == sought[place]]
        before = self._bytes[places - 1]
        ranks = np.full(len(places), _INSIDE, dtype=np.int64)
        ranks[before == _SPACE] = _WORD
        is_first = before == _NEWLINE
        ranks[is_first] = _PREFIX
        ranks[is_first & (self._bytes[places + len(sought)] == _NEWLINE)] = _EXACT
        return np.searchsorted(self._breaks, places) - 1, ranks


def without_accents(key: str) -> str:
    """A key without the marks on its letters."""
    if key.isascii():
        return key
    letters = unicodedata.normalize("NFKD", key)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(unicodedata.normalize("NFC", bare).split())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _names(concept: Concept) -> Iterator[tuple[str, str]]:
    """All names with their languages, preferred ones first."""
    yield from concept.names.items()
    for language, names in concept.synonyms.items():
        for name in names:
            yield language, name
