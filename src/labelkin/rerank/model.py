"""A trained reranker on disk.

    rerank/
      model.json          features, calibration, what it was learned from, the files beside it
      ranker-….txt        LightGBM's trees
      statistics-….npz    what labelled documents tell of headings
      terms-….txt         the terms that these are about, one a line
      linear-….npz        the linear scorer, where there is one
      README.md           the model card
      reliability.png     scores against the share that was right

`model.json` is written last and names the other files by their digests: a
folder holds one whole model, the old one or the new one.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.autoencoder.model import check_format
from labelkin.exceptions import (
    ModelDamagedError,
    ModelMismatchError,
    ModelNotFoundError,
)
from labelkin.rerank.calibration import Calibration
from labelkin.rerank.features import feature_names
from labelkin.rerank.headings import Headings
from labelkin.rerank.linear import LinearScorer
from labelkin.rerank.matrices import from_arrays, to_arrays
from labelkin.rerank.ranker import Ranker
from labelkin.rerank.statistics import LabelStatistics
from labelkin.rerank.term_columns import TermColumns

RERANK_NAME = "rerank"
FORMAT_VERSION = 1
DESCRIPTION = "model.json"
_FILES = ("ranker", "terms", "statistics")

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class RerankParts:
    """Everything that a reranker is made of."""

    ranker: Ranker
    terms: TermColumns
    statistics: LabelStatistics
    headings: Headings
    linear: LinearScorer | None


@dataclass(frozen=True)
class RerankInfo:
    """What `model.json` says."""

    groups: tuple[str, ...]
    calibration: Calibration
    training: Mapping[str, Any]
    versions: Mapping[str, str]
    state: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "groups": list(self.groups),
            "training": dict(self.training),
            "versions": dict(self.versions),
            "state": dict(self.state),
            "calibration": self.calibration.to_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> RerankInfo:
        """What `to_json` gave."""
        return cls(
            groups=tuple(content["groups"]),
            calibration=Calibration.from_json(content["calibration"]),
            training=content["training"],
            versions=content["versions"],
            state={name: content["state"][name] for name in ("generation", "token")},
        )


def save_reranker(folder: Path, info: RerankInfo, parts: RerankParts, card: str) -> None:
    """Make this the model of `folder`, in one step."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        "ranker": (parts.ranker.text.encode("utf-8"), "txt"),
        "terms": ("\n".join(parts.terms.terms).encode("utf-8"), "txt"),
        "statistics": (_packed(_statistics_arrays(parts)), "npz"),
    }
    if parts.linear is not None:
        contents["linear"] = (_packed(parts.linear.arrays()), "npz")
    files = {}
    for name, (content, suffix) in contents.items():
        digest = _digest(content).hexdigest()
        files[name] = f"{name}-{digest}.{suffix}"
        with atomic_file(folder / files[name]) as file:
            file.write(content)
    with atomic_text(folder / "README.md") as text:
        text.write(card)
    with atomic_text(folder / DESCRIPTION) as text:
        json.dump(
            {"format_version": FORMAT_VERSION, "files": files, **info.to_json()},
            text,
            ensure_ascii=False,
            indent=1,
        )
    for path in folder.iterdir():
        is_ours = path.name.partition("-")[0] in ("ranker", "terms", "statistics", "linear")
        if is_ours and path.name not in files.values():
            path.unlink(missing_ok=True)


def reranker_digest(folder: Path) -> str:
    """Changes whenever the model in `folder` does."""
    _, files = _described(folder)
    return " ".join(sorted(files.values()))


def reranker_info(folder: Path) -> RerankInfo:
    """What is said of the model in `folder`, without reading it."""
    return _described(folder)[0]


class RerankModel:
    """A reranker that was read from its folder; parts are read when they are needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info, self._files = _described(folder)
        self._arrays = _unpacked(self._whole("statistics"))

    @cached_property
    def ranker(self) -> Ranker:
        """The trees."""
        ranker = Ranker(self._text("ranker"))
        if ranker.names != feature_names(self.info.groups):
            raise ModelMismatchError(
                f"{self.folder}: made by another version of labelkin, with other features; "
                "train the reranker again"
            )
        return ranker

    @cached_property
    def terms(self) -> TermColumns:
        """The terms that the statistics are about."""
        text = self._text("terms")
        return TermColumns(text.split("\n") if text else [], self._arrays["idf"])

    @cached_property
    def statistics(self) -> LabelStatistics:
        """What labelled documents tell of headings."""
        return from_arrays(LabelStatistics, self._part("statistics"))

    @cached_property
    def headings(self) -> Headings:
        """What the vocabulary tells of headings."""
        return from_arrays(Headings, self._part("headings"))

    @cached_property
    def linear(self) -> LinearScorer | None:
        """The linear scorer, where there is one."""
        if "linear" not in self._files:
            return None
        return LinearScorer.from_arrays(_unpacked(self._whole("linear")))

    def _part(self, name: str) -> dict[str, npt.NDArray[Any]]:
        prefix = f"{name}/"
        return {
            key.removeprefix(prefix): value
            for key, value in self._arrays.items()
            if key.startswith(prefix)
        }

    def _text(self, name: str) -> str:
        return self._whole(name).read_text(encoding="utf-8")

    def _whole(self, name: str) -> Path:
        """A file whose content is what its name says."""
        path = self.folder / self._files[name]
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, _digest).hexdigest()
        except OSError as error:
            raise ModelDamagedError(
                f"{path}: {error.strerror}; train the reranker again"
            ) from error
        if path.stem != f"{name}-{digest}":
            raise ModelDamagedError(f"{path}: its content has changed; train the reranker again")
        return path


def _statistics_arrays(parts: RerankParts) -> dict[str, npt.NDArray[Any]]:
    arrays = {f"statistics/{key}": value for key, value in to_arrays(parts.statistics).items()}
    arrays |= {f"headings/{key}": value for key, value in to_arrays(parts.headings).items()}
    arrays["idf"] = parts.terms.idf
    return arrays


def _digest(content: bytes = b"") -> hashlib.blake2b:
    return hashlib.blake2b(content, digest_size=8)


def _packed(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    return buffer.getvalue()


def _unpacked(path: Path) -> dict[str, npt.NDArray[Any]]:
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ModelDamagedError(f"{path}: {error}; train the reranker again") from error


def _described(folder: Path) -> tuple[RerankInfo, dict[str, str]]:
    path = folder / DESCRIPTION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        check_format(path, content["format_version"], FORMAT_VERSION)
        files = {name: str(file) for name, file in content["files"].items()}
        if missing := {*_FILES} - {*files}:
            raise ModelDamagedError(
                f"{path}: names no file of {', '.join(sorted(missing))}; train the reranker again"
            )
        return RerankInfo.from_json(content), files
    except FileNotFoundError as error:
        raise ModelNotFoundError(f"{folder}: no reranker; run `labelkin train` first") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelDamagedError(f"{path}: {error}; train the reranker again") from error
