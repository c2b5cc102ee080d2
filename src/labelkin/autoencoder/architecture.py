"""The shape of a label autoencoder: the sizes of its layers, by name or fitted to the data.

The paper's, `Architecture`, is

    labels → first → second → latent → second → first → labels

The four hidden layers are dense, batch-normalised, ReLU, dropout, in this
order; the embedding is dense with `activation`; the output is a sigmoid per
label (sections 3.2 and 4.3 of the paper, whose table gives the presets' sizes).
The paper does not specify the order within a layer or the embedding's
activation; both are our choice. The joint one, `JointArchitecture`, is

    labels → latent ← terms
               ↓
             labels ← votes, names
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

from labelkin.exceptions import ConfigError

# What the joint network knows of a neighbour, of how a text names a label, and of a label
# that has votes or is named.
NEIGHBOUR_FEATURES = 4
NAME_FEATURES = 9
LABEL_FEATURES = 4 + NAME_FEATURES + 1 + 4

Activation = Literal["linear", "relu", "tanh"]
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)

# Dense layers, each with the normalisation after it, if any.
Layers = tuple[tuple[str, str | None], ...]

# Sizes are multiples of this, which matrix kernels handle best.
_STEP = 64
_LARGEST_LATENT = 10_000


@dataclass(frozen=True, slots=True)
class Architecture:
    """Sizes of the hidden layers and the embedding of the paper's network."""

    recipe: ClassVar[Literal["paper"]] = "paper"
    encoder: ClassVar[Layers] = (("inputs", "norm1"), ("dense2", "norm2"), ("embedding", None))
    decoder: ClassVar[Layers] = (("dense3", "norm3"), ("dense4", "norm4"), ("outputs", None))

    first: int
    second: int
    latent: int
    activation: Activation = "linear"
    dropout: float = 0.2

    def __post_init__(self) -> None:
        if min(self.first, self.second, self.latent) < 1:
            raise ConfigError(f"layer sizes are {self.sizes}; each must be at least 1")
        if self.activation not in ACTIVATIONS:
            raise ConfigError(f"no activation {self.activation!r}; known: {', '.join(ACTIVATIONS)}")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout is {self.dropout}, which is not in [0, 1)")

    @property
    def sizes(self) -> str:
        """The layer sizes as written in settings: `2048/512/128`."""
        return f"{self.first}/{self.second}/{self.latent}"

    def trainable_parameters(self, labels: int) -> int:
        """The number of weights and biases, and of scales and shifts of the normalisations."""
        dense = [
            (labels, self.first),
            (self.first, self.second),
            (self.second, self.latent),
            (self.latent, self.second),
            (self.second, self.first),
            (self.first, labels),
        ]
        weights = sum(inputs * outputs + outputs for inputs, outputs in dense)
        return weights + 2 * self._normalised

    def parameters(self, labels: int) -> int:
        """The trainable parameters plus the running means and variances of the normalisations."""
        return self.trainable_parameters(labels) + 2 * self._normalised

    @property
    def _normalised(self) -> int:
        return 2 * (self.first + self.second)

    def shapes(self, labels: int) -> dict[str, tuple[int, ...]]:
        """The shape of each layer's weight."""
        return {
            "inputs": (labels, self.first),
            "dense2": (self.second, self.first),
            "embedding": (self.latent, self.second),
            "dense3": (self.second, self.latent),
            "dense4": (self.first, self.second),
            "outputs": (labels, self.first),
        }

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `model.json` stores."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class JointArchitecture:
    """Sizes of the joint network: the latent space, and two small networks for votes.

    `terms` is the number of terms that it reads. `weighing` hidden units weigh
    neighbours, `correcting` ones turn the votes of a label into a correction.
    The dropout rates are those of the hidden layer, of terms, of votes, and of all
    neighbours of a document, half of that for its whole text; `asymmetric` is the
    loss that it is trained with.
    """

    recipe: ClassVar[Literal["joint"]] = "joint"
    encoder: ClassVar[Layers] = (("inputs", None),)
    decoder: ClassVar[Layers] = (("outputs", None),)

    latent: int
    terms: int
    weighing: int = 8
    correcting: int = 48
    dropout: float = 0.5
    term_dropout: float = 0.4
    vote_dropout: float = 0.2
    source_dropout: float = 0.3
    asymmetric: bool = True

    def __post_init__(self) -> None:
        if min(self.latent, self.weighing, self.correcting) < 1 or self.terms < 0:
            raise ConfigError(f"layer sizes are {self.sizes}; each must be at least 1")
        for rate in (self.dropout, self.term_dropout, self.vote_dropout, self.source_dropout):
            if not 0 <= rate < 1:
                raise ConfigError(f"dropout is {rate}, which is not in [0, 1)")

    @property
    def sizes(self) -> str:
        """The size of the latent space as written in settings."""
        return str(self.latent)

    def trainable_parameters(self, labels: int) -> int:
        """The number of weights and biases."""
        tables = (2 * labels + self.terms + 1) * self.latent + labels
        neighbour, label = NEIGHBOUR_FEATURES, LABEL_FEATURES
        weighing = self.weighing * (neighbour + 2) + 1
        return tables + weighing + self.correcting * (label + 2) + 1

    def shapes(self, labels: int) -> dict[str, tuple[int, ...]]:
        """The shape of each large table."""
        return {
            "inputs": (labels, self.latent),
            "terms": (self.terms, self.latent),
            "outputs": (labels, self.latent),
        }

    def to_json(self) -> dict[str, Any]:
        """The JSON object that `model.json` stores."""
        return {"recipe": self.recipe, **asdict(self)}


