"""What is fuzzed: each target reads bytes as one kind of file, completely.

A target returns, or raises an error of labelkin's own; anything else is a
finding. `checked` holds one run to the rest of the promise: one line, in time,
and nothing written outside of the folder that it was given.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.checksums import sealed
from labelkin.corpus import read_corpus
from labelkin.corpus.writers import to_record
from labelkin.exceptions import LabelkinError

from . import seeds

# A target that takes longer for 200,000 bytes would take minutes for a small file.
LONGEST_SECONDS = 10.0

Run = Callable[[bytes, Path], None]


@dataclass(frozen=True)
class Target:
    """A kind of input: what reads it, and valid ones to start from."""

    name: str
    run: Run
    seeds: Sequence[bytes] = field(repr=False)


class FindingError(AssertionError):
    """An input that breaks a promise although no other error was raised."""


_written: list[str] | None = None
_allowed: tuple[str, ...] = ()


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook: record files that are opened for writing, or removed, elsewhere."""
    if _written is None or event not in ("open", "os.remove", "os.rename", "os.mkdir"):
        return
    name = arguments[0]
    if not isinstance(name, str | bytes | os.PathLike):
        return
    if event == "open":
        flags = arguments[2] if len(arguments) > 2 else 0
        mode = arguments[1] or ""
        if not (flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) or set(mode) & set("wax+")):
            return
    elif not Path(os.fsdecode(name)).is_absolute() and arguments[-1] != -1:
        # Relative to an open folder, as shutil.rmtree names files.
        return
    path = os.path.realpath(os.fsdecode(name))
    if not path.startswith(_allowed):
        _written.append(f"{event} {path}")


@contextmanager
def writes_watched(folder: Path) -> Iterator[None]:
    """Raise FindingError if something outside of `folder` is written within the block."""
    global _written, _allowed
    if not getattr(writes_watched, "installed", False):
        sys.addaudithook(_watch)
        writes_watched.installed = True  # type: ignore[attr-defined]
    (folder / "temporary").mkdir(exist_ok=True)
    before, tempfile.tempdir = tempfile.tempdir, str(folder / "temporary")
    _allowed = (os.path.realpath(folder), "/dev/", "/proc/")
    _written = []
    try:
        yield
        if _written:
            raise FindingError(f"written outside of the folder: {_written[:3]}")
    finally:
        _written, tempfile.tempdir = None, before


def checked(target: Target, data: bytes, folder: Path) -> str:
    """Run a target on an input; returns `read` or the name of labelkin's error."""
    logging.getLogger("labelkin").setLevel(logging.CRITICAL + 1)
    started = time.process_time()
    outcome = "read"
    # Weights that are no numbers are no finding.
    with writes_watched(folder), np.errstate(all="ignore"):
        try:
            target.run(data, folder)
        except LabelkinError as error:
            outcome = type(error).__name__
            if len(str(error).splitlines()) != 1:
                raise FindingError(f"not one line: {str(error)!r}") from error
    seconds = time.process_time() - started
    if seconds > LONGEST_SECONDS:
        raise FindingError(f"took {seconds:.1f} s for {len(data)} bytes")
    return outcome


