from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.evaluate import Evaluation, Hierarchy, parse_measure
from labelkin.evaluate.lca import Ancestors, lca_graphs

Make = Callable[..., Evaluation]
NODES = 12
# 0 > 1 > 3, 4; 0 > 2 > 5, 6; 5 > 7. 8 on its own.
TREE = Hierarchy.from_pairs([(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6), (5, 7)], 9)
TOP = TREE.root


def graphs(
    gold: set[int], predicted: set[int], hierarchy: Hierarchy = TREE, reach: int = 99
) -> tuple[set[int], set[int]]:
    return lca_graphs(gold, predicted, Ancestors(hierarchy, reach))


def test_siblings_meet_at_their_parent() -> None:
    assert graphs({3}, {4}) == ({3, 1}, {4, 1})


def test_a_label_above_another_is_the_meeting_point() -> None:
    assert graphs({7}, {2}) == ({7, 5, 2}, {2})


def test_each_label_goes_to_the_nearest_of_the_other_side() -> None:
    # 7 and 6 meet at 2; 3 is nearer to 4 than to 6.
    assert graphs({3, 7}, {4, 6}) == ({3, 1, 7, 5, 2}, {4, 1, 6, 2})


def test_a_label_without_a_near_one_draws_the_other_side_up() -> None:
    # 3 is predicted and needs no path of its own; 6 has nothing nearer than 3, by way of 0.
    assert graphs({3, 6}, {3}) == ({3, 6, 2, 0}, {3, 1, 0})


def test_unrelated_labels_meet_at_the_root() -> None:
    assert graphs({8}, {1}) == ({8, TOP}, {1, 0, TOP})


def test_beyond_reach_labels_meet_at_the_root() -> None:
    # 7 is three levels below 0, where it meets 3.
    assert graphs({7}, {3}, reach=3) == ({7, 5, 2, 0}, {3, 1, 0})
    assert graphs({7}, {3}, reach=2) == ({7, 5, 2, 0, TOP}, {3, 1, 0, TOP})
    # What is within reach is nearer than the root, however far it is.
    assert graphs({7, 4}, {3}, reach=2) == ({7, 5, 2, 0, TOP, 4, 1}, {3, 1, 0, TOP})


def test_without_labels_on_the_other_side_there_is_nothing_to_meet() -> None:
    assert graphs({7}, set()) == ({7}, set())
    assert graphs(set(), {7, 3}) == (set(), {7, 3})


def test_the_ancestor_with_most_labels_is_taken() -> None:
    # 1 and 2 meet at 5 or 6, 3 and 2 at 6 or 7: 6 links all, and the others are left out.
    parents = [(5, 1), (6, 1), (5, 2), (6, 2), (7, 2), (6, 3), (7, 3)]
    hierarchy = Hierarchy.from_pairs(parents, 8)
    assert graphs({1, 3}, {2}, hierarchy) == ({1, 3, 6}, {2, 6})


def test_an_ancestor_that_another_label_needs_is_enough() -> None:
    # 1 and 2 meet at 5 or 6; 3 and 4 only at 6.
    hierarchy = Hierarchy.from_pairs([(5, 1), (6, 1), (5, 2), (6, 2), (6, 3), (6, 4)], 7)
    assert graphs({1, 3}, {2, 4}, hierarchy) == ({1, 3, 6}, {2, 4, 6})


def test_a_side_that_is_nearest_elsewhere_sends_one_label() -> None:
    # 3 and 4 are predicted; 6 has nothing nearer than either of them, by way of 0.
    assert graphs({3, 4, 6}, {3, 4}) == ({3, 4, 6, 2, 0}, {3, 4, 1, 0})


