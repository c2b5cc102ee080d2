"""Why a heading is suggested: which neighbours carry it, and what each contributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.suggestion import Carrier
from labelkin.store.collection import Collection
from labelkin.store.label_sets import LabelSets

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Circle:
    """The neighbours of one document that are still there, and the labels they carry.

    `places` are their places among all neighbours, nearest first; the pairs
    of `who` (which of them) and `labels` say who carries what.
    """

    places: Integers
    rows: Integers
    documents: Sequence[Document]
    distances: npt.NDArray[np.float32]
    who: Integers
    labels: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.places)

    def carrying(self, column: int) -> Integers:
        """Those that carry a label."""
        found: Integers = self.who[self.labels == column]
        return found

    def carriers(
        self, which: Iterable[int], shares: npt.NDArray[np.floating], carrying: Integers
    ) -> tuple[Carrier, ...]:
        """Some of the neighbours as evidence, with their shares of a score."""
        carry = set(carrying.tolist())
        return tuple(
            Carrier(
                id=self.documents[one].id,
                title=self.documents[one].title,
                distance=float(self.distances[one]),
                share=float(share),
                carries=one in carry,
            )
            for one, share in zip(which, shares.tolist(), strict=True)
        )


def circles(
    collection: Collection,
    near: Neighbours,
    distances: npt.NDArray[np.float32],
    label_sets: LabelSets,
    policy: LabelPolicy | None,
) -> Iterator[Circle]:
    """The circle of each document; neighbours removed meanwhile are left out."""
    texts = collection.texts_of(sorted({*near.rows[near.rows != NOBODY].tolist()}))
    for place in range(len(near)):
        there = [rank for rank, row in enumerate(near.rows[place]) if int(row) in texts]
        rows = near.rows[place, there]
        starts, labels = label_sets.gather(rows)
        who = np.repeat(np.arange(len(there)), np.diff(starts))
        if policy is not None:
            who, labels = policy.apply(who, labels)
        yield Circle(
            np.array(there, dtype=np.int64),
            rows,
            [texts[int(row)] for row in rows],
            distances[place, there],
            who,
            labels,
        )
