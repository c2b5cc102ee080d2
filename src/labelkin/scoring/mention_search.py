"""Finding what documents of any language name of a collection's vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from labelkin.corpus.document import Document
from labelkin.represent.folding import plain, word_spans
from labelkin.scoring.mentions import MentionFinder, Mentions, parts_of
from labelkin.scoring.name_cache import name_tables
from labelkin.scoring.name_table import NameTable
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.suggestion import Naming
from labelkin.store.collection import Collection


class MentionSearch:
    """Looks for the names that concepts have in the language of each document.

    Where the vocabulary has few names in that language, those of the language
    that it has most in are looked for. A policy says which concepts may be
    named, and which stand for others.
    """

    def __init__(self, collection: Collection, policy: LabelPolicy | None = None) -> None:
        self._collection = collection
        self._tables = name_tables(collection)
        self._targets = None if policy is None else policy.target
        self._finders: dict[str, MentionFinder] = {}

    def find(self, documents: Sequence[Document]) -> Mentions:
        """The concepts that each document names, as arrays."""
        parts = [
            self.finder(language).find([document for _, document in run])
            for language, run in groupby(self._in_languages(documents), key=lambda pair: pair[0])
        ]
        return Mentions.joined(parts) if parts else self.finder("").find([])

    def namings(self, document: Document) -> dict[int, tuple[Naming, ...]]:
        """The words by which one document names each concept, those that tell most first.

        Title before body, outside longer names before inside, then the more frequent.
        """
        ((language, prepared),) = self._in_languages([document])
        finder = self.finder(language)
        matches = finder.matches([prepared])
        words = _Words(prepared)
        found: dict[int, Counter[tuple[str, bool, bool]]] = {}
        written: dict[str, str] = {}
        for column, begin, end, in_title, nested in zip(
            matches.columns.tolist(),
            matches.begins.tolist(),
            matches.ends.tolist(),
            matches.in_title.tolist(),
            matches.nested.tolist(),
            strict=True,
        ):
            text = words.between(begin, end)
            written.setdefault(text.casefold(), text)
            found.setdefault(column, Counter())[(text.casefold(), in_title, nested)] += 1
        return {
            column: tuple(
                Naming(written[key], "title" if in_title else "body", count, nested)
                for (key, in_title, nested), count in sorted(
                    counts.items(), key=lambda item: (item[0][2], not item[0][1], -item[1])
                )
            )
            for column, counts in found.items()
        }

    def finder(self, language: str) -> MentionFinder:
        """The finder of names in one language."""
        if language not in self._finders:
            table = self._tables.get(language) or NameTable.make((), language)
            self._finders[language] = MentionFinder(table, self._targets)
        return self._finders[language]

    def _in_languages(self, documents: Sequence[Document]) -> list[tuple[str, Document]]:
        limit = self._collection.config.documents.max_characters
        cut = [document.cut(limit) for document in documents]
        main = next(iter(self._tables), "")
        if len(self._tables) < 2:
            return [(main, document) for document in cut]
        expected = self._collection.only_language()
        found = []
        for document in cut:
            language = self._collection.in_its_language(document, expected).language or ""
            found.append((language if language in self._tables else main, document))
        return found


class _Words:
    """The words of a document by their places, as `Matches` counts them."""

    def __init__(self, document: Document) -> None:
        self._spans: list[tuple[str, int, int]] = []
        for part in parts_of(document):
            text = plain(part)
            # Between the parts is a place that holds no word.
            spans = [*word_spans(text), (len(text), len(text))]
            self._spans += [(text, begin, end) for begin, end in spans]

    def between(self, begin: int, end: int) -> str:
        """The text from one word up to, but without, another."""
        text, first, _ = self._spans[begin]
        return " ".join(text[first : self._spans[end - 1][2]].split())
