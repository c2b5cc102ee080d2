"""Headings that the text names, and how often so named headings were assigned before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Floats, Integers, Pairs
from labelkin.rerank.signal import Signal, Values
from labelkin.rerank.statistics import IN_TITLE, naming_kinds
from labelkin.scoring.suggestion import NAMED

# The value of a heading that is not named.
_UNNAMED = -1.0


class NamedSignal(Signal):
    """Where, how often and by which kind of name the text names a heading."""

    name = "named"
    features = (
        *("title", "body", "nested", "named_first", "named_words", "named_sharing"),
        *("named_weight", "preferred", "acronym", "coverage", "name_words"),
    )
    reason = NAMED

    def propose(self, evidence: Evidence) -> Integers:
        """All headings that are named."""
        mentions = evidence.mentions
        keys: Integers = mentions.documents * evidence.width + mentions.columns
        return keys

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """The facts of the mention, and how much of the name's words the text has."""
        mentions, headings = evidence.mentions, evidence.knowledge.headings
        places = _places(evidence, pairs)

        def of(values: Any, missing: float) -> Floats:
            return pairs.at(places, values, missing)

        covered = pairs.entries((evidence.has @ headings.by_term).tocsr())
        return {
            "title": of(mentions.title, 0),
            "body": of(mentions.body, 0),
            "nested": of(mentions.nested, 0),
            "named_first": of(mentions.first, _UNNAMED),
            "named_words": of(mentions.length, _UNNAMED),
            "named_sharing": of(mentions.sharing, _UNNAMED),
            "named_weight": of(mentions.weight, _UNNAMED),
            "preferred": of(mentions.preferred, _UNNAMED),
            "acronym": of(mentions.acronym, _UNNAMED),
            "coverage": covered / np.maximum(headings.weights[pairs.columns], 1e-9),
            "name_words": headings.words[pairs.columns],
        }


class NamingRateSignal(Signal):
    """How often a heading was assigned to documents that name it in the same way."""

    name = "naming rate"
    features = ("named_rate", "named_in")
    reason = NAMED

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """The rate, and over how many documents."""
        statistics, columns = evidence.knowledge.statistics, pairs.columns
        places = _places(evidence, pairs)
        is_named = places >= 0
        kinds = pairs.at(places, naming_kinds(evidence.mentions), IN_TITLE).astype(np.int64)
        return {
            "named_rate": np.where(is_named, statistics.named[kinds, columns], _UNNAMED),
            "named_in": np.where(is_named, statistics.named_in[kinds, columns], _UNNAMED),
        }


def _places(evidence: Evidence, pairs: Pairs) -> Integers:
    mentions = evidence.mentions
    return pairs.places_in(mentions.documents * pairs.width + mentions.columns)
