"""The methods `mix` and `mix-ranked`: votes and label autoencoder together."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
import numpy.typing as npt

from labelkin.scoring.cut import cut
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import MixSettings
from labelkin.scoring.suggestion import Suggestion


class _Pair:
    """Both scorers over the same neighbours; votes are the evidence where there are any."""

    def __init__(self, knn: Knn, label_ae: LabelAe) -> None:
        self.knn = knn
        self.label_ae = label_ae
        self._last: tuple[Queries, Ranking, Ranking] | None = None

    def parts(self, queries: Queries) -> tuple[Ranking, Ranking]:
        """What the label-AE and the votes say, kept for the next call about the same."""
        if self._last is None or self._last[0] is not queries:
            decoded, votes = self.label_ae.rank(queries), self.knn.rank(queries)
            self._last = (queries, decoded, votes)
        return self._last[1:]

    def sharing(self, other: _Pair) -> Self:
        """The same, with what another pair that differs in its cuts only has found already."""
        same = copy(self)
        same._last = other._last
        return same

    def suggestions(self, queries: Queries, given: Ranking) -> list[list[Suggestion]]:
        """The given labels with the neighbours that carry them.

        A heading that none of them carries has the label-AE's evidence.
        """
        found = self.knn.suggestions(queries, given)
        for place, suggestions in enumerate(found):
            foreign = [n for n, suggestion in enumerate(suggestions) if not suggestion.votes]
            if foreign:
                columns, scores = given[place]
                one = Ranking.from_lists([columns[foreign].tolist()], [scores[foreign].tolist()])
                near = queries[place : place + 1]
                (inferred,) = self.label_ae.suggestions(near, one)
                for number, suggestion in zip(foreign, inferred, strict=True):
                    suggestions[number] = replace(suggestion, rank=number + 1)
        return found


class Mix(_Pair):
    """The paper's mix: the label-AE's labels first, then votes up to the votes' count.

    If the label-AE gives more than the count, all of them stay; if it gives
    none, the votes decide alone.
    """

    def rank(self, queries: Queries) -> Ranking:
        """The labels that the label-AE gives, then all others by votes.

        A vote's share is scaled so as not to exceed the last label before it.
        """
        decoded, votes = self.parts(queries)
        leading = self.label_ae.cut(queries, decoded)
        new = ~_is_in(votes, leading, len(self.knn.label_order))
        rest = votes.kept(new)
        lowest = np.ones(len(leading), dtype=np.float32)
        there = leading.lengths > 0
        lowest[there] = leading.scores[leading.starts[1:][there] - 1]
        scaled = rest.scores * np.repeat(lowest, rest.lengths)
        return _one_behind_the_other(leading, Ranking(rest.starts, rest.columns, scaled))

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:
        """The label-AE's labels, filled up to the votes' count."""
        decoded, votes = self.parts(queries)
        leading = self.label_ae.cut(queries, decoded).lengths
        given = self.knn.cut(queries, votes).lengths
        limit = self.knn.settings.limit or None
        return cut(ranking, np.maximum(leading, given), None, limit)

    def changed(self, threshold: float) -> Mix:
        """The same with another threshold of the label-AE."""
        other = copy(self)
        other.label_ae = self.label_ae.changed(
            replace(self.label_ae.settings, count=None, threshold=threshold)
        )
        return other


class MixRanked(_Pair):
    """Both scores in one: share · label-AE + (1 − share) · votes, ranked as a whole."""

    def __init__(self, knn: Knn, label_ae: LabelAe, settings: MixSettings) -> None:
        super().__init__(knn, label_ae)
        self.settings = settings

    def changed(self, settings: MixSettings) -> MixRanked:
        """The same with another share or cut."""
        other = copy(self)
        other.settings = settings
        return other

    def rank(self, queries: Queries) -> Ranking:
        """All labels of either, best first."""
        decoded, votes = self.parts(queries)
        width = len(self.knn.label_order)
        share = np.float32(self.settings.share)
        keys = np.concatenate((_keys(decoded, width), _keys(votes, width)))
        parts = np.concatenate((decoded.scores * share, votes.scores * (1 - share)))
        both, places = np.unique(keys, return_inverse=True)
        scores = np.bincount(places, parts, len(both)).astype(np.float64, copy=False)
        documents, columns = np.divmod(both, max(width, 1))
        order = np.lexsort((self.knn.label_order[columns], -scores, documents))
        return Ranking.from_pairs(documents[order], columns[order], scores[order], len(votes))

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:
        """As many labels as the voting neighbours have, or those above the threshold."""
        settings = self.settings
        votes = self.knn.changed(replace(self.knn.settings, count=settings.count))
        counts = votes.counts(queries)
        limit = self.knn.settings.limit or None
        return cut(ranking, counts, settings.threshold or None, limit)


def _keys(ranking: Ranking, width: int) -> npt.NDArray[np.int64]:
    documents = np.repeat(np.arange(len(ranking), dtype=np.int64), ranking.lengths)
    return documents * width + ranking.columns


def _is_in(ranking: Ranking, other: Ranking, width: int) -> npt.NDArray[np.bool_]:
    return np.isin(_keys(ranking, width), _keys(other, width))


def _one_behind_the_other(first: Ranking, second: Ranking) -> Ranking:
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
