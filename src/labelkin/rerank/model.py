"""A trained reranker on disk.

    rerank/
      model.json          features, calibration, what it was trained on, the files beside it
      ranker-….txt        LightGBM's trees
      statistics-….npz    statistics of headings over labelled documents
      terms-….txt         the terms of the statistics, one per line
      NAME-….npz          what the signal NAME has fitted, if it fits anything
      README.md           the model card
      reliability.png     scores against the share that was right

`model.json` is written last and names the other files by their checksums: a
folder holds one complete model, the old one or the new one.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.autoencoder.model import check_format
from labelkin.checksums import ChecksumError, read_sealed, sealed
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
from labelkin.rerank.matrices import from_arrays, to_arrays
from labelkin.rerank.ranker import Ranker, saved_names
from labelkin.rerank.signals import SIGNALS, feature_names
from labelkin.rerank.signals.autoencoder import AUTOENCODER_SIGNALS
from labelkin.rerank.statistics import LabelStatistics
from labelkin.store.models import DESCRIPTION

RERANK_NAME = "rerank"
FORMAT_VERSION = 2
_FILES = ("ranker", "terms", "statistics")
_PART = re.compile(r"\w+-[0-9a-f]{16}\.(txt|npz)")

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
            groups=tuple(content["groups"]),
            calibration=Calibration.from_json(content["calibration"]),
            training=content["training"],
            versions=content["versions"],
            state={name: content["state"][name] for name in ("generation", "token")},
            neighbours=content.get("neighbours", {}),
            encoder=content.get("encoder", {}),
            evaluation=EvaluationSummary.from_json(content.get("evaluation")),
        )


def save_reranker(folder: Path, info: RerankInfo, parts: RerankParts, card: str) -> None:
    """Make this the model of `folder`, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "ranker": (parts.ranker.text.encode("utf-8"), "txt"),
        "terms": ("\n".join(parts.words).encode("utf-8"), "txt"),
        "statistics": (_packed(_statistics_arrays(parts.knowledge)), "npz"),
    }
    for name, fitted in parts.knowledge.fitted.items():
        arrays = SIGNALS[name].to_arrays(fitted)
        if arrays:
            contents[name] = (_packed(arrays), "npz")
    files = {}
    for name, (content, suffix) in contents.items():
        files[name] = f"{_stem(name)}-{_checksum(content).hexdigest()}.{suffix}"
        with atomic_file(folder / files[name]) as file:
            file.write(content)
    with atomic_text(folder / "README.md") as text:
        text.write(card)
    with atomic_text(folder / DESCRIPTION) as text:
        description = {"format_version": FORMAT_VERSION, "files": files, **info.to_json()}
        text.write(sealed(description, indent=1))
    for path in folder.iterdir():
        if _PART.fullmatch(path.name) and path.name not in files.values():
            path.unlink(missing_ok=True)


class RerankModel:
    """A reranker that was read from its folder. Threads may share it; it never changes."""

    folder_name = RERANK_NAME

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info, self._files = _described(folder)
        check_groups(folder, self.info.groups)
        self.checksum = _joined(self._files)
        self.ranker = Ranker(self._text("ranker"))
        self._widened = Memo(2)
        self._used_with: set[str] = set()
        _check_features(folder, self.info, self.ranker.names)
        try:
            self.knowledge = self._read_knowledge()
        except KeyError as error:
            raise _other_version(folder) from error

    @classmethod
    def load(cls, folder: Path) -> RerankModel:
        """Read the model in `folder`."""
        return cls(folder)

    @classmethod
    def checksum_of(cls, folder: Path) -> str:
        """Changes whenever the model in `folder` does."""
        return _joined(_described(folder)[1])

    def close(self) -> None:
        """Nothing to drop: all files were closed once they had been read."""

    def is_new(self, settings: str) -> bool:
        """Whether the model has not been used with these settings of the search before."""
        is_new = settings not in self._used_with
        self._used_with.add(settings)
        return is_new

    def knowledge_for(self, width: int) -> Knowledge:
        """What the model knows, for a vocabulary that may have grown since."""
        return self._widened.get(width, lambda: self.knowledge.widened(width))

    def _read_knowledge(self) -> Knowledge:
        arrays = _unpacked(self._verified("statistics"))
        fitted = {
            name: SIGNALS[name].from_arrays(_unpacked(self._verified(name)))
            for name in self._files
            if name not in _FILES
        }
        return Knowledge(
            from_arrays(LabelStatistics, _part(arrays, "statistics")),
            from_arrays(Headings, _part(arrays, "headings")),
            TermColumns(self._verified("terms").read_bytes(), arrays["idf"]),
            self.info.groups,
            fitted,
        )

    def _text(self, name: str) -> str:
        return self._verified(name).read_text(encoding="utf-8")

    def _verified(self, name: str) -> Path:
        """The path of a file whose content matches the checksum in its name."""
        return _verified(self.folder / self._files[name], name)


def check_files(folder: Path) -> None:
    """Raise ModelDamagedError if a file is missing or, as far as it shows at once, truncated.

    Raises ModelMismatchError if another version has made the trees, with other features. Reads
    hardly anything; `verify_reranker` reads everything.
    """
    info, files = _described(folder)
    for name, file in files.items():
        path = folder / file
        try:
            if path.suffix == ".npz":
                # Its directory is at the end of the file.
                zipfile.ZipFile(path).close()
            elif not path.stat().st_size:
                # A file of no terms is empty rightly.
                _verified(path, name)
        except (OSError, zipfile.BadZipFile) as error:
            reason = getattr(error, "strerror", None) or error
            raise ModelDamagedError(f"{path}: {reason}", "train the reranker again") from error
    if names := saved_names(folder / files["ranker"]):
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
    for name, file in files.items():
        _verified(folder / file, name)


def reranker_info(folder: Path) -> RerankInfo:
    """The description of the model in `folder`, without reading the model."""
    return _described(folder)[0]


def _verified(path: Path, name: str) -> Path:
    try:
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, _checksum).hexdigest()
    except OSError as error:
        raise ModelDamagedError(f"{path}: {error.strerror}", "train the reranker again") from error
    if path.stem != f"{_stem(name)}-{checksum}":
        raise ModelDamagedError(f"{ChecksumError(path)}", "train the reranker again")
    return path


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


def _joined(files: Mapping[str, str]) -> str:
    return " ".join(sorted(files.values()))


def _checksum(content: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(content, digest_size=8)


def _packed(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


def _unpacked(path: Path) -> dict[str, npt.NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ModelDamagedError(f"{path}: {error}", "train the reranker again") from error


def _described(folder: Path) -> tuple[RerankInfo, dict[str, str]]:
    path = folder / DESCRIPTION
    try:
        content = read_sealed(path)
        check_format(path, content["format_version"], FORMAT_VERSION)
        files = {name: str(file) for name, file in content["files"].items()}
        if missing := {*_FILES} - {*files}:
            raise ModelDamagedError(
                f"{path}: lists no file for {', '.join(sorted(missing))}",
                "train the reranker again",
            )
        return RerankInfo.from_json(content), files
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder}: no reranker; run `labelkin train` first") from error
    except ChecksumError as error:
        raise ModelDamagedError(f"{error}", "train the reranker again") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelDamagedError(f"{path}: {error}", "train the reranker again") from error
