"""Finding the concepts that documents of any language name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from labelkin.corpus.document import Document
from labelkin.memo import Memo
from labelkin.represent.folding import plain, word_spans
from labelkin.represent.offsets import Offsets
from labelkin.scoring.mentions import Integers, Matches, MentionFinder, Mentions, parts_of
from labelkin.scoring.name_cache import name_tables
from labelkin.scoring.name_table import NameTable
from labelkin.scoring.policy import policy_for
from labelkin.scoring.suggestion import Naming
from labelkin.store.reader import Reader

# Documents searched at a time.
_CHUNK = 250
# Characters of a sentence before and after the words that name a heading.
_AROUND = 200
_SPACES = re.compile(r"\s+")
# After fewer than three letters, a full stop more likely ends an abbreviation.
_SENTENCE_END = re.compile(r"(?<=\w\w\w)[.!?](?=\s)|[。！？\n]")

# Words, whether they are in the title, and whether within a longer name.
_Key = tuple[str, bool, bool]


class MentionSearch:
    """Looks for the names that concepts have in the language of each document.

    If the vocabulary has few names in that language, the language with the most
    names is used. Deprecated concepts count as those that replaced them.
    Threads may share it.
    """

    def __init__(self, reader: Reader) -> None:
        policy = policy_for(reader)
        self._tables = name_tables(reader)
        self._targets = None if policy is None else policy.target
        self._finders = Memo()

    @classmethod
    def of(cls, reader: Reader) -> MentionSearch:
        """The search for the reader's vocabulary, made once."""
        return reader.vocabulary_state.derived.get("mentions", lambda: cls(reader))

    def matches(self, documents: Sequence[Document]) -> TextMatches:
        """All places where the documents, which must have languages, name a concept."""
        parts: list[MatchedPart] = []
        for language, run in groupby(documents, key=self._table_language):
            finder = self.finder(language)
            of_run = list(run)
            for start in range(0, len(of_run), _CHUNK):
                part = of_run[start : start + _CHUNK]
                matches, sizes = finder.matches(part)
                parts.append(MatchedPart(part, matches, sizes, finder))
        return TextMatches(parts, self.finder(""))

    def finder(self, language: str) -> MentionFinder:
        """The finder of names in one language."""
        return self._finders.get(
            language,
            lambda: MentionFinder(
                self._tables.get(language) or NameTable.make((), language), self._targets
            ),
        )

    def _table_language(self, document: Document) -> str:
        language = document.language or ""
        return language if language in self._tables else next(iter(self._tables), "")


@dataclass(frozen=True)
class MatchedPart:
    """Some documents of one language, and the matches in them."""

    documents: Sequence[Document]
    matches: Matches
    sizes: Integers
    finder: MentionFinder


class TextMatches:
    """All places where a batch of documents names a concept."""

    def __init__(self, parts: Sequence[MatchedPart], empty: MentionFinder) -> None:
        self._parts = parts
        self._empty = empty

    def mentions(self) -> Mentions:
        """The concepts that each document names, as arrays."""
        parts = [
            part.finder.mentions(part.matches, part.sizes, len(part.documents))
            for part in self._parts
        ]
        return Mentions.joined(parts) if parts else self._empty.find([])

    def namings(self, place: int, given: Document | None = None) -> dict[int, tuple[Naming, ...]]:
        """The words by which one document names each concept, the strongest first.

        Title before body, outside longer names before inside, then the more
        frequent. If the document was cut, `given` is the whole one, for offsets.
        """
        for part in self._parts:
            if place < len(part.documents):
                return _namings(part.documents[place], part.matches.of(place), given)
            place -= len(part.documents)
        raise IndexError(place)


