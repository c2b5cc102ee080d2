"""Votes of the neighbours with several weightings, and the nearest one with a heading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Floats, Integers, Pairs, best_keys
from labelkin.rerank.signal import Signal, Values
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.scoring.suggestion import CARRIED
from labelkin.store.label_sets import LabelSets

# Candidates are all headings of this many nearest neighbours, and those with the most votes.
_NEAREST = 8
_BEST = 100
# Those of rerankers of version 0.1, which lack the words of names: trees need the candidates that
# they were trained with, because ranks and sums over candidates are features.
_BEST_BEFORE = 60
_KS = (5, 10, 20, 40, 80)
_COUNTED = 20
# The rank of a heading that no neighbour carries.
NOT_CARRIED = 200.0


class VotesSignal(Signal):
    """How many neighbours carry a heading, and how near they are."""

    name = "votes"
    features = (
        *(f"majority{k}" for k in _KS),
        *("near40", "near80", "close20", "close4", "close8", "first", "best", "vote_rank"),
    )
    reason = CARRIED

    def propose(self, evidence: Evidence) -> Integers:
        """The headings of the nearest, and those with the most votes."""
        votes = votes_of(evidence)
        nearest = votes.keys[votes.values["first"] < _NEAREST]
        limit = _BEST if "name words" in evidence.knowledge.groups else _BEST_BEFORE
        best = best_keys(votes.keys, votes.strength, evidence.width, limit)
        return np.concatenate((nearest, best))

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """The shares of the votes, and the rank by them."""
        votes = votes_of(evidence)
        places = pairs.places_in(votes.keys)
        values = {
            name: pairs.at(places, one, NOT_CARRIED if name == "first" else 0.0)
            for name, one in votes.values.items()
        }
        values["vote_rank"] = pairs.ranks(values["close4"])
        return values


def votes_of(evidence: Evidence) -> Votes:
    """The votes for a batch, counted once."""
    queries = evidence.queries
    return evidence.once(
        "votes",
        lambda: count_votes(
            evidence.neighbours,
            queries.snapshot.label_sets(),
            queries.policy(),
            evidence.width,
        ),
    )


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes for every heading that a neighbour carries, by ascending keys.

    `values` holds an array per feature: shares of the neighbours' weight, and
    rank and nearness of the nearest neighbour that carries the heading.
    """

    keys: Integers
    values: dict[str, Floats]
    nearest: Floats
    nearness: Floats
    expected_count: Floats

    @property
    def strength(self) -> Floats:
        """The votes that are the best single feature."""
        return self.values["close4"]


def count_votes(
    neighbours: Neighbours, label_sets: LabelSets, policy: LabelPolicy | None, width: int
) -> Votes:
    """The votes of the nearest `RERANK_DEPTH` of each document."""
    near = _Near(neighbours.nearest(RERANK_DEPTH))
    starts, columns = label_sets.gather(near.rows)
    lengths = np.diff(starts)
    cells = np.repeat(np.arange(len(near.rows)), lengths)
    if policy is not None:
        cells, columns = policy.apply(cells, columns)
    keys = near.documents[cells] * width + columns
    ranks = near.ranks[cells]
    # Cells are in the order of documents and ranks: a key occurs first at its nearest carrier.
    distinct, first, places = np.unique(keys, return_index=True, return_inverse=True)
    documents = distinct // width

    def share(weights: npt.NDArray[np.float64], totals: npt.NDArray[np.float64]) -> Floats:
        sums = np.bincount(places, weights[cells], len(distinct))
        shares: Floats = (sums / np.maximum(totals[documents], 1e-9)).astype(np.float32)
        return shares

    values: dict[str, Floats] = {
        f"majority{k}": (np.bincount(places, ranks < k, len(distinct)) / k).astype(np.float32)
        for k in _KS
    }
    for name, weights in near.weightings().items():
        values[name] = share(weights, near.totals(weights))
    values["first"] = ranks[first].astype(np.float32)
    values["best"] = near.shares[cells][first].astype(np.float32)
    sizes = near.table(lengths.astype(np.float64), _COUNTED)
    present = np.maximum((near.there[:, :_COUNTED]).sum(1), 1)
    shares = near.table(near.shares, _COUNTED)
    return Votes(
        keys=distinct,
        values=values,
        nearest=shares[:, :1].sum(1).astype(np.float32),
        nearness=(shares.sum(1) / _COUNTED).astype(np.float32),
        expected_count=(sizes.sum(1) / present).astype(np.float32),
    )


class _Near:
    """The neighbours of a batch one after another, with the two kinds of nearness."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.count = len(neighbours)
        self.there = neighbours.rows != NO_NEIGHBOUR
        self.rows = neighbours.rows[self.there]
        self.documents, self.ranks = np.nonzero(self.there)
        of_own = 1 - neighbours.distances("self")
        of_best = 1 - neighbours.distances("top")
        self.shares = of_own[self.there].astype(np.float64)
        self._of_best = of_best[self.there].astype(np.float64)
        self._depth = neighbours.k

    def weightings(self) -> dict[str, npt.NDArray[np.float64]]:
        """The weights of the neighbours, by feature."""
        close = self._of_best
        return {
            "near40": self.shares * (self.ranks < 40),
            "near80": self.shares,
            "close20": close**2 * (self.ranks < 20),
            "close4": close**4,
            "close8": close**8,
        }

    def totals(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The sum of the weights of each document's neighbours."""
        return np.bincount(self.documents, weights, self.count).astype(np.float64, copy=False)

    def table(self, values: npt.NDArray[np.float64], depth: int) -> npt.NDArray[np.float64]:
        """Values as a line per document, the first `depth`; 0 where there is none."""
        table = np.zeros((self.count, self._depth))
        table[self.there] = values
        return table[:, :depth]
