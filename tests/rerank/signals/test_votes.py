from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.rerank.signals.votes import count_votes
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.store.label_sets import LabelSets, Segment
from labelkin.vocab import Concept, Vocabulary

WIDTH = 6


def label_sets_of(sets: list[list[int]]) -> LabelSets:
    return LabelSets(
        [Segment.from_sets(0, [np.array(sorted({*one}), dtype=np.int32) for one in sets])]
    )


def neighbours_of(lists: list[list[tuple[int, float]]], own: list[float], k: int) -> Neighbours:
    rows = np.full((len(lists), k), NO_NEIGHBOUR, dtype=np.int64)
    scores = np.zeros((len(lists), k), dtype=np.float32)
    for place, near in enumerate(lists):
        for rank, (row, score) in enumerate(sorted(near, key=lambda one: -one[1])):
            rows[place, rank], scores[place, rank] = row, score
    ids = tuple(str(place) for place in range(len(lists)))
    return Neighbours(ids, rows, scores, np.array(own, dtype=np.float32))


def slow_votes(neighbours: Neighbours, sets: list[set[int]]) -> dict:
    """The same numbers by loops over documents, neighbours and headings."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for document in range(len(neighbours)):
        near = [
            (rank, int(row), float(score))
            for rank, (row, score) in enumerate(
                zip(neighbours.rows[document], neighbours.scores[document], strict=True)
            )
            if row != NO_NEIGHBOUR
        ]
        own = float(neighbours.own_scores[document])
        best = near[0][2] if near else 0.0
        weights: dict[str, dict[int, float]] = {
            "near40": {}, "near80": {}, "close20": {}, "close4": {}, "close8": {},
        }  # fmt: skip
        for rank, _, score in near:
            share = min(score / own, 1.0) if own else 0.0
            close = score / best if best else 0.0
            weights["near40"][rank] = share if rank < 40 else 0.0
            weights["near80"][rank] = share
            weights["close20"][rank] = close**2 if rank < 20 else 0.0
            weights["close4"][rank] = close**4
            weights["close8"][rank] = close**8
        for label in sorted({label for _, row, _ in near for label in sets[row]}):
            carriers = [rank for rank, row, _ in near if label in sets[row]]
            values: dict[str, float] = {
                f"majority{k}": sum(rank < k for rank in carriers) / k for k in (5, 10, 20, 40, 80)
            }
            for name, of_rank in weights.items():
                total = sum(of_rank.values())
                values[name] = sum(of_rank[rank] for rank in carriers) / total if total else 0.0
            values["first"] = carriers[0]
            values["best"] = weights["near80"][carriers[0]]
            found[document, label] = values
    return found


near_lists = st.lists(
    st.lists(
        st.tuples(st.integers(0, 29), st.integers(1, 50).map(float)),
        max_size=25,
        unique_by=lambda one: one[0],
    ),
    min_size=1,
    max_size=3,
)


@given(
    st.lists(st.lists(st.integers(0, WIDTH - 1), max_size=4), min_size=30, max_size=30),
    near_lists,
    st.floats(1, 60),
)
def test_against_a_slow_count(sets, lists, own):
    neighbours = neighbours_of(lists, [own] * len(lists), 25)
    votes = count_votes(neighbours, label_sets_of(sets), None, WIDTH)
    expected = slow_votes(neighbours, [{*one} for one in sets])
    assert votes.keys.tolist() == [d * WIDTH + c for d, c in sorted(expected)]
    for place, pair in enumerate(sorted(expected)):
        found = {name: float(values[place]) for name, values in votes.values.items()}
        assert found == pytest.approx(expected[pair], abs=2e-4)
    for document, near in enumerate(lists):
        first = sorted(near, key=lambda one: -one[1])[:20]
        shares = [min(score / own, 1) for _, score in first]
        sizes = [len({*sets[row]}) for row, _ in first]
        assert votes.nearest[document] == pytest.approx(shares[0] if shares else 0, abs=1e-4)
        assert votes.nearness[document] == pytest.approx(sum(shares) / 20, abs=1e-4)
        assert votes.expected_count[document] == pytest.approx(
            sum(sizes) / max(len(sizes), 1), abs=1e-4
        )


def test_no_more_than_the_nearest_vote():
    sets = [[0] if row < RERANK_DEPTH else [1] for row in range(RERANK_DEPTH + 5)]
    near = [[(row, 100.0 - row / 10) for row in range(len(sets))]]
    votes = count_votes(neighbours_of(near, [100.0], len(sets)), label_sets_of(sets), None, WIDTH)
    assert votes.keys.tolist() == [0]
    assert votes.values["majority80"].tolist() == [1.0]


def test_replaced_headings_vote_once_for_the_one_that_stands_for_them():
    policy = LabelPolicy(
        Vocabulary(
            [
                Concept("A", {"en": "A"}),
                Concept("B", {"en": "B"}, deprecated=True, replaced_by=("A",)),
                Concept("C", {"en": "C"}, deprecated=True),
            ]
        )
    )
    near = neighbours_of([[(0, 9.0), (1, 8.0), (2, 7.0)]], [10.0], 5)
    votes = count_votes(near, label_sets_of([[2], [0, 1], [1]]), policy, 3)
    assert votes.keys.tolist() == [0]
    assert votes.values["majority5"].tolist() == pytest.approx([2 / 5])
    assert votes.values["first"].tolist() == [1.0]


@pytest.mark.parametrize("documents", [0, 2])
def test_no_neighbours(documents):
    nobody = Neighbours.empty([str(n) for n in range(documents)])
    votes = count_votes(nobody, label_sets_of([[0]]), None, WIDTH)
    assert len(votes.keys) == 0
    assert all(len(values) == 0 for values in votes.values.values())
    for values in (votes.nearest, votes.nearness, votes.expected_count):
        assert values.tolist() == [0.0] * documents
