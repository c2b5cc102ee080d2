"""Label sets and rankings as files: arrays that need no more than NumPy to be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin import Ranking


@dataclass(frozen=True)
class LabelSets:
    """Labels of many documents, best first where there is an order, with their scores.

    Document i has `columns[starts[i]:starts[i + 1]]`.
    """

    starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def from_lists(
        cls, columns: Iterable[npt.ArrayLike], scores: Iterable[npt.ArrayLike] | None = None
    ) -> LabelSets:
        """Label sets from a list of columns per document; scores are 1 by default."""
        parts = [np.asarray(one, dtype=np.int32) for one in columns]
        starts = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
        flat = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
        if scores is None:
            return cls(starts, flat, np.ones(len(flat), dtype=np.float32))
        values = [np.asarray(one, dtype=np.float32) for one in scores]
        return cls(starts, flat, np.concatenate([np.zeros(0, dtype=np.float32), *values]))

    @classmethod
    def from_matrix(cls, matrix: csr_matrix[Any], top: int) -> LabelSets:
        """The `top` best labels of each row of scores; equal scores by column."""
        columns, scores = [], []
        for row in range(matrix.shape[0]):
            span = slice(matrix.indptr[row], matrix.indptr[row + 1])
            of_row, values = matrix.indices[span], matrix.data[span]
            order = np.lexsort((of_row, -values))[:top]
            columns.append(of_row[order])
            scores.append(values[order])
        return cls.from_lists(columns, scores)

    @classmethod
    def load(cls, path: Path) -> LabelSets:
        """What `save` has written."""
        with np.load(path) as arrays:
            return cls(arrays["starts"], arrays["columns"], arrays["scores"])

    def save(self, path: Path) -> None:
        """Write a whole file or none."""
        part = path.with_name(f".{path.name}.part")
        with part.open("wb") as file:
            np.savez_compressed(file, starts=self.starts, columns=self.columns, scores=self.scores)
        part.replace(path)

    def renumbered(self, columns: npt.NDArray[np.int32]) -> LabelSets:
        """The same labels with other columns: column c becomes `columns[c]`."""
        return LabelSets(self.starts, columns[self.columns].astype(np.int32), self.scores)

    def taken(self, places: npt.NDArray[np.integer[Any]]) -> LabelSets:
        """Some documents, in the order of `places`."""
        spans = [slice(self.starts[place], self.starts[place + 1]) for place in places]
        return LabelSets.from_lists(
            [self.columns[span] for span in spans], [self.scores[span] for span in spans]
        )

    def matrix(self, width: int) -> csr_matrix[Any]:
        """Documents × labels."""
        from scipy.sparse import csr_matrix

        arrays = (self.scores.copy(), self.columns.copy(), self.starts.copy())
        matrix = csr_matrix(arrays, shape=(len(self), width))
        matrix.sort_indices()
        return matrix

    def ranking(self) -> Ranking:
        """As labelkin's measures take them."""
        from labelkin import Ranking

        return Ranking(self.starts, self.columns, self.scores)
