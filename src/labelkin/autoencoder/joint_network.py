"""The joint label autoencoder as a torch module: neighbours and text in one latent space.

A label set is the sum of its labels' vectors. The neighbours' average, with
learned weights, and the vector of the document's terms are added; a decoder of
one hidden layer turns the sum into logits. Labels that have votes, or that the text
names, get a correction from a small network that sees how: a rare label, of which
the latent space keeps little, keeps its votes.

`autoencoder/joint.py` runs the same with NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from labelkin.autoencoder.architecture import (
    LABEL_FEATURES,
    NEIGHBOUR_FEATURES,
    JointArchitecture,
)
from labelkin.autoencoder.ballots import LEAST_VOTE, NO_VOTE, Ballots
from labelkin.autoencoder.cross_entropy import Corrections, cross_entropy
from labelkin.autoencoder.network import LabelBatch, OutputSample

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Weights that start small: the first predictions are the labels' frequencies.
_TABLE_STD = 0.15
_OUTPUT_STD = 0.02


@dataclass(frozen=True)
class JointBatch:
    """Documents to predict: their neighbours, their weighted terms, and their labels."""

    ballots: Ballots
    texts: csr_matrix[Any]
    targets: LabelBatch


class JointNetwork(nn.Module):
    """Decodes neighbours and text together; calling it gives the loss of a batch."""

    frequencies: Tensor
    rare: Tensor

    def __init__(
        self, labels: int, terms: int, architecture: JointArchitecture, frequencies: Tensor
    ) -> None:
        super().__init__()
        self.architecture = architecture
        latent = architecture.latent
        self.inputs = _Table(labels, latent)
        self.terms = _Table(terms, latent)
        self.shift = nn.Parameter(torch.zeros(latent))
        self.outputs = nn.Linear(latent, labels)
        nn.init.normal_(self.outputs.weight, std=_OUTPUT_STD)
        self.sharpness = nn.Parameter(torch.tensor(4.0))
        self.weigh1 = nn.Linear(NEIGHBOUR_FEATURES, architecture.weighing)
        self.weigh2 = nn.Linear(architecture.weighing, 1, bias=False)
        self.correct1 = nn.Linear(LABEL_FEATURES, architecture.correcting)
        self.correct2 = nn.Linear(architecture.correcting, 1)
        self.register_buffer("frequencies", frequencies)
        # The usual logit of a rare label before its correction, for labels that are new.
        self.register_buffer("rare", torch.zeros(()))

    def set_odds(self, odds: Tensor) -> None:
        """Set the output biases to the labels' log-odds, which saves fitting them first."""
        with torch.no_grad():
            self.outputs.bias.copy_(odds)

    def weights(self, ballots: Ballots) -> Tensor:
        """The weight of each neighbour; those of a document add up to 1."""
        features = self._tensor(ballots.neighbours)
        strength = self.sharpness * features[:, :, 0]
        strength = strength + self.weigh2(torch.tanh(self.weigh1(features))).squeeze(2)
        return torch.softmax(strength.masked_fill(~self._tensor(ballots.is_there), NO_VOTE), 1)

    def votes(self, ballots: Ballots) -> Tensor:
        """The weighted votes of each pair of document and label."""
        given = self.weights(ballots).reshape(-1)[self._tensor(ballots.voters)]
        empty = torch.zeros(len(ballots.labels), device=given.device)
        return empty.index_add(0, self._tensor(ballots.pairs), given)

    def hidden(self, ballots: Ballots, votes: Tensor, texts: csr_matrix[Any]) -> Tensor:
        """The hidden layer: the vectors of votes and terms added up."""
        dropout, training = self.architecture, self.training
        by_votes = self.inputs(
            self._tensor(ballots.labels),
            self._tensor(ballots.starts),
            functional.dropout(votes, dropout.vote_dropout, training),
        )
        by_text = self.terms(
            self._tensor(texts.indices.astype(np.int64)),
            self._tensor(texts.indptr[:-1].astype(np.int64)),
            functional.dropout(self._tensor(texts.data), dropout.term_dropout, training),
        )
        if training:
            by_votes = by_votes * self._kept(len(by_votes), dropout.source_dropout)
            by_text = by_text * self._kept(len(by_text), dropout.source_dropout / 2)
        joint = functional.relu(by_votes + by_text + self.shift)
        return functional.dropout(joint, dropout.dropout, training)

    def corrections(self, ballots: Ballots, votes: Tensor) -> Tensor:
        """The corrections by votes and names, added to the logit of each pair."""
        labels, documents = self._tensor(ballots.labels), self._tensor(ballots.documents)
        features = torch.column_stack(
            (
                self._tensor(ballots.shares),
                self._tensor(ballots.named),
                torch.sqrt(votes + 1e-6),
                torch.log(votes + LEAST_VOTE) / 3,
                self.frequencies[labels],
                self._tensor(ballots.closest)[documents],
            )
        )
        added: Tensor = self.correct2(functional.relu(self.correct1(features)))
        return added.squeeze(1)

    def decode(self, ballots: Ballots, texts: csr_matrix[Any]) -> Tensor:
        """The logits of all labels."""
        logits, where, corrections = self.decode_apart(ballots, texts)
        return logits.index_put(where, corrections, accumulate=True)

    def decode_apart(
        self, ballots: Ballots, texts: csr_matrix[Any]
    ) -> tuple[Tensor, tuple[Tensor, Tensor], Tensor]:
        """The logits before the corrections, and the pairs that have one with its value."""
        votes = self.votes(ballots)
        logits: Tensor = self.outputs(self.hidden(ballots, votes, texts))
        where = (self._tensor(ballots.documents), self._tensor(ballots.labels))
        return logits, where, self.corrections(ballots, votes)

    def forward(self, batch: JointBatch, sample: OutputSample | None = None) -> Tensor:
        """The loss of a batch, averaged over documents."""
        ballots, targets = batch.ballots, batch.targets
        votes = self.votes(ballots)
        hidden = self.hidden(ballots, votes, batch.texts)
        if torch.is_autocast_enabled(hidden.device.type):
            hidden = hidden.to(torch.get_autocast_dtype(hidden.device.type))
        values = self.corrections(ballots, votes)
        documents, columns = self._tensor(ballots.documents), self._tensor(ballots.labels)
        weight: Tensor = self.outputs.weight
        bias: Tensor = self.outputs.bias
        own, chances = targets.labels, None
        if sample is not None:
            weight = functional.embedding(sample.columns, weight, sparse=True)
            bias = bias[sample.columns]
            own = torch.searchsorted(sample.columns, own)
            chances = sample.weights
            places = torch.searchsorted(sample.columns, columns).clamp(max=len(weight) - 1)
            is_sampled = sample.columns[places] == columns
            documents, columns = documents[is_sampled], places[is_sampled]
            values = values[is_sampled]
        corrections = Corrections(documents, columns, values.float())
        total = cross_entropy(
            hidden,
            weight,
            bias,
            targets.documents,
            own,
            chances,
            corrections,
            asymmetric=self.architecture.asymmetric,
        )
        return total / len(targets)

    def _kept(self, documents: int, rate: float) -> Tensor:
        """1 for the documents whose neighbours, or text, are not left out; 0 for the others.

        What is left is not scaled up: in prediction, too, one of the two may be missing.
        """
        return (torch.rand(documents, 1, device=self.shift.device) >= rate).float()

    def _tensor(self, array: np.ndarray[Any, Any]) -> Tensor:
        return torch.from_numpy(array).to(self.shift.device)


class _Table(nn.Module):
    """A weighted sum of rows, a row per label or term."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        nn.init.normal_(self.weight, std=_TABLE_STD)

    def forward(self, rows: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
        return functional.embedding_bag(
            rows, self.weight, starts, mode="sum", per_sample_weights=weights.float()
        )
