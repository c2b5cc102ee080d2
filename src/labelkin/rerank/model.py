"""A trained reranker on disk.

    rerank/
      model.json                  features, calibration, what it was trained on, the other files
      ranker-….txt                LightGBM's trees as it writes them, for explanations
      trees-….safetensors         the same trees as arrays, for scores
      statistics-….safetensors    statistics of headings over labelled documents
      terms-….txt                 the terms of the statistics, one per line
      NAME-….safetensors          what the signal NAME has fitted, if it fits anything
      README.md                   the model card
      reliability.png             scores against the share that was right

`model.json` is written last and names the other files by their checksums: a
folder holds one complete model, the old one or the new one. Arrays are mapped into
memory, so that processes share them; each file is read once, to be verified, when a
model is loaded, and only what texts need stays in memory. Format 2 had compressed arrays (.npz) and
no file of trees.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.autoencoder.model import check_format
from labelkin.checksums import (
    BlockChecksums,
    ChecksumError,
    ChecksumWriter,
    MappedFile,
    listed_name,
    read_sealed,
    sealed,
)
from labelkin.evaluate.stored import EvaluationSummary
from labelkin.exceptions import (
    ConfigError,
    ModelDamagedError,
    ModelMismatchError,
    ModelNotFoundError,
)
from labelkin.memo import Memo
from labelkin.neighbours.search import representation_names
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank.calibration import Calibration
from labelkin.rerank.features import Knowledge, check_groups
from labelkin.rerank.headings import Headings
from labelkin.rerank.matrices import from_arrays, matrix_arrays, matrix_of, to_arrays
from labelkin.rerank.ranker import Ranker, names_in, saved_names
from labelkin.rerank.signals import SIGNALS, feature_names
from labelkin.rerank.signals.autoencoder import AUTOENCODER_SIGNALS
from labelkin.rerank.statistics import LabelStatistics, log_ratios
from labelkin.rerank.trees import Trees
from labelkin.store.models import DESCRIPTION
from labelkin.tensors import TensorFile, npz_arrays, tensor_bytes

RERANK_NAME = "rerank"
FORMAT_VERSION = 3
_FILES = ("ranker", "terms", "statistics")
_TREES = "trees"
_PART = re.compile(r"\w+-[0-9a-f]{16}\.(txt|npz|safetensors)")
_REMEDY = "train the reranker again"

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RerankParts:
    """Everything that a reranker consists of; `words` are the terms of its columns."""

    ranker: Ranker
    knowledge: Knowledge
    words: Sequence[str]


@dataclass(frozen=True)
class RerankInfo:
    """The content of `model.json`; `neighbours` is what they were found with in training.

    `encoder` is the same for the neighbours by the vectors of an encoder, empty without one.
    `evaluation` is that of held-out documents; earlier versions did not record it.
    """

    groups: tuple[str, ...]
    calibration: Calibration
    training: Mapping[str, Any]
    versions: Mapping[str, str]
    state: Mapping[str, Any]
    neighbours: Mapping[str, Any] = field(default_factory=dict)
    encoder: Mapping[str, Any] = field(default_factory=dict)
    evaluation: EvaluationSummary | None = None

    @property
    def encoder_name(self) -> str:
        """The encoder whose vectors are a signal; empty if there is none."""
        return representation_names(self.encoder)

    @property
    def uses_autoencoder(self) -> bool:
        """Whether scores of the label autoencoder are a signal."""
        return not AUTOENCODER_SIGNALS.isdisjoint(self.groups)

    def training_command(self, collection: Path) -> str:
        """The command that trains the reranker again, with the encoder that it has."""
        encoder = f" --encoder {self.encoder_name}" if self.encoder_name else ""
        return f"labelkin train {collection} --only rerank{encoder}"

    def check_encoder(self, folder: Path, version: Callable[[str], str]) -> None:
        """Raise ModelMismatchError if the encoder is gone or another one than in training.

        The regression cannot read the vectors of another version. `version` gives the
        present one by the encoder's name.
        """
        name = self.encoder_name
        if not name:
            return
        trained = self.encoder["representation"][name]
        command = f"labelkin train {folder.parent.parent} --only rerank --encoder"
        try:
            present = version(name)
        except ConfigError as error:
            raise ModelMismatchError(
                f"{folder}: its encoder cannot be used: {error.problem}; put it back, or run "
                f"`{command} NAME` with another"
            ) from error
        if present != trained:
            now = f"now {present}" if present else "which is gone"
            raise ModelMismatchError(
                f"{folder}: trained with vectors of {trained}, {now}; run `{command} {name}`"
            )

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "groups": list(self.groups),
            "training": dict(self.training),
            "versions": dict(self.versions),
            "state": dict(self.state),
            "neighbours": dict(self.neighbours),
            "encoder": dict(self.encoder),
            "evaluation": None if self.evaluation is None else self.evaluation.to_json(),
            "calibration": self.calibration.to_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RerankInfo:
        """The inverse of `to_json`."""
        return cls(
            groups=tuple(str(name) for name in content["groups"]),
            calibration=Calibration.from_json(content["calibration"]),
            training=dict(content["training"]),
            versions=dict(content["versions"]),
            state={name: content["state"][name] for name in ("generation", "token")},
            neighbours=dict(content.get("neighbours", {})),
            encoder=dict(content.get("encoder", {})),
            evaluation=EvaluationSummary.from_json(content.get("evaluation")),
        )


def save_reranker(folder: Path, info: RerankInfo, parts: RerankParts, card: str) -> None:
    """Make this the model of `folder`, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    files, checksums = {}, {}
    for name, content, suffix in _contents(parts):
        files[name] = f"{_stem(name)}-{_checksum(content).hexdigest()}.{suffix}"
        with atomic_file(folder / files[name]) as file:
            writer = ChecksumWriter(file)
            writer.write(content)
        checksums[name] = writer.checksums().to_json()
    with atomic_text(folder / "README.md") as text:
        text.write(card)
    with atomic_text(folder / DESCRIPTION) as text:
        description = {"format_version": FORMAT_VERSION, "files": files, "checksums": checksums}
        text.write(sealed({**description, **info.to_json()}, indent=1))
    for path in folder.iterdir():
        if _PART.fullmatch(path.name) and path.name not in files.values():
            path.unlink(missing_ok=True)


