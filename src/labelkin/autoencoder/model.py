"""A trained label autoencoder on disk, and how it is run. Needs NumPy, not torch.

    label-ae/
      model.json                what the network is, knows and was trained on
      weights-….safetensors     its weights, in float32; the two large tables in float16
      README.md                 the model card
      training.csv, .png        the course of training

`model.json` names the weights and is written last, so that a folder always
holds one whole model: the old one or the new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.autoencoder.architecture import Architecture
from labelkin.exceptions import ConfigError, ModelDamagedError, ModelNotFoundError, ModelTooNewError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MODEL_NAME = "label-ae"
FORMAT_VERSION = 1
DESCRIPTION = "model.json"
NORM_EPSILON = 1e-5
# With a row per heading these are nearly all of a model; half the digits are enough for them.
_TABLES = ("inputs.weight", "outputs.weight")

Floats = npt.NDArray[np.float32]
Tensors = Mapping[str, npt.NDArray[np.float32]]

# The tensors of a network: dense layers and, where there is one, the normalisation behind.
ENCODER = (("inputs", "norm1"), ("dense2", "norm2"), ("embedding", None))
DECODER = (("dense3", "norm3"), ("dense4", "norm4"), ("outputs", None))


@dataclass(frozen=True)
class ModelInfo:
    """What `model.json` says: enough to use the model, and to know where it came from."""

    architecture: Architecture
    labels: tuple[str, ...]
    vocabulary: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "architecture": self.architecture.to_json(),
            "vocabulary": self.vocabulary,
            "seed": self.seed,
            "settings": dict(self.settings),
            "data": dict(self.data),
            "training": dict(self.training),
            "versions": dict(self.versions),
            "origin": dict(self.origin),
            "labels": list(self.labels),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ModelInfo:
        """What `to_json` gave."""
        return cls(
            architecture=Architecture(**content["architecture"]),
            labels=tuple(content["labels"]),
            vocabulary=content["vocabulary"],
            seed=content["seed"],
            settings=content["settings"],
            data=content["data"],
            training=content["training"],
            versions=content["versions"],
            origin=content.get("origin", {}),
        )


def vocabulary_fingerprint(identifiers: Sequence[str]) -> str:
    """A digest of the concepts that a model can have been trained on."""
    digest = hashlib.blake2b(digest_size=16)
    for identifier in sorted(identifiers):
        digest.update(identifier.encode("utf-8", "replace") + b"\x00")
    return digest.hexdigest()


def save_model(folder: Path, info: ModelInfo, tensors: Tensors, card: str) -> None:
    """Make the network in `tensors` the model of `folder`, in one step."""
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    content = save({name: _stored(name, tensor) for name, tensor in tensors.items()})
    weights = f"weights-{hashlib.blake2b(content, digest_size=8).hexdigest()}.safetensors"
    with atomic_file(folder / weights) as file:
        file.write(content)
    description = {"format_version": FORMAT_VERSION, "weights": weights, **info.to_json()}
    with atomic_text(folder / "README.md") as text:
        text.write(card)
    with atomic_text(folder / DESCRIPTION) as text:
        json.dump(description, text, ensure_ascii=False, indent=1)
    for path in folder.glob("weights-*.safetensors"):
        if path.name != weights:
            path.unlink(missing_ok=True)


def model_digest(folder: Path) -> str:
    """Changes whenever the model in `folder` does."""
    return _digest(_described(folder)[1])


def _digest(weights: str) -> str:
    return weights.removeprefix("weights-").removesuffix(".safetensors")


class LabelModel:
    """A label autoencoder that can encode label sets and decode latent vectors.

    Weights are read when they are needed: suggesting needs the decoder only.
    The file stays open, so that a model trained meanwhile does no harm.
    Normalisations are folded into the layers before them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info, self._weights = _described(folder)
        self._file = self._open()
        self._encoder: _Layers | None = None
        self._decoder: _Layers | None = None

    @property
    def digest(self) -> str:
        """Changes whenever the weights do."""
        return _digest(self._weights)

    @property
    def latent(self) -> int:
        """The number of latent dimensions."""
        return self.info.architecture.latent

    def encode(self, label_sets: csr_matrix[Any]) -> Floats:
        """The latent vectors of label sets, given as a 0/1 matrix over the model's labels."""
        if self._encoder is None:
            self._encoder = self._layers(ENCODER)
        (table, bias), *others = self._encoder
        hidden = np.maximum(label_sets @ table + bias, 0)
        *middle, (weight, shift) = others
        for inner, inner_shift in middle:
            hidden = np.maximum(hidden @ inner.T + inner_shift, 0)
        embedded: Floats = hidden @ weight.T + shift
        activation = self.info.architecture.activation
        if activation == "relu":
            return np.maximum(embedded, 0)
        return np.tanh(embedded) if activation == "tanh" else embedded

    def decode(self, latent: Floats, columns: npt.NDArray[np.int64] | None = None) -> Floats:
        """The logits of all labels, or of some columns, a line per latent vector."""
        *hidden, (weight, bias) = self._decoder_layers()
        values = latent.astype(np.float32, copy=False)
        for inner, shift in hidden:
            values = np.maximum(values @ inner.T + shift, 0)
        if columns is not None:
            weight, bias = weight[columns], bias[columns]
        logits: Floats = values @ weight.T
        logits += bias
        return logits

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """All weights as they are stored, for whoever wants to start from them."""
        self._layers(ENCODER)
        self._layers(DECODER)
        return {name: _read(self._file, name) for name in self._file.keys()}  # noqa: SIM118

    def related(self, label: str) -> list[tuple[str, float]]:
        """All other labels by how much they go together with one, with the cosine."""
        vectors, place = self._label_vectors(), self.info.labels.index(label)
        similarities = vectors @ vectors[place]
        nearest = np.argsort(-similarities, kind="stable").tolist()
        return [(self.info.labels[n], float(similarities[n])) for n in nearest if n != place]

    def _label_vectors(self) -> Floats:
        """A vector of unit length per label: near ones mean labels that go together."""
        weight, _ = self._decoder_layers()[-1]
        lengths = np.linalg.norm(weight, axis=1, keepdims=True).astype(np.float32)
        vectors: Floats = weight / np.maximum(lengths, np.float32(1e-12))
        return vectors

    def _open(self) -> Any:
        from safetensors import SafetensorError, safe_open

        path = self.folder / self._weights
        try:
            return safe_open(str(path), framework="numpy")
        except (SafetensorError, OSError) as error:
            raise ModelDamagedError(f"{path}: {error}; train the model again") from error

    def _decoder_layers(self) -> _Layers:
        if self._decoder is None:
            self._decoder = self._layers(DECODER)
        return self._decoder

    def _layers(self, names: tuple[tuple[str, str | None], ...]) -> _Layers:
        from safetensors import SafetensorError

        path = self.folder / self._weights
        try:
            layers = [_folded(self._file, *pair) for pair in names]
        except (SafetensorError, OSError, ValueError) as error:
            raise ModelDamagedError(f"{path}: {error}; train the model again") from error
        shapes = [weight.shape for weight, _ in layers]
        is_whole = all(np.isfinite(weight).all() for weight, _ in layers)
        if shapes != self._shapes(names) or not is_whole:
            raise ModelDamagedError(f"{path}: not the weights of this model; train the model again")
        return layers

    def _shapes(self, names: tuple[tuple[str, str | None], ...]) -> list[tuple[int, ...]]:
        """What the weights of layers must look like."""
        architecture, labels = self.info.architecture, len(self.info.labels)
        first, second, latent = architecture.first, architecture.second, architecture.latent
        shapes = {
            "inputs": (labels, first),
            "dense2": (second, first),
            "embedding": (latent, second),
            "dense3": (second, latent),
            "dense4": (first, second),
            "outputs": (labels, first),
        }
        return [shapes[name] for name, _ in names]


