"""The reports of adding and removing documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_LISTED = 10


@dataclass
class AddReport:
    """The outcome of one `add`, label occurrences included.

    Each document is one of added, replaced, unchanged or duplicate: one that a
    later record of the same `add` replaced. `duplicate_ids` are some of these.
    Each correction is one of corrected, unchanged, duplicate or missing: one of
    a document that is not stored, with some of their ids in `missing_ids`.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    duplicates: int = 0
    duplicate_ids: list[str] = field(default_factory=list)
    corrected: int = 0
    missing: int = 0
    missing_ids: list[str] = field(default_factory=list)
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
        """All documents that were given or corrected, duplicates included."""
        return self.added + self.replaced + self.unchanged + self.duplicates + self.corrected

    def add_duplicate(self, identifier: str) -> None:
        """Count a document that another with the same id replaces."""
        self.duplicates += 1
        if len(self.duplicate_ids) < _LISTED and identifier not in self.duplicate_ids:
            self.duplicate_ids.append(identifier)

    def add_missing(self, identifier: str) -> None:
        """Count a correction of a document that is not stored."""
        self.missing += 1
        if len(self.missing_ids) < _LISTED and identifier not in self.missing_ids:
            self.missing_ids.append(identifier)

    def merge(self, batch: AddReport) -> None:
        """Add the counts of one committed batch."""
        self.added += batch.added
        self.replaced += batch.replaced
        self.unchanged += batch.unchanged
        self.duplicates += batch.duplicates
        self.duplicate_ids = _first(self.duplicate_ids, batch.duplicate_ids)
        self.corrected += batch.corrected
        self.missing += batch.missing
        self.missing_ids = _first(self.missing_ids, batch.missing_ids)
        self.removed += batch.removed
        self.without_labels += batch.without_labels
        self.labels_resolved += batch.labels_resolved
        self.new_concepts += batch.new_concepts
        self.unresolved.update(batch.unresolved)
        self.ambiguous.update(batch.ambiguous)


def _first(ids: list[str], more: list[str]) -> list[str]:
    return list(dict.fromkeys((*ids, *more)))[:_LISTED]


@dataclass(frozen=True, slots=True)
class RemoveReport:
    """The outcome of one `remove`."""

    removed: int
    missing: tuple[str, ...]
