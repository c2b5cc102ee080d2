"""Collections with a label autoencoder that was never trained, for tests of plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.model import ModelInfo, save_model


def save_autoencoder(collection: Path, labels: Sequence[str], seed: int = 0) -> None:
    """Give a collection an autoencoder whose labels form two groups: the even and the odd ones."""
    random = np.random.default_rng(seed)
    shape = Architecture(first=6, second=5, latent=4)
    sizes = {
        "inputs": (len(labels), 6),
        "dense2": (5, 6),
        "embedding": (4, 5),
        "dense3": (5, 4),
        "dense4": (6, 5),
        "outputs": (len(labels), 6),
    }
    tensors = {}
    for name, size in sizes.items():
        outputs = size[1] if name == "inputs" else size[0]
        tensors[f"{name}.weight"] = random.normal(size=size).astype(np.float32)
        tensors[f"{name}.bias"] = np.zeros(outputs, dtype=np.float32)
    groups = np.where(np.arange(len(labels)) % 2, 4.0, -4.0)
    tensors["outputs.weight"][:, 0] += groups.astype(np.float32)
    for number, width in ((1, 6), (2, 5), (3, 5), (4, 6)):
        tensors[f"norm{number}.weight"] = np.ones(width, dtype=np.float32)
        tensors[f"norm{number}.bias"] = np.zeros(width, dtype=np.float32)
        tensors[f"norm{number}.running_mean"] = np.zeros(width, dtype=np.float32)
        tensors[f"norm{number}.running_var"] = np.ones(width, dtype=np.float32)
    info = ModelInfo(shape, tuple(labels), "v", seed)
    save_model(collection / "models" / "label-ae", info, tensors, "card")
