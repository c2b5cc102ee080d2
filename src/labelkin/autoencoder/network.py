"""The label autoencoder as a torch module that takes label columns, not one-hot vectors.

The input layer sums the rows of its table that belong to a document's labels, so
its gradient is sparse. The loss needs no dense targets: with z the logits,

    BCE = Σ over all labels of softplus(z) − Σ over the document's labels of z

which is the binary cross-entropy of all labels. Sums are over labels, means
over documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.model import NORM_EPSILON

# Labels whose logits are computed at a time: bounds memory and fits the CPU cache.
_CHUNK = 4096
# Keeps the odds of a label without documents finite.
_SMOOTHING = 0.5


@dataclass(frozen=True)
class LabelBatch:
    """The label sets of a batch in CSR layout: concatenated labels, and each document's start."""

    labels: Tensor
    starts: Tensor

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def documents(self) -> Tensor:
        """The document of each entry of `labels`, as its number in the batch."""
        return torch.repeat_interleave(
            torch.arange(len(self), device=self.starts.device), self.starts.diff()
        )

    def followed_by(self, other: LabelBatch) -> LabelBatch:
        """A batch of the documents of both."""
        shifted = other.starts[1:] + self.starts[-1]
        return LabelBatch(torch.cat((self.labels, other.labels)), torch.cat((self.starts, shifted)))


def label_batch(
    labels: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], device: torch.device
) -> LabelBatch:
    """Make a batch of NumPy arrays on a device."""
    return LabelBatch(torch.from_numpy(labels).to(device), torch.from_numpy(starts).to(device))


@dataclass(frozen=True)
class Averages:
    """Mean latent vectors of documents' neighbours, and the labels of the documents."""

    latent: Tensor
    targets: LabelBatch


@dataclass(frozen=True)
class OutputSample:
    """The labels whose outputs a step computes, and the weight of each as a negative.

    `columns` is sorted. A weight is the inverse of the probability that the label
    was sampled, so that the expected loss is that of all labels; it is 0 for labels
    that are there only because a document of the batch carries them.
    """

    columns: Tensor
    weights: Tensor


