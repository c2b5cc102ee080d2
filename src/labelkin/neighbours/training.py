"""Leave-one-out neighbours of the documents that a model is trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.training_data import TrainingNeighbours
from labelkin.neighbours.search import NeighbourSearch

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NearestRows:
    """The nearest rows of some documents, closest first, filled up with −1.

    Closeness is 1 − d, with `self` distances.
    """

    rows: Integers
    near: Integers
    closeness: npt.NDArray[np.float32]

    def among(self, rows: Integers, others: Integers, k: int) -> TrainingNeighbours:
        """The nearest `k` of `rows` that are among `others`; the next ones move up."""
        width = max(self.near.max(initial=-1), others.max(initial=-1)) + 2
        is_there = np.zeros(width, dtype=np.bool_)
        is_there[others] = True
        places = np.searchsorted(self.rows, rows)
        near = self.near[places]
        # Place −1 is the last one, which no row has.
        known = is_there[near]
        order = np.argsort(~known, axis=1, kind="stable")[:, :k]
        known = np.take_along_axis(known, order, 1)
        return TrainingNeighbours(
            rows,
            np.where(known, np.take_along_axis(near, order, 1), -1),
            np.where(known, np.take_along_axis(self.closeness[places], order, 1), 0),
        )


def find_nearest(
    search: NeighbourSearch,
    rows: Integers,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> NearestRows:
    """The nearest `k` documents of those in `rows`, which are ascending."""
    near = np.full((len(rows), k), -1, dtype=np.int64)
    closeness = np.zeros((len(rows), k), dtype=np.float32)
    search.expect(len(rows), progress)
    # Read once: on a cluster it follows the workers, some of which may be lost meanwhile.
    batch = search.batch
    for start in range(0, len(rows), batch):
        part = slice(start, min(start + batch, len(rows)))
        found = search.search_rows(rows[part], k)
        near[part, : found.k] = found.rows
        closeness[part, : found.k] = np.where(found.rows >= 0, 1 - found.distances("self"), 0)
        if progress is not None:
            progress(part.stop, len(rows))
    return NearestRows(rows, near, closeness)
