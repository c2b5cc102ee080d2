from __future__ import annotations

from labelkin.corpus import Document
from labelkin.corpus.statistics import corpus_statistics


def test_counts(documents: list[Document]) -> None:
    statistics = corpus_statistics(documents)
    assert (statistics.documents, statistics.with_labels, statistics.without_body) == (3, 2, 0)
    assert statistics.words == 6 + 4 + 5
    assert statistics.label_occurrences == 3
    assert statistics.languages == {"en": 3}
