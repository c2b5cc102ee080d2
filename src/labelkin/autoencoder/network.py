"""The label autoencoder as a torch module that takes label columns, not one-hot vectors.

The input layer sums the rows of its table that belong to a document's labels, so
its gradient is sparse. The loss is the binary cross-entropy, summed over labels,
averaged over documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.cross_entropy import cross_entropy
from labelkin.autoencoder.model import NORM_EPSILON

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
        total = cross_entropy(hidden, weight, bias, batch.documents, columns, chances)
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
