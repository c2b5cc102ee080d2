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


# Most candidates are wrong: this share of them, weighted up, is as good as all.
_WRONG = 0.35


@dataclass(frozen=True, eq=False)
class LabelledCandidates:
    """Candidates with features, and which of them are right.

    `gold` has the number of headings of each document. `weights` are those of
    the candidates that `thinned` has kept, 0 for those that are not part of its
    sample; None if all are there.
    """

    pairs: Pairs
    features: Floats
    right: npt.NDArray[np.bool_]
    gold: Integers
    weights: Floats | None = None

    @property
    def size(self) -> int:
        """How many candidates there are, or were before they were thinned, as their weights say."""
        return len(self.pairs) if self.weights is None else round(float(self.weights.sum()))

    def thinned(
        self, random: np.random.Generator, whole: npt.NDArray[np.bool_] | None = None
    ) -> LabelledCandidates:
        """A sample: all right candidates and some of the others, weighted as if all were there.

        Documents that are `whole` keep the others, too, with a weight of 0.
        """
        if self.weights is not None:
            return self
        is_sampled = self.right | (random.random(len(self.right)) < _WRONG)
        weights = np.where(self.right, 1, is_sampled / _WRONG).astype(np.float32)
        kept = is_sampled if whole is None else is_sampled | whole[self.pairs.documents]
        return self._kept(kept, weights[kept])

    def sampled(self) -> LabelledCandidates:
        """Those that are part of the sample."""
        if self.weights is None or self.weights.all():
            return self
        return self._kept(self.weights > 0, self.weights[self.weights > 0])

    def _kept(self, kept: npt.NDArray[np.bool_], weights: Floats) -> LabelledCandidates:
        return LabelledCandidates(
            Pairs(self.pairs.keys[kept], self.pairs.count, self.pairs.width),
            self.features[kept],
            self.right[kept],
            self.gold,
            weights,
        )

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
            None if self.weights is None else self.weights[mine],
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
            _weights(parts),
        )


def _weights(parts: Sequence[LabelledCandidates]) -> Floats | None:
    given = [part.weights for part in parts if part.weights is not None]
    if not given:
        return None
    return np.concatenate(
        [
            np.ones(len(part.pairs), dtype=np.float32) if part.weights is None else part.weights
            for part in parts
        ]
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
