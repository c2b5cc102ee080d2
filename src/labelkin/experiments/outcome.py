"""The results of a grid: rows with our measures and the paper's, and the best rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from labelkin.exceptions import ConfigError
from labelkin.experiments.cases import Row, cut_text
from labelkin.experiments.grid import ClaimPart, Grid
from labelkin.experiments.plan import Plan
from labelkin.experiments.published import paper_key, published
from labelkin.experiments.runner import missing

Values = dict[str, float]
Value = Callable[["Line"], float | None]


@dataclass(frozen=True, eq=False)
class Line:
    """A row of a table with our values by split, the paper's, and the fingerprint of our record."""

    row: Row
    values: dict[str, Values]
    record: str
    paper: Values = field(default_factory=dict)

    @property
    def settings(self) -> str:
        """The settings of the row as text, without the defaults."""
        group, cell = self.row.group, self.row.cell
        parts = [f"k = {group.k}"]
        if group.model:
            parts.append(group.weighting)
        if group.distance != "self":
            parts.append(f"distance by {group.distance}")
        if cell.method == "mix-ranked":
            parts.append(f"share {cell.share:g}")
        if cell.method != "knn" or cell.cut != "count":
            parts.append(f"cut at {cut_text(cell.cut)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Outcome:
    """All rows of a grid in order, the details of the best rows, and the tested claims."""

    grid: Grid
    lines: tuple[Line, ...]
    details: dict[tuple[str, str, int], dict[str, Any]]
    claims: tuple[tuple[ClaimPart, dict[str, Any]], ...] = ()

    def of(self, table: str, **wanted: object) -> list[Line]:
        """The rows of a table with the wanted representation, size and so on."""
        return [line for line in self.lines if line.row.has({"table": table, **wanted})]

    def best(self, lines: Iterable[Line]) -> Line:
        """The chosen row: the best on `choose_on` by `choose_by`; the first of equal ones."""
        grid = self.grid
        return max(lines, key=lambda line: line.values[grid.choose_on][grid.choose_by])

    def choices(self, table: str) -> list[Line]:
        """The chosen row of each representation and size."""
        keys = dict.fromkeys(
            (line.row.group.representation, line.row.group.size) for line in self.of(table)
        )
        return [self.best(self.of(table, representation=name, size=size)) for name, size in keys]

    def stand_in(self, line: Line) -> str:
        """How the row's representation differs from the paper's; empty if it does not."""
        parts = self.grid.representations
        own = parts[line.row.group.representation]
        notes = [own.stand_in, *(parts[name].stand_in for name in own.fuses)]
        return "; ".join(note for note in notes if note)

    def named(self, line: Line) -> str:
        """The representation of a row, with an asterisk for a stand-in."""
        return line.row.group.representation + ("*" if self.stand_in(line) else "")

    def details_of(self, line: Line) -> dict[str, Any]:
        """The interval, test and bands of a chosen row."""
        group = line.row.group
        return self.details[line.row.table, group.representation, group.size]


def gather(plan: Plan) -> Outcome:
    """Collect the results of a plan; raises ConfigError if some are missing."""
    todo, _ = missing(plan)
    if todo:
        raise ConfigError(
            f"{len(todo)} of {len(plan.stages)} stages of the grid {plan.grid.name!r} are missing "
            f"in {plan.work}; run `labelkin experiment run` first"
        )
    lines = []
    cells = {stage: stage.record()["cells"] for stage in map(plan.measures, _groups(plan.rows))}
    for row in plan.rows:
        stage = plan.measures(row.group)
        key = paper_key(row, plan.grid.table(row.table))
        paper = published().get(key, {}) if key else {}
        lines.append(Line(row, cells[stage][row.cell.name], stage.fingerprint, paper))
    details = {key: stage.record() for key, stage in plan.details.items()}
    claims = zip(plan.grid.claims, (stage.record() for stage in plan.claims), strict=True)
    return Outcome(plan.grid, tuple(lines), details, tuple(claims))


def best_of_blocks(lines: Iterable[Line], value: Value) -> set[Row]:
    """The rows with the best value of their block, which the paper prints in bold."""
    highest: dict[tuple[object, ...], float] = {}
    known = [(line.row, number) for line in lines if (number := value(line)) is not None]
    for row, number in known:
        highest[row.block] = max(number, highest.get(row.block, number))
    return {row for row, number in known if number == highest[row.block]}


def _groups(rows: Sequence[Row]) -> list[Any]:
    return list(dict.fromkeys(row.group for row in rows))
