"""The features of a candidate: everything that speaks for or against one heading of one text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.rerank.headings import Headings
from labelkin.rerank.pairs import Floats, Pairs, best_keys, matrix_keys
from labelkin.rerank.signals import Signals
from labelkin.rerank.statistics import IN_TITLE, LabelStatistics, naming_kinds
from labelkin.rerank.term_columns import TermColumns
from labelkin.rerank.votes import NEVER, Votes

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Candidates: all headings that the nearest carry or the text names, and the best by each scorer.
_NEAREST = 8
_BEST_VOTES = 60
_BEST_WORDS = 40
_BEST_LINEAR = 50
_LEADING = 15
Values = npt.NDArray[np.floating[Any]]

# What is said of a heading that is not named, or that the linear scorer has not ranked.
_UNNAMED = -1.0
_UNRANKED = -3.0
# Documents related at a time.
_CHUNK = 200

GROUPS: dict[str, tuple[str, ...]] = {
    "votes": (
        *(f"majority{k}" for k in (5, 10, 20, 40, 80)),
        *("near40", "near80", "close20", "close4", "close8", "first", "best", "vote_rank"),
    ),
    "frequency": ("frequency", "lift"),
    "document": ("length", "expected_count", "nearest", "nearness"),
    "named": (
        *("title", "body", "nested", "named_first", "named_words", "named_sharing"),
        *("named_weight", "preferred", "acronym", "coverage", "name_words"),
    ),
    "naming rate": ("named_rate", "named_in"),
    "words": (
        *("described", "described_rank", "spoken", "spoken_rank", "spoken_most"),
        *("word_evidence", "word_evidence_rank"),
    ),
    "related": ("together", "attraction"),
    "hierarchy": ("broader", "narrower", "siblings"),
    "autoencoder": ("decoded", "decoded_rank"),
    "linear": ("margin", "margin_rank"),
}
# Groups that are there only if something more was trained.
OPTIONAL_GROUPS = ("autoencoder", "linear")


def feature_names(groups: Iterable[str]) -> list[str]:
    """The features of some groups, in the order of the matrix."""
    wanted = set(groups)
    return [name for group, names in GROUPS.items() if group in wanted for name in names]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of document and heading with a line of features each."""

    pairs: Pairs
    features: Floats


class FeatureMaker:
    """Finds candidates and makes their features from one set of statistics."""

    def __init__(
        self,
        statistics: LabelStatistics,
        headings: Headings,
        terms: TermColumns,
        groups: Iterable[str],
    ) -> None:
        self.statistics = statistics
        self.headings = headings
        self.terms = terms
        self.groups = frozenset(groups)

    def make(self, signals: Signals) -> Candidates:
        """All candidates of a batch with their features."""
        has = signals.counts.copy()
        has.data = np.ones(len(has.data), dtype=np.float32)
        words = _Words(self, signals, has)
        pairs = self._candidates(signals, words)
        found = _votes(pairs, signals.votes) | self._frequency(pairs, signals)
        found |= self._document(pairs, signals)
        found |= self._named(pairs, signals, has)
        found |= words.features(pairs)
        for group, scores, prefix, missing in (
            ("autoencoder", signals.decoded, "decoded", 0.0),
            ("linear", signals.margins, "margin", _UNRANKED),
        ):
            if group in self.groups and scores is not None:
                found[prefix] = pairs.entries(scores, missing)
                found[f"{prefix}_rank"] = pairs.ranks(found[prefix])
        found |= self._related(pairs, _first_guess(found))
        columns = [found[name] for name in feature_names(self.groups)]
        return Candidates(pairs, np.column_stack(columns).astype(np.float32, copy=False))

    def _candidates(self, signals: Signals, words: _Words) -> Pairs:
        votes, width = signals.votes, self.statistics.width
        mentions = signals.mentions
        parts = [
            votes.keys[votes.values["first"] < _NEAREST],
            best_keys(votes.keys, votes.strength, width, _BEST_VOTES),
        ]
        if "named" in self.groups:
            parts.append(mentions.documents * width + mentions.columns)
        if "words" in self.groups:
            parts.append(best_keys(*matrix_keys(words.spoken, width), width, _BEST_WORDS))
        if "linear" in self.groups and signals.margins is not None:
            parts.append(best_keys(*matrix_keys(signals.margins, width), width, _BEST_LINEAR))
        return Pairs.union(parts, len(mentions), width)

    def _frequency(self, pairs: Pairs, signals: Signals) -> dict[str, Values]:
        frequencies = self.statistics.frequencies[pairs.columns]
        expected = (frequencies + 1) / max(self.statistics.documents, 1)
        majority = pairs.values(signals.votes.keys, signals.votes.values["majority40"])
        lift = np.log((majority + 0.01) / expected)
        per_ten_thousand = frequencies * 1e4 / max(self.statistics.documents, 1)
        return {"frequency": np.log1p(per_ten_thousand), "lift": lift}

    def _document(self, pairs: Pairs, signals: Signals) -> dict[str, Values]:
        votes, documents = signals.votes, pairs.documents
        lengths = np.asarray(signals.counts.sum(1), dtype=np.float32).ravel()
        return {
            "length": lengths[documents],
            "expected_count": votes.expected_count[documents],
            "nearest": votes.nearest[documents],
            "nearness": votes.nearness[documents],
        }

    def _named(self, pairs: Pairs, signals: Signals, has: csr_matrix[Any]) -> dict[str, Values]:
        mentions, columns = signals.mentions, pairs.columns
        keys = mentions.documents * pairs.width + mentions.columns
        places = pairs.places_in(keys)
        is_named = places >= 0

        def of(values: Any, missing: float) -> Floats:
            found = np.full(len(pairs), missing, dtype=np.float32)
            found[is_named] = values[places[is_named]]
            return found

        kinds = of(naming_kinds(mentions), IN_TITLE).astype(np.int64)
        covered = pairs.entries((has @ self.headings.names.T).tocsr())
        statistics = self.statistics
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
            "coverage": covered / np.maximum(self.headings.weights[columns], 1e-9),
            "name_words": self.headings.words[columns],
            "named_rate": np.where(is_named, statistics.named[kinds, columns], _UNNAMED),
            "named_in": np.where(is_named, statistics.named_in[kinds, columns], _UNNAMED),
        }

    def _related(self, pairs: Pairs, guess: Values) -> dict[str, Values]:
        """How candidates go together with the leading ones, and with those around them."""
        leads = pairs.ranks(guess) < _LEADING
        leading = pairs.matrix(guess, leads)
        total = np.asarray(leading.sum(1)).ravel()[pairs.documents]
        others = np.maximum(total - np.where(leads, guess, 0), 1e-9)
        all_of_them = pairs.matrix(guess, np.ones(len(pairs), dtype=np.bool_))
        broader = self.headings.broader
        above = (all_of_them @ broader).tocsr()
        parents = np.diff(broader.indptr)[pairs.columns]
        return {
            "together": _product(pairs, leading, self.statistics.together) / others,
            "attraction": _product(pairs, leading, self.statistics.attraction) / others,
            "broader": pairs.entries((all_of_them @ broader.T).tocsr()),
            "narrower": pairs.entries(above),
            "siblings": pairs.entries((above @ broader.T).tocsr()) - guess * parents,
        }


