from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from labelkin.evaluate import Evaluation, bootstrap_interval, paired_test, parse_measure
from labelkin.scoring.ranking import Ranking

Make = Callable[..., Evaluation]


@pytest.fixture
def good(random_evaluation: Make) -> Evaluation:
    return random_evaluation()


@pytest.fixture
def bad(good: Evaluation) -> Evaluation:
    """The first third of the good system's documents, and nothing for the others."""
    places = np.repeat(np.arange(good.documents), good.predicted.lengths)
    return replace(good, predicted=good.predicted.kept(places < good.documents // 3))


@pytest.mark.parametrize("name", ["MiF", "EBF", "P@5", "MaF"])
def test_the_interval_holds_the_value_and_widens_with_confidence(
    good: Evaluation, name: str
) -> None:
    measure = parse_measure(name)
    narrow = bootstrap_interval(measure, good, samples=200, confidence=0.5)
    wide = bootstrap_interval(measure, good, samples=200, confidence=0.95)
    assert narrow.value == wide.value == measure.value(good)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert 0.01 < wide.high - wide.low < 0.2


def test_the_interval_of_a_mean_is_that_of_its_standard_error(good: Evaluation) -> None:
    measure = parse_measure("EBF")
    interval = bootstrap_interval(measure, good, samples=4000)
    error = measure.statistics(good).std() / np.sqrt(good.documents)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * error, rel=0.08)


def test_sums_and_recomputation_agree(good: Evaluation) -> None:
    """The product of counts and statistics equals the measure of the drawn documents."""
    measure = parse_measure("MiF")
    places = np.random.default_rng(3).integers(good.documents, size=good.documents)
    weights = np.bincount(places, minlength=good.documents)
    by_sums = measure.family.combine(weights @ measure.statistics(good), good.documents)
    assert by_sums == pytest.approx(measure.value(good.taken(places)))


def test_the_seed_decides(good: Evaluation) -> None:
    measure = parse_measure("MiF")
    first = bootstrap_interval(measure, good, samples=50, seed=1)
    assert first == bootstrap_interval(measure, good, samples=50, seed=1)
    assert first != bootstrap_interval(measure, good, samples=50, seed=2)


@pytest.mark.parametrize("name", ["MiF", "EBF", "MaF"])
def test_different_systems_differ_and_equal_ones_do_not(
    good: Evaluation, bad: Evaluation, name: str
) -> None:
    measure = parse_measure(name)
    test = paired_test(measure, good, bad, samples=99)
    assert test.difference == measure.value(good) - measure.value(bad) > 0
    assert test.p_value == 0.01
    assert paired_test(measure, bad, good, samples=99).p_value == 0.01
    assert paired_test(measure, good, good, samples=99).p_value == 1


def test_the_p_value_is_that_of_the_sign_flips(make: Make) -> None:
    """Three documents, all better in a: only 2 of 8 exchanges are as extreme."""
    a = make([[0], [1], [2]], [[0], [1], [2]])
    b = make([[0], [1], [2]], [[5], [5], [5]])
    for name in ("P@1", "MaR"):
        test = paired_test(parse_measure(name), a, b, samples=2000)
        assert test.p_value == pytest.approx(0.25, abs=0.04)


def test_longer_rankings_are_exchanged_too(make: Make) -> None:
    gold = [[0], [1], [2]]
    a = make(gold, [[], [], []], ranked=Ranking.from_lists([[0], [1], [2]]))
    b = make(gold, [[5], [5], [5]])
    test = paired_test(parse_measure("coverage@1"), a, b, samples=2000)
    assert test.difference == 1
    assert test.p_value == pytest.approx(0.25, abs=0.04)


def test_a_paired_test_needs_the_same_gold_labels(make: Make) -> None:
    with pytest.raises(ValueError, match="same gold labels"):
        paired_test(parse_measure("MiF"), make([[0]], [[0]]), make([[1]], [[0]]))


def test_no_documents_cannot_be_drawn(make: Make) -> None:
    with pytest.raises(ValueError, match="no documents"):
        bootstrap_interval(parse_measure("MiF"), make([], []))