class LabelNetwork(nn.Module):
    """Encoder and decoder of label sets; calling it gives the loss of a batch."""

    def __init__(self, labels: int, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        first, second, latent = architecture.first, architecture.second, architecture.latent
        self.inputs = _Table(labels, first)
        self.norm1 = nn.BatchNorm1d(first, eps=NORM_EPSILON)
        self.dense2 = nn.Linear(first, second)
        self.norm2 = nn.BatchNorm1d(second, eps=NORM_EPSILON)
        self.embedding = nn.Linear(second, latent)
        self.dense3 = nn.Linear(latent, second)
        self.norm3 = nn.BatchNorm1d(second, eps=NORM_EPSILON)
        self.dense4 = nn.Linear(second, first)
        self.norm4 = nn.BatchNorm1d(first, eps=NORM_EPSILON)
        self.outputs = nn.Linear(first, labels)
        for layer in (self.dense2, self.dense3, self.dense4):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        # Small enough that the first predictions are the labels' frequencies (see `set_odds`).
        nn.init.normal_(self.outputs.weight, std=0.3 * first**-0.5)

    def set_odds(self, frequencies: Tensor, documents: int) -> None:
        """Set the output biases to the labels' log-odds, which saves fitting them first."""
        chance = (frequencies + _SMOOTHING) / (documents + 2 * _SMOOTHING)
        with torch.no_grad():
            self.outputs.bias.copy_(torch.log(chance) - torch.log1p(-chance))

    def encode(self, batch: LabelBatch) -> Tensor:
        """The latent vectors of label sets."""
        hidden = self._hidden(self.norm1(self.inputs(batch)))
        hidden = self._hidden(self.norm2(self.dense2(hidden)))
        embedded = self.embedding(hidden)
        activation = self.architecture.activation
        if activation == "relu":
            return functional.relu(embedded)
        return torch.tanh(embedded) if activation == "tanh" else embedded

    def hidden(self, latent: Tensor) -> Tensor:
        """The last hidden layer of the decoder."""
        hidden = self._hidden(self.norm3(self.dense3(latent)))
        return self._hidden(self.norm4(self.dense4(hidden)))

    def decode(self, latent: Tensor) -> Tensor:
        """The logits of all labels."""
        logits: Tensor = self.outputs(self.hidden(latent))
        return logits

    def forward(
        self,
        batch: LabelBatch,
        sample: OutputSample | None = None,
        averages: Averages | None = None,
    ) -> Tensor:
        """The loss of a batch, averaged over documents.

        With `averages` the loss also covers decoding documents' labels from the
        averages of their neighbours.
        """
        latent = self.encode(batch)
        if averages is not None:
            latent = torch.cat((latent, averages.latent))
            batch = batch.followed_by(averages.targets)
        hidden = self.hidden(latent)
        weight: Tensor = self.outputs.weight
        bias: Tensor = self.outputs.bias
        columns, chances = batch.labels, None
        if sample is not None:
            weight = functional.embedding(sample.columns, weight, sparse=True)
            bias = bias[sample.columns]
            columns = torch.searchsorted(sample.columns, batch.labels)
            chances = sample.weights
        total = _cross_entropy(hidden, weight, bias, batch.documents, columns, chances)
        return total / len(batch)

    def _hidden(self, values: Tensor) -> Tensor:
        dropout = self.architecture.dropout
        return functional.dropout(functional.relu(values), dropout, self.training)


class _Table(nn.Module):
    """A dense layer over a 0/1 vector that is given by the positions of its ones."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        # The sum over a dozen labels, a usual number, has about unit variance.
        nn.init.normal_(self.weight, std=12**-0.5)

    def forward(self, batch: LabelBatch) -> Tensor:
        total = functional.embedding_bag(
            batch.labels, self.weight, batch.starts[:-1], mode="sum", sparse=True
        )
        return total + self.bias


def _cross_entropy(*values: Tensor | None) -> Tensor:
    total: Tensor = _CrossEntropy.apply(*values)  # type: ignore[no-untyped-call]
    return total


class _CrossEntropy(torch.autograd.Function):
    """Binary cross-entropy of all labels from the last hidden layer, a chunk of labels at a time.

    Dense targets and the logits of all labels are never in memory. The forward pass
    also computes the gradients, while a chunk's logits are still in the CPU cache.
    """

    @staticmethod
    def forward(
        context: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        documents: Tensor,
        columns: Tensor,
        chances: Tensor | None,
    ) -> Tensor:
        order = torch.argsort(columns, stable=True)
        columns, documents = columns[order], documents[order]
        cuts = torch.searchsorted(
            columns, torch.arange(0, len(weight) + _CHUNK, _CHUNK, device=columns.device)
        ).tolist()
        # Under autocast, matrix products use its dtype and everything else float32.
        dtype = hidden.dtype
        hidden_gradient = torch.zeros_like(hidden, dtype=torch.float32)
        weight_gradient = torch.empty_like(weight)
        bias_gradient = torch.empty_like(bias)
        costs = []
        for number, (begin, end) in enumerate(pairwise(cuts)):
            part = slice(number * _CHUNK, (number + 1) * _CHUNK)
            rows = weight[part].to(dtype)
            where = (documents[begin:end], columns[begin:end] - part.start)
            logits = torch.mm(hidden, rows.T).float().add_(bias[part])
            own = logits[where]
            cost = functional.softplus(logits)
            slopes = logits.sigmoid_()
            if chances is not None:
                cost *= chances[part]
                slopes *= chances[part]
            # A document's own labels count once, whatever their sampling weight.
            cost[where] = functional.softplus(-own)
            slopes[where] = torch.sigmoid(own) - 1
            costs.append(cost.sum())
            bias_gradient[part] = slopes.sum(0)
            slopes = slopes.to(dtype)
            hidden_gradient += torch.mm(slopes, rows)
            weight_gradient[part] = torch.mm(slopes.T, hidden)
        context.save_for_backward(hidden_gradient.to(dtype), weight_gradient, bias_gradient)
        return torch.stack(costs).sum()

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        hidden, weight, bias = context.saved_tensors
        return hidden * scale, weight.mul_(scale), bias.mul_(scale), None, None, None
