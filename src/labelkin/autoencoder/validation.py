"""The loss and scores of a network on the held-out set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torch.nn import functional

from labelkin.autoencoder.averages import NeighbourAverages
from labelkin.autoencoder.network import LabelBatch, LabelNetwork, label_batch
from labelkin.autoencoder.training_data import TrainingData

_CHUNK = 512

Encoded = tuple[Tensor, LabelBatch]


def validate(
    network: LabelNetwork,
    data: TrainingData,
    averages: NeighbourAverages | None,
    device: torch.device,
) -> dict[str, float]:
    """Loss and MiP, MiR, MiF at 0.5 of the reconstruction; with averages, of prediction too.

    `validation_loss` and `validation_score`, which select the best epoch, are the
    means of the two losses and of the two MiF.
    """
    network.train(False)
    with torch.no_grad():
        parts = []
        for start in range(0, len(data.validation), _CHUNK):
            batch = label_batch(*data.batch(data.validation[start : start + _CHUNK]), device)
            parts.append((network.encode(batch), batch))
        values = _measures(network, parts)
        values["reconstruction_loss"] = values.pop("loss")
        if averages is not None:
            drawn = averages.validation()
            predicted = _measures(network, _chunks(drawn.latent, drawn.targets))
            values |= {f"predicted_{name}": value for name, value in predicted.items()}
    network.train()
    losses = [value for name, value in values.items() if name.endswith("loss")]
    scores = [value for name, value in values.items() if name.endswith("MiF")]
    return {
        "validation_loss": sum(losses) / len(losses),
        "validation_score": sum(scores) / len(scores),
        **values,
    }


def _chunks(latent: Tensor, targets: LabelBatch) -> Iterator[Encoded]:
    for start in range(0, len(latent), _CHUNK):
        starts = targets.starts[start : start + _CHUNK + 1]
        labels = targets.labels[starts[0] : starts[-1]]
        yield latent[start : start + _CHUNK], LabelBatch(labels, starts - starts[0])


def _measures(network: LabelNetwork, parts: Iterable[Encoded]) -> dict[str, float]:
    loss, documents, right, given, true = 0.0, 0, 0, 0, 0
    for latent, batch in parts:
        logits = network.decode(latent)
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
