"""A prepared data set as files, which every peer reads in its own environment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .label_sets import LabelSets

# Throughput is measured by two runs that differ in these records alone.
MANY, FEW = "many", "few"


@dataclass(frozen=True)
class DataFolder:
    """Texts, ids and label sets of the parts of a data set.

    | file | content |
    |---|---|
    | `labels.txt` | the label of each column, a line each |
    | `PART.txt` | a text per line |
    | `PART.jsonl` | the same records as labelkin reads them; labels in `train` only |
    | `PART.ids` | their ids |
    | `PART.labels.npz` | their label sets |
    | `counts-PART.npy` | how many labels their neighbours have |
    | `features-NAME/` | features of all parts (see `features`) |
    | `data.json` | what the folder was made of; written last |
    """

    path: Path

    @property
    def name(self) -> str:
        """The data set's name."""
        return str(self.description["name"])

    @cached_property
    def description(self) -> dict[str, Any]:
        """What the folder was made of."""
        content: dict[str, Any] = json.loads((self.path / "data.json").read_text())
        return content

    @property
    def language(self) -> str:
        """The language of the texts."""
        return str(self.description["language"])

    @property
    def timed(self) -> str:
        """The part whose records throughput is measured on."""
        return str(self.description["settings"]["timed"])

    @property
    def is_sample(self) -> bool:
        """Whether it is a small part, for trial."""
        return self.description["settings"]["sample"] is not None

    @property
    def sizes(self) -> dict[str, int]:
        """The number of records of each part."""
        sizes: dict[str, int] = self.description["sizes"]
        return sizes

    @cached_property
    def labels(self) -> list[str]:
        """The label of each column."""
        return self._lines("labels.txt")

    def texts(self, part: str) -> list[str]:
        """The texts of a part."""
        return self._lines(f"{part}.txt")

    def ids(self, part: str) -> list[str]:
        """The ids of a part's records."""
        return self._lines(f"{part}.ids")

    def label_sets(self, part: str) -> LabelSets:
        """The label sets of a part."""
        return LabelSets.load(self.path / f"{part}.labels.npz")

    def file(self, part: str, ending: str) -> Path:
        """The file of a part with an ending such as `txt`."""
        return self.path / f"{part}.{ending}"

    def features(self, name: str) -> Path:
        """The folder of a set of features."""
        return self.path / f"features-{name}"

    def _lines(self, name: str) -> list[str]:
        # Texts may hold other characters that `splitlines` takes for the end of a line.
        return (self.path / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")
