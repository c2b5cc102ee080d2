from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from labelkin.exceptions import ConfigError, DamagedFileError, StaleNeighboursError
from labelkin.neighbours import DISTANCES, Distance, Neighbours

FINGERPRINT = {"generation": 3, "representation": {"stems": "1"}}


def neighbours(scores: list[list[float]], own: list[float]) -> Neighbours:
    values = np.array(scores, dtype=np.float32)
    rows = np.where(values > 0, np.arange(values.shape[1]), -1)
    ids = tuple(str(number) for number in range(len(own)))
    own_scores = np.array(own, dtype=np.float32)
    return Neighbours(ids, rows, values, own_scores, FINGERPRINT, (("0", 1),))


def test_distances() -> None:
    found = neighbours([[8, 4, 0], [0, 0, 0]], [10, 0])
    assert found.distances("self").tolist() == [pytest.approx([0.2, 0.6, 1]), [1, 1, 1]]
    assert found.distances("top").tolist() == [[0, 0.5, 1], [1, 1, 1]]
    assert found.distances("top", floor=0.05)[0, 0] == pytest.approx(0.05)
    with pytest.raises(ConfigError, match="known: self, top"):
        found.distances("euclid")  # type: ignore[arg-type]


@given(
    arrays(np.float32, (3, 5), elements=st.floats(0, 1000, width=32)),
    arrays(np.float32, 3, elements=st.floats(0, 1000, width=32)),
    st.sampled_from(DISTANCES),
    st.floats(0, 1),
)
def test_distances_lie_between_0_and_1_and_never_grow_with_the_score(
    scores: np.ndarray, own: np.ndarray, kind: Distance, floor: float
) -> None:
    scores = -np.sort(-scores, axis=1)
    rows = np.where(scores > 0, np.arange(5), -1)
    found = Neighbours(("a", "b", "c"), rows, scores, own)
    distances = found.distances(kind, floor)
    assert distances.min() >= 0
    assert distances.max() <= 1
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (distances[rows == -1] == 1).all()


def test_save_and_load(tmp_path: Path) -> None:
    found = neighbours([[8, 4, 0], [3, 2, 1]], [10, 5])
    found.save(tmp_path / "n.npz")
    again = Neighbours.load(tmp_path / "n.npz", FINGERPRINT)
    assert again.ids == found.ids
    assert again.duplicates == (("0", 1),)
    assert np.array_equal(again.rows, found.rows)
    assert np.array_equal(again.scores, found.scores)
    assert np.array_equal(again.own_scores, found.own_scores)
    assert (again.k, again.nearest(2).k) == (3, 2)


def test_a_stale_file_is_refused(tmp_path: Path) -> None:
    neighbours([[1]], [1]).save(tmp_path / "n.npz")
    now = {**FINGERPRINT, "generation": 4}
    with pytest.raises(StaleNeighboursError, match="found with generation 3, which is 4 now"):
        Neighbours.load(tmp_path / "n.npz", now)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 cut off"])
def test_a_file_that_is_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "n.npz").write_bytes(content)
    with pytest.raises(DamagedFileError, match="not a neighbour set"):
        Neighbours.load(tmp_path / "n.npz")


def test_joined() -> None:
    parts = [neighbours([[8, 4]], [10]), neighbours([[3, 2]], [5])]
    whole = Neighbours.joined(parts)
    assert whole.rows.shape == (2, 2)
    assert len(whole.duplicates) == 2
