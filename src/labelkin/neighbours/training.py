"""Leave-one-out neighbours of the documents that a model is trained on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelkin.autoencoder.training_data import TrainingData, TrainingNeighbours
from labelkin.neighbours.search import NeighbourSearch

_K = 30
_BATCH = 1000


def training_neighbours(
    search: NeighbourSearch,
    data: TrainingData,
    most: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> TrainingNeighbours:
    """Neighbours of at most `most` training documents and of all validation documents.

    Weights are 1 − d, with `self` distances. Only training and held-out documents
    count as neighbours.
    """
    is_there = np.zeros(data.label_sets.rows, dtype=np.bool_)
    is_there[data.rows] = is_there[data.held_out] = True
    rows = data.rows
    if len(rows) > most:
        rows = np.random.default_rng((seed, most)).choice(rows, most, replace=False)
    rows = np.union1d(rows, data.validation)
    near = np.full((len(rows), _K), -1, dtype=np.int64)
    weights = np.zeros((len(rows), _K), dtype=np.float32)
    for start in range(0, len(rows), _BATCH):
        part = slice(start, min(start + _BATCH, len(rows)))
        neighbours = search.search_rows(rows[part], _K)
        # Documents that were added after the label sets were read have none here.
        known = (neighbours.rows >= 0) & (neighbours.rows < data.label_sets.rows)
        known[known] = is_there[neighbours.rows[known]]
        near[part] = np.where(known, neighbours.rows, -1)
        weights[part] = np.where(known, 1 - neighbours.distances("self"), 0)
        if progress is not None:
            progress(part.stop, len(rows))
    return TrainingNeighbours(rows, near, weights)
