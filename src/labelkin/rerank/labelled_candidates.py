"""Candidates of documents whose headings are known, to train trees on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.rerank.pairs import Floats, Integers, Pairs
from labelkin.scoring.policy import LabelPolicy

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class LabelledCandidates:
    """Candidates with features, and which of them are right.

    `gold` has the number of headings of each document.
    """

    pairs: Pairs
    features: Floats
    right: npt.NDArray[np.bool_]
    gold: Integers

    def of(self, documents: npt.NDArray[np.bool_]) -> LabelledCandidates:
        """The candidates of some of the documents."""
        mine = documents[self.pairs.documents]
        renumbered = np.cumsum(documents) - 1
        keys = renumbered[self.pairs.documents[mine]] * self.pairs.width + self.pairs.columns[mine]
        return LabelledCandidates(
            Pairs(keys, int(documents.sum()), self.pairs.width),
            self.features[mine],
            self.right[mine],
            self.gold[documents],
        )

    @classmethod
    def joined(cls, parts: Sequence[LabelledCandidates]) -> LabelledCandidates:
        """Batches one after another."""
        keys, shift = [], 0
        for part in parts:
            keys.append(part.pairs.keys + shift * part.pairs.width)
            shift += part.pairs.count
        return cls(
            Pairs(np.concatenate(keys), shift, parts[0].pairs.width),
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.right for part in parts]),
            np.concatenate([part.gold for part in parts]),
        )


def with_replacements(gold: csr_matrix[Any], policy: LabelPolicy) -> csr_matrix[Any]:
    """Gold labels with deprecated ones replaced by their successors, if there are any."""
    from scipy.sparse import csr_matrix

    targets = np.arange(gold.shape[1])
    targets[: len(policy.target)] = np.where(
        policy.target >= 0, policy.target, targets[: len(policy.target)]
    )
    lines = np.repeat(np.arange(gold.shape[0]), np.diff(gold.indptr))
    keys = np.unique(lines * gold.shape[1] + targets[gold.indices])
    places = np.divmod(keys, gold.shape[1])
    return csr_matrix((np.ones(len(keys), dtype=np.float32), places), shape=gold.shape)
