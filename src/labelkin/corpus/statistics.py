"""Counts over a corpus, gathered in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from labelkin.corpus.document import Document


@dataclass
class CorpusStatistics:
    """What `labelkin corpus stats` shows."""

    documents: int = 0
    with_labels: int = 0
    without_body: int = 0
    words: int = 0
    longest_characters: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @property
    def label_occurrences(self) -> int:
        """How many labels were given in all."""
        return self.labels.total()


def corpus_statistics(documents: Iterable[Document]) -> CorpusStatistics:
    """Read all of `documents` and count."""
    found = CorpusStatistics()
    for document in documents:
        text = document.text
        found.documents += 1
        found.with_labels += bool(document.labels)
        found.without_body += not document.body
        found.words += len(text.split())
        found.longest_characters = max(found.longest_characters, len(text))
        found.labels.update(document.labels)
        found.languages[document.language or "not stated"] += 1
    return found
