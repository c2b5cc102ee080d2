"""Label sets as a file gives them: gold ones, or what some tool predicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass
class LabelFile:
    """Labels by document; scores only order them.

    `names` has what the file calls a label beside its id. Documents without ids
    (`has_ids`) are numbered from 1 and known by their place. Where the labels
    are the numbers of a matrix's columns, `width` says how many there are.
    """

    path: str
    labels: dict[str, dict[str, float]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    has_ids: bool = True
    width: int | None = None

    def add(self, document: str, label: str, score: float, name: str = "") -> None:
        """Give `document` a label; of a label that comes twice the better score counts."""
        scores = self.labels.setdefault(document, {})
        scores[label] = max(score, scores.get(label, score))
        if name:
            self.names[label] = name

    def add_ordered(self, document: str, labels: Sequence[str]) -> None:
        """Give `document` its labels, best first."""
        self.labels[document] = {
            label: float(len(labels) - rank) for rank, label in enumerate(labels)
        }

    def all_labels(self) -> Iterator[str]:
        """Every label, as often as it occurs."""
        return (label for scores in self.labels.values() for label in scores)

    def ranked(self, document: str) -> list[str]:
        """The labels of a document, equal scores in file order."""
        scores = self.labels.get(document, {})
        return sorted(scores, key=lambda label: -scores[label])
