from __future__ import annotations

import numpy as np

from labelkin.plots.frequencies import heading_frequencies


def test_the_tail_of_some_headings():
    found = heading_frequencies(np.array([0, 1, 2000, 10, 0, 1, 150]))
    assert found.points == ((1, 2000), (2, 150), (3, 10), (4, 1), (5, 1))
    assert dict(found.at_least) == {1000: 1, 100: 2, 10: 3, 1: 5}
    assert (found.headings, found.once) == (5, 2)


def test_many_headings_are_a_few_points_with_both_ends():
    counts = np.arange(1, 50_001)
    points = heading_frequencies(counts).points
    assert 100 < len(points) <= 200
    assert points[0] == (1, 50_000)
    assert points[-1] == (50_000, 1)
    assert all(documents == 50_001 - rank for rank, documents in points)


def test_no_headings():
    found = heading_frequencies(np.zeros(3, dtype=np.int64))
    assert (found.points, found.headings, found.once) == ((), 0, 0)
