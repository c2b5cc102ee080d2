from __future__ import annotations

from labelkin.corpus import Document
from labelkin.corpus.statistics import corpus_statistics


def test_counts(documents: list[Document]) -> None:
    found = corpus_statistics(documents)
    assert (found.documents, found.with_labels, found.without_body) == (3, 2, 0)
    assert found.words == 6 + 4 + 5
    assert found.label_occurrences == 3
    assert found.languages == {"en": 3}