class _Words:
    """What the words of a batch say, before and after candidates are chosen."""

    def __init__(self, maker: FeatureMaker, signals: Signals, has: csr_matrix[Any]) -> None:
        self._maker = maker
        self._counts = signals.counts
        self._has = has
        self.spoken: csr_matrix[Any] = self._spoken()

    def _spoken(self) -> csr_matrix[Any]:
        weighted = self._has.copy()
        weighted.data = self._maker.terms.idf[weighted.indices]
        totals = np.maximum(np.asarray(weighted.sum(1)).ravel(), 1e-9)
        weighted.data /= np.repeat(totals, np.diff(weighted.indptr)).astype(np.float32)
        spoken: csr_matrix[Any] = (weighted @ self._maker.statistics.speaking).tocsr()
        return spoken

    def features(self, pairs: Pairs) -> dict[str, Values]:
        statistics = self._maker.statistics
        weighted = self._maker.terms.weighted(self._counts, pairs=False)
        described = pairs.entries((weighted @ statistics.describing).tocsr())
        spoken = pairs.entries(self.spoken)
        evidence = pairs.entries((self._has @ statistics.evidence).tocsr())
        return {
            "described": described,
            "described_rank": pairs.ranks(described),
            "spoken": spoken,
            "spoken_rank": pairs.ranks(spoken),
            "spoken_most": self._most(pairs),
            "word_evidence": evidence,
            "word_evidence_rank": pairs.ranks(evidence),
        }

    def _most(self, pairs: Pairs) -> Floats:
        """What the one word says that speaks most for a candidate."""
        speaking, has = self._maker.statistics.speaking, self._has
        found = np.zeros(len(pairs), dtype=np.float32)
        lengths = np.diff(speaking.indptr)
        for first in range(0, pairs.count, _CHUNK):
            part = has[first : first + _CHUNK]
            documents = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) + first
            counts = lengths[part.indices]
            ends = np.cumsum(counts)
            inside = np.arange(ends[-1] if len(ends) else 0)
            inside += np.repeat(speaking.indptr[part.indices] - (ends - counts), counts)
            keys = np.repeat(documents, counts) * pairs.width + speaking.indices[inside]
            span = slice(pairs.starts[first], pairs.starts[min(first + _CHUNK, pairs.count)])
            mine = pairs.keys[span]
            if len(mine) == 0 or len(keys) == 0:
                continue
            places = np.minimum(np.searchsorted(mine, keys), len(mine) - 1)
            hits = mine[places] == keys
            np.maximum.at(found[span], places[hits], speaking.data[inside][hits])
        return found


def _votes(pairs: Pairs, votes: Votes) -> dict[str, Values]:
    found = {
        name: pairs.values(votes.keys, values, NEVER if name == "first" else 0.0)
        for name, values in votes.values.items()
    }
    found["vote_rank"] = pairs.ranks(found["close4"])
    return found


def _first_guess(found: dict[str, Values]) -> Values:
    """A score good enough to tell which candidates lead."""
    if "margin" in found:
        return 0.7 / (1 + np.exp(-3 * found["margin"])) + 0.3 * found["close4"]
    in_title = np.where(found["title"] > 0, np.maximum(found["named_rate"], 0), 0)
    return 0.5 * found["close4"] + 0.5 * in_title


def _product(pairs: Pairs, leading: csr_matrix[Any], matrix: csr_matrix[Any]) -> Floats:
    """The entries of the product for the pairs, some documents at a time."""
    parts = []
    for first in range(0, pairs.count, _CHUNK):
        last = min(first + _CHUNK, pairs.count)
        span = slice(pairs.starts[first], pairs.starts[last])
        part = Pairs(pairs.keys[span] - first * pairs.width, last - first, pairs.width)
        parts.append(part.entries((leading[first:last] @ matrix).tocsr()))
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)
