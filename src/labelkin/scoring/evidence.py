"""Why a heading is suggested: which neighbours carry it, and what each contributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.suggestion import Carrier
from labelkin.store.reader import Reader
from labelkin.store.rows import Headline

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NeighbourEvidence:
    """The neighbours of one document and the labels they carry.

    `places` are their places among all neighbours, nearest first; `titles`
    their ids, titles and years. Neighbour `owners[i]` carries the label `labels[i]`.
    """

    places: Integers
    rows: Integers
    titles: Sequence[Headline]
    distances: npt.NDArray[np.float32]
    owners: Integers
    labels: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.places)

    def carrying(self, column: int) -> Integers:
        """The neighbours that carry a label."""
        carrying: Integers = self.owners[self.labels == column]
        return carrying

    def carriers(
        self, which: Iterable[int], shares: npt.NDArray[np.floating], carrying: Integers
    ) -> tuple[Carrier, ...]:
        """Some of the neighbours as evidence, with their shares of a score."""
        carry = set(carrying.tolist())
        return tuple(
            Carrier(
                id=self.titles[one].id,
                title=self.titles[one].title,
                distance=float(self.distances[one]),
                share=float(share),
                carries=one in carry,
                year=self.titles[one].year,
            )
            for one, share in zip(which, shares.tolist(), strict=True)
        )


def neighbour_evidence(
    reader: Reader,
    near: Neighbours,
    distances: npt.NDArray[np.float32],
    policy: LabelPolicy | None,
) -> Iterator[NeighbourEvidence]:
    """The evidence of each document's neighbours, for the labels that a policy allows."""
    label_sets = reader.label_sets()
    titles = reader.titles_of(sorted({*near.rows[near.rows != NO_NEIGHBOUR].tolist()}))
    for place in range(len(near)):
        ranks = [rank for rank, row in enumerate(near.rows[place]) if int(row) in titles]
        rows = near.rows[place, ranks]
        starts, labels = label_sets.gather(rows)
        owners = np.repeat(np.arange(len(ranks)), np.diff(starts))
        if policy is not None:
            owners, labels = policy.apply(owners, labels)
        yield NeighbourEvidence(
            np.array(ranks, dtype=np.int64),
            rows,
            [titles[int(row)] for row in rows],
            distances[place, ranks],
            owners,
            labels,
        )
