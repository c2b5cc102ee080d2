"""Where in a text, as it was given, the characters of its `plain` form are."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labelkin.represent.folding import plain

# Characters that no normalisation changes and that never join with what precedes them: ASCII,
# kana and Chinese characters. What follows one of them may join with it.
_STABLE = "\x00-\x7f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff"
_CHANGEABLE = re.compile(f"[{_STABLE}]?[^{_STABLE}]+")


@dataclass(frozen=True, slots=True)
class _Changed:
    """A part of a text that has another length or other characters after a change."""

    begin: int
    end: int
    begin_before: int
    end_before: int


class Offsets:
    """Places in a text for places in its `plain` form, in which characters can be joined or split.

    A place within one character's several (the `i` of a ligature `ﬁ`) counts
    as the whole character.
    """

    def __init__(self, text: str) -> None:
        # The steps that lead back from the plain form, the last change first.
        self._steps: list[tuple[list[int], list[_Changed]]] = []
        if text.isascii():
            return
        normal = unicodedata.normalize("NFKC", text)
        lowered = plain(text)
        if len(lowered) != len(normal):
            self._add_step((letter, letter.lower()) for letter in normal)
        if normal != text:
            self._add_step(_normalised(text))

    def _add_step(self, parts: Iterator[tuple[str, str]]) -> None:
        changes = list(_changes(parts))
        self._steps.append(([change.begin for change in changes], changes))

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """Begin and end in the text of a part of its plain form that is not empty."""
        last = end - 1
        for begins, changes in self._steps:
            begin, _ = _before(begins, changes, begin)
            _, end = _before(begins, changes, last)
            last = end - 1
        return begin, last + 1


def _before(begins: Sequence[int], changes: Sequence[_Changed], place: int) -> tuple[int, int]:
    """Begin and end before the changes of the character at a place after them."""
    number = bisect_right(begins, place) - 1
    if number < 0:
        return place, place + 1
    change = changes[number]
    if place < change.end:
        return change.begin_before, change.end_before
    place += change.end_before - change.end
    return place, place + 1


def _changes(parts: Iterator[tuple[str, str]]) -> Iterator[_Changed]:
    """The parts whose lengths or characters differ, from all parts before and after a change."""
    begin = begin_before = 0
    for before, after in parts:
        end, end_before = begin + len(after), begin_before + len(before)
        # A part without anything left has no place that could be asked for.
        if after and before != after and (len(before) > 1 or len(after) > 1):
            yield _Changed(begin, end, begin_before, end_before)
        begin, begin_before = end, end_before


def _normalised(text: str) -> Iterator[tuple[str, str]]:
    """The shortest parts of a text that can be normalised each by itself, and their NFKC."""
    done = 0
    for match in _CHANGEABLE.finditer(text):
        if unicodedata.is_normalized("NFKC", match.group()):
            continue
        if done < match.start():
            unchanged = text[done : match.start()]
            yield unchanged, unchanged
        done = match.end()
        cluster = ""
        for letter in match.group():
            if cluster and _can_begin(letter):
                normal = unicodedata.normalize("NFKC", cluster)
                both = unicodedata.normalize("NFKC", cluster + letter)
                if both == normal + unicodedata.normalize("NFKC", letter):
                    yield cluster, normal
                    cluster = ""
            cluster += letter
        yield cluster, unicodedata.normalize("NFKC", cluster)
    if done < len(text):
        yield text[done:], text[done:]


def _can_begin(letter: str) -> bool:
    """Whether a letter is no mark that belongs to the one before."""
    return not unicodedata.combining(unicodedata.normalize("NFKD", letter)[0])
