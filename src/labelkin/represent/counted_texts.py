"""The texts of a collection's rows, read some at a time, and the terms that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.represent.term_columns import TermColumns, wording_of
from labelkin.store.snapshot import Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BATCH = 1000

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms that are frequent enough, as columns and as text."""

    columns: TermColumns
    words: list[str]


@dataclass
class TextPages:
    """The texts of `rows`, some at a time, in several passes that report their progress."""

    snapshot: Snapshot
    rows: npt.NDArray[np.int64]
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


def count_terms(
    pages: TextPages, words_of: Callable[[list[Document]], list[list[str]]], **least: Any
) -> tuple[Terms, csr_matrix[Any]]:
    """The terms that are frequent enough, and how often each text has them: two passes."""
    from scipy.sparse import vstack

    all_words = (words for batch in pages for words in words_of(batch))
    columns, terms = TermColumns.counted(all_words, len(pages.rows), **least)
    counts = vstack([columns.counts(words_of(batch)) for batch in pages], format="csr")
    return Terms(columns, terms), counts


def count_wording(
    snapshot: Snapshot, rows: npt.NDArray[np.int64], progress: Progress | None = None
) -> tuple[Terms, csr_matrix[Any]]:
    """All words of the texts of `rows` and pairs of them, and how often each text has them."""
    pages = TextPages(snapshot, rows, 2, "Counting words", progress)
    return count_terms(pages, wording_of, at_least=3, pairs_at_least=5)


def count_known(
    snapshot: Snapshot,
    rows: npt.NDArray[np.int64],
    terms: Terms,
    progress: Progress | None = None,
) -> csr_matrix[Any]:
    """How often each text of `rows` has the words of some terms."""
    from scipy.sparse import vstack

    pages = TextPages(snapshot, rows, 1, "Counting words", progress)
    counts: csr_matrix[Any] = vstack(
        [terms.columns.counts(wording_of(batch)) for batch in pages], format="csr"
    )
    return counts


def count_words(
    snapshot: Snapshot,
    rows: npt.NDArray[np.int64],
    most: int,
    progress: Progress | None = None,
) -> tuple[Terms, csr_matrix[Any]]:
    """As `count_wording`, with few pairs; at most so many terms, the most frequent ones."""
    pages = TextPages(snapshot, rows, 2, "Counting words", progress)
    return count_terms(pages, wording_of, at_least=3, pairs_at_least=30, most=most)
