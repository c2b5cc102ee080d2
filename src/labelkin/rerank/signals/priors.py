"""Prior knowledge: frequencies of headings, and properties of the text as a whole."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.signal import Signal, Values
from labelkin.rerank.signals.votes import votes_of


class FrequencySignal(Signal):
    """How frequent a heading is, and how much more so among the neighbours."""

    name = "frequency"
    features = ("frequency", "lift")
    reason = "frequency"

    def values(self, evidence: Evidence, pairs: Pairs, features: Features) -> Mapping[str, Values]:
        """Logarithms of both."""
        statistics = evidence.knowledge.statistics
        frequencies = statistics.frequencies[pairs.columns]
        expected = (frequencies + 1) / max(statistics.documents, 1)
        lift = np.log((features["majority40"] + 0.01) / expected)
        per_ten_thousand = frequencies * 1e4 / max(statistics.documents, 1)
        return {"frequency": np.log1p(per_ten_thousand), "lift": lift}


class DocumentSignal(Signal):
    """The length of the text, how many headings to expect, and how near its neighbours are."""

    name = "document"
    features = ("length", "expected_count", "nearest", "nearness")
    reason = "frequency"

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """The same for all candidates of a document."""
        votes, documents = votes_of(evidence), pairs.documents
        lengths = np.asarray(evidence.counts.sum(1), dtype=np.float32).ravel()
        return {
            "length": lengths[documents],
            "expected_count": votes.expected_count[documents],
            "nearest": votes.nearest[documents],
            "nearness": votes.nearness[documents],
        }