def _contents(parts: RerankParts) -> Iterator[tuple[str, bytes, str]]:
    """Name, content and suffix of each file, one at a time."""
    yield "ranker", parts.ranker.text.encode("utf-8"), "txt"
    yield "terms", "\n".join(parts.words).encode("utf-8"), "txt"
    yield _TREES, tensor_bytes(to_arrays(parts.ranker.trees)), "safetensors"
    yield "statistics", tensor_bytes(_statistics_arrays(parts.knowledge)), "safetensors"
    for name, fitted in parts.knowledge.fitted.items():
        if arrays := SIGNALS[name].to_arrays(fitted):
            yield name, tensor_bytes(arrays, f"signal {name}"), "safetensors"


class RerankModel:
    """A reranker that was read from its folder. Threads may share it; it never changes."""

    folder_name = RERANK_NAME

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info, self._files = _described(folder)
        check_groups(folder, self.info.groups)
        self.checksum = _joined(self._files)
        self._widened = Memo(2)
        self._used_with: set[str] = set()
        try:
            self.ranker = self._read_ranker()
            _check_features(folder, self.info, self.ranker.names)
            self.knowledge = self._read_knowledge()
        except KeyError as error:
            raise _other_version(folder) from error
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
            # The files are as they were written, but do not fit together.
            raise ModelDamagedError(f"{folder}: not a reranker ({error})", _REMEDY) from error

    @classmethod
    def load(cls, folder: Path) -> RerankModel:
        """Read the model in `folder`."""
        return cls(folder)

    @classmethod
    def checksum_of(cls, folder: Path) -> str:
        """Changes whenever the model in `folder` does."""
        return _joined(_described(folder)[1])

    def close(self) -> None:
        """Drop what is derived from the model; files stay mapped for requests that use it."""
        self._widened.clear()

    def is_new(self, settings: str) -> bool:
        """Whether the model has not been used with these settings of the search before."""
        is_new = settings not in self._used_with
        self._used_with.add(settings)
        return is_new

    def knowledge_for(self, width: int) -> Knowledge:
        """What the model knows, for a vocabulary that may have grown since."""
        return self._widened.get(width, lambda: self.knowledge.widened(width))

    def _read_ranker(self) -> Ranker:
        text = self._files["ranker"].mapped(self.folder)
        trees = None
        if _TREES in self._files:
            trees = from_arrays(Trees, self._files[_TREES].arrays(self.folder))
        names = names_in(text)
        ranker = Ranker(lambda: text.tobytes().decode("utf-8"), trees, names)
        if (ranker.trees.features >= len(names)).any():
            raise ValueError("trees with a feature that has no name")
        return ranker

    def _read_knowledge(self) -> Knowledge:
        arrays = self._files["statistics"].arrays(self.folder)
        statistics, headings = _part(arrays, "statistics"), _part(arrays, "headings")
        if self._files["statistics"].is_compressed:
            _add_derived(statistics, headings)
        fitted = {
            name: SIGNALS[name].from_arrays(file.arrays(self.folder))
            for name, file in self._files.items()
            if name not in (*_FILES, _TREES)
        }
        return Knowledge(
            from_arrays(LabelStatistics, statistics),
            from_arrays(Headings, headings),
            TermColumns(self._files["terms"].mapped(self.folder).tobytes(), arrays["idf"]),
            self.info.groups,
            fitted,
        )


