"""The method `knn`: neighbours vote, and their number of labels cuts the list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.cut import COUNT_SCHEMES, cut, expected_counts
from labelkin.scoring.evidence import neighbour_evidence
from labelkin.scoring.method import Method
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.scoring.suggestion import Suggestion
from labelkin.scoring.votes import SQUARE_FLOOR, WEIGHTINGS, neighbour_weights, vote


class Knn(Method):
    """Ranks labels by the votes of neighbours."""

    name = "knn"
    votes = True

    def depth(self, settings: Settings) -> int:
        """As many neighbours as vote."""
        return settings.knn.k

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All labels of the nearest `k`, best first."""
        return votes_of(queries, settings.knn, settings)

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:
        """As many labels as the neighbours have, or those above the threshold."""
        return cut_by(queries, ranking, settings.knn, settings)

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,
        *,
        signals: bool = False,  # noqa: ARG002 - votes are all there is
    ) -> list[list[Suggestion]]:
        """The given labels with the neighbours that carry them."""
        return carried(queries, given, settings.knn, settings)

    def threshold(self, settings: Settings) -> float:
        """The smallest share of the votes."""
        return settings.knn.threshold

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold."""
        return replace(settings, knn=replace(settings.knn, threshold=threshold))

    def uncut(self, settings: Settings) -> Settings:
        """The settings without count and threshold."""
        return replace(settings, knn=replace(settings.knn, count=None, threshold=0.0))

    def sweep(
        self, settings: Settings, ks: Sequence[int], thresholds: Sequence[float]
    ) -> Iterator[list[Settings]]:
        """All k and weightings; counts alone and thresholds alone."""
        for k, weighting in product(ks, WEIGHTINGS):
            scorer = replace(settings.knn, k=k, weighting=weighting)
            yield [replace(settings, knn=one) for one in cuts_to_try(scorer, thresholds)]

    def swept(self, settings: Settings) -> dict[str, Any]:
        """Everything about the votes."""
        return scorer_values(settings.knn)

    def as_config(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """Votes are spread over two sections."""
        values = scorer_values(settings.knn)
        cutting = {name: values[name] for name in ("weighting", "count", "threshold")}
        return {"neighbours": {"k": settings.knn.k}, "suggest": cutting}


def votes_of(queries: Queries, scorer: ScorerSettings, settings: Settings) -> Ranking:
    """All labels of the nearest, ranked by votes; computed once per batch and weighting."""
    key = ("votes", scorer.k, scorer.weighting, scorer.distance, settings.include, settings.exclude)

    def ranked() -> Ranking:
        near = queries.neighbours(scorer.k)
        snapshot = queries.snapshot
        return vote(
            near,
            weights_of(near, scorer),
            snapshot.label_sets(),
            snapshot.label_order(),
            queries.policy(settings.include, settings.exclude),
        )

    return queries.once(key, ranked)


def weights_of(near: Neighbours, scorer: ScorerSettings) -> npt.NDArray[np.float64]:
    """The weight of each neighbour."""
    floor = SQUARE_FLOOR if scorer.weighting == "square" else 0.0
    return neighbour_weights(near.distances(scorer.distance, floor), scorer.weighting)


def counts_of(queries: Queries, scorer: ScorerSettings) -> npt.NDArray[np.int64] | None:
    """How many labels each document should get, None for all that reach the threshold."""
    if scorer.count is None:
        return None
    near = queries.neighbours(scorer.k)
    weights = weights_of(near, scorer)
    return expected_counts(near, weights, queries.snapshot.label_sets(), scorer.count)


def cut_by(
    queries: Queries, ranking: Ranking, scorer: ScorerSettings, settings: Settings
) -> Ranking:
    """The ranking cut at the scorer's count and threshold and the limit."""
    counts = counts_of(queries, scorer)
    return cut(ranking, counts, scorer.threshold or None, settings.limit or None)


def carried(
    queries: Queries, given: Ranking, scorer: ScorerSettings, settings: Settings
) -> list[list[Suggestion]]:
    """The given labels with the neighbours that carry them."""
    snapshot = queries.snapshot
    near = queries.neighbours(scorer.k)
    weights = weights_of(near, scorer)
    concepts = snapshot.concepts(sorted({*given.columns.tolist()}))
    policy = queries.policy(settings.include, settings.exclude)
    around = neighbour_evidence(snapshot, near, near.distances(scorer.distance), policy)
    suggestions = []
    for place, ((columns, scores), evidence) in enumerate(zip(given, around, strict=True)):
        mine = weights[place, evidence.places]
        of_document: list[Suggestion] = []
        for column, score in zip(columns.tolist(), scores.tolist(), strict=True):
            voters = evidence.carrying(column)
            shares = mine[voters] / (mine[voters].sum() or 1.0)
            carriers = evidence.carriers(voters.tolist(), shares, voters)
            rank = len(of_document) + 1
            of_document.append(Suggestion(concepts[column], score, rank, carriers, len(evidence)))
        suggestions.append(of_document)
    return suggestions


def cuts_to_try(scorer: ScorerSettings, thresholds: Sequence[float]) -> list[ScorerSettings]:
    """Counts alone, thresholds alone, and the present cut."""
    by_count = (replace(scorer, count=count, threshold=0.0) for count in COUNT_SCHEMES)
    by_threshold = (replace(scorer, count=None, threshold=one) for one in thresholds)
    return list(dict.fromkeys((*by_count, *by_threshold, scorer)))


def scorer_values(scorer: ScorerSettings) -> dict[str, Any]:
    """A scorer's settings as labelkin.toml names them."""
    return {
        "k": scorer.k,
        "weighting": scorer.weighting,
        "distance": scorer.distance,
        "count": scorer.count or "none",
        "threshold": scorer.threshold,
    }
