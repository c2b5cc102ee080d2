"""The method `rerank`: candidates from all scorers, one calibrated score each, with its reasons."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.neighbours import NOBODY
from labelkin.rerank.calibration import expected_f_counts
from labelkin.rerank.features import GROUPS, Candidates, FeatureMaker, feature_names
from labelkin.rerank.model import RerankModel
from labelkin.rerank.pairs import Floats, Pairs
from labelkin.rerank.reading import TextReader
from labelkin.rerank.signals import make_signals
from labelkin.scoring.cut import cut
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.mention_search import MentionSearch
from labelkin.scoring.policy import policy_for
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import RERANK_DEPTH, RerankSettings
from labelkin.scoring.suggestion import CARRIED, NAMED, Band, Signal, Suggestion
from labelkin.store.collection import Collection

# Candidates with a lower score are not ranked at all.
_FLOOR = 0.01
_BATCH = 500
# What the groups of features are called where reasons are given.
SIGNAL_NAMES = {
    "votes": CARRIED,
    "named": NAMED,
    "naming rate": NAMED,
    "words": "words of the text",
    "related": "other headings",
    "hierarchy": "other headings",
    "autoencoder": "label autoencoder",
    "linear": "linear classifier",
    "frequency": "frequency",
    "document": "frequency",
}
# What speaks for a candidate before anything is known of it.
_BEGINNING = "any candidate"


class Rerank:
    """Scores candidates with trees over all signals, for one state of a collection."""

    def __init__(
        self,
        collection: Collection,
        settings: RerankSettings,
        model: RerankModel,
        knn: Knn,
        label_ae: LabelAe | None = None,
    ) -> None:
        self.settings = settings
        self.model = model
        self._collection = collection
        self._knn = knn
        self._label_ae = label_ae
        # Features are made as they were learned from, whatever may be suggested in the end.
        self._policy = policy_for(collection, (), ())
        self._reader = TextReader(collection, self._policy)
        self._mentions = MentionSearch(collection, knn.policy)
        width = collection.generation().next_column
        self._maker = FeatureMaker(
            model.statistics.widened(width),
            model.headings.widened(width),
            model.terms,
            model.info.groups,
        )
        self._label_order = collection.label_order()
        # The last batch, since whoever ranks one asks for its reasons next.
        self._last: tuple[Queries, Candidates] | None = None

    def changed(self, settings: RerankSettings) -> Rerank:
        """The same with another cut; what may be suggested stays as it was."""
        other = copy(self)
        other.settings = settings
        return other

    def rank(self, queries: Queries) -> Ranking:
        """All candidates that are not hopeless, best first."""
        parts = []
        for start in range(0, len(queries), _BATCH):
            part = queries if len(queries) <= _BATCH else queries[start : start + _BATCH]
            candidates = self._candidates(part)
            pairs = candidates.pairs
            raw = self.model.ranker.scores(candidates.features)
            scores = self.model.info.calibration.scores(raw)
            order = np.lexsort((self._label_order[pairs.columns], -raw, pairs.documents))
            order = order[scores[order] >= _FLOOR]
            parts.append(
                Ranking.from_pairs(
                    pairs.documents[order], pairs.columns[order], scores[order], len(part)
                )
            )
        return Ranking.joined(parts) if parts else Ranking.from_lists([])

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:  # noqa: ARG002 - see Method
        """As many headings as maximise the expected F, or those above the threshold."""
        settings = self.settings
        counts = None
        if settings.count == "expected-f":
            counts = expected_f_counts(
                ranking.scores, ranking.starts, self.model.info.calibration.missed
            )
        return cut(ranking, counts, settings.threshold or None, settings.limit or None)

    def suggestions(self, queries: Queries, given: Ranking) -> list[list[Suggestion]]:
        """The given headings with what speaks for them, and whether they can be accepted."""
        if len(queries) > _BATCH:
            parts = (slice(n, n + _BATCH) for n in range(0, len(queries), _BATCH))
            return [
                one for part in parts for one in self.suggestions(queries[part], given.part(part))
            ]
        found: list[list[Suggestion]] = []
        heard = self._knn.changed(replace(self._knn.settings, k=RERANK_DEPTH))
        voted = heard.suggestions(queries, given)
        candidates = self._candidates(queries)
        for place, suggestions in enumerate(voted):
            columns = given[place][0]
            namings = self._mentions.namings(queries.documents[place]) if len(columns) else {}
            signals = self._signals(candidates, place, columns)
            found.append(
                [
                    replace(
                        suggestion,
                        named=namings.get(column, ()),
                        signals=reasons,
                        band=self.band(suggestion.score),
                    )
                    for suggestion, column, reasons in zip(
                        suggestions, columns.tolist(), signals, strict=True
                    )
                ]
            )
        return found

    def band(self, score: float) -> Band:
        """Whether a score is high enough to accept a heading unseen, or to show it."""
        calibration = self.model.info.calibration
        if score >= calibration.threshold(self.settings.accept):
            return "accept"
        return "review" if score >= calibration.threshold(self.settings.review) else "hidden"

    def _signals(
        self, candidates: Candidates, place: int, columns: npt.NDArray[np.int32]
    ) -> list[tuple[Signal, ...]]:
        """For each heading of a document what each group of features adds to its log odds."""
        if len(columns) == 0:
            return []
        pairs = candidates.pairs
        lines = np.searchsorted(pairs.keys, place * pairs.width + columns.astype(np.int64))
        contributions = self.model.ranker.contributions(candidates.features[lines])
        names = [SIGNAL_NAMES[group] for group in _groups_of(self.model.info.groups)]
        names.append(_BEGINNING)
        found = []
        for line in contributions:
            sums: dict[str, float] = {}
            for name, value in zip(names, line.tolist(), strict=True):
                sums[name] = sums.get(name, 0.0) + value
            ordered = sorted(sums.items(), key=lambda item: -item[1])
            found.append(tuple(Signal(name, value) for name, value in ordered))
        return found

    def _candidates(self, queries: Queries) -> Candidates:
        if self._last is not None and self._last[0] is queries:
            return self._last[1]
        model, maker = self.model, self._maker
        near = queries.neighbours
        known = near.rows < self._knn.label_sets.rows
        if not known.all():
            near = replace(near, rows=np.where(known, near.rows, NOBODY))
        counts = model.terms.counts(self._reader.stems(queries.documents))
        signals = make_signals(
            near,
            counts,
            self._reader.mentions(queries.documents),
            width=maker.statistics.width,
            label_sets=self._knn.label_sets,
            policy=self._policy,
            terms=model.terms,
            label_ae=self._label_ae,
            linear=model.linear,
        )
        candidates = _allowed(maker.make(signals), self._knn)
        self._last = (queries, candidates)
        return candidates


def _allowed(candidates: Candidates, knn: Knn) -> Candidates:
    """Without headings that may not be suggested."""
    if knn.policy is None:
        return candidates
    pairs = candidates.pairs
    kept = knn.policy.target[pairs.columns] == pairs.columns
    features: Floats = candidates.features[kept]
    return Candidates(Pairs(pairs.keys[kept], pairs.count, pairs.width), features)


def _groups_of(groups: Any) -> list[str]:
    """The group of each feature, in the order of the matrix."""
    return [group for group in GROUPS if group in groups for _ in feature_names([group])]
