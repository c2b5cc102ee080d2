from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin.autoencoder.training_data import make_training_data
from labelkin.demo import demo_documents
from labelkin.indexer import Indexer
from labelkin.neighbours.training import find_nearest, rows_to_search


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
        rows = rows_to_search(data, 50, 0)
        nearest = find_nearest(indexer.search(representation), rows, 40)
        found = nearest.among(rows, np.union1d(data.rows, data.held_out), 20)
        gone = indexer.collection.tombstones()
    assert set(data.validation.tolist()) <= set(found.rows.tolist())
    assert not (found.near == found.rows[:, None]).any()
    assert not np.isin(found.near, gone).any()
    assert (found.near[:, 0] >= 0).all()
    assert ((found.weights >= 0) & (found.weights <= 1)).all()
    assert (np.diff(found.weights, axis=1) <= 1e-6).all()
