"""A label autoencoder with random weights, which needs neither torch nor training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labelkin.autoencoder.architecture import Architecture
from labelkin.autoencoder.model import LabelModel, ModelInfo, save_model


def tiny_model(folder: Path, labels: Sequence[str], seed: int = 0) -> LabelModel:
    """Write a model of 8/6/4 for these labels and open it."""
    rng = np.random.default_rng(seed)
    first, second, latent = 8, 6, 4
    shapes = {
        "inputs": (len(labels), first),
        "dense2": (second, first),
        "embedding": (latent, second),
        "dense3": (second, latent),
        "dense4": (first, second),
        "outputs": (len(labels), first),
    }
    tensors = {}
    for name, shape in shapes.items():
        outputs = first if name == "inputs" else shape[0]
        tensors[f"{name}.weight"] = rng.normal(size=shape).astype(np.float32)
        tensors[f"{name}.bias"] = rng.normal(size=outputs).astype(np.float32)
    for number, size in enumerate((first, second, second, first), start=1):
        tensors[f"norm{number}.weight"] = np.ones(size, dtype=np.float32)
        tensors[f"norm{number}.bias"] = np.zeros(size, dtype=np.float32)
        tensors[f"norm{number}.running_mean"] = np.zeros(size, dtype=np.float32)
        tensors[f"norm{number}.running_var"] = np.ones(size, dtype=np.float32)
    info = ModelInfo(Architecture(first, second, latent), tuple(labels), "v", seed)
    save_model(folder, info, tensors, "card")
    return LabelModel(folder)