def _namings(
    document: Document, matches: Matches, given: Document | None
) -> dict[int, tuple[Naming, ...]]:
    words = _Words(document, given or document)
    by_column: dict[int, dict[_Key, set[tuple[int, int]]]] = {}
    first: dict[_Key, tuple[str, str, str]] = {}
    for column, begin, end, in_title, nested in zip(
        matches.columns.tolist(),
        matches.begins.tolist(),
        matches.ends.tolist(),
        matches.in_title.tolist(),
        matches.nested.tolist(),
        strict=True,
    ):
        key = (words.between(begin, end).casefold(), in_title, nested)
        if key not in first:
            first[key] = words.in_sentence(begin, end)
        by_column.setdefault(column, {}).setdefault(key, set()).add(words.span(begin, end))
    return {
        column: tuple(
            _naming(first[key], key, words.given_spans(spans, in_title=key[1]))
            for key, spans in sorted(
                by_key.items(), key=lambda item: (item[0][2], not item[0][1], -len(item[1]))
            )
        )
        for column, by_key in by_column.items()
    }


def _naming(
    in_sentence: tuple[str, str, str], key: _Key, spans: tuple[tuple[int, int], ...]
) -> Naming:
    before, words, after = in_sentence
    _, in_title, nested = key
    place: Literal["title", "body"] = "title" if in_title else "body"
    return Naming(words, place, len(spans), nested, before, after, spans)


class _Words:
    """The words of a document by their places, as `Matches` counts them.

    `given` is the document before it was cut.
    """

    def __init__(self, document: Document, given: Document) -> None:
        self._spans: list[tuple[str, int, int]] = []
        self._parts = parts_of(document)
        self._offsets = Memo()
        self._shifts = _shifts(document, given)
        for part in self._parts:
            text = plain(part)
            # Between the parts is a place that holds no word.
            spans = [*word_spans(text), (len(text), len(text))]
            self._spans += [(text, begin, end) for begin, end in spans]

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """The characters from one word up to another, exclusive, in the plain text."""
        return self._spans[begin][1], self._spans[end - 1][2]

    def given_spans(
        self, spans: Iterable[tuple[int, int]], *, in_title: bool
    ) -> tuple[tuple[int, int], ...]:
        """The same in the text as it was given, in order."""
        part = self._parts[not in_title]
        if not part.isascii():
            offsets = self._offsets.get(in_title, lambda: Offsets(part))
            spans = [offsets.span(begin, end) for begin, end in spans]
        if self._shifts and not in_title:
            # A name can go on in the next field, as in the next line.
            spans = [
                (begin + self._shift(begin), end + self._shift(end - 1)) for begin, end in spans
            ]
        return tuple(sorted(spans))

    def _shift(self, place: int) -> int:
        return next(shift for start, shift in reversed(self._shifts) if place >= start)

    def between(self, begin: int, end: int) -> str:
        """The text from one word up to another, exclusive."""
        text, first, _ = self._spans[begin]
        return " ".join(text[first : self._spans[end - 1][2]].split())

    def in_sentence(self, begin: int, end: int) -> tuple[str, str, str]:
        """What comes before them in their sentence, the words, and what comes after."""
        text, first, _ = self._spans[begin]
        last = self._spans[end - 1][2]
        start, stop = max(first - _AROUND, 0), min(last + _AROUND, len(text))
        ends = [match.end() for match in _SENTENCE_END.finditer(text, start, stop)]
        before = text[max((end for end in ends if end <= first), default=start) : first]
        after = text[last : min((end for end in ends if end > last), default=stop)]
        return _one_line(before).lstrip(), self.between(begin, end), _one_line(after).rstrip()


def _shifts(document: Document, given: Document) -> list[tuple[int, int]]:
    """Where body and fields begin, and how many characters were cut before each."""
    shifts = []
    place = shift = 0
    wholes = (given.body, *given.fields.values())
    for text, whole in zip((document.body, *document.fields.values()), wholes, strict=True):
        shifts.append((place, shift))
        place += len(text) + 1
        shift += len(whole) - len(text)
    return shifts if shift else []


def _one_line(text: str) -> str:
    return _SPACES.sub(" ", text)
