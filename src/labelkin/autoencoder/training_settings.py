"""How a label autoencoder is trained; labelkin.toml documents each key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from labelkin.autoencoder.architecture import Activation
from labelkin.store.config import Config

Precision = Literal["auto", "float32", "mixed"]


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings of one training; `minutes` 0 sets no limit."""

    preset: str = "auto"
    activation: Activation = "linear"
    dropout: float = 0.2
    epochs: int = 15
    batch_size: int = 256
    learning_rate: float = 0.002
    warm_up: int = 200
    patience: int = 5
    held_out: float = 0.02
    min_frequency: int = 1
    sampled_outputs: int = 3500
    averages: bool = True
    averaged_documents: int = 50_000
    seed: int = 0
    precision: Precision = "auto"
    device: str = "auto"
    minutes: float = 0.0

    @classmethod
    def from_config(cls, config: Config) -> TrainingSettings:
        """What labelkin.toml says."""
        return cls(**config.training.model_dump())
