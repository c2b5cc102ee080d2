"""The labels of a model as columns of a collection's vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.store.label_sets import LabelSets

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Integers = npt.NDArray[np.int64]


class LabelColumns:
    """The vocabulary columns of a model's labels, and back.

    `columns` gives the vocabulary column of each label, −1 for a label that
    the vocabulary lacks; `width` is the number of columns there are.
    """

    def __init__(self, columns: Integers, width: int) -> None:
        self.columns = columns
        self.places = np.full(width, -1, dtype=np.int64)
        known = np.flatnonzero(columns >= 0)
        self.places[columns[known]] = known

    def __len__(self) -> int:
        return len(self.columns)

    def sets(self, label_sets: LabelSets, rows: Integers) -> tuple[Integers, Integers]:
        """The label sets of `rows` one after another, and where each begins.

        Labels are numbered as in the model; labels that it lacks are left out.
        """
        starts, columns = label_sets.gather(rows)
        labels = self.places[columns]
        known = labels >= 0
        counts = np.concatenate(([0], np.cumsum(known)))
        return labels[known], counts[starts]

    def matrix(self, label_sets: LabelSets, rows: Integers) -> csr_matrix[Any]:
        """The same as a 0/1 matrix of documents × labels."""
        from scipy.sparse import csr_matrix

        labels, starts = self.sets(label_sets, rows)
        ones = np.ones(len(labels), dtype=np.float32)
        return csr_matrix((ones, labels, starts), shape=(len(rows), len(self)))
