from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.evaluate import Evaluation, parse_measure
from labelkin.evaluate.ranked import inverse_propensities
from labelkin.exceptions import ConfigError
from labelkin.scoring.ranking import Ranking

Make = Callable[..., Evaluation]
WIDTH = 7
orders = st.permutations(range(WIDTH))
golds = st.sets(st.integers(0, WIDTH - 1), min_size=1).map(sorted)


def value(name: str, evaluation: Evaluation) -> float:
    return parse_measure(name).value(evaluation)


@given(st.lists(st.tuples(golds, orders), min_size=1, max_size=8), st.integers(1, 9))
def test_ndcg_equals_that_of_scikit_learn(
    documents: list[tuple[list[int], list[int]]], k: int
) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    gold = [wanted for wanted, _ in documents]
    evaluation = Evaluation(
        Ranking.from_lists(gold).matrix(WIDTH),
        Ranking.from_lists([order for _, order in documents]),
    )
    scores = np.zeros((len(documents), WIDTH))
    for row, (_, order) in enumerate(documents):
        scores[row, order] = -np.arange(WIDTH)
    theirs = metrics.ndcg_score(evaluation.gold.toarray(), scores, k=k)
    assert value(f"nDCG@{k}", evaluation) == pytest.approx(theirs)


@given(
    st.lists(st.tuples(golds, orders, st.integers(0, WIDTH)), min_size=1, max_size=8),
    st.integers(1, 9),
)
def test_precision_and_recall_at_k(
    documents: list[tuple[list[int], list[int], int]], k: int
) -> None:
    gold = [wanted for wanted, _, _ in documents]
    ranked = [order[:length] for _, order, length in documents]
    evaluation = Evaluation(Ranking.from_lists(gold).matrix(WIDTH), Ranking.from_lists(ranked))
    hits = [len(set(order[:k]) & set(wanted)) for wanted, order in zip(gold, ranked, strict=True)]
    assert value(f"P@{k}", evaluation) == pytest.approx(np.mean(hits) / k)
    recalls = [correct / len(labels) for correct, labels in zip(hits, gold, strict=True)]
    assert value(f"R@{k}", evaluation) == pytest.approx(np.mean(recalls))


def test_depth_looks_at_the_ranking_before_the_cut(make: Make) -> None:
    longer = Ranking.from_lists([[0, 4, 1]])
    cut, uncut = make([[0, 1]], [[0]]), make([[0, 1]], [[0]], ranked=longer)
    assert value("R@3", cut) == 0.5
    assert value("R@3", uncut) == 1
    assert value("nDCG@3", uncut) == pytest.approx((1 + 1 / 2) / (1 + 1 / np.log2(3)))
    assert value("MiR", uncut) == 0.5


def test_a_document_without_gold_labels_gains_nothing(make: Make) -> None:
    evaluation = make([[0], []], [[0], [1]])
    assert value("nDCG@3", evaluation) == value("R@3", evaluation) == 0.5


FREQUENCIES = np.array([5000, 300, 20, 1, 0, 0, 0, 0])


def test_propensities_follow_the_formula(make: Make) -> None:
    evaluation = make([[0]], [[0]], training_frequencies=FREQUENCIES, training_documents=10000)
    c = (np.log(10000) - 1) * 2.5**0.55
    propensities = [1 / (1 + c * np.exp(-0.55 * np.log(n + 1.5))) for n in FREQUENCIES]
    assert 1 / inverse_propensities(evaluation) == pytest.approx(propensities)


def test_propensity_scores_are_sums_over_the_best_sums(make: Make) -> None:
    evaluation = make(
        [[0, 2, 3], [1]],
        [[0, 5, 3], [6, 7, 1]],
        training_frequencies=FREQUENCIES,
        training_documents=10000,
    )
    w = inverse_propensities(evaluation)
    # Two places: the first document has label 0 there, the second nothing.
    assert value("PSP@2", evaluation) == pytest.approx(w[0] / (w[3] + w[2] + w[1]))
    at = 1 / np.log2([2, 3, 4])
    ideal = at.sum()
    gained = (w[0] * at[0] + w[3] * at[2]) / ideal + w[1] * at[2]
    best = (w[3] * at[0] + w[2] * at[1] + w[0] * at[2]) / ideal + w[1] * at[0]
    assert value("PSnDCG@3", evaluation) == pytest.approx(gained / best)


def test_propensity_scores_of_a_perfect_ranking_are_one(make: Make) -> None:
    evaluation = make(
        [[0, 2, 3], [1]],
        [[3, 2, 0], [1]],
        training_frequencies=FREQUENCIES,
        training_documents=10000,
    )
    for k in (1, 2, 5):
        assert value(f"PSP@{k}", evaluation) == pytest.approx(1)
        assert value(f"PSnDCG@{k}", evaluation) == pytest.approx(1)


def test_propensity_needs_the_number_of_training_documents(make: Make) -> None:
    with pytest.raises(ConfigError, match="number of training documents"):
        value("PSP@1", make([[0]], [[0]], training_frequencies=FREQUENCIES))


def test_coverage_counts_labels_that_are_found_where_they_belong(make: Make) -> None:
    # 2 is shown too, but to a document that does not have it.
    evaluation = make([[0, 1], [0, 2], [3]], [[0, 1], [0, 7], [2, 3]])
    assert value("coverage@1", evaluation) == 0.25
    assert value("coverage@2", evaluation) == 0.75
