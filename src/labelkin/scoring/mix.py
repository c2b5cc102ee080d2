"""The methods `mix` and `mix-ranked`: votes and label autoencoder together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.scoring.cut import COUNT_SCHEMES, cut
from labelkin.scoring.knn import carried, counts_of, cut_by, votes_of
from labelkin.scoring.label_ae import LabelAe, decoded
from labelkin.scoring.method import Method
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Suggestion
from labelkin.store.models import Model

SHARES = tuple(np.round(np.arange(0.0, 1.0001, 0.1), 2).tolist())


class _Mixed(Method):
    """Both scorers over the same neighbours; votes are the evidence where there are any."""

    votes = True

    def required_models(self) -> tuple[type[Model], ...]:
        """The label autoencoder."""
        return (LabelModel,)

    def depth(self, settings: Settings) -> int:
        """As many neighbours as either scorer needs."""
        return max(settings.knn.k, LabelAe().depth(settings))

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,
        *,
        signals: bool = False,
    ) -> list[list[Suggestion]]:
        """The given labels with the neighbours that carry them.

        A heading that none of them carries has the label autoencoder's evidence.
        """
        suggestions = carried(queries, given, settings.knn, settings)
        is_inferred = [not one.votes for of_document in suggestions for one in of_document]
        only = given.kept(np.array(is_inferred, dtype=np.bool_))
        explained = LabelAe().explain(queries, only, settings, signals=signals)
        for of_document, inferred in zip(suggestions, explained, strict=True):
            numbers = [n for n, suggestion in enumerate(of_document) if not suggestion.votes]
            for number, suggestion in zip(numbers, inferred, strict=True):
                of_document[number] = replace(suggestion, rank=number + 1)
        return suggestions


class Mix(_Mixed):
    """The paper's mix: the label-AE's labels first, then votes up to the votes' count.

    If the label-AE gives more than the count, all of them stay; if it gives
    none, the votes decide alone.
    """

    name = "mix"

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """The labels that the label-AE gives, then all others by votes.

        A vote's share is scaled so as not to exceed the last label before it.
        """
        votes = votes_of(queries, settings.knn, settings)
        leading = self._leading(queries, settings)
        rest = votes.kept(~_is_in(votes, leading, len(queries.snapshot.label_order())))
        lowest = np.ones(len(leading), dtype=np.float32)
        there = leading.lengths > 0
        lowest[there] = leading.scores[leading.starts[1:][there] - 1]
        scaled = rest.scores * np.repeat(lowest, rest.lengths)
        return _appended(leading, Ranking(rest.starts, rest.columns, scaled))

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:
        """The label-AE's labels, filled up to the votes' count."""
        if settings.limit and settings.knn.count is None and not settings.knn.threshold:
            return cut(ranking, None, None, settings.limit)
        votes = votes_of(queries, settings.knn, settings)
        leading = self._leading(queries, settings).lengths
        given = cut_by(queries, votes, settings.knn, settings).lengths
        return cut(ranking, np.maximum(leading, given), None, settings.limit or None)

    def _leading(self, queries: Queries, settings: Settings) -> Ranking:
        """The label-AE's labels that come first: above a threshold of their own, or as it cuts."""
        ranking = decoded(queries, settings.label_ae, settings)
        if settings.mix.leading is None:
            return cut_by(queries, ranking, settings.label_ae, settings)
        return cut(ranking, None, settings.mix.leading or None, settings.limit or None)

    def threshold(self, settings: Settings) -> float:
        """The lowest score of the label-AE's labels that come first."""
        leading = settings.mix.leading
        return settings.label_ae.threshold if leading is None else leading

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold of the labels that come first."""
        return replace(settings, mix=replace(settings.mix, leading=threshold))

    def uncut(self, settings: Settings) -> Settings:
        """The settings without counts and thresholds."""
        return replace(
            settings,
            knn=replace(settings.knn, count=None, threshold=0.0),
            mix=replace(settings.mix, leading=0.0),
        )

    def sweep(
        self,
        settings: Settings,
        ks: Sequence[int],  # noqa: ARG002
        thresholds: Sequence[float],
    ) -> Iterator[list[Settings]]:
        """The threshold of the labels that come first."""
        for threshold in dict.fromkeys((*thresholds, settings.mix.leading)):
            yield [replace(settings, mix=replace(settings.mix, leading=threshold))]

    def swept(self, settings: Settings) -> dict[str, Any]:
        """The threshold as labelkin.toml has it: 0 is the label-AE's own cut."""
        return {"leading": settings.mix.leading or 0.0}

    def as_config(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """The section is that of both mixes."""
        return {"mix": self.swept(settings)}


class MixRanked(_Mixed):
    """Both scores in one: share · label-AE + (1 − share) · votes, ranked as a whole."""

    name = "mix-ranked"

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All labels of either, best first; equal scores in the order of the votes."""
        votes = votes_of(queries, settings.knn, settings)
        from_latents = decoded(queries, settings.label_ae, settings)
        label_order = queries.snapshot.label_order()
        width = len(label_order)
        share = np.float32(settings.mix.share)
        keys = np.concatenate((_keys(from_latents, width), _keys(votes, width)))
        parts = np.concatenate((from_latents.scores * share, votes.scores * (1 - share)))
        both, places = np.unique(keys, return_inverse=True)
        scores = np.bincount(places, parts, len(both)).astype(np.float64, copy=False)
        documents, columns = np.divmod(both, max(width, 1))
        # Many labels of sparse votes have equal scores; votes know which neighbours are nearer.
        by_votes = np.full(len(both), len(keys), dtype=np.int64)
        by_votes[places[len(from_latents.columns) :]] = np.arange(len(votes.columns))
        order = np.lexsort((label_order[columns], by_votes, -scores, documents))
        return Ranking.from_pairs(documents[order], columns[order], scores[order], len(votes))

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:
        """As many labels as the voting neighbours have, or those above the threshold."""
        mix = settings.mix
        counts = counts_of(queries, replace(settings.knn, count=mix.count))
        return cut(ranking, counts, mix.threshold or None, settings.limit or None)

    def threshold(self, settings: Settings) -> float:
        """The lowest score of both together."""
        return settings.mix.threshold

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold of the score of both together."""
        return replace(settings, mix=replace(settings.mix, threshold=threshold))

    def uncut(self, settings: Settings) -> Settings:
        """The settings without count and threshold."""
        return replace(settings, mix=replace(settings.mix, count=None, threshold=0.0))

    def sweep(
        self,
        settings: Settings,
        ks: Sequence[int],  # noqa: ARG002
        thresholds: Sequence[float],
    ) -> Iterator[list[Settings]]:
        """The share; counts alone and thresholds alone."""
        for share in dict.fromkeys((*SHARES, settings.mix.share)):
            mix = replace(settings.mix, share=share)
            by_count = (replace(mix, count=count, threshold=0.0) for count in COUNT_SCHEMES[:1])
            by_threshold = (replace(mix, count=None, threshold=one) for one in thresholds)
            tried = dict.fromkeys((*by_count, *by_threshold, mix))
            yield [replace(settings, mix=one) for one in tried]

    def swept(self, settings: Settings) -> dict[str, Any]:
        """Share and cut."""
        mix = settings.mix
        return {"share": mix.share, "count": mix.count or "none", "threshold": mix.threshold}

    def as_config(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """The section is called mix."""
        return {"mix": self.swept(settings)}


def _keys(ranking: Ranking, width: int) -> npt.NDArray[np.int64]:
    documents = np.repeat(np.arange(len(ranking), dtype=np.int64), ranking.lengths)
    return documents * width + ranking.columns


def _is_in(ranking: Ranking, other: Ranking, width: int) -> npt.NDArray[np.bool_]:
    return np.isin(_keys(ranking, width), _keys(other, width))


def _appended(first: Ranking, second: Ranking) -> Ranking:
    """For each document the labels of the first ranking, then those of the second."""
    documents = np.concatenate(
        [np.repeat(np.arange(len(part)), part.lengths) for part in (first, second)]
    )
    order = np.argsort(documents, kind="stable")
    return Ranking(
        first.starts + second.starts,
        np.concatenate((first.columns, second.columns))[order],
        np.concatenate((first.scores, second.scores))[order],
    )
