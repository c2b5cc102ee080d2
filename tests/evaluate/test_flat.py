from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.evaluate import Evaluation, parse_measure
from labelkin.scoring.ranking import Ranking

Make = Callable[..., Evaluation]
WIDTH = 6
label_sets = st.sets(st.integers(0, WIDTH - 1)).map(sorted)
pairs = st.lists(st.tuples(label_sets, label_sets), min_size=1, max_size=12)


def value(name: str, evaluation: Evaluation) -> float:
    return parse_measure(name).value(evaluation)


@given(pairs)
def test_measures_equal_those_of_scikit_learn(documents: list[tuple[list[int], list[int]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    gold, predicted = ([list(pair[side]) for pair in documents] for side in (0, 1))
    evaluation = Evaluation(Ranking.from_lists(gold).matrix(WIDTH), Ranking.from_lists(predicted))
    truth, guess = np.zeros((2, len(documents), WIDTH), dtype=int)
    for row, (wanted, given_) in enumerate(documents):
        truth[row, wanted] = 1
        guess[row, given_] = 1

    def theirs(average: str, labels: list[int] | None = None) -> tuple[float, float, float]:
        scores = metrics.precision_recall_fscore_support(
            truth, guess, average=average, labels=labels, zero_division=0
        )
        return tuple(scores[:3])

    for prefix, average in (("Mi", "micro"), ("EB", "samples")):
        ours = tuple(value(prefix + letter, evaluation) for letter in "PRF")
        assert ours == pytest.approx(theirs(average))
    in_gold, in_predicted = (np.flatnonzero(array.any(axis=0)) for array in (truth, guess))
    if len(in_predicted):
        assert value("MaP", evaluation) == pytest.approx(theirs("macro", in_predicted.tolist())[0])
    if len(in_gold):
        ours = (value("MaR", evaluation), value("MaF", evaluation))
        assert ours == pytest.approx(theirs("macro", in_gold.tolist())[1:])
    jaccard = metrics.jaccard_score(truth, guess, average="samples", zero_division=0)
    assert value("Acc", evaluation) == pytest.approx(jaccard)


def test_macro_averages_over_different_labels(make: Make) -> None:
    # 0 is right twice; 1 is only gold; 2 and 3 are only predicted.
    evaluation = make([[0, 1], [0]], [[0, 2], [0, 3]])
    assert value("MaP", evaluation) == pytest.approx(1 / 3)
    assert value("MaR", evaluation) == 0.5
    assert value("MaF", evaluation) == 0.5


def test_numbers_of_labels(make: Make) -> None:
    evaluation = make([[0, 1, 2], [3], []], [[0], [1, 2, 3], [4]])
    assert value("predicted", evaluation) == pytest.approx(5 / 3)
    assert value("gold", evaluation) == pytest.approx(4 / 3)
    assert value("count-error", evaluation) == pytest.approx(5 / 3)


@pytest.mark.parametrize("name", "MiP MiR MiF MaP MaR MaF EBP EBR EBF Acc".split())
def test_nothing_predicted_is_zero(make: Make, name: str) -> None:
    assert value(name, make([[1], [2]], [[], []])) == 0
    assert value(name, make([], [])) == 0


@pytest.mark.parametrize("name", "MiP MiR MiF MaP MaR MaF EBP EBR EBF Acc".split())
def test_all_right_is_one(make: Make, name: str) -> None:
    assert value(name, make([[1, 4], [2]], [[4, 1], [2]])) == 1
