"""Where ranked lists are cut: at the neighbours' number of labels, or at a threshold."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.scoring.ranking import Ranking
from labelkin.store.label_sets import LabelSets

CountScheme = Literal["mean", "weighted"]
COUNT_SCHEMES: tuple[CountScheme, ...] = get_args(CountScheme)


def expected_counts(
    neighbours: Neighbours,
    weights: npt.NDArray[np.float64],
    label_sets: LabelSets,
    scheme: CountScheme = "mean",
) -> npt.NDArray[np.int64]:
    """The number of labels each document should get: the rounded mean of its neighbours'.

    `mean` is the paper's; `weighted` weighs the neighbours like their votes.
    """
    if scheme not in COUNT_SCHEMES:
        raise ConfigError(f"no count scheme {scheme!r}; known: {', '.join(COUNT_SCHEMES)}")
    is_there = neighbours.rows != NO_NEIGHBOUR
    sizes = np.zeros(neighbours.rows.shape)
    sizes[is_there] = label_sets.sizes_of(neighbours.rows[is_there])
    shares = np.where(is_there, 1.0 if scheme == "mean" else weights, 0.0)
    totals = shares.sum(1)
    means = np.divide((sizes * shares).sum(1), totals, out=np.zeros(len(totals)), where=totals > 0)
    counts: npt.NDArray[np.int64] = np.rint(means).astype(np.int64)
    return counts


def cut(
    ranking: Ranking,
    counts: npt.NDArray[np.int64] | None = None,
    threshold: float | None = None,
    limit: int | None = None,
) -> Ranking:
    """The best labels of each document: at most its count or `limit`, none below the threshold."""
    keep = np.ones(len(ranking.columns), dtype=bool)
    if counts is not None:
        keep &= ranking.ranks < np.repeat(counts, ranking.lengths)
    if threshold is not None:
        keep &= ranking.scores >= np.float32(threshold)
    if limit is not None:
        keep &= ranking.ranks < limit
    return ranking.kept(keep)
