"""The reports of adding and removing documents, and of changing the vocabulary."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from labelkin.corpus.document import Correction, Document

_LISTED = 10
_LISTED_RECORDS = 1000


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that was not stored: why, and where it was read."""

    id: str
    problem: str
    where: str = ""


@dataclass
class AddReport:
    """The outcome of one `add`, label occurrences included.

    Each document is one of added, replaced, unchanged, stale (older than the
    stored one, or no newer than one that its source has deleted) or duplicate:
    one that a later record of the same `add` replaced. `duplicate_ids` are some of
    these. Each correction is one of corrected,
    unchanged, stale, duplicate or missing: one of a document that is not stored,
    with some of their ids in `missing_ids`. `unlabelled` counts the records that
    were to correct a stored document but have no labels. `left_out` lists the
    first thousand records that are stale, missing or unlabelled. `texts_kept`
    counts the corrections with a title alone, of documents that have more.
    `cleared` counts the documents that were left without headings.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    duplicates: int = 0
    duplicate_ids: list[str] = field(default_factory=list)
    corrected: int = 0
    cleared: int = 0
    cleared_ids: list[str] = field(default_factory=list)
    missing: int = 0
    missing_ids: list[str] = field(default_factory=list)
    stale: int = 0
    unlabelled: int = 0
    texts_kept: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
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
        """All documents that were given or corrected, also those that were left out."""
        taken = self.added + self.replaced + self.unchanged + self.corrected
        return taken + self.duplicates + self.stale + self.unlabelled

    def add_duplicate(self, identifier: str) -> None:
        """Count a document that another with the same id replaces."""
        self.duplicates += 1
        self.duplicate_ids = _first(self.duplicate_ids, [identifier])

    def add_cleared(self, identifier: str) -> None:
        """Count a document that is left without headings."""
        self.cleared += 1
        self.cleared_ids = _first(self.cleared_ids, [identifier])

    def add_missing(self, correction: Correction) -> None:
        """Count a correction of a document that is not stored."""
        self.missing += 1
        self.missing_ids = _first(self.missing_ids, [correction.id])
        self._leave_out(correction, "not in the collection")

    def add_stale(self, item: Document | Correction, stored: str) -> None:
        """Count a record that is older than the stored one, whose revision is given."""
        self.stale += 1
        self._leave_out(item, f"revision {item.revision}, older than {stored} in the collection")

    def add_deleted(self, item: Document | Correction, deleted: str | None) -> None:
        """Count a record that is no newer than one that its source has deleted since."""
        self.stale += 1
        self._leave_out(
            item, f"revision {item.revision}, no newer than {deleted}, which its source has deleted"
        )

    def add_unlabelled(self, document: Document) -> None:
        """Count a record without labels that was to correct a stored document."""
        self.unlabelled += 1
        self._leave_out(document, 'no labels; "labels": [] removes all headings')

    def _leave_out(self, item: Document | Correction, problem: str) -> None:
        if len(self.left_out) < _LISTED_RECORDS:
            self.left_out.append(LeftOut(item.id, problem, item.where))

    def merge(self, batch: AddReport) -> None:
        """Add the counts of one committed batch."""
        self.added += batch.added
        self.replaced += batch.replaced
        self.unchanged += batch.unchanged
        self.duplicates += batch.duplicates
        self.duplicate_ids = _first(self.duplicate_ids, batch.duplicate_ids)
        self.corrected += batch.corrected
        self.cleared += batch.cleared
        self.cleared_ids = _first(self.cleared_ids, batch.cleared_ids)
        self.missing += batch.missing
        self.missing_ids = _first(self.missing_ids, batch.missing_ids)
        self.stale += batch.stale
        self.unlabelled += batch.unlabelled
        self.texts_kept += batch.texts_kept
        self.left_out = [*self.left_out, *batch.left_out][:_LISTED_RECORDS]
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


@dataclass(frozen=True, slots=True)
class WithdrawnHeading:
    """A heading that can no longer be suggested, and the documents that carry it.

    `successors` are the headings that it was split into. `count` documents carry it;
    `documents` has the ids of those, of the first hundred if there are more.
    """

    id: str
    name: str
    successors: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    count: int = 0


@dataclass
class EditionReport:
    """What an update of the vocabulary has changed, or would change.

    `headings` are those that can be suggested, `changes` counts the differences between the
    editions. `documents` have other labels: `followed` counts them by the heading that
    another one has replaced, `resolved` by labels that the edition before lacked;
    `unresolved` labels are unknown in the edition. `reindexed` documents have the same headings
    under other names. `withdrawn_documents` carry headings that can no longer be
    suggested. `new_to_models` counts for each trained model the new headings that
    it does not know.
    """

    headings: int
    changes: dict[str, int]
    is_changed: bool = False
    documents: int = 0
    reindexed: int = 0
    followed: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    unresolved: Counter[str] = field(default_factory=Counter)
    withdrawn: list[WithdrawnHeading] = field(default_factory=list)
    withdrawn_documents: int = 0
    new_headings: list[str] = field(default_factory=list)
    new_to_models: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """The report for programs."""
        # Before Python 3.12, asdict breaks counters.
        counters = {
            "followed": dict(self.followed),
            "resolved": dict(self.resolved),
            "unresolved": dict(self.unresolved),
        }
        plain = replace(self, followed=Counter(), resolved=Counter(), unresolved=Counter())
        return {**asdict(plain), **counters}
