"""Removes documents that a corpus has more than once.

Documents are the same if they have the same id (revisions of one record), the
same words, or nearly the same words (see `near_duplicates`). In each group the
preferred document is kept and removes all that are the same as it; the
preferred one of what is left is kept, too, and so on. So nothing is removed
without something being kept that is the same as it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from labelkin.corpus.corpus import Corpus
from labelkin.corpus.document import Document
from labelkin.corpus.near_duplicates import (
    DEFAULT_THRESHOLD,
    Integers,
    NearDuplicates,
    Similarities,
)
from labelkin.corpus.passes import Passes, StepProgress
from labelkin.corpus.revision import is_date, sort_key, year_in
from labelkin.exceptions import InputError

KEEP = ("first", "newest")

# Why a document was removed.
SAME_ID, SAME_TEXT, NEAR = "same id", "same text", "similar"


@dataclass(frozen=True)
class DedupeReport:
    """Counts of what was removed, and why.

    `groups` are the kept documents for which others were removed, `largest` the
    most documents that one stands for; in `across_files` groups a document of
    another file was removed.
    """

    read: int
    kept: int
    same_id: int
    same_text: int
    similar: int
    groups: int
    largest: int
    across_files: int

    @property
    def removed(self) -> int:
        """The number of documents that were removed."""
        return self.read - self.kept

    def to_json(self) -> dict[str, Any]:
        """The counts as a JSON object."""
        return {
            "read": self.read,
            "kept": self.kept,
            "removed": self.removed,
            "removed_same_id": self.same_id,
            "removed_same_text": self.same_text,
            "removed_similar": self.similar,
            "groups": self.groups,
            "largest_group": self.largest,
            "groups_across_files": self.across_files,
        }


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A document of a group; `reason` says why it was removed, and is empty for the one kept."""

    group: int
    reason: str
    similarity: float
    file_name: str
    id: str
    title: str


class Duplicates:
    """What `find_duplicates` found: the documents to keep, and the groups."""

    def __init__(self, passes: Passes, kept_by: Integers, similarity: Similarities) -> None:
        self._passes = passes
        self._kept_by = kept_by
        self._similarity = similarity
        rows = np.arange(len(kept_by))
        self._is_kept = kept_by == rows
        keys = passes.keys
        self._same_id = ~self._is_kept & (keys == keys[kept_by])
        # The similarity of texts with the same words is above 1: see `_leaders`.
        self._same_text = ~self._is_kept & ~self._same_id & (similarity > 1)
        sizes = np.bincount(kept_by, minlength=len(rows))
        files = np.frombuffer(passes.files, dtype=np.int32)
        crossing = kept_by[files != files[kept_by]]
        self._sizes = sizes
        self.report = DedupeReport(
            read=len(rows),
            kept=int(self._is_kept.sum()),
            same_id=int(self._same_id.sum()),
            same_text=int(self._same_text.sum()),
            similar=int((~self._is_kept & ~self._same_id & ~self._same_text).sum()),
            groups=int((sizes > 1).sum()),
            largest=int(sizes.max()),
            across_files=len(np.unique(crossing)),
        )

    def documents(self, *, merge_labels: bool = False) -> Iterator[Document]:
        """The kept documents in the order of the input.

        With `merge_labels`, each also has the labels of those removed for it.
        """
        added = self._removed_labels() if merge_labels else {}
        for row, document in self._passes.again("Writing"):
            if self._is_kept[row]:
                yield _merged(document, added[row]) if row in added else document

    def members(self) -> Iterator[GroupMember]:
        """The documents of all groups in the order of the input; groups are numbered from 1."""
        numbers = np.cumsum(self._sizes > 1)
        for row, document in self._passes.again("Listing"):
            leader = self._kept_by[row]
            if self._sizes[leader] > 1:
                yield GroupMember(
                    int(numbers[leader]),
                    self._reason(row),
                    min(float(self._similarity[row]), 1.0),
                    self._passes.file_names[self._passes.files[row]],
                    document.id,
                    document.title or document.text,
                )

    def _reason(self, row: int) -> str:
        if self._is_kept[row]:
            return ""
        if self._same_id[row]:
            return SAME_ID
        return SAME_TEXT if self._same_text[row] else NEAR

    def _removed_labels(self) -> dict[int, list[Document]]:
        """The removed documents by the row that is kept for them, without their texts."""
        removed: dict[int, list[Document]] = {}
        for row, document in self._passes.again("Reading labels"):
            if not self._is_kept[row]:
                bare = Document(
                    document.id,
                    labels=document.labels,
                    label_names=document.label_names,
                    major_labels=document.major_labels,
                )
                removed.setdefault(int(self._kept_by[row]), []).append(bare)
        return removed


