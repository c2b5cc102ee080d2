"""The long tail: how many documents carry each heading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_MOST_POINTS = 200
STEPS = (1000, 100, 10, 1)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Documents per heading, the most frequent heading first.

    `points` are ranks, from 1, and numbers of documents, at most 200 of them,
    with equal distances on a logarithmic scale. `at_least` maps numbers of
    documents to numbers of headings with so many or more; `once` are the
    headings of a single document.
    """

    points: tuple[tuple[int, int], ...]
    at_least: Mapping[int, int]
    once: int

    @property
    def headings(self) -> int:
        """How many headings are used at all."""
        return self.at_least[1]


def heading_frequencies(counts: npt.NDArray[np.integer[Any]]) -> Frequencies:
    """The long tail of the numbers of documents per heading, as `Indexer.label_frequencies`."""
    used = np.sort(counts[counts > 0])[::-1]
    ranks = np.unique(np.geomspace(1, max(len(used), 1), _MOST_POINTS).round().astype(np.int64))
    return Frequencies(
        tuple((int(rank), int(used[rank - 1])) for rank in ranks if rank <= len(used)),
        {step: int(np.count_nonzero(used >= step)) for step in STEPS},
        int(np.count_nonzero(used == 1)),
    )
