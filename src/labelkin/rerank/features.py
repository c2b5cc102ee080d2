"""Candidates and their features: every signal's values for one heading of one text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from labelkin.exceptions import ConfigError, ModelMismatchError
from labelkin.memo import Memo
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.represent.term_columns import STEMS, TermColumns
from labelkin.rerank.headings import Headings
from labelkin.rerank.matrices import indicator
from labelkin.rerank.pairs import Floats, Pairs
from labelkin.rerank.signal import Signal, Values
from labelkin.rerank.signals import SIGNALS, feature_names, ordered
from labelkin.rerank.statistics import LabelStatistics
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import RERANK_DEPTH

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What was counted and fitted over labelled documents, by vocabulary column.

    `fitted` holds the values that signals have fitted, by name.
    """

    statistics: LabelStatistics
    headings: Headings
    terms: TermColumns
    groups: tuple[str, ...]
    fitted: Mapping[str, Any] = field(default_factory=dict)

    def widened(self, width: int) -> Knowledge:
        """The same for a larger vocabulary; the new columns are empty."""
        if width <= self.statistics.width:
            return self
        return Knowledge(
            self.statistics.widened(width),
            self.headings.widened(width),
            self.terms,
            self.groups,
            self.fitted,
        )


class Evidence:
    """What is known about a batch of documents, independent of the candidates.

    Each value is computed when a signal first needs it, shared, and dropped
    with the evidence: values of documents × headings are too large to keep with
    the queries. The models of the signals in `unknown` have seen the documents:
    their features are not known. `counts` are the term counts, if they have been
    computed before.
    """

    def __init__(
        self,
        queries: Queries,
        knowledge: Knowledge,
        *,
        unknown: Collection[str] = (),
        counts: csr_matrix[Any] | None = None,
    ) -> None:
        self.queries = queries
        self.knowledge = knowledge
        self._unknown = unknown
        self._values = Memo()
        if counts is not None:
            self._values.put("term counts", counts)

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def width(self) -> int:
        """How many vocabulary columns there are."""
        return self.knowledge.statistics.width

    @property
    def neighbours(self) -> Neighbours:
        """The nearest documents."""
        return self.queries.neighbours(RERANK_DEPTH)

    @property
    def mentions(self) -> Mentions:
        """The headings that the texts name."""
        return self.queries.mentions()

    @property
    def counts(self) -> csr_matrix[Any]:
        """How often each document has each term."""
        terms = self.knowledge.terms
        return self.once(
            "term counts", lambda: terms.counts(self.queries.terms([STEMS()])["stems"])
        )

    @property
    def has(self) -> csr_matrix[Any]:
        """1 where a document has a term."""
        return self.once("has", lambda: indicator(self.counts))

    @property
    def in_title(self) -> csr_matrix[Any]:
        """1 where the title of a document has a term."""
        terms = self.knowledge.terms
        return self.once(
            "in title",
            lambda: indicator(terms.counts(self.queries.title_terms([STEMS()])["stems"])),
        )

    def knows(self, signal: Signal) -> bool:
        """Whether the features of a signal can be used."""
        return signal.name not in self._unknown

    def fitted(self, name: str) -> Any:
        """The fitted value of a signal; None if it is not part of the model."""
        return self.knowledge.fitted.get(name)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """A value computed for this batch, the same at every later call."""
        return self._values.get(key, make)


class Features:
    """The features of a batch of candidates, each signal's computed when first needed."""

    def __init__(self, evidence: Evidence, pairs: Pairs) -> None:
        self._evidence = evidence
        self.pairs = pairs
        self._values: dict[str, Values] = {}

    def __getitem__(self, name: str) -> Values:
        """The values of one feature."""
        if name not in self._values:
            signal = _owner(name)
            self._values.update(signal.values(self._evidence, self.pairs, self))
            if name not in self._values:
                raise ConfigError(f"the signal {signal.name!r} gives no values of {name!r}")
        return self._values[name]

    def matrix(self, groups: Iterable[str]) -> Floats:
        """A line per candidate, with the features of some signals in order; NaN for unknown."""
        matrix = np.full((len(self.pairs), len(feature_names(groups))), np.nan, dtype=np.float32)
        place = 0
        for signal in ordered(groups):
            for name in signal.features:
                if self._evidence.knows(signal):
                    matrix[:, place] = self[name]
                place += 1
        return matrix

    @property
    def first_guess(self) -> Values:
        """A rough score that shows which candidates lead, before the trees are used."""
        if "first guess" not in self._values:
            self._values["first guess"] = self._guess()
        return self._values["first guess"]

    def _guess(self) -> Values:
        if self._evidence.fitted("linear") is not None:
            # Without a classifier the votes count alone.
            by_words = np.nan_to_num(1 / (1 + np.exp(-3 * self["margin"])), nan=0.0)
            return 0.7 * by_words + 0.3 * self["close4"]
        in_title = np.where(self["title"] > 0, np.maximum(self["named_rate"], 0), 0)
        return 0.5 * self["close4"] + 0.5 * in_title


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of document and heading with a line of features each."""

    pairs: Pairs
    features: Floats


def find_candidates(evidence: Evidence) -> Candidates:
    """All candidates of a batch with their features."""
    groups = evidence.knowledge.groups
    proposals = [signal.propose(evidence) for signal in ordered(groups) if evidence.knows(signal)]
    parts = [keys for keys in proposals if keys is not None]
    pairs = Pairs.union(parts, len(evidence), evidence.width)
    return Candidates(pairs, Features(evidence, pairs).matrix(groups))


def remaining(
    neighbours: Neighbours, is_held_out: np.ndarray, depth: int = RERANK_DEPTH
) -> Neighbours:
    """The nearest neighbours that are not held out, ranks closed up."""
    there = neighbours.rows != NO_NEIGHBOUR
    known = there & (neighbours.rows < len(is_held_out))
    gone = ~known | is_held_out[np.where(known, neighbours.rows, 0)]
    order = np.argsort(gone, axis=1, kind="stable")
    rows = np.take_along_axis(np.where(gone, NO_NEIGHBOUR, neighbours.rows), order, 1)
    scores = np.take_along_axis(np.where(gone, 0, neighbours.scores), order, 1)
    kept = Neighbours(
        neighbours.ids,
        rows,
        scores.astype(np.float32),
        neighbours.own_scores,
        neighbours.fingerprint,
    )
    return kept.nearest(depth)


def check_groups(folder: Path, groups: Iterable[str]) -> None:
    """Raise ModelMismatchError if a signal of a model is not installed."""
    for name in groups:
        if name not in SIGNALS:
            raise ModelMismatchError(
                f"{folder}: the reranker uses the signal {name!r}, which is not installed; "
                "install its package or train the reranker again"
            )


def _owner(feature: str) -> Signal:
    return next(signal for signal in SIGNALS if feature in signal.features)