class _Date(NamedTuple):
    """What tells how old a document is."""

    revision: str | None
    year: int | None

    @classmethod
    def of(cls, document: Document) -> _Date:
        """The revision and year of a document."""
        return cls(document.revision, year_in(document.metadata.get("year")))

    @property
    def is_date(self) -> bool:
        """Whether the revision is a date and no number."""
        return self.revision is not None and is_date(self.revision)

    def age(self, *, among_dates: bool) -> tuple[int, tuple[int, ...]]:
        """What orders documents, those with a year only before those with a revision.

        `among_dates` if one of those to be ordered has a date.
        """
        if self.revision is not None:
            kind, numbers = sort_key(self.revision, among_dates=among_dates)
            return kind + 2, numbers
        return (1, (self.year,)) if self.year else (0, ())


def find_duplicates(
    corpus: Corpus,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    keep: str = "first",
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Duplicates:
    """Read a corpus of files and find the documents that it has more than once.

    `threshold` is the least similarity of texts that count as the same; 1 asks
    for the same words in the same order. `keep` is `first` or `newest`: the
    latest revision or year, and of those without, or with the same, the last one.
    """
    if keep not in KEEP:
        raise InputError(f"cannot keep {keep!r}; known: {', '.join(KEEP)}")
    passes = Passes(corpus, progress)
    passes.check_files()
    dates: list[_Date] = []
    with NearDuplicates(threshold, seed=seed) as near:
        for document in passes.first("Reading"):
            near.add(document.text)
            if keep == "newest":
                dates.append(_Date.of(document))
        groups = passes.joined_by_id(near.groups(passes.within("Comparing")))
        preference = np.arange(len(passes))
        if keep == "newest":
            by_group = list(zip(groups.tolist(), dates, strict=True))
            dated = {group for group, date in by_group if date.is_date}
            ages = [date.age(among_dates=group in dated) for group, date in by_group]
            by_age = sorted(range(len(ages)), key=lambda row: (ages[row], row))
            preference[by_age[::-1]] = np.arange(len(passes))
        kept_by, similarity = _leaders(passes, near, groups, preference)
    return Duplicates(passes, kept_by, similarity)


def _leaders(
    passes: Passes, near: NearDuplicates, groups: Integers, preference: Integers
) -> tuple[Integers, Similarities]:
    """The row that is kept for each row, and the similarity of the two texts.

    The similarity is 2 for the same words in the same order, which 1 does not
    guarantee: shingles do not count repeats.
    """
    kept_by = np.arange(len(passes))
    similarity = np.full(len(passes), 2.0)
    keys, texts = passes.keys, near.text_numbers()
    waiting = np.flatnonzero(np.bincount(groups, minlength=len(passes))[groups] > 1)
    waiting = waiting[np.lexsort((preference[waiting], groups[waiting]))]
    while len(waiting):
        _, first, group = np.unique(groups[waiting], return_index=True, return_inverse=True)
        leaders = waiting[first][group]
        is_same_text = texts[waiting] == texts[leaders]
        alike = np.full(len(waiting), 2.0)
        alike[~is_same_text] = near.similarities(
            texts[waiting[~is_same_text]], texts[leaders[~is_same_text]]
        )
        is_same: npt.NDArray[np.bool_] = is_same_text | (keys[waiting] == keys[leaders])
        if near.threshold < 1:
            is_same |= alike >= near.threshold
        kept_by[waiting[is_same]] = leaders[is_same]
        similarity[waiting[is_same]] = alike[is_same]
        waiting = waiting[~is_same]
    return kept_by, similarity


def _merged(document: Document, removed: list[Document]) -> Document:
    """The document with its own labels and then those of others."""
    every = [document, *removed]
    labels = dict.fromkeys(label for one in every for label in one.labels)
    major = {label for one in every for label in one.major_labels}
    names = {label: name for one in reversed(every) for label, name in one.label_names.items()}
    return replace(
        document,
        labels=tuple(labels),
        label_names=names,
        major_labels=tuple(label for label in labels if label in major),
    )
