from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin.autoencoder.training_data import make_training_data
from labelkin.demo import demo_documents
from labelkin.indexer import Indexer
from labelkin.neighbours.training import NearestRows, find_nearest


@pytest.mark.parametrize("representation", ["stems", "lsa", "stems,lsa"])
def test_neighbours_to_learn_from_are_others(representation: str, tmp_path: Path) -> None:
    if "lsa" in representation:
        pytest.importorskip("faiss")
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(demo_documents(100))
        indexer.remove(["demo-00001"])
        generation = indexer.collection.generation()
        data = make_training_data(
            indexer.collection.label_sets(),
            generation.next_column,
            indexer.collection.tombstones(),
            held_out=0.1,
            min_frequency=1,
            seed=0,
        )
        rows = np.union1d(data.rows[:50], data.held_out)
        nearest = find_nearest(indexer.search(representation), rows, 40)
        found = nearest.among(rows, np.union1d(data.rows, data.held_out), 20)
        gone = indexer.collection.tombstones()
    assert found.rows.tolist() == rows.tolist()
    assert not (found.near == found.rows[:, None]).any()
    assert not np.isin(found.near, gone).any()
    assert (found.near[:, 0] >= 0).all()
    assert ((found.weights >= 0) & (found.weights <= 1)).all()
    assert (np.diff(found.weights, axis=1) <= 1e-6).all()


def test_the_next_ones_take_the_places_of_those_left_out() -> None:
    near = np.array([[5, 2, 7, 3], [1, -1, -1, -1], [3, 5, 1, 2]])
    closeness = np.array([[0.9, 0.8, 0.7, 0.6], [0.5, 0, 0, 0], [0.4, 0.3, 0.2, 0.1]])
    nearest = NearestRows(np.array([1, 4, 9]), near, closeness.astype(np.float32))
    found = nearest.among(np.array([1, 9]), np.array([1, 2, 3, 9]), 2)
    assert found.rows.tolist() == [1, 9]
    assert found.near.tolist() == [[2, 3], [3, 1]]
    np.testing.assert_allclose(found.weights, [[0.8, 0.6], [0.4, 0.2]], rtol=1e-6)
    nobody = nearest.among(np.array([1, 4]), np.array([2]), 3)
    assert nobody.near.tolist() == [[2, -1, -1], [-1, -1, -1]]
    assert nobody.weights[1].tolist() == [0, 0, 0]
    # More places than were looked up stay as they are.
    assert nearest.among(np.array([4]), np.arange(10), 60).near.tolist() == [[1, -1, -1, -1]]
