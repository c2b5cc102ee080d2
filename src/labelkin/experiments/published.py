"""The figures of the paper's five tables (data/paper.csv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from labelkin.experiments.cases import Row
from labelkin.experiments.grid import TablePart

COLUMNS = ("table", "method", "representation", "threshold", "weighting", "k")
MEASURES = ("MiF", "MiP", "MiR", "P@5", "P@10", "nDCG@5", "nDCG@10")

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PredictedLabels:
    """The average number of labels per document of a method of the paper (section 4.2.2)."""

    table: str
    representation: str
    threshold: str
    labels: float


PREDICTED_LABELS = (
    PredictedLabels("basic", "all", "", 13.34),
    PredictedLabels("basic", "dense", "", 13.13),
    PredictedLabels("medium", "all", "0.50", 10.44),
    PredictedLabels("medium", "dense", "0.50", 10.61),
    PredictedLabels("medium", "all", "0.75", 8.65),
    PredictedLabels("medium", "dense", "0.75", 8.69),
)


@cache
def published() -> dict[Key, dict[str, float]]:
    """The seven measures of each of the 223 rows, by the values of `COLUMNS`."""
    text = files("labelkin.experiments").joinpath("data", "paper.csv").read_text(encoding="utf-8")
    return {
        tuple(line[column] for column in COLUMNS): {
            measure: float(line[measure]) for measure in MEASURES
        }
        for line in csv.DictReader(text.splitlines())
    }


def paper_key(row: Row, table: TablePart) -> Key | None:
    """The key of the paper's row to compare ours with; None if the paper has no such table."""
    if not table.paper:
        return None
    group = row.group
    return (
        table.paper,
        row.cell.method,
        group.representation,
        row.threshold,
        row.weighting,
        str(group.k),
    )


def best_published(measure: str = "MiF", **wanted: str) -> dict[str, float]:
    """The measures of the paper's best row by `measure`, of those with the wanted values."""
    places = {COLUMNS.index(column): value for column, value in wanted.items()}
    rows = (
        values
        for key, values in published().items()
        if all(key[place] == value for place, value in places.items())
    )
    return max(rows, key=lambda values: values[measure])
