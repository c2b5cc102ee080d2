"""Reports in Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from labelkin.experiments.document import Cell, Heading, Image, Paragraph, Part, Table


def markdown(parts: Iterable[Part]) -> str:
    """The parts as one Markdown text."""
    return "\n".join(_part(part) for part in parts)


def _part(part: Part) -> str:
    if isinstance(part, Heading):
        return f"{'#' * part.level} {part.text}\n"
    if isinstance(part, Paragraph):
        return f"{part.text}\n"
    if isinstance(part, Image):
        return f"![{part.description}](figures/{part.name}.png)\n"
    return _table(part)


def _table(table: Table) -> str:
    rules = ["---" if n < table.numbers else "--:" for n in range(len(table.header))]
    lines = [table.header, rules, *([_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell.replace("|", "\\|")
    ours = _bold(f"{cell.ours:.{cell.digits}f}", cell.ours_best)
    if cell.paper is None:
        return ours
    paper = _bold(f"{cell.paper:.{cell.digits}f}", cell.paper_best)
    return f"{paper} / {ours} ({cell.difference})"


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text
