"""The labels in one file: gold labels, or the predictions of a tool."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_DECIMAL_COMMA = re.compile(r"[+-]?(?!0*[1-9]\d{0,2},\d{3}$)\d+,\d+")


@dataclass
class LabelFile:
    """Labels with scores by document; scores matter only for the order.

    `names` maps labels to the names that the file gives beside them. If
    `has_ids` is false, `place` makes the documents' keys from their position.
    If the labels are column numbers of a matrix, `width` is its number of
    columns. `repeated` counts repeated documents, of which the last one is kept.
    """

    path: str
    labels: dict[str, dict[str, float]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    has_ids: bool = True
    width: int | None = None
    repeated: int = 0

    def begin(self, document: str) -> None:
        """Start a document without labels; it replaces an earlier one with the same id."""
        self.repeated += document in self.labels
        self.labels[document] = {}

    def add(self, document: str, label: str, score: float, name: str = "") -> None:
        """Add a label to `document`; a repeated label keeps its better score."""
        scores = self.labels.setdefault(document, {})
        scores[label] = max(score, scores.get(label, score))
        if name:
            self.names[label] = name

    def add_ordered(self, document: str, labels: Sequence[str]) -> None:
        """Add a document with its labels, best first."""
        self.begin(document)
        for rank, label in enumerate(labels):
            self.add(document, label, float(len(labels) - rank))

    def all_labels(self) -> Iterator[str]:
        """The labels of all documents, with repeats."""
        return (label for scores in self.labels.values() for label in scores)

    def ranked(self, document: str) -> list[str]:
        """The labels of a document, best first; equal scores stay in file order."""
        scores = self.labels.get(document, {})
        return sorted(scores, key=lambda label: -scores[label])


def place(number: int) -> str:
    """The key of the document at position `number`, for files without ids."""
    return f"#{number}"


def with_point(number: str) -> str:
    """A number with a point for its decimal comma: `0,95`; `1,000` stays, it may be a thousand."""
    text = number.strip()
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text


def number_of(value: object) -> float:
    """Parse a score; ValueError if it is not a finite number."""
    text = with_point(str(value))
    number = float(text)
    if "_" in text or not math.isfinite(number):
        raise ValueError(f"{value} is not a score")
    return number
