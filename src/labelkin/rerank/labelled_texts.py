"""The labelled documents of a collection as matrices: labels, terms, and the headings they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.represent.cache import TermCache
from labelkin.represent.counted_texts import Progress, Terms, TextPages, count_terms
from labelkin.represent.term_columns import STEMS
from labelkin.rerank.pairs import Integers
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.policy import LabelPolicy
from labelkin.store.label_sets import LabelSets
from labelkin.store.snapshot import Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Labelled documents as matrices, a line per row in `rows`."""

    rows: Integers
    labels: csr_matrix[Any]
    counts: csr_matrix[Any]
    mentions: Mentions

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Integers) -> LabelledTexts:
        """Some of the documents."""
        return LabelledTexts(
            self.rows[places], self.labels[places], self.counts[places], self.mentions.taken(places)
        )


def read_labelled_texts(
    snapshot: Snapshot,
    cache: TermCache,
    rows: Integers,
    labels: csr_matrix[Any],
    progress: Progress | None = None,
) -> tuple[LabelledTexts, Terms]:
    """The texts of `rows`, whose labels are given, and the terms that they are counted by."""
    pages = TextPages(snapshot, rows, 3, "Reading texts", progress)
    terms, counts = count_terms(pages, lambda batch: cache.terms([STEMS()], batch)["stems"])
    search = MentionSearch.of(snapshot)
    mentions = Mentions.joined([search.matches(batch).mentions() for batch in pages])
    return LabelledTexts(rows, labels, counts, mentions), terms


def label_matrix(
    label_sets: LabelSets, rows: Integers, width: int, policy: LabelPolicy | None
) -> csr_matrix[Any]:
    """The labels of `rows`, deprecated ones as those that replaced them."""
    from scipy.sparse import csr_matrix

    starts, columns = label_sets.gather(rows)
    lines = np.repeat(np.arange(len(rows)), np.diff(starts))
    if policy is not None:
        lines, columns = policy.apply(lines, columns)
    ones = np.ones(len(columns), dtype=np.float32)
    matrix: csr_matrix[Any] = csr_matrix((ones, (lines, columns)), shape=(len(rows), width))
    return matrix
