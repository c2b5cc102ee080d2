"""All names of a vocabulary's concepts in one language, prepared for searching texts.

Every word that occurs in a name has a code, one character of Unicode; a name is
a string of such characters, and so is a text. A search for strings then finds
whole words only, and counts places in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from labelkin.represent.folding import can_be_name, folded, is_acronym, name_words, plain
from labelkin.vocab.concept import Concept
from labelkin.vocab.names import turned

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

# Code points for words: none of ASCII's, and not the surrogates.
_FIRST = 0x80
_SURROGATES, _GAP = 0xD800, 0x800
MOST_WORDS = 0x110000 - _FIRST - _GAP
_QUALIFIER = re.compile(r"\s*(?:\([^()]*\)|<[^<>]*>)$")


@dataclass(frozen=True)
class NameTable:
    """Distinct names as coded strings, and the concepts that have them.

    Name i belongs to the concepts `columns[starts[i]:starts[i + 1]]`;
    `preferred` and `acronyms` run parallel to `columns`: whether it is the concept's
    preferred name, and whether the vocabulary always writes it as an acronym.
    """

    language: str
    words: tuple[str, ...]
    names: tuple[str, ...]
    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    preferred: npt.NDArray[np.bool_]
    acronyms: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def automaton(self) -> AhoCorasick:
        """Finds all names in a coded text; built when first used."""
        return _automaton(self.names)

    def find(self, coded: str, *, once: bool = False) -> npt.NDArray[np.int64]:
        """A line for each name in a coded text: its number, where it begins and where it ends.

        Overlapping names are all found. With `once`, the automaton of all names is not built
        for it, but one of those that have no other words than the text.
        """
        if "automaton" in self.__dict__ or not once or not self.names:
            return _matches(self.automaton, coded)
        candidates = self._within(coded)
        lines = _matches(_automaton([self.names[number] for number in candidates.tolist()]), coded)
        lines[:, 0] = candidates[lines[:, 0]]
        return lines

    def _within(self, coded: str) -> npt.NDArray[np.int64]:
        """The names all of whose words are in a coded text."""
        points, starts = self._points
        is_there = np.zeros(max(int(points.max()), ord(max(coded, default="\0"))) + 1, np.bool_)
        is_there[_code_points(coded)] = True
        return np.flatnonzero(np.logical_and.reduceat(is_there[points], starts))

    @cached_property
    def _points(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """The code points of all names one after another, and where each name starts."""
        lengths = np.fromiter(map(len, self.names), dtype=np.int64, count=len(self.names))
        return _code_points("".join(self.names)), np.cumsum(lengths) - lengths

    def codes(self) -> dict[str, str]:
        """The code of each word, in the form in which words are compared."""
        return {word: code_of(number) for number, word in enumerate(self.words)}

    def weights(self) -> npt.NDArray[np.float32]:
        """How specific each name is: the sum over its words of log(N / n) / log N.

        N is the number of names, n the number of names with the word: a word in
        a single name counts 1, a word in many names little.
        """
        if not self.names:
            return np.empty(0, dtype=np.float32)
        points, starts = self._points
        counts = np.maximum(np.bincount(points), 1)
        total = np.log(max(len(self.names), 2))
        specificity = np.maximum(1 - np.log(counts) / total, 0)[points]
        return np.add.reduceat(specificity, starts).astype(np.float32)

    @classmethod
    def make(
        cls, concepts: Iterable[Concept], language: str, others: Sequence[str] = ()
    ) -> NameTable:
        """The names that the concepts, in column order, have in a language.

        Names in `others` are taken as if they were in it.
        """
        written = list(_written(concepts, (language, *others)))
        tokenised = [name_words(plain(name)) for _, name, _ in written]
        forms = {
            word: folded(word, language)
            for word in dict.fromkeys(word for words in tokenised for word in words)
        }
        known = tuple(dict.fromkeys(forms.values()))[:MOST_WORDS]
        codes = {word: code_of(number) for number, word in enumerate(known)}
        entries: dict[str, dict[int, tuple[bool, bool]]] = {}
        for (column, _, preferred), words in zip(written, tokenised, strict=True):
            acronym = len(words) == 1 and is_acronym(words[0])
            if not words or (
                len(words) == 1 and not acronym and not can_be_name(words[0], language)
            ):
                continue
            coded = "".join([codes.get(forms[word], "") for word in words])
            if len(coded) < len(words):
                continue
            bearers = entries.setdefault(coded, {})
            was_preferred, was_acronym = bearers.get(column, (False, True))
            bearers[column] = (preferred or was_preferred, acronym and was_acronym)
        counts = [len(bearers) for bearers in entries.values()]
        flags = [both for bearers in entries.values() for both in bearers.values()]
        return cls(
            language=language,
            words=known,
            names=tuple(entries),
            starts=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            columns=np.array([c for bearers in entries.values() for c in bearers], dtype=np.int32),
            preferred=np.array([preferred for preferred, _ in flags], dtype=np.bool_),
            acronyms=np.array([acronym for _, acronym in flags], dtype=np.bool_),
        )


def code_of(number: int) -> str:
    """The character that stands for a word."""
    point = _FIRST + number
    return chr(point if point < _SURROGATES else point + _GAP)


def _automaton(names: Sequence[str]) -> AhoCorasick:
    from ahocorasick_rs import AhoCorasick, Implementation

    return AhoCorasick(names, implementation=Implementation.ContiguousNFA, store_patterns=False)


def _matches(automaton: AhoCorasick, coded: str) -> npt.NDArray[np.int64]:
    matches = automaton.find_matches_as_indexes(coded, overlapping=True)
    return np.array(matches, dtype=np.int64).reshape(-1, 3)


def _code_points(coded: str) -> npt.NDArray[np.uint32]:
    return np.frombuffer(coded.encode("utf-32-le"), dtype=np.uint32)


def _written(
    concepts: Iterable[Concept], languages: Sequence[str]
) -> Iterator[tuple[int, str, bool]]:
    """Column, name and whether it is preferred; also names turned at a comma or unqualified."""
    for column, concept in enumerate(concepts):
        own = [concept.names[language] for language in languages if language in concept.names]
        synonyms = [name for tag in languages for name in concept.synonyms.get(tag, ())]
        for number, name in enumerate([*own, *synonyms]):
            first = number < len(own)
            yield column, name, first
            if ", " in name:
                yield column, turned(name), first
            bare = _QUALIFIER.sub("", name)
            if bare and bare != name:
                yield column, bare, False
