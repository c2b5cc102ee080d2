"""Label sets as a file gives them: gold ones, or what some tool predicted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class LabelFile:
    """Labels by document; scores only order them.

    `names` has what the file calls a label beside its id. Documents without ids
    (`has_ids`) are known by their place; `place` numbers them. Where the labels
    are the numbers of a matrix's columns, `width` says how many there are.
    `repeated` counts documents that came again; the last counts.
    """

    path: str
    labels: dict[str, dict[str, float]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    has_ids: bool = True
    width: int | None = None
    repeated: int = 0

    def begin(self, document: str) -> None:
        """A document whose labels follow; what was known of one with the same id is dropped."""
        self.repeated += document in self.labels
        self.labels[document] = {}

    def add(self, document: str, label: str, score: float, name: str = "") -> None:
        """Give `document` a label; of a label that comes twice the better score counts."""
        scores = self.labels.setdefault(document, {})
        scores[label] = max(score, scores.get(label, score))
        if name:
            self.names[label] = name

    def add_ordered(self, document: str, labels: Sequence[str]) -> None:
        """A document with its labels, best first."""
        self.begin(document)
        for rank, label in enumerate(labels):
            self.add(document, label, float(len(labels) - rank))

    def all_labels(self) -> Iterator[str]:
        """Every label, as often as it occurs."""
        return (label for scores in self.labels.values() for label in scores)

    def ranked(self, document: str) -> list[str]:
        """The labels of a document, equal scores in file order."""
        scores = self.labels.get(document, {})
        return sorted(scores, key=lambda label: -scores[label])


def place(number: int) -> str:
    """What stands for the id of a document that has none."""
    return f"#{number}"


def number_of(value: object) -> float:
    """A score; ValueError for what is no finite number."""
    text = str(value)
    number = float(text)
    if "_" in text or not math.isfinite(number):
        raise ValueError(f"{value} is no score")
    return number
