"""The cases of a grid: combinations of settings to measure, as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from labelkin.experiments.grid import Cut, Grid, GridMethod, TablePart
from labelkin.neighbours.neighbours import Distance
from labelkin.scoring.votes import Weighting


@dataclass(frozen=True, slots=True)
class Group:
    """Settings of cases that share neighbours and their decoding; no `model` means votes only."""

    size: int
    representation: str
    k: int
    model: str = ""
    weighting: Weighting = "majority"
    distance: Distance = "self"


@dataclass(frozen=True, slots=True)
class Cell:
    """A method and its cut; `share` is the weight of the autoencoder in `mix-ranked`."""

    method: GridMethod
    cut: Cut
    share: float = 0.0

    @property
    def name(self) -> str:
        """A unique name, the key of the cell in records."""
        share = f", share {self.share:g}" if self.method == "mix-ranked" else ""
        return f"{self.method}, {cut_text(self.cut)}{share}"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: one case to measure."""

    table: str
    group: Group
    cell: Cell

    @property
    def block(self) -> tuple[str, int, str, str, str, str, str]:
        """The settings shared by the rows of a block, which differ in k only."""
        group, cell = self.group, self.cell
        share = f"{cell.share:g}" if cell.method == "mix-ranked" else ""
        return (
            self.table,
            group.size,
            group.representation,
            cut_text(cell.cut),
            share,
            group.weighting,
            group.distance,
        )

    @property
    def threshold(self) -> str:
        """The threshold as the paper prints it; empty for a cut by count."""
        return "" if self.cell.cut == "count" else cut_text(self.cell.cut)

    @property
    def weighting(self) -> str:
        """The weighting of the average; empty for plain votes."""
        return "" if self.group.weighting == "majority" else self.group.weighting

    def has(self, wanted: Mapping[str, object]) -> bool:
        """Whether the row has the wanted values of table, threshold, representation and so on."""
        own = ("table", "threshold", "weighting")
        return all(
            getattr(self if name in own else self.group, name) == value
            for name, value in wanted.items()
        )


def cut_text(cut: Cut) -> str:
    """`count`, or a threshold with two digits."""
    return "count" if cut == "count" else f"{cut:.2f}"


def rows_of(grid: Grid) -> list[Row]:
    """All rows of a grid, table by table."""
    return [row for table in grid.tables for size in grid.collection.sizes
            for row in _rows(grid, table, size)]  # fmt: skip


def _rows(grid: Grid, table: TablePart, size: int) -> Iterator[Row]:
    combinations = product(
        table.cuts, table.representations, table.weightings, table.distances, table.shares
    )
    for cut, representation, weighting, distance, share in combinations:
        ks = set(table.ks or grid.ks)
        ks |= {
            one.k
            for one in table.also
            if (one.cut, one.representation, one.weighting) == (cut, representation, weighting)
        }
        for k in sorted(ks):
            group = Group(size, representation, k, table.model, weighting, distance)
            yield Row(table.name, group, Cell(table.method, cut, share))
