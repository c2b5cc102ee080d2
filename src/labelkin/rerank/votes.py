"""What the neighbours of a batch say: votes by nearness, and who carries a heading first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.rerank.pairs import Floats, Integers
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.store.label_sets import LabelSets

_KS = (5, 10, 20, 40, 80)
_COUNTED = 20
# The rank of a heading that nobody carries.
NEVER = 200.0


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes for every heading that a neighbour carries, by ascending keys.

    `values` holds an array per way of counting; each but the last two adds up
    to the share of the neighbours' weight that stands behind a heading.
    """

    keys: Integers
    values: dict[str, Floats]
    nearest: Floats
    nearness: Floats
    expected_count: Floats

    @property
    def strength(self) -> Floats:
        """The votes that tell most by themselves."""
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
    found, first, places = np.unique(keys, return_index=True, return_inverse=True)
    documents = found // width

    def share(weights: npt.NDArray[np.float64], totals: npt.NDArray[np.float64]) -> Floats:
        sums = np.bincount(places, weights[cells], len(found))
        shares: Floats = (sums / np.maximum(totals[documents], 1e-9)).astype(np.float32)
        return shares

    values: dict[str, Floats] = {
        f"majority{k}": (np.bincount(places, ranks < k, len(found)) / k).astype(np.float32)
        for k in _KS
    }
    for name, weights in near.weightings().items():
        values[name] = share(weights, near.totals(weights))
    values["first"] = ranks[first].astype(np.float32)
    values["best"] = near.shares[cells][first].astype(np.float32)
    sizes = near.table(lengths.astype(np.float64), _COUNTED)
    heard = np.maximum((near.there[:, :_COUNTED]).sum(1), 1)
    shares = near.table(near.shares, _COUNTED)
    return Votes(
        keys=found,
        values=values,
        nearest=shares[:, :1].sum(1).astype(np.float32),
        nearness=(shares.sum(1) / _COUNTED).astype(np.float32),
        expected_count=(sizes.sum(1) / heard).astype(np.float32),
    )


class _Near:
    """The neighbours of a batch one after another, with the two kinds of nearness."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.count = len(neighbours)
        self.there = neighbours.rows != NOBODY
        self.rows = neighbours.rows[self.there]
        self.documents, self.ranks = np.nonzero(self.there)
        of_own = 1 - neighbours.distances("self")
        of_best = 1 - neighbours.distances("top")
        self.shares = of_own[self.there].astype(np.float64)
        self._of_best = of_best[self.there].astype(np.float64)
        self._depth = neighbours.k

    def weightings(self) -> dict[str, npt.NDArray[np.float64]]:
        """What each neighbour weighs, in several ways."""
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
        """Values as a line per document, the first `depth`; 0 where there is nobody."""
        made = np.zeros((self.count, self._depth))
        made[self.there] = values
        return made[:, :depth]
