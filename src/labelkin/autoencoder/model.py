"""A trained label autoencoder on disk, and how it is run. Needs NumPy, not torch.

    label-ae/
      model.json                architecture, labels, settings and training
      weights-….safetensors     its weights, in float32; the large tables in float16
      README.md                 the model card
      training.csv, .png        the training curves

`model.json` names the weights and is written last, so that a folder always
holds one complete model: the old one or the new one.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin import compiled
from labelkin.atomic import atomic_file, atomic_text
from labelkin.autoencoder.architecture import AnyArchitecture, Layers, architecture_from_json
from labelkin.checksums import (
    SMALL,
    BlockChecksums,
    ChecksumError,
    ChecksumWriter,
    listed_name,
    read_sealed,
    sealed,
)
from labelkin.exceptions import ConfigError, ModelDamagedError, ModelNotFoundError, ModelTooNewError
from labelkin.memo import Memo
from labelkin.store.background import verify_later
from labelkin.store.models import DESCRIPTION
from labelkin.tensors import TensorFile, tensor_bytes

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

logger = logging.getLogger(__name__)

MODEL_NAME = "label-ae"
# Format 2 has joint models; the paper's are still written as format 1.
FORMAT_VERSION = 2
NORM_EPSILON = 1e-5
_WITHOUT_BLAS = 20_000_000
# Texts from which on it pays to load compiled code.
_WORTH_COMPILING = 100
# Texts up to which BLAS takes longer whatever the size, more so beside other threads.
_FEW = 8
# The tables with a row per heading or term are nearly all of a model; float16 is enough for them.
_TABLES = ("inputs.weight", "terms.weight", "outputs.weight")

Floats = npt.NDArray[np.float32]
Tensors = Mapping[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class ModelInfo:
    """The content of `model.json`: enough to use the model, and to know its origin."""

    architecture: AnyArchitecture
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
        """The inverse of `to_json`."""
        return cls(
            architecture=architecture_from_json(content["architecture"]),
            labels=tuple(content["labels"]),
            vocabulary=content["vocabulary"],
            seed=content["seed"],
            settings=dict(content["settings"]),
            data=dict(content["data"]),
            training=dict(content["training"]),
            versions=dict(content["versions"]),
            origin=dict(content.get("origin", {})),
        )


def vocabulary_fingerprint(identifiers: Sequence[str]) -> str:
    """A checksum of the concepts of a vocabulary, in any order."""
    checksum = hashlib.blake2b(digest_size=16)
    for identifier in sorted(identifiers):
        checksum.update(identifier.encode("utf-8", "replace") + b"\x00")
    return checksum.hexdigest()


def save_model(folder: Path, info: ModelInfo, tensors: Tensors, card: str) -> None:
    """Make the network in `tensors` the model of `folder`, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    content = tensor_bytes({name: _stored(name, tensor) for name, tensor in tensors.items()})
    weights = f"weights-{hashlib.blake2b(content, digest_size=8).hexdigest()}.safetensors"
    with atomic_file(folder / weights) as file:
        writer = ChecksumWriter(file)
        writer.write(content)
    description = {
        "format_version": 1 if info.architecture.recipe == "paper" else FORMAT_VERSION,
        "weights": weights,
        "checksums": writer.checksums().to_json(),
        **info.to_json(),
    }
    with atomic_text(folder / "README.md") as text:
        text.write(card)
    with atomic_text(folder / DESCRIPTION) as text:
        text.write(sealed(description, indent=1))
    for path in folder.glob("weights-*.safetensors"):
        if path.name != weights:
            path.unlink(missing_ok=True)


