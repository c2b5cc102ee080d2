"""Writes the report of a grid: Markdown, CSV, HTML, figures and provenance."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from labelkin.atomic import atomic_text
from labelkin.experiments import content
from labelkin.experiments.document import Heading, Paragraph, Part, markdown
from labelkin.experiments.figures import draw_figures
from labelkin.experiments.html_report import html
from labelkin.experiments.measurement import PREDICTED
from labelkin.experiments.outcome import Line, Outcome, gather
from labelkin.experiments.plan import Plan
from labelkin.experiments.provenance import provenance
from labelkin.experiments.published import COLUMNS, MEASURES, best_published
from labelkin.experiments.tables import full_tables


def write_report(plan: Plan, folder: Path, command: str) -> None:
    """Write the report into `folder`; other files in it stay unchanged."""
    outcome = gather(plan)
    facts = provenance(plan, command)
    sizes = {
        size: int(stage.record().get("documents", size)) for size, stage in plan.collections.items()
    }
    drawn = draw_figures(outcome, sizes, folder / "figures")
    papers = _papers(outcome)
    grid = outcome.grid
    begin: list[Part] = [
        *content.opening(outcome, facts),
        *content.figures(drawn),
        *content.claims(outcome),
        *content.choices(outcome),
        *content.fusions(facts),
        *content.scaling(outcome, papers, sizes),
        *content.training(facts),
        *content.labels_given(outcome),
        *content.bands(outcome),
    ]
    links = ", ".join(f"[{split}](tables-{split}.md)" for split in grid.report_on)
    further = Paragraph(f"All rows: {links}, and all splits in [results.csv](results.csv).")
    _write(folder / "report.md", markdown([*begin, Heading("All tables"), further]))
    for split in grid.report_on:
        parts = [_head(outcome, split), _how_to_read(), *full_tables(outcome, split)]
        _write(folder / f"tables-{split}.md", markdown(parts))
    whole: list[Part] = [*begin]
    for split in grid.report_on:
        whole += [Heading(f"All tables, {split}"), _how_to_read()]
        whole += full_tables(outcome, split, level=3)
    _write(folder / "report.html", html(whole, grid.title))
    _write_csv(outcome, folder / "results.csv")
    _write(folder / "provenance.json", json.dumps(facts, ensure_ascii=False, indent=1) + "\n")


def _head(outcome: Outcome, split: str) -> Heading:
    return Heading(f"{outcome.grid.title}: all tables, {split}", 1)


def _how_to_read() -> Paragraph:
    return Paragraph(
        "Rows that the paper has: its figure / ours (difference). Bold marks the best of a block "
        "in each column."
    )


def _papers(outcome: Outcome) -> dict[str, float]:
    """The paper's best value for each line of the scaling figure."""
    scaling, measure = outcome.grid.scaling, outcome.grid.choose_by
    if scaling is None:
        return {}
    return {
        table: best_published(measure, **wanted)[measure]
        for table, wanted in scaling.tables.items()
    }


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_text(path) as file:
        file.write(text)


def _write_csv(outcome: Outcome, path: Path) -> None:
    """The paper's columns with the paper's figures, then ours for each split."""
    grid = outcome.grid
    ours = [f"{split} {m}" for split in grid.splits for m in [*grid.measures, PREDICTED]]
    others = ["documents", "model", "distance", "cut", "share", "stand-in", "record"]
    with atomic_text(path) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*COLUMNS, *MEASURES, *ours, *others])
        table.writerows(_record(line, outcome) for line in outcome.lines)


def _record(line: Line, outcome: Outcome) -> list[Any]:
    row, grid = line.row, outcome.grid
    group, cell = row.group, row.cell
    measures = [*grid.measures, PREDICTED]
    return [
        row.table,
        cell.method,
        group.representation,
        row.threshold,
        row.weighting,
        group.k,
        *(line.paper.get(measure, "") for measure in MEASURES),
        *(f"{line.values[split][measure]:.4f}" for split in grid.splits for measure in measures),
        group.size or "all",
        group.model,
        group.distance if group.model else "",
        cell.cut,
        f"{cell.share:g}" if cell.method == "mix-ranked" else "",
        outcome.stand_in(line),
        line.record,
    ]