@dataclass(frozen=True)
class _File:
    """A file of a model: for which part, its name, and its checksums unless it is of format 2."""

    part: str
    name: str
    checksums: BlockChecksums | None

    @property
    def is_compressed(self) -> bool:
        """Whether it has arrays as format 2 has them."""
        return self.name.endswith(".npz")

    def verify(self, folder: Path, *, whole: bool = False) -> Path:
        """Its path, if the content is what was written; with `whole`, by the checksum in its name.

        Raises ModelDamagedError.
        """
        path = folder / self.name
        try:
            if whole or self.checksums is None:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, _checksum).hexdigest()
                if path.stem != f"{_stem(self.part)}-{found}":
                    raise ChecksumError(path)
            else:
                self.check_size(folder)
                self.checksums.verify(path)
        except OSError as error:
            raise ModelDamagedError(f"{path}: {error.strerror}", _REMEDY) from error
        except ChecksumError as error:
            raise ModelDamagedError(f"{error}", _REMEDY) from error
        return path

    def check_size(self, folder: Path) -> None:
        """Raise ChecksumError, or OSError, if it has another size; reads hardly anything."""
        path = folder / self.name
        if self.is_compressed:
            # The directory of the arrays is at the end of the file.
            zipfile.ZipFile(path).close()
        elif self.checksums is not None:
            if path.stat().st_size != self.checksums.size:
                raise ChecksumError(path)
        elif not path.stat().st_size:
            # A file of no terms is empty rightly.
            self.verify(folder)

    def mapped(self, folder: Path) -> npt.NDArray[np.uint8]:
        """The bytes of the file, mapped into memory; it may be deleted meanwhile."""
        path = self.verify(folder)
        try:
            size = path.stat().st_size
            # An empty file cannot be mapped.
            return MappedFile(path, None, size).bytes if size else np.zeros(0, dtype=np.uint8)
        except OSError as error:
            raise ModelDamagedError(f"{path}: {error.strerror}", _REMEDY) from error

    def arrays(self, folder: Path, *, is_verified: bool = True) -> Arrays:
        """The arrays in the file; nothing else of it is read unless it `is_verified`."""
        path = self.verify(folder) if is_verified else folder / self.name
        try:
            if not self.is_compressed:
                return TensorFile(path, self.checksums)
            return npz_arrays(path)
        except (OSError, ValueError) as error:
            raise ModelDamagedError(f"{path}: {error}", _REMEDY) from error


