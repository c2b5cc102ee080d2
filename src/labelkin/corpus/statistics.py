"""Counts over a corpus, gathered in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from labelkin.corpus.document import Document


@dataclass
class CorpusStatistics:
    """The counts that `labelkin corpus stats` shows."""

    documents: int = 0
    with_labels: int = 0
    without_body: int = 0
    words: int = 0
    longest_characters: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @property
    def label_occurrences(self) -> int:
        """The number of labels over all documents, repeats included."""
        return self.labels.total()


def corpus_statistics(documents: Iterable[Document]) -> CorpusStatistics:
    """Count `documents` in one pass, without keeping them."""
    statistics = CorpusStatistics()
    for document in documents:
        text = document.text
        statistics.documents += 1
        statistics.with_labels += bool(document.labels)
        statistics.without_body += not document.body
        statistics.words += len(text.split())
        statistics.longest_characters = max(statistics.longest_characters, len(text))
        statistics.labels.update(document.labels)
        statistics.languages[document.language or "not stated"] += 1
    return statistics
