"""The method `knn`: neighbours vote, their number of labels cuts, and they are the evidence."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import NOBODY, Distance, Neighbours
from labelkin.scoring.cut import CountScheme, cut, expected_counts
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.suggestion import Carrier, Suggestion
from labelkin.scoring.votes import SQUARE_FLOOR, Weighting, neighbour_weights, vote
from labelkin.store.collection import Collection
from labelkin.store.config import Config


@dataclass(frozen=True, slots=True)
class KnnSettings:
    """How votes are counted and where the list is cut.

    `count` None gives as many labels as pass the threshold; `limit` 0 sets no limit.
    """

    k: int = 20
    weighting: Weighting = "majority"
    distance: Distance = "self"
    count: CountScheme | None = "mean"
    threshold: float = 0.0
    limit: int = 0
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @classmethod
    def from_config(cls, config: Config) -> KnnSettings:
        """What labelkin.toml says."""
        suggest = config.suggest
        return cls(
            k=config.neighbours.k,
            weighting=suggest.weighting,
            distance=config.neighbours.distance,
            count=None if suggest.count == "none" else suggest.count,
            threshold=suggest.threshold,
            limit=suggest.limit,
            include=tuple(suggest.include),
            exclude=tuple(suggest.exclude),
        )


class Knn:
    """Ranks labels by the votes of neighbours, for one state of a collection."""

    def __init__(self, collection: Collection, settings: KnnSettings) -> None:
        self.settings = settings
        self._collection = collection
        self._label_sets = collection.label_sets()
        self._label_order = collection.label_order()
        # Without lists and deprecated concepts the vocabulary need not be read.
        self._policy = None
        if settings.include or settings.exclude or collection.has_deprecated_concepts():
            vocabulary = collection.vocabulary
            self._policy = LabelPolicy(vocabulary, settings.include, settings.exclude)

    def changed(self, settings: KnnSettings) -> Knn:
        """The same with other settings; what may be suggested stays as it was."""
        other = copy(self)
        other.settings = settings
        return other

    def rank(self, neighbours: Neighbours) -> Ranking:
        """All labels of the nearest `k`, best first."""
        near = neighbours.nearest(self.settings.k)
        return vote(near, self._weights(near), self._label_sets, self._label_order, self._policy)

    def cut(self, neighbours: Neighbours, ranking: Ranking) -> Ranking:
        """The labels that are given out."""
        settings = self.settings
        counts = None
        if settings.count is not None:
            near = neighbours.nearest(settings.k)
            counts = expected_counts(near, self._weights(near), self._label_sets, settings.count)
        return cut(ranking, counts, settings.threshold or None, settings.limit or None)

    def suggestions(self, neighbours: Neighbours, given: Ranking) -> list[list[Suggestion]]:
        """The given labels with the neighbours that carry them."""
        near = neighbours.nearest(self.settings.k)
        distances = near.distances(self.settings.distance)
        weights = self._weights(near)
        texts = self._collection.texts_of(sorted({*near.rows[near.rows != NOBODY].tolist()}))
        concepts = self._collection.concepts(sorted({*given.columns.tolist()}))
        found = []
        for place, (columns, scores) in enumerate(given):
            there = [rank for rank, row in enumerate(near.rows[place]) if int(row) in texts]
            starts, labels = self._label_sets.gather(near.rows[place, there])
            who = np.repeat(np.arange(len(there)), np.diff(starts))
            if self._policy is not None:
                who, labels = self._policy.apply(who, labels)
            mine = weights[place, there]
            suggestions: list[Suggestion] = []
            for column, score in zip(columns.tolist(), scores.tolist(), strict=True):
                carrying = who[labels == column]
                total = mine[carrying].sum() or 1.0
                carriers = tuple(
                    Carrier(
                        id=texts[int(near.rows[place, there[one]])].id,
                        title=texts[int(near.rows[place, there[one]])].title,
                        distance=float(distances[place, there[one]]),
                        share=float(mine[one] / total),
                    )
                    for one in carrying.tolist()
                )
                rank = len(suggestions) + 1
                suggestion = Suggestion(concepts[column], score, rank, carriers, len(there))
                suggestions.append(suggestion)
            found.append(suggestions)
        return found

    def _weights(self, near: Neighbours) -> npt.NDArray[np.float64]:
        floor = SQUARE_FLOOR if self.settings.weighting == "square" else 0.0
        distances = near.distances(self.settings.distance, floor)
        return neighbour_weights(distances, self.settings.weighting)
