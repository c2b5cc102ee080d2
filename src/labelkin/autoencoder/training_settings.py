"""How a label autoencoder is trained; labelkin.toml documents each key."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, Literal

from labelkin.autoencoder.architecture import Activation, latent_size, make_architecture
from labelkin.autoencoder.training_data import steps_of
from labelkin.store.config import Config

Precision = Literal["auto", "float32", "mixed"]
Recipe = Literal["joint", "paper"]

#: As many epochs as fit the number of documents.
FITTED = -1
_EPOCHS = 8
_MOST_EPOCHS = 60
_STEPS = 1200


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings of one training; `minutes` 0 sets no limit, `epochs` FITTED fits them.

    The defaults are those of the joint network; `paper_settings` has the others.
    `activation`, `averages` and `averaged_documents` are for the paper's network,
    `documents` and `terms` for the joint one.
    """

    recipe: Recipe = "joint"
    preset: str = "auto"
    activation: Activation = "linear"
    dropout: float = 0.5
    epochs: int = FITTED
    batch_size: int = 256
    learning_rate: float = 0.001
    warm_up: int = 100
    patience: int = 5
    held_out: float = 0.02
    min_frequency: int = 2
    sampled_outputs: int = 20_000
    averages: bool = True
    averaged_documents: int = 50_000
    documents: int = 100_000
    terms: int = 100_000
    seed: int = 0
    precision: Precision = "auto"
    device: str = "auto"
    minutes: float = 0.0

    @classmethod
    def from_config(cls, config: Config, recipe: Recipe | None = None) -> TrainingSettings:
        """What labelkin.toml says of its recipe, or of another."""
        values = config.training.model_dump()
        recipe = recipe or config.training.recipe
        if recipe == "joint":
            values |= config.joint.model_dump()
            values["preset"] = str(values.pop("latent") or "auto")
            values["epochs"] = values["epochs"] or FITTED
        return cls(**values | {"recipe": recipe})

    def fitted(self, documents: int) -> TrainingSettings:
        """The settings with epochs for so many documents: more for few, which have few steps."""
        if self.epochs != FITTED:
            return self
        wanted = round(_STEPS / steps_of(max(documents, 1), self.batch_size))
        return replace(self, epochs=min(max(wanted, _EPOCHS), _MOST_EPOCHS))

    @property
    def needs_neighbours(self) -> bool:
        """Whether the training looks at the neighbours of documents."""
        if self.recipe == "joint":
            return self.epochs != 0
        return bool(self.epochs and self.averages and self.averaged_documents)

    @property
    def searched_documents(self) -> int:
        """Of how many documents the neighbours are looked up, at most."""
        return self.documents if self.recipe == "joint" else self.averaged_documents

    @property
    def trained_documents(self) -> int:
        """How many documents an epoch has, at most."""
        return self.documents if self.recipe == "joint" else sys.maxsize

    def check_preset(self, labels: int, documents: int) -> None:
        """Raise ConfigError if the preset is not one of the recipe's."""
        if self.recipe == "joint":
            latent_size(self.preset, labels, documents)
        else:
            make_architecture(self.preset, labels, documents)


def paper_settings(**changes: Any) -> TrainingSettings:
    """The settings of the paper's network, with changes."""
    values: dict[str, Any] = {
        "recipe": "paper",
        "dropout": 0.2,
        "epochs": 15,
        "learning_rate": 0.002,
        "warm_up": 200,
        "min_frequency": 1,
        "sampled_outputs": 3500,
    }
    return TrainingSettings(**values | changes)
