from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelkin.scoring.cut import cut
from labelkin.scoring.ranking import Ranking

LISTS = st.lists(st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1, width=32)), max_size=6))


def ranking(lists: list[list[tuple[int, float]]]) -> Ranking:
    columns = [[column for column, _ in one] for one in lists]
    return Ranking.from_lists(columns, [[score for _, score in one] for one in lists])


def back(found: Ranking) -> list[list[tuple[int, float]]]:
    return [
        [(int(column), float(score)) for column, score in zip(columns, scores, strict=True)]
        for columns, scores in found
    ]


@given(LISTS, LISTS)
def test_round_trip_and_joining(first: list, second: list) -> None:
    assert back(ranking(first)) == first
    assert back(Ranking.joined([ranking(first), ranking(second)])) == first + second


@given(LISTS, st.integers(0, 5), st.floats(0, 1, width=32), st.data())
def test_cut(lists: list, limit: int, threshold: float, data: st.DataObject) -> None:
    found = ranking(lists)
    counts = [data.draw(st.integers(0, 6)) for _ in lists]
    by_count = cut(found, counts=np.array(counts, dtype=np.int64))
    assert back(by_count) == [one[:count] for one, count in zip(lists, counts, strict=True)]
    assert back(cut(found, limit=limit)) == [one[:limit] for one in lists]
    above = [[pair for pair in one if pair[1] >= threshold] for one in lists]
    assert back(cut(found, threshold=threshold)) == above
    assert back(cut(found)) == lists


def test_matrix() -> None:
    matrix = ranking([[(3, 0.5), (1, 0.25)], []]).matrix(5).toarray()
    assert matrix.tolist() == [[0, 0.25, 0, 0.5, 0], [0] * 5]
