"""What the items of one batch come to: one change for each id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from labelkin.corpus.document import CorpusItem, Correction, Deletion, Document
from labelkin.corpus.revision import is_newer, is_older, revision_after
from labelkin.corpus.text import is_valid_id
from labelkin.exceptions import InputError
from labelkin.store.reports import AddReport


class Stored(NamedTuple):
    """What a batch has to know of a stored document; `has_body`: it has more than a title.

    `labels` are its columns as stored, `text` is the checksum of its text.
    """

    row: int
    checksum: bytes
    language: str | None
    revision: str | None
    has_body: bool
    has_labels: bool
    labels: bytes
    text: int | None
    unresolved: str | None
    heading_order: bytes | None

    def has_labels_of(self, values: Sequence[Any]) -> bool:
        """Whether its labels are those of LABEL_COLUMNS, the unresolved ones and the order too."""
        return tuple(values) == (self.labels, self.unresolved, self.heading_order)


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to the document with one id.

    `corrections` counts those that `item` includes. `superseded` counts earlier
    ones of the stored document, which a later document or deletion replaces.
    """

    item: CorpusItem
    corrections: int = 0
    superseded: int = 0

    def then(self, item: CorpusItem, report: AddReport) -> Change:
        """This change and a later item with the same id."""
        if isinstance(item, Correction):
            corrected = item.applied_to(self.item) if isinstance(self.item, Document) else item
            return replace(self, item=corrected, corrections=self.corrections + 1)
        if isinstance(self.item, Correction):
            return Change(item, superseded=self.superseded + self.corrections)
        if isinstance(self.item, Document):
            for _ in range(1 + self.corrections):
                report.add_duplicate(item.id)
        return Change(item, superseded=self.superseded)


def changes_by_id(
    items: Iterable[CorpusItem],
    stored: Mapping[str, Stored],
    report: AddReport,
    *,
    deleted: dict[str, str] | None = None,
    take_older: bool = False,
) -> dict[str, Change]:
    """The change of each id. The last record of an id counts, and it gives the id its place.

    `stored` has the ids of all of the items that are stored, `deleted` the revisions of those
    that a source has withdrawn; this is brought up to date. A correction applies
    to the document that precedes it. Duplicates, older records, and corrections
    without a document or without labels, are counted in `report`.
    """
    changes: dict[str, Change] = {}
    for item in _admitted(items, stored, report, {} if deleted is None else deleted, take_older):
        earlier = changes.pop(item.id, None)
        changes[item.id] = (
            Change(item, corrections=int(isinstance(item, Correction)))
            if earlier is None
            else earlier.then(item, report)
        )
    return changes


def _admitted(
    items: Iterable[CorpusItem],
    stored: Mapping[str, Stored],
    report: AddReport,
    deleted: dict[str, str],
    take_older: bool,
) -> Iterator[CorpusItem]:
    """The items that can be stored, with the revision that their document has afterwards.

    An item without a revision, or with a coarser one, keeps that of the document it
    changes. A document that lacks the body of the one it would replace is a correction.
    One that was deleted comes back only with a newer revision, or without any.
    """
    revisions = {identifier: one.revision for identifier, one in stored.items()}
    with_body = {identifier for identifier, one in stored.items() if one.has_body}
    for item in items:
        if isinstance(item, Deletion):
            if revision := revisions.pop(item.id, None):
                deleted[item.id] = revision
            with_body.discard(item.id)
            if is_valid_id(item.id):
                yield item
            continue
        if isinstance(item, Document) and not is_valid_id(item.id):
            raise InputError(_invalid_id(item))
        if isinstance(item, Correction) and item.id not in revisions:
            report.add_missing(item)
            continue
        known = revisions.get(item.id)
        if known is not None and not take_older and is_older(item.revision, known):
            report.add_stale(item, known)
            continue
        gone = deleted.get(item.id)
        if not take_older and not is_newer(item.revision, gone):
            report.add_deleted(item, gone)
            continue
        deleted.pop(item.id, None)
        if isinstance(item, Document) and item.id in revisions:
            if "labels" in item.lacks:
                report.add_unlabelled(item)
                continue
            if "body" in item.lacks and item.id in with_body:
                report.texts_kept += 1
                item = Correction.of(item)
        if isinstance(item, Document):
            (with_body.add if item.body or item.fields else with_body.discard)(item.id)
        revision = (take_older and item.revision) or revision_after(known, item.revision)
        revisions[item.id] = revision
        yield item if item.revision == revision else replace(item, revision=revision)


def _invalid_id(document: Document) -> str:
    if not document.id.strip():
        return "a document without an id cannot be stored"
    return f"the id {document.id!r} has a line break, tab or other control character"
