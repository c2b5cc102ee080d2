"""A report as a list of parts, which Markdown and HTML are made of."""

from __future__ import annotations

from collections.abc import Sequence
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
    """A figure by its file name, without the ending, and what it shows."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The paper's figure, ours and the difference; each may be the best of its block."""

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
    """Rows under a header; columns from `numbers` on hold numbers. A line begins each block."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numbers: int = 1
    blocks: frozenset[int] = frozenset()


Part = Heading | Paragraph | Image | Table
