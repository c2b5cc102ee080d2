from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from labelkin.evaluate import Evaluation, Hierarchy, parse_measure
from labelkin.exceptions import ConfigError
from labelkin.scoring.ranking import Ranking

Make = Callable[..., Evaluation]


def test_counts_by_document_and_label(make: Make) -> None:
    evaluation = make([[0, 1, 2], [3], []], [[2, 5], [3], [1]])
    counts = evaluation.document_counts
    assert counts.correct.tolist() == [1, 1, 0]
    assert counts.predicted.tolist() == [2, 1, 1]
    assert counts.gold.tolist() == [3, 1, 0]
    counts = evaluation.label_counts
    assert counts.correct.tolist() == [0, 0, 1, 1, 0, 0, 0, 0]
    assert counts.predicted.tolist() == [0, 1, 1, 1, 0, 1, 0, 0]
    assert counts.gold.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_gold_is_read_as_zeros_and_ones() -> None:
    from scipy.sparse import csr_matrix

    # Unsorted, one entry twice, one stored zero.
    gold = csr_matrix(([2.0, 1.0, 1.0, 0.0], [3, 1, 1, 0], [0, 4]), shape=(1, 4))
    evaluation = Evaluation(gold, Ranking.from_lists([[0, 3]]))
    assert evaluation.gold.toarray().tolist() == [[0, 1, 0, 1]]
    assert evaluation.predicted_hits.tolist() == [False, True]
    assert gold.nnz == 4


def test_no_gold_at_all_has_no_hits(make: Make) -> None:
    assert make([[], []], [[1], [2]]).document_counts.correct.tolist() == [0, 0]


def test_documents_are_taken_in_order_and_repeatedly(make: Make) -> None:
    evaluation = make(
        [[0], [1, 2], [3]], [[0], [2, 5], []], ranked=Ranking.from_lists([[0], [2], [3]])
    )
    taken = evaluation.taken(np.array([1, 1, 0]))
    assert taken.document_counts.predicted.tolist() == [2, 2, 1]
    assert taken.document_counts.gold.tolist() == [2, 2, 1]
    assert taken.predicted.columns.tolist() == [2, 5, 2, 5, 0]
    assert taken.ordered.columns.tolist() == [2, 2, 0]


def test_restriction_drops_documents_without_such_labels(make: Make) -> None:
    evaluation = make(
        [[0, 1], [5], [6]], [[0, 5], [6], [0]], ranked=Ranking.from_lists([[5, 0], [], []])
    )
    mask = np.arange(8) < 5
    restricted = evaluation.restricted(mask)
    assert restricted.documents == 2
    assert restricted.document_counts.gold.tolist() == [2, 0]
    assert restricted.document_counts.predicted.tolist() == [1, 1]
    assert restricted.ordered.columns.tolist() == [0]
    assert parse_measure("MiP").value(restricted) == 0.5


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ([[0]], "1 predicted documents for 2"),
        ([[8], []], "outside the 8"),
        ([[1, 1], []], "twice"),
    ],
)
def test_predictions_must_fit_the_gold_labels(
    make: Make, predicted: list[list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make([[0], [1]], predicted)


def test_frequencies_and_hierarchy_must_fit_the_labels(make: Make) -> None:
    with pytest.raises(ValueError, match="3 training frequencies for 8 labels"):
        make([[0]], [[0]], training_frequencies=np.ones(3, dtype=np.int64))
    with pytest.raises(ValueError, match="hierarchy of 3 labels for 8"):
        make([[0]], [[0]], hierarchy=Hierarchy.from_pairs([], 3))


@pytest.mark.parametrize("name", ["PSP@1", "hF"])
def test_missing_input_is_an_error(make: Make, name: str) -> None:
    with pytest.raises(ConfigError, match="needed; pass"):
        parse_measure(name).value(make([[0]], [[0]]))
