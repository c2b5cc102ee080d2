from __future__ import annotations

import math

import pytest

from labelkin.neighbours.bm25 import LENGTHS, FieldStatistics, idf, quantised_length


def test_lengths_that_fit_in_a_byte() -> None:
    assert len(LENGTHS) == 256
    assert sorted(set(LENGTHS)) == LENGTHS
    assert [quantised_length(n) for n in (0, 7, 40, 41, 42, 57, 100, 1000)] == [
        0,
        7,
        40,
        40,
        42,
        56,
        96,
        984,
    ]


def test_idf() -> None:
    assert idf(10, 10) == pytest.approx(math.log(1 + 0.5 / 10.5))
    assert idf(100, 1) > idf(100, 2) > idf(100, 100) > 0


def test_contributions() -> None:
    statistics = FieldStatistics(documents=4, average_length=3.75)
    found = statistics.contributions({"b": 3, "x": 1}, 4, {"b": idf(4, 2), "a": 1.0})
    # The engine's own explanation of this case says 1.07389.
    assert found == {"b": pytest.approx(1.07389, rel=1e-5)}
