"""Ranked labels: for each document of a batch its labels, best first, with their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Ranking:
    """Labels of a batch in one run of arrays, as in a CSR matrix but ordered by rank.

    Document i has the labels `columns[starts[i]:starts[i + 1]]`, best first,
    with `scores` beside them. The order is the scorer's own, which keeps the way
    it broke ties.
    """

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, place: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Columns and scores of one document."""
        span = slice(self.starts[place], self.starts[place + 1])
        return self.columns[span], self.scores[span]

    def __iter__(self) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]]:
        return (self[place] for place in range(len(self)))

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many labels each document has."""
        return np.diff(self.starts)

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """The rank of every label within its document, from 0."""
        return np.arange(len(self.columns)) - np.repeat(self.starts[:-1], self.lengths)

    def part(self, documents: slice) -> Ranking:
        """The labels of some documents that follow one another."""
        first, last, _ = documents.indices(len(self))
        starts = self.starts[first : last + 1]
        span = slice(starts[0], starts[-1])
        return Ranking(starts - starts[0], self.columns[span], self.scores[span])

    def kept(self, mask: npt.NDArray[np.bool_]) -> Ranking:
        """The labels for which `mask` is true, ranks closed up."""
        counts = np.zeros(len(self.columns) + 1, dtype=np.int64)
        np.cumsum(mask, out=counts[1:])
        return Ranking(counts[self.starts], self.columns[mask], self.scores[mask])

    def matrix(self, width: int) -> csr_matrix[Any]:
        """The scores as a sparse matrix of documents × labels; ranks are lost."""
        from scipy.sparse import csr_matrix

        # A copy: sorting the matrix must not reorder the ranking.
        shape = (len(self), width)
        return csr_matrix((self.scores, self.columns, self.starts), shape=shape, copy=True)

    @classmethod
    def from_lists(
        cls, columns: Sequence[Sequence[int]], scores: Sequence[Sequence[float]] | None = None
    ) -> Ranking:
        """A ranking from a list of columns per document; scores are 1 by default."""
        lengths = [len(of_document) for of_document in columns]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        flat = np.array(list(_flat(columns)), dtype=np.int32)
        values = np.ones(len(flat)) if scores is None else np.array(list(_flat(scores)))
        return cls(starts, flat, values.astype(np.float32))

    @classmethod
    def from_pairs(
        cls,
        documents: npt.NDArray[np.int64],
        columns: npt.NDArray[np.integer[Any]],
        scores: npt.NDArray[np.floating[Any]],
        count: int,
    ) -> Ranking:
        """A ranking of `count` documents from pairs of document and label, in their final order."""
        lengths = np.bincount(documents, minlength=count)
        return cls(
            np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            columns.astype(np.int32),
            scores.astype(np.float32),
        )

    @classmethod
    def joined(cls, parts: Sequence[Ranking]) -> Ranking:
        """Batches one after another."""
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(
            np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )


def _flat(lists: Sequence[Sequence[Any]]) -> Iterable[Any]:
    return (item for inner in lists for item in inner)
