"""The method `knn`: neighbours vote, their number of labels cuts, and they are the evidence."""

from __future__ import annotations

from copy import copy

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.cut import cut, expected_counts
from labelkin.scoring.evidence import circles
from labelkin.scoring.policy import LabelPolicy, policy_for
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings
from labelkin.scoring.suggestion import Suggestion
from labelkin.scoring.votes import SQUARE_FLOOR, neighbour_weights, vote
from labelkin.store.collection import Collection


class Knn:
    """Ranks labels by the votes of neighbours, for one state of a collection."""

    def __init__(self, collection: Collection, settings: ScorerSettings) -> None:
        self.settings = settings
        self.collection = collection
        self.label_sets = collection.label_sets()
        self.label_order = collection.label_order()
        self.policy: LabelPolicy | None = policy_for(collection, settings.include, settings.exclude)

    def changed(self, settings: ScorerSettings) -> Knn:
        """The same with other settings; what may be suggested stays as it was."""
        other = copy(self)
        other.settings = settings
        return other

    def rank(self, queries: Queries) -> Ranking:
        """All labels of the nearest `k`, best first."""
        near = queries.neighbours.nearest(self.settings.k)
        return vote(near, self.weights(near), self.label_sets, self.label_order, self.policy)

    def counts(self, queries: Queries) -> npt.NDArray[np.int64] | None:
        """How many labels each document should get, None for as many as pass the threshold."""
        if self.settings.count is None:
            return None
        near = queries.neighbours.nearest(self.settings.k)
        return expected_counts(near, self.weights(near), self.label_sets, self.settings.count)

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:
        """The labels that are given out."""
        settings = self.settings
        counts = self.counts(queries)
        return cut(ranking, counts, settings.threshold or None, settings.limit or None)

    def suggestions(self, queries: Queries, given: Ranking) -> list[list[Suggestion]]:
        """The given labels with the neighbours that carry them."""
        near = queries.neighbours.nearest(self.settings.k)
        distances = near.distances(self.settings.distance)
        weights = self.weights(near)
        concepts = self.collection.concepts(sorted({*given.columns.tolist()}))
        around = circles(self.collection, near, distances, self.label_sets, self.policy)
        found = []
        for place, ((columns, scores), circle) in enumerate(zip(given, around, strict=True)):
            mine = weights[place, circle.places]
            suggestions: list[Suggestion] = []
            for column, score in zip(columns.tolist(), scores.tolist(), strict=True):
                voters = circle.carrying(column)
                shares = mine[voters] / (mine[voters].sum() or 1.0)
                carriers = circle.carriers(voters.tolist(), shares, voters)
                rank = len(suggestions) + 1
                suggestion = Suggestion(concepts[column], score, rank, carriers, len(circle))
                suggestions.append(suggestion)
            found.append(suggestions)
        return found

    def weights(self, near: Neighbours) -> npt.NDArray[np.float64]:
        """What each neighbour weighs."""
        floor = SQUARE_FLOOR if self.settings.weighting == "square" else 0.0
        distances = near.distances(self.settings.distance, floor)
        return neighbour_weights(distances, self.settings.weighting)