def verify_weights(path: Path) -> None:
    """Raise ModelDamagedError if the content of the weights does not match their name."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    except OSError as error:
        raise ModelDamagedError(f"{path}: {error.strerror}", "train the model again") from error
    if digest != _checksum(path.name):
        raise _damaged(path, ChecksumError(path))


def _checksum(weights: str) -> str:
    return weights.removeprefix("weights-").removesuffix(".safetensors")


class LabelModel:
    """A label autoencoder that encodes label sets and decodes latent vectors.

    Threads may share it. Weights are read when they are first needed:
    suggesting needs the decoder, and from the encoder's table only the rows of
    some labels. The file stays open, so another model can be trained in the
    meantime. Normalisations are folded into the layers before them.
    """

    folder_name = MODEL_NAME

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info, self._weights, checksums = _described(folder)
        #: Damage that was noticed; a damaged model is not used.
        self.damage: str | None = None
        self._file = self._open(checksums)
        tables = ("inputs", "terms") if self.is_joint else ("inputs",)
        self._tables = {name: self._table(f"{name}.weight") for name in tables}
        self._layers_memo = Memo()
        #: Values that others derive from the model, kept as long as the model.
        self.derived = Memo(8)

    @classmethod
    def load(cls, folder: Path) -> LabelModel:
        """Read the model in `folder`."""
        return cls(folder)

    @classmethod
    def checksum_of(cls, folder: Path) -> str:
        """Changes whenever the model in `folder` does."""
        return _checksum(_described(folder)[1])

    def close(self) -> None:
        """Drop what is derived from the model, which refers back to it."""
        self.derived.clear()

    @property
    def checksum(self) -> str:
        """Changes whenever the weights do."""
        return _checksum(self._weights)

    @property
    def latent(self) -> int:
        """The number of latent dimensions."""
        return self.info.architecture.latent

    @property
    def is_joint(self) -> bool:
        """Whether it decodes neighbours and text together."""
        return self.info.architecture.recipe == "joint"

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """A small tensor of the model by name."""
        return self._layers_memo.get(("tensor", name), lambda: self._read_tensor(name))

    def _read_tensor(self, name: str) -> npt.NDArray[Any]:
        try:
            return self._file.verified(name).copy()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._found_damaged(error) from error

    def encode(self, label_sets: csr_matrix[Any]) -> Floats:
        """The latent vectors of label sets, given as a 0/1 matrix over the model's labels.

        For joint models the matrix may hold votes: a label counts by its weight.
        """
        if self.is_joint:
            return self._sums("inputs", label_sets)
        (scale, bias), *others = self._encoder()
        hidden = np.maximum(self._sums("inputs", label_sets) * scale + bias, 0)
        *middle, (weight, shift) = others
        for inner, inner_shift in middle:
            hidden = np.maximum(_product(hidden, inner) + inner_shift, 0)
        embedded: Floats = _product(hidden, weight) + shift
        activation = getattr(self.info.architecture, "activation", "linear")
        if activation == "relu":
            return np.maximum(embedded, 0)
        return np.tanh(embedded) if activation == "tanh" else embedded

    def encode_terms(self, texts: csr_matrix[Any]) -> Floats:
        """The latent vectors of texts, given as weighted terms; for joint models."""
        return self._sums("terms", texts)

    def decode(self, latent: Floats, columns: npt.NDArray[np.int64] | None = None) -> Floats:
        """The logits of all labels, or of some columns, a line per latent vector."""
        self._check_sound()
        *hidden, (weight, bias) = self._decoder_layers()
        values = latent.astype(np.float32, copy=False)
        if self.is_joint:
            values = np.maximum(values + self.tensor("shift"), 0)
        for inner, shift in hidden:
            values = np.maximum(_product(values, inner) + shift, 0)
        if columns is not None:
            weight, bias = weight[columns], bias[columns]
        logits = _product(values, weight)
        logits += bias
        return logits

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """All weights as they are stored, to start another training from."""
        self.verify()
        if not self.is_joint:
            self._layers(self.info.architecture.encoder)
        self._decoder_layers()
        return {name: _read(self._file, name) for name in self._file}

    def words(self) -> list[str]:
        """The terms that a joint model reads, in the order of its table."""
        content = self.tensor("words").tobytes().decode("utf-8")
        return content.split("\n") if content else []

    def related(self, label: str) -> list[tuple[str, float]]:
        """All other labels with their cosine similarity to one, the most similar first."""
        vectors, place = self.label_vectors(), self.info.labels.index(label)
        similarities = vectors @ vectors[place]
        nearest = np.argsort(-similarities, kind="stable").tolist()
        return [(self.info.labels[n], float(similarities[n])) for n in nearest if n != place]

    def label_vectors(self) -> Floats:
        """A unit vector per label; labels that often occur together have similar ones."""
        weight, _ = self._decoder_layers()[-1]
        lengths = np.linalg.norm(weight, axis=1, keepdims=True).astype(np.float32)
        vectors: Floats = weight / np.maximum(lengths, np.float32(1e-12))
        return vectors

    def _open(self, checksums: BlockChecksums | None) -> TensorFile:
        """The weights in memory; what was written without checksums by block is verified whole."""
        path = self.folder / self._weights
        try:
            if checksums is None and path.stat().st_size <= SMALL:
                verify_weights(path)
            elif checksums is None:
                verify_later(partial(verify_weights, path), self.report_damage)
            return TensorFile(path, checksums)
        except (OSError, ValueError) as error:
            raise _damaged(path, error) from error

    def _decoder_layers(self) -> _Layers:
        return self._layers_memo.get(
            "decoder", lambda: self._layers(self.info.architecture.decoder)
        )

    def _encoder(self) -> _Layers:
        """Scale and shift of the sum of input rows, then the other layers."""
        return self._layers_memo.get("encoder", self._encoder_layers)

    def _encoder_layers(self) -> _Layers:
        path = self.folder / self._weights
        first, *others = self.info.architecture.encoder
        try:
            self._verify((first,), rows=True)
            scale, shift = _normalisation(self._file, first[1])
            bias = _read(self._file, f"{first[0]}.bias")
            shape = self._file[f"{first[0]}.weight"].shape
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._found_damaged(error) from error
        if shape != self._shapes((first,))[0]:
            raise ModelDamagedError(
                f"{path}: not the weights of this model", "train the model again"
            )
        return [(scale, bias * scale + shift), *self._layers(tuple(others))]

    def _sums(self, name: str, matrix: csr_matrix[Any]) -> Floats:
        """Weighted sums of the rows of a table, a line per line of a sparse matrix."""
        self._check_sound()
        if matrix.shape[1] > len(self._tables[name]):
            # Compiled code does not check it.
            raise ValueError(f"{matrix.shape[1]} columns, but {len(self._tables[name])} {name}")
        if self._tables[name].dtype == np.float16 and compiled.pays(
            matrix.shape[0], _WORTH_COMPILING
        ):
            return self._compiled_sums(name, matrix)
        used, places = np.unique(matrix.indices, return_inverse=True)
        few = type(matrix)((matrix.data, places, matrix.indptr), shape=(matrix.shape[0], len(used)))
        sums: Floats = few @ self._table_rows(name, used)
        return sums

    def _compiled_sums(self, name: str, matrix: csr_matrix[Any]) -> Floats:
        """The same sums, from the mapped table as it is."""
        from labelkin.autoencoder.table_kernel import add_rows

        self._verify_rows(name, np.unique(matrix.indices))
        table = self._tables[name]
        sums = np.zeros((matrix.shape[0], table.shape[1]), dtype=np.float32)
        starts = matrix.indptr.astype(np.int64, copy=False)
        weights = matrix.data.astype(np.float32, copy=False)
        add_rows(starts, matrix.indices, weights, table.view(np.uint16), sums)
        return sums

    def _table_rows(self, name: str, rows: npt.NDArray[np.integer]) -> Floats:
        """Some rows of a table, read from the mapped file."""
        self._verify_rows(name, rows)
        return np.asarray(self._tables[name][rows], dtype=np.float32)

    def _verify_rows(self, name: str, rows: npt.NDArray[np.integer]) -> None:
        table = self._tables[name]
        start, _ = self._file.span(f"{name}.weight")
        try:
            self._file.mapped.verify_items(start, table.itemsize * table.shape[1], rows)
        except ChecksumError as error:
            raise self._found_damaged(error) from error

    def _table(self, name: str) -> npt.NDArray[Any]:
        """A table as it lies in the file, mapped into memory."""
        try:
            return self._file[name]
        except (ValueError, KeyError, TypeError) as error:
            raise _damaged(self.folder / self._weights, error) from error

    def verify(self) -> None:
        """Raise ModelDamagedError if any of the weights are damaged."""
        self._check_sound()
        if self._file.mapped.checksums is None:
            verify_weights(self.folder / self._weights)
            return
        try:
            self._file.mapped.verify(0, len(self._file.mapped.bytes))
        except ChecksumError as error:
            raise self._found_damaged(error) from error

    def report_damage(self, reason: str) -> None:
        """Log damage once; the model is not used any more."""
        if self.damage is None:
            self.damage = reason
            logger.error("%s", reason)

    def _check_sound(self) -> None:
        if self.damage is not None:
            raise ModelDamagedError(self.damage)

    def _found_damaged(self, error: Exception) -> ModelDamagedError:
        damaged = _damaged(self.folder / self._weights, error)
        self.damage = self.damage or str(damaged)
        return damaged

    def _layers(self, names: Layers) -> _Layers:
        path = self.folder / self._weights
        try:
            self._verify(names)
            layers = [_folded(self._file, *pair) for pair in names]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._found_damaged(error) from error
        shapes = [weight.shape for weight, _ in layers]
        # What has a checksum is what was written.
        is_whole = self._file.mapped.checksums is not None or all(
            np.isfinite(weight).all() for weight, _ in layers
        )
        if shapes != self._shapes(names) or not is_whole:
            raise ModelDamagedError(
                f"{path}: not the weights of this model", "train the model again"
            )
        return layers

    def _verify(self, names: Layers, *, rows: bool = False) -> None:
        """Verify all that layers are read from; with `rows`, without the weight of the first."""
        (first, _), *_ = names
        parts = {part for pair in names for part in pair if part is not None}
        for name in self._file:
            layer, _, kind = name.rpartition(".")
            if layer in parts and not (rows and (layer, kind) == (first, "weight")):
                self._file.verified(name)

    def _shapes(self, names: Layers) -> list[tuple[int, ...]]:
        """The shapes that the weights of layers must have."""
        shapes = self.info.architecture.shapes(len(self.info.labels))
        return [shapes[name] for name, _ in names]


_Layers = list[tuple[Floats, Floats]]


def _stored(name: str, tensor: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return tensor.astype(np.float16 if name in _TABLES else tensor.dtype, copy=False)


def _read(file: TensorFile, name: str) -> npt.NDArray[Any]:
    """A copy of a tensor, in single precision if it is stored in half."""
    tensor = file[name]
    return tensor.astype(np.float32) if tensor.dtype == np.float16 else tensor.copy()


def _folded(file: TensorFile, dense: str, norm: str | None) -> tuple[Floats, Floats]:
    """Weight and bias of a layer with its normalisation multiplied in."""
    weight, bias = _read(file, f"{dense}.weight"), _read(file, f"{dense}.bias")
    if norm is None:
        return weight, bias
    scale, shift = _normalisation(file, norm)
    # The input table has a row per label, other layers a row per output.
    weight = weight * (scale if dense == "inputs" else scale[:, None])
    return weight, bias * scale + shift


def _product(values: Floats, weight: Floats) -> Floats:
    """Values · weightᵀ; for few texts without BLAS, whose threads take longer to start."""
    if len(values) <= _FEW or len(values) * weight.size <= _WITHOUT_BLAS:
        product: Floats = np.einsum("ni,oi->no", values, weight)
        return product
    return values @ weight.T


def _normalisation(file: TensorFile, norm: str | None) -> tuple[Floats, Floats]:
    """Scale and shift of a normalisation layer."""
    spread: Any = np.sqrt(file[f"{norm}.running_var"] + NORM_EPSILON)
    scale: Floats = file[f"{norm}.weight"] / spread
    return scale, file[f"{norm}.bias"] - file[f"{norm}.running_mean"] * scale


def check_format(path: Path, version: int, newest: int) -> None:
    """Raise ModelTooNewError for a description that only a later labelkin can read."""
    if version > newest:
        raise ModelTooNewError(
            f"{path}: format {version} is newer than {newest}, the newest known; update labelkin"
        )


def _damaged(path: Path, error: Exception) -> ModelDamagedError:
    reason = str(error) if isinstance(error, ChecksumError) else f"{path}: {error}"
    return ModelDamagedError(f"{reason}", "train the model again")


def _described(folder: Path) -> tuple[ModelInfo, str, BlockChecksums | None]:
    path = folder / DESCRIPTION
    try:
        content = read_sealed(path)
        check_format(path, content["format_version"], FORMAT_VERSION)
        info, weights = ModelInfo.from_json(content), listed_name(content["weights"])
        recorded = content.get("checksums")
        checksums = None if recorded is None else BlockChecksums.from_json(recorded)
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder}: no model; run `labelkin train` first") from error
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise _damaged(path, error) from error
    if not (folder / weights).is_file():
        raise ModelDamagedError(f"{folder / weights}: missing", "train the model again")
    return info, weights, checksums
