"""The parts of a report page, and their Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 3."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of plain text; `code` in backquotes."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A figure by its file name without the suffix; `description` becomes the alternative text."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Our value beside the paper's; either may be the best of its block, printed in bold."""

    ours: float
    paper: float | None = None
    ours_best: bool = False
    paper_best: bool = False
    digits: int = 4

    @property
    def difference(self) -> str:
        """Ours minus the paper's, with a sign."""
        if self.paper is None:
            return ""
        return f"{self.ours - self.paper:+.{self.digits}f}".replace("-", "−")


Cell = str | Comparison


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header.

    Columns from `numbers` on are right-aligned. `blocks` are the rows above which
    HTML draws a line.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: int = 1
    blocks: frozenset[int] = frozenset()


Part = Heading | Paragraph | Image | Table


def markdown(parts: Iterable[Part]) -> str:
    """Render the parts as one Markdown page."""
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
