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
    from scipy.sparse import vstack

    total = 2 * len(rows)
    kind = STEMS()

    def report(done: int) -> None:
        if progress is not None:
            progress("Reading texts", done, total)

    def stems() -> Iterator[list[str]]:
        done = 0
        for batch in _pages(snapshot, rows):
            yield from cache.terms([kind], batch, store=True)["stems"]
            done += len(batch)
            report(done)

    columns, words = TermColumns.counted(stems(), len(rows))
    search = MentionSearch.of(snapshot)
    counts, mentions, done = [], [], len(rows)
    for batch in _pages(snapshot, rows):
        counts.append(columns.counts(cache.terms([kind], batch, store=False)["stems"]))
        mentions.append(search.matches(batch).mentions())
        done += len(batch)
        report(done)
    texts = LabelledTexts(rows, labels, vstack(counts, format="csr"), Mentions.joined(mentions))
    return texts, Terms(columns, words)


def count_wording(
    snapshot: Snapshot, rows: Integers, progress: Progress | None = None
) -> tuple[Terms, csr_matrix[Any]]:
    """All words of the texts of `rows`, and how often each text has them."""
    from scipy.sparse import vstack

    total = 2 * len(rows)

    def report(done: int) -> None:
        if progress is not None:
            progress("Counting words", done, total)

    def words() -> Iterator[list[str]]:
        done = 0
        for batch in _pages(snapshot, rows):
            yield from wording_of(batch)
            done += len(batch)
            report(done)

    columns, listed = TermColumns.counted(words(), len(rows), at_least=3, pairs_at_least=5)
    counts, done = [], len(rows)
    for batch in _pages(snapshot, rows):
        counts.append(columns.counts(wording_of(batch)))
        done += len(batch)
        report(done)
    return Terms(columns, listed), vstack(counts, format="csr")


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


def _pages(snapshot: Snapshot, rows: Integers) -> Iterator[list[Document]]:
    gone = Document("", "", language="en")
    for start in range(0, len(rows), _BATCH):
        page = rows[start : start + _BATCH].tolist()
        texts = snapshot.texts_of(page)
        yield snapshot.prepared([texts.get(row, gone) for row in page])
