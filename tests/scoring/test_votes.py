from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.exceptions import ConfigError
from labelkin.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.scoring.cut import expected_counts
from labelkin.scoring.votes import SQUARE_FLOOR, WEIGHTINGS, neighbour_weights, vote
from labelkin.store.label_sets import LabelSets, Segment

WIDTH = 8
SETS = [[0, 1], [0, 2], [0, 1, 3], [], [4], [1, 2, 3, 4, 5]]
LABEL_SETS = LabelSets(
    [Segment.from_sets(0, [np.array(labels, dtype=np.int32) for labels in SETS])]
)
ORDER = np.arange(WIDTH)


def neighbours(rows: list[list[int]], scores: list[list[float]]) -> Neighbours:
    return Neighbours(
        tuple(map(str, range(len(rows)))),
        np.array(rows, dtype=np.int64).reshape(len(rows), -1),
        np.array(scores, dtype=np.float32).reshape(len(rows), -1),
        np.full(len(rows), 10, dtype=np.float32),
    )


def ranked(found: Neighbours, weights: np.ndarray, order: np.ndarray = ORDER) -> list[list[int]]:
    return [columns.tolist() for columns, _ in vote(found, weights, LABEL_SETS, order)]


def test_majority_ties_go_by_similarity_then_label_id() -> None:
    found = neighbours([[0, 1, 2]], [[5, 4, 3]])
    weights = neighbour_weights(found.distances(), "majority")
    # 0 has three votes, 1 two (similarity 8), then 2 (4) and 3 (3).
    assert ranked(found, weights) == [[0, 1, 2, 3]]
    (_, scores), *_ = vote(found, weights, LABEL_SETS, ORDER)
    assert scores == pytest.approx([1, 2 / 3, 1 / 3, 1 / 3])
    alone = neighbours([[5]], [[1]])
    assert ranked(alone, np.ones((1, 1))) == [[1, 2, 3, 4, 5]]
    assert ranked(alone, np.ones((1, 1)), ORDER[::-1].copy()) == [[5, 4, 3, 2, 1]]


def test_weights() -> None:
    d = np.array([[0.0, 0.5, 1.0]], dtype=np.float32)
    assert neighbour_weights(d, "majority").tolist() == [[1, 1, 1]]
    assert neighbour_weights(d, "difference").tolist() == [[1, 0.5, 0]]
    assert neighbour_weights(d, "square").tolist() == [[pytest.approx(SQUARE_FLOOR**-2), 4, 1]]
    with pytest.raises(ConfigError, match="known: majority"):
        neighbour_weights(d, "cubic")  # type: ignore[arg-type]


def test_empty_places_do_not_vote_or_count() -> None:
    found = neighbours([[4, NO_NEIGHBOUR], [NO_NEIGHBOUR, NO_NEIGHBOUR]], [[5, 0], [0, 0]])
    weights = neighbour_weights(found.distances(), "majority")
    assert ranked(found, weights) == [[4], []]
    assert expected_counts(found, weights, LABEL_SETS).tolist() == [1, 0]


def test_counts() -> None:
    found = neighbours([[5, 3, 4]], [[9, 1, 1]])
    weights = np.array([[8.0, 1.0, 1.0]])
    assert expected_counts(found, weights, LABEL_SETS).tolist() == [2]
    assert expected_counts(found, weights, LABEL_SETS, "weighted").tolist() == [4]
    with pytest.raises(ConfigError, match="known: mean, weighted"):
        expected_counts(found, weights, LABEL_SETS, "median")  # type: ignore[arg-type]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(-1, 5), st.floats(0.125, 9, width=32)), max_size=4),
        max_size=5,
    ),
    st.sampled_from(WEIGHTINGS),
)
def test_votes_equal_a_count_by_hand(drawn: list, weighting: str) -> None:
    rows = [[row for row, _ in one] + [NO_NEIGHBOUR] * (4 - len(one)) for one in drawn]
    scores = [[score for _, score in one] + [0.0] * (4 - len(one)) for one in drawn]
    for of_rows, of_scores in zip(rows, scores, strict=True):
        for place, row in enumerate(of_rows):
            of_scores[place] = 0.0 if row == NO_NEIGHBOUR else of_scores[place]
    if not rows:
        return
    found = neighbours(rows, scores)
    weights = neighbour_weights(found.distances(), weighting)  # type: ignore[arg-type]
    got = vote(found, weights, LABEL_SETS, ORDER)
    for place, (columns, shares) in enumerate(got):
        tally: dict[int, float] = {}
        total = 0.0
        for rank, row in enumerate(rows[place]):
            if row != NO_NEIGHBOUR:
                total += weights[place, rank]
                for label in SETS[row]:
                    tally[label] = tally.get(label, 0) + weights[place, rank]
        assert sorted(columns.tolist()) == sorted(tally)
        expected = [tally[column] / total if total else 0 for column in columns.tolist()]
        assert shares.tolist() == pytest.approx(expected, abs=1e-6)
        assert (np.diff(shares) <= 1e-6).all()
