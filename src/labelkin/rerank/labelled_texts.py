"""The labelled documents of a collection as matrices: labels, terms, and the headings they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.represent.cache import TermCache
from labelkin.rerank.pairs import Integers
from labelkin.rerank.term_columns import STEMS, TermColumns, wording_of
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.policy import LabelPolicy
from labelkin.store.label_sets import LabelSets
from labelkin.store.snapshot import Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BATCH = 1000

Progress = Callable[[str, int, int], None]


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


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms that are frequent enough, as columns and as text."""

    columns: TermColumns
    words: list[str]


def read_labelled_texts(
    snapshot: Snapshot,
    cache: TermCache,
    rows: Integers,
    labels: csr_matrix[Any],
    progress: Progress | None = None,
) -> tuple[LabelledTexts, Terms]:
    """The texts of `rows`, whose labels are given, and the terms that they are counted by."""
    pages = _Pages(snapshot, rows, 3, "Reading texts", progress)
    terms, counts = _counted(pages, lambda batch: cache.terms([STEMS()], batch)["stems"])
    search = MentionSearch.of(snapshot)
    mentions = Mentions.joined([search.matches(batch).mentions() for batch in pages])
    return LabelledTexts(rows, labels, counts, mentions), terms


def count_wording(
    snapshot: Snapshot, rows: Integers, progress: Progress | None = None
) -> tuple[Terms, csr_matrix[Any]]:
    """All words of the texts of `rows`, and how often each text has them."""
    pages = _Pages(snapshot, rows, 2, "Counting words", progress)
    return _counted(pages, wording_of, at_least=3, pairs_at_least=5)


def _counted(
    pages: _Pages, words_of: Callable[[list[Document]], list[list[str]]], **least: int
) -> tuple[Terms, csr_matrix[Any]]:
    """The terms that are frequent enough, and how often each text has them: two passes."""
    from scipy.sparse import vstack

    all_words = (words for batch in pages for words in words_of(batch))
    columns, terms = TermColumns.counted(all_words, len(pages.rows), **least)
    counts = vstack([columns.counts(words_of(batch)) for batch in pages], format="csr")
    return Terms(columns, terms), counts


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


@dataclass
class _Pages:
    """The texts of `rows`, some at a time, in several passes that report their progress."""

    snapshot: Snapshot
    rows: Integers
    passes: int
    stage: str
    progress: Progress | None
    done: int = 0

    def __iter__(self) -> Iterator[list[Document]]:
        gone = Document("", "", language="en")
        for start in range(0, len(self.rows), _BATCH):
            page = self.rows[start : start + _BATCH].tolist()
            texts = self.snapshot.texts_of(page)
            yield self.snapshot.prepared([texts.get(row, gone) for row in page])
            self.done += len(page)
            if self.progress is not None:
                self.progress(self.stage, self.done, self.passes * len(self.rows))
