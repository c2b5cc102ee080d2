"""Headings that the text names, and how often so named headings were assigned before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Floats, Integers, Pairs, arrays_of, best_keys, pays_compiling
from labelkin.rerank.signal import Signal, Values
from labelkin.rerank.statistics import IN_TITLE, naming_kinds
from labelkin.scoring.suggestion import NAMED

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The value of a heading that is not named.
_UNNAMED = -1.0
_BEST_COVERED = 40
# Sums of single-precision weights may miss 1 by a little.
_WHOLE = 0.999
# Documents processed at a time.
_CHUNK = 200


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

        covered = pairs.product(evidence.has, headings.names)
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


class NameWordsSignal(Signal):
    """How much of one of its names the text has, in any order and form of the words."""

    name = "name words"
    features = (
        *("covered", "covered_weight", "covered_names"),
        *("title_covered", "title_covered_weight", "title_covered_names"),
    )
    reason = "words of its names"

    def propose(self, evidence: Evidence) -> Integers:
        """The headings of whose names the text has most."""
        if pays_compiling(len(evidence)):
            from labelkin.rerank.pair_kernel import best_covered

            keys: Integers = best_covered(
                arrays_of(evidence.has),
                *_names_of(evidence),
                _allowed_columns(evidence),
                _BEST_COVERED,
            )
            return keys
        cover = _cover(evidence, "text")
        strength = cover.weight * cover.share
        is_allowed = _allowed_columns(evidence)[cover.keys % evidence.width]
        return best_keys(
            cover.keys[is_allowed], strength[is_allowed], evidence.width, _BEST_COVERED
        )

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """The best covered name, the largest weight, and how many names are covered wholly."""
        values: dict[str, Values] = {}
        for part, prefix in (("text", ""), ("title", "title_")):
            share, weight, whole = _covered_values(evidence, pairs, part)
            values[f"{prefix}covered"] = share
            values[f"{prefix}covered_weight"] = weight
            values[f"{prefix}covered_names"] = whole
        return values


@dataclass(frozen=True, eq=False)
class _Cover:
    """For each heading with a word in common, by ascending keys: what is covered of its names.

    The share of the best covered name, the weight of the words that are there
    of the name with most of it, and how many names are there as a whole.
    """

    keys: Integers
    share: Floats
    weight: Floats
    whole: Floats


def _covered_values(evidence: Evidence, pairs: Pairs, part: str) -> Iterable[Floats]:
    """Share, weight and number of whole names of each candidate."""
    if pays_compiling(len(evidence)):
        from labelkin.rerank.pair_kernel import covered_values

        values: Floats = covered_values(
            arrays_of(evidence.has if part == "text" else evidence.in_title),
            *_names_of(evidence),
            pairs.starts,
            pairs.columns,
            pairs.width,
        )
        return values
    cover = _cover(evidence, part)
    places = pairs.places_in(cover.keys)
    return [pairs.at(places, values) for values in (cover.share, cover.weight, cover.whole)]


def _names_of(evidence: Evidence) -> tuple[Any, Integers, Floats]:
    """The words of all names, whose names they are, and their whole weights."""
    headings = evidence.knowledge.headings
    return arrays_of(headings.all_names), headings.bearers, headings.all_weights


def _cover(evidence: Evidence, part: str) -> _Cover:
    def computed() -> _Cover:
        has = evidence.has if part == "text" else evidence.in_title
        found = [
            _covered(evidence, has[first : first + _CHUNK], first)
            for first in range(0, max(len(evidence), 1), _CHUNK)
        ]
        return _Cover(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    return evidence.once(("cover", part), computed)


def _covered(
    evidence: Evidence, has: csr_matrix[Any], first: int
) -> tuple[Integers, Floats, Floats, Floats]:
    headings = evidence.knowledge.headings
    shared = (has @ headings.all_names).tocsr()
    shared.sort_indices()
    names, weights = shared.indices, shared.data
    documents = np.repeat(np.arange(has.shape[0]) + first, np.diff(shared.indptr))
    # Bearers ascend with the names, and so do the keys.
    keys = documents * evidence.width + headings.bearers[names]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if len(starts) == 0:
        nothing = np.zeros(0, dtype=np.float32)
        return keys, nothing, nothing, nothing
    shares = weights / np.maximum(headings.all_weights[names], 1e-9)
    return (
        keys[starts],
        np.maximum.reduceat(shares, starts),
        np.maximum.reduceat(weights, starts),
        np.add.reduceat((shares > _WHOLE).astype(np.float32), starts),
    )


def _allowed_columns(evidence: Evidence) -> npt.NDArray[np.bool_]:
    """Which headings stand for themselves: not those that others replaced."""
    policy = evidence.queries.policy()
    allowed = np.ones(evidence.width, dtype=np.bool_)
    if policy is not None:
        allowed[: len(policy.target)] = policy.target == np.arange(len(policy.target))
    return allowed


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
