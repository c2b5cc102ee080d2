from __future__ import annotations

from labelkin import Document
from labelkin.evaluate.gold import gold_matrix, hierarchy_of, hierarchy_of_names, names_by_column
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


def test_a_hierarchy_over_labels_by_name(vocabulary: Vocabulary) -> None:
    labels = ["Bread, Rye", "Wheat", "V2", "Bread"]
    names = names_by_column(labels, vocabulary)
    assert names == ["Bread", "Bread, Rye", "V3", "http://example.org/v#V4", "V5"]
    found = hierarchy_of_names([*names, "Wheat", "V2"], vocabulary)
    assert found.labels == 7
    assert found.above(1) == found.above(6) == [0]
    assert found.above(0) == found.above(5) == [found.root]
    plain = hierarchy_of(vocabulary, 5)
    assert [found.above(node) for node in (1, 6)] == [plain.above(1)] * 2
