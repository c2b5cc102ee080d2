"""The method `label-ae`: what the label autoencoder makes of a text's neighbours.

The joint autoencoder decodes neighbours, their votes and the text together
(`JointDecoder`), the paper's the average of the neighbours' latent vectors
(`LatentDecoder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from labelkin.autoencoder.ballots import NEIGHBOURS
from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import DISTANCES
from labelkin.scoring.decoder import Decoder
from labelkin.scoring.evidence import neighbour_evidence
from labelkin.scoring.knn import cut_by, cuts_to_try, scorer_values
from labelkin.scoring.method import Method
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.scoring.suggestion import Suggestion
from labelkin.scoring.votes import WEIGHTINGS
from labelkin.store.models import Model, Models


class LabelAe(Method):
    """Ranks labels by the scores of the label autoencoder."""

    name = "label-ae"
    votes = True

    def required_models(self) -> tuple[type[Model], ...]:
        """The label autoencoder."""
        return (LabelModel,)

    def check_voting(self, settings: Settings, models: Models) -> None:
        """Without a count, the joint autoencoder takes neither k nor weighting."""
        model = models.find(LabelModel)
        if settings.label_ae.count is None and model is not None and model.is_joint:
            raise ConfigError(
                f"the joint label autoencoder always looks at {NEIGHBOURS} neighbours and weighs "
                "them by itself"
            )

    def depth(self, settings: Settings) -> int:
        """As many neighbours as are averaged, and enough for the joint autoencoder."""
        return max(settings.label_ae.k, NEIGHBOURS)

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All labels that score above a floor, best first."""
        return decoded(queries, settings.label_ae, settings)

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:
        """The labels above the threshold, or as many as the neighbours have."""
        return cut_by(queries, ranking, settings.label_ae, settings)

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,
        *,
        signals: bool = False,  # noqa: ARG002
    ) -> list[list[Suggestion]]:
        """The given labels with what each neighbour contributes to them."""
        decoder = Decoder.of(queries)
        scorer = settings.label_ae
        policy = queries.policy(settings.include, settings.exclude)
        near = queries.neighbours(decoder.depth(scorer)).nearest(decoder.depth(scorer))
        around = neighbour_evidence(queries.snapshot, near, near.distances(scorer.distance), policy)
        return [
            decoder.explain(queries, place, labels, evidence, scorer, policy)
            if len(labels[0])
            else []
            for place, (labels, evidence) in enumerate(zip(given, around, strict=True))
        ]

    def threshold(self, settings: Settings) -> float:
        """The smallest score of the decoder."""
        return settings.label_ae.threshold

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold."""
        return replace(settings, label_ae=replace(settings.label_ae, threshold=threshold))

    def uncut(self, settings: Settings) -> Settings:
        """The settings without count and threshold."""
        return replace(settings, label_ae=replace(settings.label_ae, count=None, threshold=0.0))

    def sweep(
        self, settings: Settings, ks: Sequence[int], thresholds: Sequence[float]
    ) -> Iterator[list[Settings]]:
        """All k, weightings by distance and distances; counts alone and thresholds alone.

        The present weighting is tried even if it is not by distance.
        """
        tried = dict.fromkeys((*ks, settings.label_ae.k))
        weightings = dict.fromkeys((*WEIGHTINGS[1:], settings.label_ae.weighting))
        for k, weighting, distance in product(tried, weightings, DISTANCES):
            scorer = replace(settings.label_ae, k=k, weighting=weighting, distance=distance)
            yield [replace(settings, label_ae=one) for one in cuts_to_try(scorer, thresholds)]

    def effective(self, queries: Queries, settings: Settings) -> Settings:
        """Without a count, the joint autoencoder takes neither k nor weighting."""
        scorer = settings.label_ae
        if scorer.count is not None or not Decoder.of(queries).model.is_joint:
            return settings
        return replace(settings, label_ae=ScorerSettings(count=None, threshold=scorer.threshold))

    def swept(self, settings: Settings) -> dict[str, Any]:
        """Everything about the average."""
        return scorer_values(settings.label_ae)

    def as_config(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """The section is called label_ae."""
        return {"label_ae": self.swept(settings)}


def decoded(
    queries: Queries,
    scorer: ScorerSettings,
    settings: Settings | None = None,
) -> Ranking:
    """All labels that the decoder scores above a floor; computed once per batch and weighting."""
    include, exclude = ((), ()) if settings is None else (settings.include, settings.exclude)
    decoder = Decoder.of(queries)
    # The joint autoencoder weighs neighbours by itself.
    weighing = () if decoder.model.is_joint else (scorer.k, scorer.weighting, scorer.distance)
    return queries.once(
        ("decoded", weighing, include, exclude),
        lambda: decoder.rank(queries, scorer, queries.policy(include, exclude)),
    )
