"""How candidates relate to the leading ones, by co-occurrence and by the hierarchy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.signal import Signal, Values

_LEADING = 15
_REASON = "other headings"


class RelatedSignal(Signal):
    """How often a heading occurs together with the leading candidates."""

    name = "related"
    features = ("together", "attraction")
    reason = _REASON

    def values(self, evidence: Evidence, pairs: Pairs, features: Features) -> Mapping[str, Values]:
        """Means over the leading candidates, weighted by the first guess."""
        guess, statistics = features.first_guess, evidence.knowledge.statistics
        is_leading = pairs.ranks(guess) < _LEADING
        leading = pairs.matrix(guess, is_leading)
        total = np.asarray(leading.sum(1)).ravel()[pairs.documents]
        others = np.maximum(total - np.where(is_leading, guess, 0), 1e-9)
        return {
            "together": pairs.product(leading, statistics.together) / others,
            "attraction": pairs.product(leading, statistics.attraction) / others,
        }


class HierarchySignal(Signal):
    """The first guesses of broader, narrower and sibling headings."""

    name = "hierarchy"
    features = ("broader", "narrower", "siblings")
    reason = _REASON

    def values(self, evidence: Evidence, pairs: Pairs, features: Features) -> Mapping[str, Values]:
        """Sums of the first guesses around a heading in the hierarchy."""
        guess, headings = features.first_guess, evidence.knowledge.headings
        guesses = pairs.matrix(guess, np.ones(len(pairs), dtype=np.bool_))
        above = (guesses @ headings.broader).tocsr()
        parents = np.diff(headings.broader.indptr)[pairs.columns]
        return {
            "broader": pairs.product(guesses, headings.narrower),
            "narrower": pairs.entries(above),
            "siblings": pairs.product(above, headings.narrower) - guess * parents,
        }
