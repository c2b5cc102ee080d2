from __future__ import annotations

from collections.abc import Callable

import pytest

from labelkin.evaluate import Evaluation, Hierarchy, parse_measure

Make = Callable[..., Evaluation]
# A chain 0 > 1 > … > 5 with 6 beside 5, and 7 on its own.
CHAIN = Hierarchy.from_pairs([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6)], 8)


def value(name: str, evaluation: Evaluation) -> float:
    return parse_measure(name).value(evaluation)


def test_a_sibling_gets_credit_for_the_ancestors(make: Make) -> None:
    evaluation = make([[5]], [[6]], hierarchy=CHAIN)
    # 4 to 0 are five levels; the root is a sixth.
    assert value("hP", evaluation) == pytest.approx(5 / 6)
    assert value("hP(distance=5)", evaluation) == pytest.approx(6 / 7)
    assert value("hP(distance=0)", evaluation) == pytest.approx(1 / 2)


def test_unrelated_labels_share_the_root(make: Make) -> None:
    evaluation = make([[0]], [[7]], hierarchy=CHAIN)
    assert value("hF", evaluation) == 0.5


def test_precision_and_recall_differ_with_depth(make: Make) -> None:
    evaluation = make([[3], [7]], [[1], [7]], hierarchy=CHAIN)
    assert value("hP", evaluation) == 1
    assert value("hR", evaluation) == pytest.approx((3 / 5 + 1) / 2)
    assert value("hF", evaluation) == pytest.approx((6 / 8 + 1) / 2)


def test_no_labels_count_as_zero(make: Make) -> None:
    assert value("hP", make([[1]], [[]], hierarchy=CHAIN)) == 0
    assert value("hR", make([[]], [[1]], hierarchy=CHAIN)) == 0
