"""The binary cross-entropy of all labels, without dense targets or logits in memory.

With z the logits,

    BCE = Σ over all labels of softplus(z) − Σ over the document's labels of z

computed from the last hidden layer, a chunk of labels at a time. The asymmetric
loss of Ridnik et al. (2021) gives easy negatives less weight: nearly all labels are
wrong for a document, and most of them score low anyway.
"""

from __future__ import annotations

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
        # Under autocast, matrix products use its dtype and everything else float32.
        dtype = hidden.dtype
        hidden_gradient = torch.zeros_like(hidden, dtype=torch.float32)
        weight_gradient = torch.empty_like(weight)
        bias_gradient = torch.empty_like(bias)
        corrections_gradient = None if corrections is None else torch.empty_like(corrections)
        costs = []
        spans = zip(pairwise(cuts), pairwise(extra_cuts), strict=True)
        for number, ((begin, end), extra) in enumerate(spans):
            part = slice(number * _CHUNK, (number + 1) * _CHUNK)
            rows = weight[part].to(dtype)
            where = (documents[begin:end], columns[begin:end] - part.start)
            logits = torch.mm(hidden, rows.T).float().add_(bias[part])
            if corrected is not None and corrected_columns is not None and corrections is not None:
                inside = slice(*extra)
                extra_where = (corrected[inside], corrected_columns[inside] - part.start)
                logits[extra_where] += corrections[inside]
            own = logits[where]
            if asymmetric:
                cost, slopes = _asymmetric(logits)
            else:
                cost = functional.softplus(logits)
                slopes = logits.sigmoid_()
            if chances is not None:
                cost *= chances[part]
                slopes *= chances[part]
            # A document's own labels count once, whatever their sampling weight.
            cost[where] = functional.softplus(-own)
            slopes[where] = torch.sigmoid(own) - 1
            costs.append(cost.sum())
            if corrections_gradient is not None:
                corrections_gradient[inside] = slopes[extra_where]
            bias_gradient[part] = slopes.sum(0)
            slopes = slopes.to(dtype)
            hidden_gradient += torch.mm(slopes, rows)
            weight_gradient[part] = torch.mm(slopes.T, hidden)
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
