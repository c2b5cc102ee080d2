"""Averages of neighbours' latent vectors, as the decoder gets them in prediction.

An average is not the encoding of any label set: it lies nearer to the centre, and
labels on which the neighbours disagree are weak. A decoder trained on true label
sets only handles such points badly, so it is also trained on averages: those of
training documents' neighbours, leave-one-out, with the documents' own labels as
targets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from labelkin.autoencoder.network import Averages, LabelNetwork, label_batch
from labelkin.autoencoder.training_data import TrainingData, TrainingNeighbours
from labelkin.autoencoder.workers import Workers

Integers = npt.NDArray[np.int64]

# The number of averaged neighbours varies, so that the decoder works for any k.
_KS = (5, 10, 20, 30)
_VALIDATION_K = 20
_CHUNK = 4096


class NeighbourAverages:
    """Averages of neighbours' latent vectors; call `refresh` after each epoch."""

    def __init__(
        self, data: TrainingData, neighbours: TrainingNeighbours, device: torch.device
    ) -> None:
        self.latents: Tensor | None = None
        self._data = data
        self._device = device
        self._rows = neighbours.rows
        self._near, places = np.unique(np.maximum(neighbours.near, 0), return_inverse=True)
        self._places = places.reshape(neighbours.near.shape)
        self._weights = np.where(neighbours.near >= 0, neighbours.weights, 0).astype(np.float32)
        self._training = np.flatnonzero(np.isin(self._rows, data.rows))
        self._validation = np.flatnonzero(np.isin(self._rows, data.validation))

    def refresh(self, network: LabelNetwork) -> None:
        """Encode the neighbours' label sets with the current weights."""
        was_training = network.training
        network.train(False)
        shape = (len(self._near), network.architecture.latent)
        latents = torch.empty(shape, dtype=torch.float16, device=self._device)
        with torch.no_grad():
            for start in range(0, len(self._near), _CHUNK):
                part = slice(start, start + _CHUNK)
                batch = label_batch(*self._data.batch(self._near[part]), self._device)
                latents[part] = network.encode(batch).half()
        self.latents = latents
        network.train(was_training)

    def draw(self, count: int, workers: Workers, random: np.random.Generator) -> Averages:
        """Averages for this process's share of randomly drawn training documents."""
        lines = random.choice(self._training, count * workers.count)
        return self._averages(workers.share(lines), int(random.choice(_KS)))

    def validation(self) -> Averages:
        """Averages for the held-out documents."""
        return self._averages(self._validation, _VALIDATION_K)

    def _averages(self, lines: Integers, k: int) -> Averages:
        if self.latents is None:
            raise ValueError("no latent vectors yet; call refresh() first")
        weights = torch.from_numpy(self._weights[lines, :k]).to(self._device)
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-12)
        places = torch.from_numpy(self._places[lines, :k]).to(self._device)
        latent = torch.einsum("nk,nke->ne", weights, self.latents[places].float())
        targets = label_batch(*self._data.batch(self._rows[lines]), self._device)
        return Averages(latent, targets)
