"""The binary cross-entropy of all labels, without dense targets or logits in memory.

With z the logits,

    BCE = Σ over all labels of softplus(z) − Σ over the document's labels of z

computed from the last hidden layer, a chunk of labels at a time. The asymmetric
loss of Ridnik et al. (2021) gives easy negatives less weight: nearly all labels are
wrong for a document, and most of them score low anyway. Those that score lowest cost
nothing and have no gradient, so everything after the logits is computed for the few
others only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

# Labels whose logits are computed at a time: bounds memory and fits the CPU cache.
_CHUNK = 4096
# The asymmetric loss: scores below the margin cost nothing; the scale balances the rest.
_MARGIN = 0.02
_SCALE = 4.0
# The logit of the margin: only higher ones are looked at.
_LEAST_LOGIT = math.log(_MARGIN / (1 - _MARGIN))


@dataclass(frozen=True)
class Corrections:
    """What is added to the logits of some pairs of document and column; a pair comes once."""

    documents: Tensor
    columns: Tensor
    values: Tensor


def cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor,
    documents: Tensor,
    columns: Tensor,
    chances: Tensor | None = None,
    corrections: Corrections | None = None,
    *,
    asymmetric: bool = False,
) -> Tensor:
    """The loss of a batch: `columns` are the labels that its `documents` carry.

    `chances` are the weights of columns as negatives, where they are sampled. With
    `asymmetric`, a label that the document lacks counts the less the lower it scores.
    """
    extra: tuple[Tensor | None, ...] = (None, None, None)
    if corrections is not None:
        order = torch.argsort(corrections.columns, stable=True)
        extra = (
            corrections.documents[order],
            corrections.columns[order],
            corrections.values[order],
        )
    total: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, documents, columns, chances, asymmetric, *extra
    )
    return total


class _CrossEntropy(torch.autograd.Function):
    """The forward pass also computes the gradients, while a chunk's logits are in the CPU cache."""

    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        documents: Tensor,
        columns: Tensor,
        chances: Tensor | None,
        asymmetric: bool,
        corrected: Tensor | None,
        corrected_columns: Tensor | None,
        corrections: Tensor | None,
    ) -> Tensor:
        order = torch.argsort(columns, stable=True)
        columns, documents = columns[order], documents[order]
        ends = torch.arange(0, len(weight) + _CHUNK, _CHUNK, device=columns.device)
        cuts = torch.searchsorted(columns, ends).tolist()
        extra_cuts = [0] * len(cuts)
        if corrected_columns is not None:
            extra_cuts = torch.searchsorted(corrected_columns, ends).tolist()
        # Under autocast, products of dense matrices use its dtype and everything else float32.
        dtype = hidden.dtype
        hidden_gradient = torch.zeros_like(hidden, dtype=torch.float32)
        weight_gradient = torch.empty_like(weight)
        bias_gradient = torch.empty_like(bias)
        corrections_gradient = None if corrections is None else torch.empty_like(corrections)
        find_slopes = _FewSlopes if asymmetric else _AllSlopes
        costs = []
        spans = zip(pairwise(cuts), pairwise(extra_cuts), strict=True)
        for number, ((begin, end), extra) in enumerate(spans):
            part = slice(number * _CHUNK, (number + 1) * _CHUNK)
            rows = weight[part]
            where = (documents[begin:end], columns[begin:end] - part.start)
            logits = torch.mm(hidden, rows.to(dtype).T).float().add_(bias[part])
            if corrected is not None and corrected_columns is not None and corrections is not None:
                inside = slice(*extra)
                extra_where = (corrected[inside], corrected_columns[inside] - part.start)
                logits[extra_where] += corrections[inside]
            slopes = find_slopes(logits, where, None if chances is None else chances[part])
            costs.append(slopes.cost)
            if corrections_gradient is not None:
                corrections_gradient[inside] = slopes.dense[extra_where]
            of_hidden, weight_gradient[part], bias_gradient[part] = slopes.gradients(hidden, rows)
            hidden_gradient += of_hidden
        context.save_for_backward(
            hidden_gradient.to(dtype), weight_gradient, bias_gradient, corrections_gradient
        )
        return torch.stack(costs).sum()

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        hidden, weight, bias, corrections = context.saved_tensors
        return (
            hidden * scale,
            weight.mul_(scale),
            bias.mul_(scale),
            *(None,) * 6,
            None if corrections is None else corrections * scale,
        )


class _AllSlopes:
    """The plain loss of a chunk's logits: its cost, and the slope of each."""

    def __init__(self, logits: Tensor, own: tuple[Tensor, Tensor], chances: Tensor | None) -> None:
        own_logits = logits[own]
        cost, self.dense = functional.softplus(logits), logits.sigmoid_()
        if chances is not None:
            cost *= chances
            self.dense *= chances
        # A document's own labels count once, whatever their sampling weight.
        cost[own] = functional.softplus(-own_logits)
        self.dense[own] = torch.sigmoid(own_logits) - 1
        self.cost = cost.sum()

    def gradients(self, hidden: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the hidden layer, the chunk's output rows, and their biases."""
        slopes = self.dense.to(hidden.dtype)
        of_hidden = torch.mm(slopes, rows.to(hidden.dtype))
        return of_hidden, torch.mm(slopes.T, hidden), self.dense.sum(0)


class _FewSlopes:
    """The same of the asymmetric loss, most of whose slopes are 0: the others one by one.

    They are in the order of documents.
    """

    def __init__(self, logits: Tensor, own: tuple[Tensor, Tensor], chances: Tensor | None) -> None:
        own_logits = logits[own]
        # They count whatever their score is.
        logits[own] = math.inf
        self._documents, self._columns = (logits > _LEAST_LOGIT).nonzero(as_tuple=True)
        found = logits[self._documents, self._columns]
        is_own = torch.isinf(found)
        cost, values = _asymmetric(found)
        if chances is not None:
            cost *= chances[self._columns]
            values *= chances[self._columns]
        self.cost = cost.masked_fill_(is_own, 0).sum() + functional.softplus(-own_logits).sum()
        self.dense = torch.zeros_like(logits)
        self.dense[self._documents, self._columns] = values
        self.dense[own] = torch.sigmoid(own_logits) - 1
        self._values = self.dense[self._documents, self._columns]

    def gradients(self, hidden: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the hidden layer, the chunk's output rows, and their biases."""
        documents, labels = self.dense.shape
        of_hidden = _weighted_sums(rows, self._columns, self._values, self._documents, documents)
        columns, order = torch.sort(self._columns, stable=True)
        values = self._values[order]
        of_rows = _weighted_sums(hidden.float(), self._documents[order], values, columns, labels)
        return of_hidden, of_rows, values.new_zeros(labels).index_add_(0, columns, values)


def _weighted_sums(
    rows: Tensor, chosen: Tensor, weights: Tensor, sums: Tensor, count: int
) -> Tensor:
    """Sums of weighted rows: `sums`, in order, tells which sum each of the `chosen` goes into."""
    starts = torch.searchsorted(sums, torch.arange(count, device=sums.device))
    return functional.embedding_bag(chosen, rows, starts, mode="sum", per_sample_weights=weights)


def _asymmetric(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Cost and slope of each logit as that of a label that the document lacks.

    The cost is weighted by a power of the score above a margin; the weight counts as
    a constant in the slope.
    """
    scores = torch.sigmoid(logits)
    above = (scores - _MARGIN).clamp_(min=0)
    weights = above.square().mul_(_SCALE)
    rest = 1 - above
    slopes = scores.mul_(1 - scores).div_(rest).mul_(weights)
    return rest.log_().neg_().mul_(weights), slopes