def _add_derived(
    statistics: dict[str, npt.NDArray[Any]], headings: dict[str, npt.NDArray[Any]]
) -> None:
    """Add to the arrays of format 2 what format 3 stores: logarithms, and matrices by term."""
    for name in ("together", "speaking"):
        matrix = matrix_of(statistics, name)
        frequencies, documents = statistics["frequencies"], int(statistics["documents"])
        statistics[f"{name}_logs"] = log_ratios(matrix, frequencies, documents)
    for name, stored in (("narrower", "broader"), ("names", "names"), ("all_names", "all_names")):
        if f"{stored}.data" in headings:
            headings |= matrix_arrays(name, matrix_of(headings, stored).T.tocsr())


def check_files(folder: Path) -> None:
    """Raise ModelDamagedError if a file is missing or, as far as it shows at once, truncated.

    Raises ModelMismatchError if another version has made the trees, with other features. Reads
    hardly anything; `verify_reranker` reads everything.
    """
    info, files = _described(folder)
    for file in files.values():
        try:
            file.check_size(folder)
        except ChecksumError as error:
            raise ModelDamagedError(f"{error}", _REMEDY) from error
        except (OSError, zipfile.BadZipFile) as error:
            reason = getattr(error, "strerror", None) or error
            raise ModelDamagedError(f"{folder / file.name}: {reason}", _REMEDY) from error
    if names := saved_names(folder / files["ranker"].name):
        _check_features(folder, info, names)


def _check_features(folder: Path, info: RerankInfo, names: list[str]) -> None:
    """Raise ModelMismatchError unless trees have the features that the signals now have."""
    if names != feature_names(info.groups):
        raise _other_version(folder)


def _other_version(folder: Path) -> ModelMismatchError:
    return ModelMismatchError(
        f"{folder}: made by another version of labelkin, with other features; "
        "train the reranker again"
    )


def verify_reranker(folder: Path) -> None:
    """Raise ModelDamagedError if a file of the model is damaged or missing; needs no LightGBM."""
    _, files = _described(folder)
    for file in files.values():
        file.verify(folder, whole=True)


def reranker_info(folder: Path) -> RerankInfo:
    """The description of the model in `folder`, without reading the model."""
    return _described(folder)[0]


def known_columns(folder: Path) -> npt.NDArray[np.bool_]:
    """For each column of the vocabulary then, whether documents that it learned from carry it."""
    file = _described(folder)[1]["statistics"]
    try:
        arrays = file.arrays(folder, is_verified=False)
        return np.asarray(arrays["statistics/frequencies"] > 0)
    except KeyError as error:
        raise _other_version(folder) from error


def _statistics_arrays(knowledge: Knowledge) -> dict[str, npt.NDArray[Any]]:
    arrays = {f"statistics/{key}": one for key, one in to_arrays(knowledge.statistics).items()}
    arrays |= {f"headings/{key}": one for key, one in to_arrays(knowledge.headings).items()}
    arrays["idf"] = knowledge.terms.idf
    return arrays


def _part(arrays: Arrays, name: str) -> dict[str, npt.NDArray[Any]]:
    prefix = f"{name}/"
    return {key.removeprefix(prefix): one for key, one in arrays.items() if key.startswith(prefix)}


def _stem(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def _joined(files: Mapping[str, _File]) -> str:
    return " ".join(sorted(file.name for file in files.values()))


def _checksum(content: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(content, digest_size=8)


def _described(folder: Path) -> tuple[RerankInfo, dict[str, _File]]:
    path = folder / DESCRIPTION
    try:
        content = read_sealed(path)
        check_format(path, content["format_version"], FORMAT_VERSION)
        checksums = content.get("checksums", {})
        files = {
            part: _File(
                part,
                listed_name(name),
                BlockChecksums.from_json(checksums[part]) if part in checksums else None,
            )
            for part, name in content["files"].items()
        }
        if missing := {*_FILES} - {*files}:
            raise ModelDamagedError(
                f"{path}: lists no file for {', '.join(sorted(missing))}",
                _REMEDY,
            )
        return RerankInfo.from_json(content), files
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder}: no reranker; run `labelkin train` first") from error
    except ChecksumError as error:
        raise ModelDamagedError(f"{error}", _REMEDY) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelDamagedError(f"{path}: {error}", _REMEDY) from error
