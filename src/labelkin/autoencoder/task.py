"""What a training minimises and measures: a network, its loss on documents, its validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from labelkin.autoencoder.architecture import AnyArchitecture, make_architecture
from labelkin.autoencoder.averages import NeighbourAverages
from labelkin.autoencoder.network import LabelBatch, LabelNetwork, OutputSample, label_batch
from labelkin.autoencoder.origin import Origin
from labelkin.autoencoder.training_data import OutputSampling, TrainingData
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.autoencoder.workers import Workers

_CHUNK = 512

Integers = npt.NDArray[np.int64]
Encoded = tuple[Tensor, LabelBatch]


class Task(ABC):
    """The network of a recipe, and how it learns from documents."""

    network: nn.Module
    architecture: AnyArchitecture

    def __init__(
        self, data: TrainingData, settings: TrainingSettings, device: torch.device
    ) -> None:
        self.data = data
        self.device = device
        self._sampling = OutputSampling.of_size(data.labels, settings.sampled_outputs, data.learned)

    @property
    def rows(self) -> Integers:
        """The documents that an epoch goes through."""
        return self.data.rows

    @property
    @abstractmethod
    def lazy_tables(self) -> list[Tensor]:
        """Weights with sparse gradients."""

    @property
    def fast_tables(self) -> list[Tensor]:
        """Weights that learn faster than the others: few documents have each row."""
        return []

    @abstractmethod
    def prepare(self, rows: Integers) -> Any:
        """The input of a batch of documents; another thread may call it."""

    @abstractmethod
    def loss(self, batch: Any, workers: Workers, random: np.random.Generator) -> Tensor:
        """The loss of a batch that `prepare` gave."""

    @abstractmethod
    def validate(self) -> dict[str, float]:
        """Measures of the held-out documents.

        `validation_loss` and `validation_score` select the best epoch; MiP, MiR and
        MiF are shown.
        """

    def end_epoch(self) -> None:  # noqa: B027 - most have nothing to do
        """Renew what depends on the weights and is computed once an epoch."""

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint has to hold besides weights and moments."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:  # noqa: B027
        """The inverse of `state`."""

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """What is saved with the weights and is not trained."""
        return {}

    def sample(self, own: Integers, random: np.random.Generator) -> OutputSample | None:
        """The labels whose outputs a step computes; None for all."""
        if self._sampling is None:
            return None
        columns, weights = self._sampling.draw(own, random)
        return OutputSample(
            torch.from_numpy(columns).to(self.device), torch.from_numpy(weights).to(self.device)
        )


class PaperTask(Task):
    """Reconstructing label sets, and decoding averages of neighbours if there are any."""

    network: LabelNetwork

    def __init__(
        self,
        data: TrainingData,
        settings: TrainingSettings,
        device: torch.device,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(data, settings, device)
        self.architecture = make_architecture(
            settings.preset,
            data.labels,
            len(data.rows),
            activation=settings.activation,
            dropout=settings.dropout,
        )
        network = LabelNetwork(data.labels, self.architecture)
        if origin is None:
            network.set_odds(
                torch.from_numpy(data.frequencies.astype(np.float32)),
                len(data.rows) + len(data.held_out),
            )
        else:
            weights = origin.tensors(data)
            network.load_state_dict({name: torch.from_numpy(w) for name, w in weights.items()})
        self.network = network.to(device)
        self.averages = None
        if settings.averages and data.neighbours is not None:
            self.averages = NeighbourAverages(data, data.neighbours, device)

    @property
    def lazy_tables(self) -> list[Tensor]:
        """The input table; with sampled outputs the output table as well."""
        tables: list[Tensor] = [self.network.inputs.weight]
        if self._sampling is not None:
            tables.append(self.network.outputs.weight)
        return tables

    def prepare(self, rows: Integers) -> tuple[Integers, Integers]:
        """The label sets one after another, and where each begins."""
        return self.data.batch(rows)

    def loss(
        self,
        batch: tuple[Integers, Integers],
        workers: Workers,
        random: np.random.Generator,
    ) -> Tensor:
        """The loss of the documents' label sets and, after the first epoch, of averages."""
        labels, starts = batch
        label_sets = label_batch(labels, starts, self.device)
        averages = None
        if self.averages is not None and self.averages.latents is not None:
            averages = self.averages.draw(len(label_sets), workers, random)
            labels = np.concatenate((labels, averages.targets.labels.cpu().numpy()))
        loss: Tensor = self.network(label_sets, self.sample(labels, random), averages)
        return loss

    def end_epoch(self) -> None:
        """Encode the neighbours with the new weights."""
        if self.averages is not None:
            self.averages.refresh(self.network)

    def state(self) -> dict[str, Tensor]:
        """The latent vectors of the neighbours."""
        if self.averages is None or self.averages.latents is None:
            return {}
        return {"latents": self.averages.latents}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        if self.averages is not None and "latents" in state:
            self.averages.latents = state["latents"].to(self.device)

    def validate(self) -> dict[str, float]:
        """Loss and MiP, MiR, MiF at 0.5 of the reconstruction; with averages, of prediction too.

        `validation_loss` and `validation_score` are the means of the two losses and
        of the two MiF.
        """
        data = self.data
        parts = []
        for start in range(0, len(data.validation), _CHUNK):
            batch = label_batch(*data.batch(data.validation[start : start + _CHUNK]), self.device)
            parts.append((self.network.encode(batch), batch))
        values = self._measures(parts)
        values["reconstruction_loss"] = values.pop("loss")
        if self.averages is not None:
            drawn = self.averages.validation()
            predicted = self._measures(_chunks(drawn.latent, drawn.targets))
            values |= {f"predicted_{name}": value for name, value in predicted.items()}
        losses = [value for name, value in values.items() if name.endswith("loss")]
        scores = [value for name, value in values.items() if name.endswith("MiF")]
        return {
            "validation_loss": sum(losses) / len(losses),
            "validation_score": sum(scores) / len(scores),
            **values,
        }

    def _measures(self, parts: Iterable[Encoded]) -> dict[str, float]:
        loss, documents, right, given, true = 0.0, 0, 0, 0, 0
        for latent, batch in parts:
            logits = self.network.decode(latent)
            own = logits[batch.documents, batch.labels]
            loss += float(functional.softplus(logits).sum() - own.sum())
            documents += len(batch)
            right += int((own > 0).sum())
            given += int((logits > 0).sum())
            true += len(batch.labels)
        return {
            "loss": loss / max(documents, 1),
            "MiF": 2 * right / max(given + true, 1),
            "MiP": right / max(given, 1),
            "MiR": right / max(true, 1),
        }


def _chunks(latent: Tensor, targets: LabelBatch) -> Iterator[Encoded]:
    for start in range(0, len(latent), _CHUNK):
        starts = targets.starts[start : start + _CHUNK + 1]
        labels = targets.labels[starts[0] : starts[-1]]
        yield latent[start : start + _CHUNK], LabelBatch(labels, starts - starts[0])
