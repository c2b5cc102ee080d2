"""What a grid has yielded: rows with their measures, beside the paper's, and the best of them."""

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
    """A row of a table with our values by split, the paper's, and the record of ours."""

    row: Row
    values: dict[str, Values]
    record: str
    paper: Values = field(default_factory=dict)

    @property
    def settings(self) -> str:
        """What was chosen, in words."""
        group, cell = self.row.group, self.row.cell
        said = [f"k = {group.k}"]
        if group.model:
            said.append(group.weighting)
        if group.distance != "self":
            said.append(f"distance by {group.distance}")
        if cell.method == "mix-ranked":
            said.append(f"share {cell.share:g}")
        if cell.method != "knn" or cell.cut != "count":
            said.append(f"cut at {cut_text(cell.cut)}")
        return ", ".join(said)


@dataclass(frozen=True)
class Outcome:
    """All rows of a grid, in order, and the details of the best ones."""

    grid: Grid
    lines: tuple[Line, ...]
    details: dict[tuple[str, str, int], dict[str, Any]]
    claims: tuple[tuple[ClaimPart, dict[str, Any]], ...] = ()

    def of(self, table: str, **wanted: object) -> list[Line]:
        """The rows of a table, or those of them with the wanted representation, size and so on."""
        return [line for line in self.lines if line.row.has({"table": table, **wanted})]

    def best(self, lines: Iterable[Line]) -> Line:
        """The row that is chosen: the best on the split for choices; of equal ones the first."""
        grid = self.grid
        return max(lines, key=lambda line: line.values[grid.choose_on][grid.choose_by])

    def choices(self, table: str) -> list[Line]:
        """The chosen row of each representation and size."""
        keys = dict.fromkeys(
            (line.row.group.representation, line.row.group.size) for line in self.of(table)
        )
        return [self.best(self.of(table, representation=name, size=size)) for name, size in keys]

    def stand_in(self, line: Line) -> str:
        """What a row's neighbours are found with that is not what the paper had, if so."""
        parts = self.grid.representations
        own = parts[line.row.group.representation]
        notes = [own.stand_in, *(parts[name].stand_in for name in own.fuses)]
        return "; ".join(note for note in notes if note)

    def named(self, line: Line) -> str:
        """The representation of a row, with a star for a stand-in."""
        return line.row.group.representation + ("*" if self.stand_in(line) else "")

    def details_of(self, line: Line) -> dict[str, Any]:
        """What is known of a chosen row besides its measures."""
        group = line.row.group
        return self.details[line.row.table, group.representation, group.size]


def gather(plan: Plan) -> Outcome:
    """The results of a plan; an error while some are missing."""
    todo, _ = missing(plan)
    if todo:
        raise ConfigError(
            f"{len(todo)} of {len(plan.stages)} stages of the grid {plan.grid.name!r} are not done "
            f"in {plan.work}; use `labelkin experiment run`"
        )
    lines = []
    notes = {stage: stage.note()["cells"] for stage in map(plan.measures, _groups(plan.rows))}
    for row in plan.rows:
        stage = plan.measures(row.group)
        key = paper_key(row, plan.grid.table(row.table))
        paper = published().get(key, {}) if key else {}
        lines.append(Line(row, notes[stage][row.cell.name], stage.fingerprint, paper))
    details = {key: stage.note() for key, stage in plan.details.items()}
    claims = zip(plan.grid.claims, (stage.note() for stage in plan.claims), strict=True)
    return Outcome(plan.grid, tuple(lines), details, tuple(claims))


def best_of_blocks(lines: Iterable[Line], value: Value) -> set[Row]:
    """The rows that have the best value of their block, as the paper prints in bold."""
    highest: dict[tuple[object, ...], float] = {}
    valued = [(line, found) for line in lines if (found := value(line)) is not None]
    for line, found in valued:
        block = line.row.block
        highest[block] = max(found, highest.get(block, found))
    return {line.row for line, found in valued if found == highest[line.row.block]}


def _groups(rows: Sequence[Row]) -> list[Any]:
    return list(dict.fromkeys(row.group for row in rows))
