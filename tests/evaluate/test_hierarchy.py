from __future__ import annotations

from labelkin.evaluate import Hierarchy

PAIRS = [(0, 1), (1, 2), (0, 3), (3, 4), (4, 2), (9, 3)]


def test_parentless_nodes_stand_under_the_root() -> None:
    hierarchy = Hierarchy.from_pairs(PAIRS, 6)
    assert hierarchy.root == 10
    assert hierarchy.above(0) == hierarchy.above(5) == hierarchy.above(9) == [10]
    assert sorted(hierarchy.above(3)) == [0, 9]
    assert hierarchy.above(hierarchy.root) == []


def test_distances_are_shortest_and_end_at_the_level() -> None:
    hierarchy = Hierarchy.from_pairs(PAIRS, 6)
    assert hierarchy.distances(2, 0) == {2: 0}
    assert hierarchy.distances(2, 1) == {2: 0, 1: 1, 4: 1}
    assert hierarchy.distances(2, 99) == {2: 0, 1: 1, 4: 1, 0: 2, 3: 2, 10: 3, 9: 3}


def test_edges_that_occur_twice_count_once() -> None:
    hierarchy = Hierarchy.from_pairs([*PAIRS, *PAIRS], 6)
    assert hierarchy.parents.tolist() == Hierarchy.from_pairs(PAIRS, 6).parents.tolist()


def test_no_pairs_leave_all_under_the_root() -> None:
    hierarchy = Hierarchy.from_pairs([], 3)
    assert [hierarchy.above(label) for label in range(3)] == [[3], [3], [3]]


def test_a_loop_ends() -> None:
    hierarchy = Hierarchy.from_pairs([(0, 1), (1, 0), (1, 2)], 3)
    assert hierarchy.distances(2, 1000) == {2: 0, 1: 1, 0: 2, 3: 2}


def test_every_node_reaches_the_root_whatever_the_cycles() -> None:
    long = [(node, node + 1) for node in range(10, 5_000)] + [(5_000, 10)]
    hierarchy = Hierarchy.from_pairs(
        [(0, 0), (1, 2), (2, 1), (2, 3), (9, 4), (4, 5), (5, 4), *long], 6
    )
    root = hierarchy.root
    assert all(root in hierarchy.distances(node, 10_000) for node in range(root))
    assert hierarchy.above(0) == [root]
    assert sorted(hierarchy.above(1)) == [2, root]
    # A cycle with something above it is no top.
    assert sorted(hierarchy.above(4)) == [5, 9]