_Layers = list[tuple[Floats, Floats]]


def _stored(name: str, tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.ascontiguousarray(tensor, dtype=np.float16 if name in _TABLES else tensor.dtype)


def _read(file: Any, name: str) -> Floats:
    tensor: Floats = file.get_tensor(name).astype(np.float32, copy=False)
    return tensor


def _folded(file: Any, dense: str, norm: str | None) -> tuple[Floats, Floats]:
    """Weight and bias of a layer with its normalisation multiplied in."""
    weight, bias = _read(file, f"{dense}.weight"), _read(file, f"{dense}.bias")
    if norm is None:
        return weight, bias
    variance = file.get_tensor(f"{norm}.running_var")
    scale = file.get_tensor(f"{norm}.weight") / np.sqrt(variance + NORM_EPSILON)
    shift = file.get_tensor(f"{norm}.bias") - file.get_tensor(f"{norm}.running_mean") * scale
    # The input table has a row per label, other layers a row per output.
    weight = weight * (scale if dense == "inputs" else scale[:, None])
    return weight, bias * scale + shift


def check_format(path: Path, version: int, newest: int) -> None:
    """Raise ModelTooNewError for a description that only a later labelkin can read."""
    if version > newest:
        raise ModelTooNewError(
            f"{path}: format {version} is newer than {newest}, the newest known; update labelkin"
        )


def _described(folder: Path) -> tuple[ModelInfo, str]:
    path = folder / DESCRIPTION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        check_format(path, content["format_version"], FORMAT_VERSION)
        info, weights = ModelInfo.from_json(content), str(content["weights"])
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder}: no model; run `labelkin train` first") from error
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise ModelDamagedError(f"{path}: {error}; train the model again") from error
    if not (folder / weights).is_file():
        raise ModelDamagedError(f"{folder / weights}: missing; train the model again")
    return info, weights