AnyArchitecture = Architecture | JointArchitecture


def architecture_from_json(content: Mapping[str, Any]) -> AnyArchitecture:
    """The architecture that `to_json` wrote."""
    values = dict(content)
    if values.pop("recipe", "paper") == "joint":
        return JointArchitecture(**values)
    return Architecture(**values)


# first, second, latent (the paper's table of configurations)
PRESETS: dict[str, tuple[int, int, int]] = {
    "small": (1024, 256, 64),
    "medium": (2048, 512, 128),
    "large": (4096, 1024, 128),
}


def make_architecture(
    name: str,
    labels: int,
    documents: int,
    *,
    activation: Activation = "linear",
    dropout: float = 0.2,
) -> Architecture:
    """The architecture that `name` means: `auto`, a preset, or sizes such as `1024/256/64`."""
    if name == "auto":
        sizes = _fitted(labels, documents)
    elif name in PRESETS:
        sizes = PRESETS[name]
    else:
        sizes = _parsed(name)
    return Architecture(*sizes, activation, dropout)


def latent_size(name: str, labels: int, documents: int) -> int:
    """The size of the joint latent space that `name` means: `auto`, or a number.

    It grows with what there is to learn; other sizes were not measured.
    """
    if name == "auto":
        return _rounded(4 * min(labels, documents / 2.5) ** 0.5, 32, 512)
    try:
        size = int(name)
    except ValueError:
        raise ConfigError(
            f"no preset {name!r}; give auto or the size of the latent space, such as 512; "
            "the presets of the paper need `--recipe paper`"
        ) from None
    if not 1 <= size <= _LARGEST_LATENT:
        raise ConfigError(f"the latent space has a size of 1 to {_LARGEST_LATENT:,}, not {size:,}")
    return size


def _parsed(name: str) -> tuple[int, int, int]:
    parts = name.replace(",", "/").split("/")
    try:
        first, second, latent = (int(part) for part in parts)
    except ValueError:
        known = ", ".join(("auto", *PRESETS))
        raise ConfigError(
            f"no preset {name!r}; give one of {known}, or three sizes such as 1024/256/64"
        ) from None
    return first, second, latent


def _fitted(labels: int, documents: int) -> tuple[int, int, int]:
    """Sizes for this many labels and documents.

    The latent space grows with the number of labels, since a small one loses rare
    labels first, but not beyond what so many documents can train; hidden layers
    keep the presets' proportions. results/label-ae.md has the measurements.
    """
    scale = min(labels, documents / 2.5) ** 0.5
    first = _rounded(8 * scale, 64, 2048)
    latent = _rounded(4 * scale, 16, 512)
    return first, _rounded((first * latent) ** 0.5, latent, first), latent


def _rounded(size: float, low: int, high: int) -> int:
    step = _STEP if size >= _STEP else 16
    return int(min(max(round(size / step) * step, low), high))