def _corpus(name: str, format: str | None = None) -> Run:
    def run(data: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(data)
        for document in read_corpus(path, format=format, force=format is not None).documents():
            json.dumps(to_record(document), allow_nan=False).encode()

    return run


def _vocabulary(name: str) -> Run:
    from labelkin.vocab import read_vocabulary

    def run(data: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(data)
        vocabulary = read_vocabulary(path, force=True)
        for concept in vocabulary:
            vocabulary.paths(concept.id)

    return run


def _label_file(name: str) -> Run:
    from labelkin.evaluate.files import read_label_file

    def run(data: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(data)
        read_label_file(path)

    return run


def _config(data: bytes, folder: Path) -> None:
    from labelkin.store.config import read_config

    path = folder / "labelkin.toml"
    path.write_bytes(data)
    read_config(path)


def _neighbours(data: bytes, folder: Path) -> None:
    from labelkin.neighbours.neighbours import Neighbours

    path = folder / "neighbours.npz"
    path.write_bytes(data)
    Neighbours.load(path)


def readers() -> dict[str, Target]:
    """The targets that need no collection."""
    from labelkin.store.config import Config, to_toml

    corpora = [
        Target(f"corpus-{name}", _corpus(f"c{seeds.EXTENSIONS[name]}", name), files)
        for name, files in seeds.CORPORA.items()
    ]
    every = [file for files in seeds.CORPORA.values() for file in files]
    detected = [
        Target(f"detected{extension}", _corpus(f"c{extension}"), every)
        for extension in ("", ".json", ".jsonl", ".csv", ".tsv", ".xml", ".txt")
    ]
    vocabularies = [
        Target(f"vocabulary-{name}", _vocabulary(name), files)
        for name, files in seeds.VOCABULARIES.items()
    ]
    labels = [
        Target(f"labels-{name}", _label_file(name), files)
        for name, files in seeds.LABEL_FILES.items()
    ]
    others = [
        Target("config", _config, [seeds.CONFIG, to_toml(Config()).encode()]),
        Target("neighbours", _neighbours, [seeds.neighbour_set()]),
        Target("labels-matrix.npz", _label_file("matrix.npz"), [seeds.matrix_file()]),
    ]
    return {one.name: one for one in (*corpora, *detected, *vocabularies, *labels, *others)}


def _copied(model: Path, folder: Path) -> Path:
    copy = folder / "model"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(model, copy)
    return copy


def _used(kind: str, folder: Path) -> None:
    """Load a model and look at everything in it."""
    if kind == "rerank":
        from labelkin.rerank.model import RerankModel, check_files

        check_files(folder)
        reranker = RerankModel.load(folder)
        reranker.knowledge_for(len(reranker.info.to_json()))
        reranker.close()
        return
    from labelkin.autoencoder.model import LabelModel

    model = LabelModel.load(folder)
    model.tensors()
    model.close()


def models(collection: Path) -> dict[str, Target]:
    """The targets that read the model folders of a collection, with checksums made to fit."""
    targets = []
    for model in sorted((collection / "models").iterdir()):
        if (model / "model.json").is_file():
            description = json.loads((model / "model.json").read_bytes())
            targets += [_description(model), *_model_files(model, description)]
    return {one.name: one for one in targets}


def _description(model: Path) -> Target:
    def run(data: bytes, folder: Path) -> None:
        copy = _copied(model, folder)
        (copy / "model.json").write_bytes(_resealed(data))
        _used(model.name, copy)

    return Target(f"model-{model.name}.json", run, [(model / "model.json").read_bytes()])


def _resealed(data: bytes) -> bytes:
    """A description with a checksum of its own, as an attacker would write it."""
    try:
        content = json.loads(data)
        content.pop("checksum", None)
        return sealed(content).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError, AttributeError, RecursionError):
        return data


def _model_files(model: Path, description: Mapping[str, Any]) -> Iterator[Target]:
    if "weights" in description:
        names = {"weights": description["weights"]}
    else:
        names = dict(description["files"])

    def runner(part: str, name: str) -> Run:
        def run(data: bytes, folder: Path) -> None:
            copy = _copied(model, folder)
            digest = hashlib.blake2b(data, digest_size=8).hexdigest()
            fitting = f"{Path(name).stem.rpartition('-')[0]}-{digest}{Path(name).suffix}"
            (copy / name).unlink()
            (copy / fitting).write_bytes(data)
            content = json.loads((copy / "model.json").read_bytes())
            content.pop("checksum", None)
            if part == "weights":
                content.pop("checksums", None)
                content["weights"] = fitting
            else:
                content.get("checksums", {}).pop(part, None)
                content["files"][part] = fitting
            (copy / "model.json").write_text(sealed(content), encoding="utf-8")
            _used(model.name, copy)

        return run

    for part, name in names.items():
        content = (model / name).read_bytes()
        if len(content) < 2_000_000:
            yield Target(f"model-{model.name}-{part}", runner(part, name), [content])
