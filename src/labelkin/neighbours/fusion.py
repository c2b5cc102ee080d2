"""Fusing several neighbour sets into one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours

FusionMethod = Literal["rank", "distance"]


def fuse(
    parts: Sequence[Neighbours],
    k: int,
    weights: Sequence[float] = (),
    method: FusionMethod = "rank",
    rank_constant: float = 60.0,
) -> Neighbours:
    """The `k` best of several neighbour sets of the same documents.

    `rank` scores a neighbour with the sum of weight / (constant + rank) over
    the sets that have it (reciprocal rank fusion, Cormack et al. 2009);
    `distance` with the weighted mean of 1 − d, where d is the distance in a set
    scaled from 0 for its nearest to 1 for its farthest, since representations
    differ in their ranges, and 1 in a set that does not have it. A neighbour
    that is first in all sets is at distance 0; a set with weight 0 is ignored.
    """
    if weights and len(weights) != len(parts):
        raise ConfigError(
            f"{len(weights)} fusion weights for {len(parts)} representations; give one for each"
        )
    shares = np.array(weights or [1.0] * len(parts), dtype=np.float64)
    parts = [part for part, share in zip(parts, shares, strict=True) if share]
    shares = shares[shares > 0] / shares.sum()
    values = np.concatenate(
        [
            share * _values(part, method, rank_constant)
            for share, part in zip(shares, parts, strict=True)
        ],
        axis=1,
    )
    rows = np.concatenate([part.rows for part in parts], axis=1)
    best = 1 / (rank_constant + 1) if method == "rank" else 1.0
    fused_rows = np.full((len(rows), k), NO_NEIGHBOUR, dtype=np.int64)
    scores = np.zeros((len(rows), k), dtype=np.float32)
    for place, (near, near_values) in enumerate(zip(rows, values, strict=True)):
        is_there = near != NO_NEIGHBOUR
        distinct, which = np.unique(near[is_there], return_inverse=True)
        sums = np.bincount(which, weights=near_values[is_there], minlength=len(distinct))
        order = np.lexsort((distinct, -np.round(sums / best, 6)))[:k]
        fused_rows[place, : len(order)] = distinct[order]
        scores[place, : len(order)] = sums[order]
    return replace(
        parts[0],
        rows=fused_rows,
        scores=scores,
        own_scores=np.full(len(rows), best, dtype=np.float32),
        duplicates=tuple(dict.fromkeys(pair for part in parts for pair in part.duplicates)),
    )


def _values(
    part: Neighbours, method: FusionMethod, rank_constant: float
) -> npt.NDArray[np.float64]:
    if method == "distance":
        return _scaled(part)
    ranks = np.arange(1, part.k + 1)
    return np.broadcast_to(1 / (rank_constant + ranks), part.rows.shape)


def _scaled(part: Neighbours) -> npt.NDArray[np.float64]:
    """Similarities from 1 for the nearest to 0 for the farthest of each document."""
    near = np.asarray(1 - part.distances("self"), dtype=np.float64)
    is_there: npt.NDArray[np.bool_] = part.rows != NO_NEIGHBOUR
    highest = near.max(axis=1, keepdims=True, initial=0.0)
    lowest = near.min(axis=1, keepdims=True, initial=1.0, where=is_there)
    spread = highest - lowest
    values = is_there.astype(np.float64)
    np.divide(near - lowest, spread, out=values, where=spread > 0)
    return values
