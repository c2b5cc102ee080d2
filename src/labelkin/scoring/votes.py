"""Votes: the labels of a document's neighbours, weighed and ranked (classic k-NN).

A label's score is the share of the neighbours that carry it, each weighed by

    majority    1 (the paper's)
    difference  1 − d
    square      1 / d², with d not below SQUARE_FLOOR: a duplicate must not outweigh all others

so scores lie in [0, 1]. Equal scores are ordered by the summed similarity of
the neighbours that carry the label, then by label id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.ranking import Ranking
from labelkin.store.label_sets import LabelSets
from labelkin.store.vocabulary_state import LabelOrder

Weighting = Literal["majority", "difference", "square"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)
SQUARE_FLOOR = 0.05

# Documents scored at a time: bounds memory, whatever the size of the batch.
_CHUNK = 1000

Floats = npt.NDArray[np.float64]


def neighbour_weights(distances: npt.NDArray[np.float32], weighting: Weighting) -> Floats:
    """The weight of each neighbour's vote, by its distance."""
    if weighting not in WEIGHTINGS:
        raise ConfigError(f"no weighting {weighting!r}; known: {', '.join(WEIGHTINGS)}")
    d = distances.astype(np.float64)
    if weighting == "majority":
        return np.ones_like(d)
    return 1 - d if weighting == "difference" else 1 / np.maximum(d, SQUARE_FLOOR) ** 2


def vote(
    neighbours: Neighbours,
    weights: Floats,
    label_sets: LabelSets,
    label_order: LabelOrder | npt.NDArray[np.int64],
    policy: LabelPolicy | None = None,
) -> Ranking:
    """All labels of the neighbours that the policy allows, best first.

    `weights` has the shape of the neighbours; `label_order` gives for each
    column its place in the order of label ids.
    """
    parts = [
        _vote(chunk, chunk_weights, label_sets, label_order, policy)
        for chunk, chunk_weights in _chunks(neighbours, weights)
    ]
    return Ranking.joined(parts) if parts else Ranking.from_lists([])


def _chunks(neighbours: Neighbours, weights: Floats) -> Iterator[tuple[Neighbours, Floats]]:
    for start in range(0, len(neighbours), _CHUNK):
        part = slice(start, start + _CHUNK)
        yield neighbours[part], weights[part]


def _vote(
    neighbours: Neighbours,
    weights: Floats,
    label_sets: LabelSets,
    label_order: LabelOrder | npt.NDArray[np.int64],
    policy: LabelPolicy | None,
) -> Ranking:
    there = neighbours.rows != NO_NEIGHBOUR
    voters = np.flatnonzero(there.ravel())
    starts, columns = label_sets.gather(neighbours.rows.ravel()[voters])
    of_voter = np.repeat(np.arange(len(voters)), np.diff(starts))
    if policy is not None:
        of_voter, columns = policy.apply(of_voter, columns)
    documents = voters[of_voter] // max(neighbours.k, 1)
    # One key per document and label; the weights of its voters are summed.
    keys, ballots = np.unique(documents * len(label_order) + columns, return_inverse=True)
    votes = np.bincount(ballots, weights.ravel()[voters][of_voter], len(keys))
    similarity = np.bincount(ballots, neighbours.scores.ravel()[voters][of_voter], len(keys))
    documents, labels = np.divmod(keys, max(len(label_order), 1))
    totals = np.where(there, weights, 0).sum(1)
    shares = votes / np.maximum(totals[documents], np.finfo(np.float64).tiny)
    order = np.lexsort((label_order[labels], -similarity, -shares, documents))
    return Ranking.from_pairs(
        documents[order], labels[order], np.clip(shares[order], 0, 1), len(neighbours)
    )
