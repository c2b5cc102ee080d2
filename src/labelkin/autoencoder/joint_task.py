"""Training the joint autoencoder: predict documents' labels from neighbours and text.

Neighbours are leave-one-out: a document's own labels are targets only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from labelkin.autoencoder.architecture import JointArchitecture, latent_size
from labelkin.autoencoder.ballots import cast_ballots, log_frequencies
from labelkin.autoencoder.joint_network import JointBatch, JointNetwork
from labelkin.autoencoder.network import OutputSample, label_batch
from labelkin.autoencoder.origin import Origin
from labelkin.autoencoder.task import Task
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.autoencoder.workers import Workers
from labelkin.exceptions import TrainingError
from labelkin.wording import counted

_CHUNK = 256
# At most this many logits are in memory.
_LOGITS = 20_000_000
# Logits below are too low for any cut.
_LOWEST = -4.0
# Labels of so many documents show what to expect of a new one.
_RARE = 3
_LEAST_ROWS = 2
_MOST_VALIDATION = 2000

Integers = npt.NDArray[np.int64]


class JointTask(Task):
    """Predicting the labels of documents that have neighbours and texts."""

    network: JointNetwork
    architecture: JointArchitecture

    def __init__(
        self,
        data: TrainingData,
        settings: TrainingSettings,
        device: torch.device,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(data, settings, device)
        if data.neighbours is None or data.texts is None:
            raise TrainingError("the joint autoencoder is trained on neighbours and texts")
        self._neighbours, self._texts = data.neighbours, data.texts
        self._places = np.full(data.label_sets.rows, -1, dtype=np.int64)
        self._places[self._neighbours.rows] = np.arange(len(self._neighbours.rows))
        self._rows = data.rows[self._places[data.rows] >= 0]
        if len(self._rows) < _LEAST_ROWS:
            raise TrainingError(
                f"the neighbours of only {counted(len(self._rows), 'document')} are known; the "
                f"joint autoencoder needs at least {_LEAST_ROWS}: raise `documents` in [joint] of "
                "labelkin.toml"
            )
        self.architecture = JointArchitecture(
            latent_size(settings.preset, data.labels, len(self._rows)),
            len(self._texts.terms.columns),
            dropout=settings.dropout,
        )
        frequencies = torch.from_numpy(log_frequencies(data.frequencies, data.documents))
        network = JointNetwork(data.labels, self.architecture.terms, self.architecture, frequencies)
        network.set_odds(torch.from_numpy(data.log_odds()))
        if origin is not None:
            fresh = {name: value.numpy() for name, value in network.state_dict().items()}
            weights = origin.joint_tensors(data, fresh)
            network.load_state_dict({name: torch.as_tensor(w) for name, w in weights.items()})
        self.network = network.to(device)
        self._renewed: OutputSample | None = None
        if data.renewed is not None:
            self._train_only(torch.from_numpy(np.flatnonzero(data.renewed)).to(device))

    def _train_only(self, labels: Tensor) -> None:
        """Train the output rows of some labels, and compute no other outputs.

        All other weights stay as they are: a row of the input table would change the
        scores of other labels, without a loss that keeps them right.
        """
        # An update sees a part of the documents that lack these labels: each stands for several.
        weight = self.data.documents / len(self._rows)
        self._renewed = OutputSample(labels, torch.full((len(labels),), weight).to(labels.device))
        self.network.requires_grad_(False)
        self.network.outputs.requires_grad_(True)

    @property
    def rows(self) -> Integers:
        """The documents whose neighbours are known."""
        return self._rows

    @property
    def lazy_tables(self) -> list[Tensor]:
        """With some of the outputs the output table."""
        computes_all = self._sampling is None and self._renewed is None
        return [] if computes_all else [self.network.outputs.weight]

    @property
    def fast_tables(self) -> list[Tensor]:
        """The tables of labels and terms."""
        return [self.network.inputs.weight, self.network.terms.weight]

    def loss(
        self,
        batch: JointBatch,
        workers: Workers,  # noqa: ARG002
        random: np.random.Generator,
    ) -> Tensor:
        """The loss of the documents' labels."""
        own = batch.targets.labels.cpu().numpy()
        loss: Tensor = self.network(batch, self.sample(own, random))
        return loss

    def sample(self, own: Integers, random: np.random.Generator) -> OutputSample | None:
        """In an update, always the labels that it trains."""
        return super().sample(own, random) if self._renewed is None else self._renewed

    def validate(self) -> dict[str, float]:
        """Loss, and MiP, MiR, MiF at the threshold with the largest MiF."""
        loss, true, scores, is_right, rare = 0.0, 0, [], [], []
        is_rare = torch.from_numpy(self.data.frequencies <= _RARE).to(self.device)
        validation = self.data.validation
        validation = validation[self._places[validation] >= 0]
        if len(validation) == 0:
            # A sample of few documents may have none that are held out.
            validation = self._rows[:_MOST_VALIDATION]
        chunk = max(1, min(_CHUNK, _LOGITS // self.data.labels))
        for start in range(0, len(validation), chunk):
            batch = self._batch(validation[start : start + chunk])
            uncorrected, pairs, corrections = self.network.decode_apart(batch.ballots, batch.texts)
            rare.append(uncorrected[pairs][is_rare[pairs[1]]])
            logits = uncorrected.index_put(pairs, corrections, accumulate=True)
            where = (batch.targets.documents, batch.targets.labels)
            own = logits[where]
            loss += float(functional.softplus(logits).sum() - own.sum())
            true += len(own)
            right = torch.zeros_like(logits, dtype=torch.bool)
            right[where] = True
            high = logits > _LOWEST
            scores.append(logits[high].cpu().numpy())
            is_right.append(right[high].cpu().numpy())
        loss /= max(len(validation), 1)
        if self._renewed is None:
            # An update leaves the scores of labels that it does not train as they were.
            low = torch.cat(rare) if rare else torch.zeros(0)
            self.network.rare.fill_(float(low.mean()) if len(low) else float(_LOWEST))
        best = _best_cut(np.concatenate(scores), np.concatenate(is_right), true)
        return {"validation_loss": loss, "validation_score": best["MiF"], **best}

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """The terms that texts are counted by, and their idf."""
        terms = self._texts.terms
        words = "\n".join(terms.words).encode("utf-8")
        return {"words": np.frombuffer(words, dtype=np.uint8), "idf": terms.columns.idf}

    def prepare(self, rows: Integers) -> JointBatch:
        """Neighbours, terms, names and labels of some documents; labels that are trained only."""
        return self._batch(rows, self.data.renewed)

    def _batch(self, rows: Integers, wanted: npt.NDArray[np.bool_] | None = None) -> JointBatch:
        places = self._places[rows]
        ballots = cast_ballots(
            self._neighbours.near[places],
            self._neighbours.weights[places],
            self._texts.named.taken(places),
            self.data.columns,
            self.data.label_sets,
        )
        labels, starts = self.data.batch(rows)
        if wanted is not None:
            is_wanted = wanted[labels]
            starts = np.concatenate(([0], np.cumsum(is_wanted)))[starts]
            labels = labels[is_wanted]
        targets = label_batch(labels, starts, self.device)
        return JointBatch(ballots, self._texts.weighted[places], targets)


def _best_cut(
    scores: npt.NDArray[np.float32], is_right: npt.NDArray[np.bool_], true: int
) -> dict[str, float]:
    """The largest MiF that a threshold gives, with its precision and recall."""
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(is_right[order])
    if len(right) == 0:
        return {"MiF": 0.0, "MiP": 0.0, "MiR": 0.0, "threshold": 0.5}
    given = np.arange(1, len(right) + 1)
    best = int(np.argmax(2 * right / (given + true)))
    return {
        "MiF": float(2 * right[best] / (given[best] + true)),
        "MiP": float(right[best] / given[best]),
        "MiR": float(right[best] / max(true, 1)),
        "threshold": float(1 / (1 + np.exp(-scores[order[best]]))),
    }