def test_of_equals_the_lowest_number_is_taken() -> None:
    ancestors = Hierarchy.from_pairs([(5, 1), (6, 1), (5, 2), (6, 2)], 7)
    assert graphs({1}, {2}, ancestors) == ({1, 5}, {2, 5})
    # From 3 to 6 by way of 4 or 5.
    paths = Hierarchy.from_pairs([(4, 3), (5, 3), (6, 4), (6, 5), (6, 2)], 7)
    assert graphs({3}, {2}, paths) == ({3, 4, 6}, {2, 6})


def test_values(make: Make) -> None:
    evaluation = make([[3, 7], [3, 6]], [[4, 6], [3]], width=9, hierarchy=TREE)
    assert parse_measure("LCA-P").value(evaluation) == pytest.approx((2 / 4 + 2 / 3) / 2)
    assert parse_measure("LCA-R").value(evaluation) == pytest.approx((2 / 5 + 2 / 4) / 2)
    assert parse_measure("LCA-F").value(evaluation) == pytest.approx((4 / 9 + 4 / 7) / 2)
    nothing = make([[3], []], [[], [3]], width=9, hierarchy=TREE)
    assert [parse_measure(name).value(nothing) for name in ("LCA-P", "LCA-R", "LCA-F")] == [0, 0, 0]


labels = st.frozensets(st.integers(0, NODES - 1), max_size=6)
# Parents have greater numbers, so there are no cycles.
edges = st.lists(
    st.tuples(st.integers(0, NODES - 2), st.integers(1, NODES - 1)).map(
        lambda pair: (max(pair[0] + 1, pair[1]), pair[0])
    ),
    max_size=25,
)


@given(edges, labels, labels, st.integers(1, 6))
def test_graphs_hold_their_labels_and_swap(
    pairs: list[tuple[int, int]], gold: frozenset[int], predicted: frozenset[int], reach: int
) -> None:
    ancestors = Ancestors(Hierarchy.from_pairs(pairs, NODES), reach)
    of_gold, of_predicted = lca_graphs(gold, predicted, ancestors)
    for graph, labels in ((of_gold, gold), (of_predicted, predicted)):
        assert labels <= graph <= set().union(*map(ancestors.of, labels))
    if gold and predicted:
        assert of_gold & of_predicted
    assert lca_graphs(predicted, gold, ancestors) == (of_predicted, of_gold)
    assert lca_graphs(gold, gold, ancestors) == ({*gold}, {*gold})


@pytest.mark.parametrize("seed", range(3))
def test_swapping_gold_and_predicted_swaps_precision_and_recall(make: Make, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [(int(rng.integers(node + 1, 40)), node) for node in range(39) for _ in range(2)]
    hierarchy = Hierarchy.from_pairs(pairs, 40)
    a, b = ([rng.choice(40, 4, replace=False).tolist() for _ in range(20)] for _ in range(2))
    one = make(a, b, width=40, hierarchy=hierarchy)
    other = make(b, a, width=40, hierarchy=hierarchy)
    for left, right in (("LCA-P", "LCA-R"), ("LCA-R", "LCA-P"), ("LCA-F", "LCA-F")):
        value = parse_measure(left).value(one)
        assert 0 < value < 1
        assert value == pytest.approx(parse_measure(right).value(other))
    same = make(a, a, width=40, hierarchy=hierarchy)
    assert parse_measure("LCA-F").value(same) == 1


@pytest.mark.parametrize("name", ["hP", "hR", "hF", "LCA-P", "LCA-R", "LCA-F"])
def test_measures_work_with_cycles(name: str, make: Make) -> None:
    # 0 ⇄ 1 with 2 below, 3 its own parent, 4 below 3.
    hierarchy = Hierarchy.from_pairs([(0, 1), (1, 0), (0, 2), (3, 3), (3, 4)], 5)
    measure = parse_measure(name)
    same = make([[0], [2], [4]], [[0], [2], [4]], width=5, hierarchy=hierarchy)
    assert measure.value(same) == 1
    apart = make([[2], [1]], [[4], [3]], width=5, hierarchy=hierarchy)
    assert 0 < measure.value(apart) < 1
