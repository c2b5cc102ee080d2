from __future__ import annotations

import numpy as np
import pytest

from labelkin.plots.layout import plane_layout


def groups(count: int, size: int) -> np.ndarray:
    random = np.random.default_rng(0)
    middles = random.normal(size=(count, 20))
    return (np.repeat(middles, size, axis=0) + 0.1 * random.normal(size=(count * size, 20))).astype(
        np.float32
    )


def test_similar_vectors_are_near_each_other():
    places = plane_layout(groups(6, 40))
    group = np.repeat(np.arange(6), 40)
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (group[distances.argmin(axis=1)] == group).all()
    assert np.isfinite(places).all()


def test_the_same_vectors_have_the_same_places():
    vectors = groups(3, 20)
    np.testing.assert_array_equal(plane_layout(vectors), plane_layout(vectors))
    assert not np.array_equal(plane_layout(vectors), plane_layout(vectors, seed=1))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 9])
def test_few_vectors_and_equal_ones(count):
    for vectors in (np.ones((count, 4)), np.eye(count, 4), np.ones((count, 1))):
        places = plane_layout(vectors.astype(np.float32))
        assert places.shape == (count, 2)
        assert np.isfinite(places).all()
