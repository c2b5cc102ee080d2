"""The reports of adding and removing documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class AddReport:
    """The outcome of one `add`, label occurrences included."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    without_labels: int = 0
    cut: list[str] = field(default_factory=list)
    labels_resolved: int = 0
    new_concepts: int = 0
    unresolved: Counter[str] = field(default_factory=Counter)
    ambiguous: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def documents(self) -> int:
        """Documents that were stored or are unchanged."""
        return self.added + self.replaced + self.unchanged

    def merge(self, batch: AddReport) -> None:
        """Add the counts of one committed batch."""
        self.added += batch.added
        self.replaced += batch.replaced
        self.unchanged += batch.unchanged
        self.removed += batch.removed
        self.without_labels += batch.without_labels
        self.labels_resolved += batch.labels_resolved
        self.new_concepts += batch.new_concepts
        self.unresolved.update(batch.unresolved)
        self.ambiguous.update(batch.ambiguous)


@dataclass(frozen=True, slots=True)
class RemoveReport:
    """The outcome of one `remove`."""

    removed: int
    missing: tuple[str, ...]
