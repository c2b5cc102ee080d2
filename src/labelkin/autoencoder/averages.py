"""What the decoder meets when it predicts: averages of the neighbours' latent vectors.

An autoencoder that has seen true label sets only is asked, in prediction, to
decode points that no label set has: averages lie nearer to the centre, and
labels on which neighbours disagree come out faint. So the decoder also learns
from averages: for documents of the collection, found leave-one-out, with the
documents' own labels as what should come out.
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

# How many neighbours are averaged varies, so that the decoder suits any k.
_KS = (5, 10, 20, 30)
_VALIDATION_K = 20
_CHUNK = 4096


class NeighbourAverages:
    """Averaged latent vectors of neighbours; the latent vectors are renewed after each epoch."""

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
        """Encode the neighbours' label sets with the network as it is now."""
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
        """Averages for this process's share of a draw of documents."""
        lines = random.choice(self._training, count * workers.count)
        return self._averages(workers.share(lines), int(random.choice(_KS)))

    def validation(self) -> Averages:
        """Averages for the documents kept aside."""
        return self._averages(self._validation, _VALIDATION_K)

    def _averages(self, lines: Integers, k: int) -> Averages:
        if self.latents is None:
            raise ValueError("nothing has been encoded yet")
        weights = torch.from_numpy(self._weights[lines, :k]).to(self._device)
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-12)
        places = torch.from_numpy(self._places[lines, :k]).to(self._device)
        latent = torch.einsum("nk,nke->ne", weights, self.latents[places].float())
        targets = label_batch(*self._data.batch(self._rows[lines]), self._device)
        return Averages(latent, targets)
