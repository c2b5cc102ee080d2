"""Where ranked lists are cut: the same choice for every system, made on dev.

The three cuts are one threshold for all records, one count for all records, and the count of each
record's neighbours in labelkin's k-NN. The best by MiF on dev is a system's cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin import Ranking

Kind = Literal["threshold", "count", "neighbours", "whole list"]


@dataclass(frozen=True)
class Cut:
    """A way to cut, and its MiF on dev; None if there was nothing to choose it on."""

    kind: Kind
    value: float | None = None
    score: float | None = None

    def of(self, ranking: Ranking, counts: npt.NDArray[np.int64] | None) -> Ranking:
        """The labels that are left; `counts` are those of the records' neighbours."""
        from labelkin.scoring.cut import cut

        if self.kind == "threshold":
            return cut(ranking, threshold=self.value)
        if self.kind == "count":
            assert self.value is not None
            return cut(ranking, limit=int(self.value))
        if self.kind == "neighbours":
            assert counts is not None
            return cut(ranking, counts)
        return ranking

    def __str__(self) -> str:
        if self.value is None:
            return self.kind
        return f"{self.kind} {self.value:.4g}"


def choose(
    gold: csr_matrix[Any], ranking: Ranking, counts: npt.NDArray[np.int64]
) -> tuple[Cut, ...]:
    """The three cuts for records with gold labels, the best first."""
    from labelkin.evaluate import Evaluation

    hits = Evaluation(gold, ranking).predicted_hits
    total = int(gold.nnz)
    by_neighbours = ranking.ranks < np.repeat(counts, ranking.lengths)
    neighbours = mif(int(hits[by_neighbours].sum()), int(by_neighbours.sum()), total)
    cuts = (
        Cut("threshold", *best_threshold(ranking.scores, hits, total)),
        Cut("count", *best_count(ranking.ranks, hits, total)),
        Cut("neighbours", None, neighbours),
    )
    return tuple(sorted(cuts, key=lambda cut: -(cut.score or 0.0)))


def best_threshold(
    scores: npt.NDArray[np.float32], hits: npt.NDArray[np.bool_], gold: int
) -> tuple[float, float]:
    """The lowest score that is kept and the MiF of keeping all that are as high."""
    if not len(scores):
        return 0.0, 0.0
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    correct = np.cumsum(hits[order])
    predicted = np.arange(1, len(ordered) + 1)
    # Equal scores are kept or dropped together.
    is_last = np.append(ordered[1:] != ordered[:-1], True)
    values = np.where(is_last, 2 * correct / (predicted + gold), -1.0)
    best = int(values.argmax())
    return float(ordered[best]), float(values[best])


def best_count(
    ranks: npt.NDArray[np.int64], hits: npt.NDArray[np.bool_], gold: int
) -> tuple[int, float]:
    """The number of labels that is best for all records alike, and its MiF."""
    if not len(ranks):
        return 1, 0.0
    correct = np.cumsum(np.bincount(ranks, hits))
    predicted = np.cumsum(np.bincount(ranks))
    values = 2 * correct / (predicted + gold)
    best = int(values.argmax())
    return best + 1, float(values[best])


def mif(correct: int, predicted: int, gold: int) -> float:
    """Micro-averaged F1."""
    return 2 * correct / (predicted + gold) if predicted + gold else 0.0


def as_json(cuts: Sequence[Cut]) -> list[dict[str, Any]]:
    """Cuts as they are stored."""
    return [{"kind": cut.kind, "value": cut.value, "score": cut.score} for cut in cuts]


def from_json(cuts: Sequence[dict[str, Any]]) -> tuple[Cut, ...]:
    """What `as_json` has given."""
    return tuple(Cut(**cut) for cut in cuts)
