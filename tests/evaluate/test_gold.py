from __future__ import annotations

from labelkin import Document
from labelkin.evaluate.gold import gold_matrix, hierarchy_of
from labelkin.vocab import Vocabulary


def test_unknown_labels_get_columns_behind_the_vocabulary(vocabulary: Vocabulary) -> None:
    documents = [
        Document("1", labels=("V2", "bread", "Wheat")),
        Document("2", labels=("Wheat", "Hops")),
        Document("3"),
    ]
    matrix = gold_matrix(documents, vocabulary)
    assert matrix.shape == (3, 7)
    assert [matrix[row].indices.tolist() for row in range(3)] == [[0, 1, 5], [5, 6], []]


def test_columns_behind_the_vocabulary_have_only_the_root_above(vocabulary: Vocabulary) -> None:
    hierarchy = hierarchy_of(vocabulary, 7)
    assert hierarchy.labels == 7
    assert hierarchy.above(1) == [0]
    assert hierarchy.above(0) == hierarchy.above(6) == [hierarchy.root]
