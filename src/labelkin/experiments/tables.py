"""The full tables of a report: every row, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Iterator

from labelkin.experiments.document import Cell, Comparison, Heading, Paragraph, Part, Table
from labelkin.experiments.grid import TablePart
from labelkin.experiments.measurement import PREDICTED
from labelkin.experiments.outcome import Line, Outcome, best_of_blocks


def full_tables(outcome: Outcome, split: str, level: int = 2) -> Iterator[Part]:
    """Every row of every table on one split."""
    for table in outcome.grid.tables:
        yield Heading(f"{table.title} ({table.name}), {split}", level)
        if table.note:
            yield Paragraph(table.note)
        yield _full_table(outcome, table, split)


def _full_table(outcome: Outcome, table: TablePart, split: str) -> Table:
    lines, measures = outcome.of(table.name), outcome.grid.measures
    columns = _columns(table, outcome)
    ours = {m: best_of_blocks(lines, lambda line, m=m: line.values[split][m]) for m in measures}  # type: ignore[misc]
    theirs = {m: best_of_blocks(lines, lambda line, m=m: line.paper.get(m)) for m in measures}  # type: ignore[misc]
    rows: list[list[Cell]] = []
    blocks: set[int] = set()
    last: object = None
    for line in lines:
        if line.row.block != last:
            blocks.add(len(rows))
        last = line.row.block
        row: list[Cell] = [_column(name, line, outcome) for name in columns]
        row += [
            Comparison(
                line.values[split][m],
                line.paper.get(m),
                line.row in ours[m],
                line.row in theirs[m],
            )
            for m in measures
        ]
        row.append(f"{line.values[split][PREDICTED]:.2f}")
        rows.append(row)
    header = [*columns, *measures, "headings"]
    return Table(header, rows, numbers=len(columns) - 1, blocks=frozenset(blocks))


def _columns(table: TablePart, outcome: Outcome) -> list[str]:
    names = ["representation"]
    if len(outcome.grid.collection.sizes) > 1:
        names.insert(0, "documents")
    if table.method == "mix-ranked":
        names.append("share")
    if table.method != "knn":
        names += ["cut", "weighting"]
    return [*names, "k"]


def _column(name: str, line: Line, outcome: Outcome) -> str:
    row = line.row
    return {
        "documents": f"{row.group.size:,}" if row.group.size else "all",
        "representation": outcome.named(line),
        "share": f"{row.cell.share:g}",
        "cut": row.threshold or "count",
        "weighting": row.weighting,
        "k": str(row.group.k),
    }[name]
