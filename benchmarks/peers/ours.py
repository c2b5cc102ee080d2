"""labelkin's own methods through its command line.

A trained collection may be given; without one, `labelkin train` makes it with its defaults.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .data_folder import DataFolder
from .datasets import DATA_SETS, SHARED
from .label_sets import LabelSets
from .meter import Command
from .peer import ROOT, TOP, Peer, Place, System, our_python

COLLECTION = "collection"
# The models that each method reads.
METHODS = {
    "knn": (),
    "lexical": (),
    "label-ae": ("label-ae",),
    "mix-ranked": ("label-ae",),
    "rerank": ("label-ae", "rerank"),
}


class Ours(Peer):
    """Methods of one collection, each with its first labels and no cut."""

    name = "ours"
    note = (
        "All methods share one collection, and one `labelkin train` is the training time of all: "
        "knn and lexical need nothing of it but the index. The database, with the texts of the "
        "training records and the vocabulary, is not part of the size."
    )

    def systems(self, data: DataFolder) -> Sequence[System]:  # noqa: ARG002
        """A system per method."""
        return [
            System(f"labelkin-{method}", {"method": method}, (COLLECTION,)) for method in METHODS
        ]

    def train(self, place: Place, training: str) -> Sequence[Command]:
        """Make and train a collection, unless one was given."""
        if place.collection is not None:
            return ()
        data_set, folder = DATA_SETS[place.data.name], place.model(training)
        folder.parent.mkdir(parents=True, exist_ok=True)
        vocabulary = SHARED / data_set.vocabulary
        unknown = "--keep-unknown" if data_set.keeps_unknown else "--report-unknown"
        return [
            _labelkin("init", folder, "--vocab", vocabulary, "--language", data_set.language),
            _labelkin("add", folder, place.data.file("train", "jsonl"), unknown),
            _labelkin("train", folder),
        ]

    def predict(
        self, place: Place, system: System, part: str, *, ready: bool = False
    ) -> Command | None:
        """`labelkin annotate` with a limit, which replaces the method's own cut."""
        if ready:
            return None
        folder = place.output(system.name, part)
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--method", system.settings["method"], "--limit", str(TOP)]
        options += ["--output", str(folder / "results.jsonl")]
        return _labelkin("annotate", _folder(place), place.data.file(part, "jsonl"), *options)

    def read(self, place: Place, system: System, part: str) -> LabelSets:
        """The annotations, by id."""
        columns = {label: column for column, label in enumerate(place.data.labels)}
        records = {}
        path = place.output(system.name, part) / "results.jsonl"
        with path.open(encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                records[record["id"]] = record["suggestions"]
        ranked = [records[identifier] for identifier in place.data.ids(part)]
        return LabelSets.from_lists(
            [[columns[label["id"]] for label in one] for one in ranked],
            [[label["score"] for label in one] for one in ranked],
        )

    def model_files(self, place: Place, system: System) -> Sequence[Path]:
        """Its models, the index and label sets if it has neighbours, and names if it reads them."""
        folder, method = _folder(place), system.settings["method"]
        names = [f"models/{name}" for name in METHODS[method]]
        if method != "lexical":
            names += ["indexes", "labels"]
        if method in ("lexical", "rerank"):
            names.append("cache/names.npz")
        return [folder / name for name in names]


def _folder(place: Place) -> Path:
    return place.collection or place.model(COLLECTION)


def _labelkin(*arguments: str | Path) -> Command:
    variables = {"PYTHONPATH": str(ROOT / "src")}
    return Command([our_python(), "-m", "labelkin", *arguments], variables)
