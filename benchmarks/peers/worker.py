"""Runs a feature peer in its own environment: trains, predicts, evaluates.

Nothing is imported that the environment of the peer does not have.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .data_folder import DataFolder
from .features import Vectoriser, fit_features, write_rows
from .label_sets import LabelSets
from .peer import FeaturePeer
from .registry import PEERS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Columns of the labels that have training records, in the order of the model's.
_COLUMNS = "columns.npy"


def main() -> None:
    """Run one step of a peer, or make features."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("fit-features", "write-rows"):
        command = verbs.add_parser(verb)
        command.add_argument("data", type=Path)
        command.add_argument("name")
    for verb in ("train", "predict", "evaluate"):
        command = verbs.add_parser(verb)
        command.add_argument("peer")
        command.add_argument("system")
        command.add_argument("data", type=Path)
        command.add_argument("model", type=Path)
        command.add_argument("--threads", type=int, default=1)
        if verb != "train":
            command.add_argument("--part", required=True)
            command.add_argument("--output", type=Path, required=True)
        if verb == "predict":
            command.add_argument("--ready", action="store_true")
        if verb == "evaluate":
            command.add_argument("--ranking", type=Path, required=True)
    given = parser.parse_args()
    data = DataFolder(given.data)
    if given.verb == "fit-features":
        fit_features(data, given.name)
    elif given.verb == "write-rows":
        write_rows(data, given.name)
    else:
        peer = PEERS[given.peer]
        assert isinstance(peer, FeaturePeer)
        {"train": train, "predict": predict, "evaluate": evaluate}[given.verb](peer, data, given)


def train(peer: FeaturePeer, data: DataFolder, given: argparse.Namespace) -> None:
    """Fit a model to the records that have features and labels."""
    settings = peer.variants[given.system]
    rows = _ready(data, settings["features"], "train")
    sets = data.label_sets("train")
    columns, compact = np.unique(sets.columns, return_inverse=True)
    labels = LabelSets(sets.starts, compact.astype(np.int32), sets.scores).matrix(len(columns))
    used = np.flatnonzero((np.diff(rows.indptr) > 0) & (np.diff(labels.indptr) > 0))
    shutil.rmtree(given.model, ignore_errors=True)
    given.model.mkdir(parents=True)
    np.save(given.model / _COLUMNS, columns.astype(np.int32))
    peer.fit(settings, rows[used], labels[used], given.model, given.threads)


def predict(peer: FeaturePeer, data: DataFolder, given: argparse.Namespace) -> None:
    """Rank labels for a part, from its texts or from ready features."""
    settings = peer.variants[given.system]
    name = settings["features"]
    if given.ready:
        rows = _ready(data, name, given.part)
    else:
        rows = Vectoriser.load(data.features(name), name, data.language).rows(
            data.texts(given.part)
        )
    ranking = peer.rank(settings, given.model, rows, given.threads)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    ranking.renumbered(np.load(given.model / _COLUMNS)).save(given.output)


def evaluate(peer: FeaturePeer, data: DataFolder, given: argparse.Namespace) -> None:
    """Write what the peer's own measures say of its ranking."""
    gold, ranking = data.label_sets(given.part), LabelSets.load(given.ranking)
    measures = peer.evaluate(gold, ranking, len(data.labels))
    given.output.write_text(json.dumps(measures))


def _ready(data: DataFolder, name: str, part: str) -> csr_matrix[Any]:
    from scipy.sparse import csr_matrix, load_npz

    return csr_matrix(load_npz(data.features(name) / f"{part}.npz"))


if __name__ == "__main__":
    main()
