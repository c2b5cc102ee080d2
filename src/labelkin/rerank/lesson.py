"""Candidates of documents whose headings are known, to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.rerank.pairs import Floats, Integers, Pairs
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.settings import RERANK_DEPTH

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class Lesson:
    """Candidates with features, of which it is known whether they are right."""

    pairs: Pairs
    features: Floats
    right: npt.NDArray[np.bool_]
    gold: Integers

    def taken(self, documents: npt.NDArray[np.bool_]) -> Lesson:
        """The candidates of some of the documents."""
        mine = documents[self.pairs.documents]
        renumbered = np.cumsum(documents) - 1
        keys = renumbered[self.pairs.documents[mine]] * self.pairs.width + self.pairs.columns[mine]
        return Lesson(
            Pairs(keys, int(documents.sum()), self.pairs.width),
            self.features[mine],
            self.right[mine],
            self.gold[documents],
        )


def joined(lessons: Sequence[Lesson]) -> Lesson:
    """Lessons one after another."""
    keys, shift = [], 0
    for lesson in lessons:
        keys.append(lesson.pairs.keys + shift * lesson.pairs.width)
        shift += lesson.pairs.count
    return Lesson(
        Pairs(np.concatenate(keys), shift, lessons[0].pairs.width),
        np.concatenate([lesson.features for lesson in lessons]),
        np.concatenate([lesson.right for lesson in lessons]),
        np.concatenate([lesson.gold for lesson in lessons]),
    )


def replaced(gold: csr_matrix[Any], policy: LabelPolicy) -> csr_matrix[Any]:
    """Gold labels with those that stand for them today; what nothing stands for stays."""
    from scipy.sparse import csr_matrix

    targets = np.arange(gold.shape[1])
    targets[: len(policy.target)] = np.where(
        policy.target >= 0, policy.target, targets[: len(policy.target)]
    )
    lines = np.repeat(np.arange(gold.shape[0]), np.diff(gold.indptr))
    keys = np.unique(lines * gold.shape[1] + targets[gold.indices])
    places = np.divmod(keys, gold.shape[1])
    return csr_matrix((np.ones(len(keys), dtype=np.float32), places), shape=gold.shape)


def remaining(neighbours: Neighbours, out: npt.NDArray[np.bool_]) -> Neighbours:
    """The nearest neighbours that are not out, ranks closed up."""
    there = neighbours.rows != NOBODY
    known = there & (neighbours.rows < len(out))
    gone = ~known | out[np.where(known, neighbours.rows, 0)]
    order = np.argsort(gone, axis=1, kind="stable")
    rows = np.take_along_axis(np.where(gone, NOBODY, neighbours.rows), order, 1)
    scores = np.take_along_axis(np.where(gone, 0, neighbours.scores), order, 1)
    return replace(neighbours, rows=rows, scores=scores.astype(np.float32)).nearest(RERANK_DEPTH)
