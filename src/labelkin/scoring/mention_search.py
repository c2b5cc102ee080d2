"""Finding what documents of any language name of a collection's vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from labelkin.corpus.document import Document
from labelkin.scoring.mentions import Matches, MentionFinder, Mentions
from labelkin.scoring.name_cache import name_tables
from labelkin.scoring.name_table import NameTable
from labelkin.scoring.policy import LabelPolicy
from labelkin.store.collection import Collection


class MentionSearch:
    """Looks for the names that concepts have in the language of each document.

    Where the vocabulary has no names in that language, those of the language
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

    def matches(self, document: Document) -> Matches:
        """Every place where one document names a concept."""
        ((language, prepared),) = self._in_languages([document])
        return self.finder(language).matches([prepared])

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
