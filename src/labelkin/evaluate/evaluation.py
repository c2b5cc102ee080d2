"""Gold and predicted label sets, the input of all measures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.exceptions import ConfigError
from labelkin.scoring.ranking import Ranking

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of correct, predicted and gold labels, per document or per label."""

    correct: Integers
    predicted: Integers
    gold: Integers


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Gold and predicted labels of the same documents, over the same label columns.

    `gold` is a matrix of documents × labels in which any non-zero value counts
    as 1. `predicted` holds the labels after the cut. `ranked`, if given, is the
    longer ranking before the cut, which measures with a depth (`P@5`) use
    instead. Propensity-scored measures and frequency bands need
    `training_frequencies` (documents per label), the former also
    `training_documents`; hierarchical measures need `hierarchy`.
    """

    gold: csr_matrix[Any]
    predicted: Ranking
    ranked: Ranking | None = None
    training_frequencies: npt.NDArray[np.integer[Any]] | None = None
    training_documents: int | None = None
    hierarchy: Hierarchy | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "gold", _zero_one(self.gold))
        documents, labels = self.gold.shape
        for ranking in (self.predicted, self.ranked):
            if ranking is not None:
                _check(ranking, documents, labels)
        frequencies = self.training_frequencies
        if frequencies is not None and len(frequencies) != labels:
            raise ValueError(f"{len(frequencies)} training frequencies for {labels} labels")
        if self.hierarchy is not None and self.hierarchy.labels != labels:
            raise ValueError(f"a hierarchy of {self.hierarchy.labels} labels for {labels} labels")

    @classmethod
    def unpredicted(cls, gold: csr_matrix[Any], **rest: Any) -> Evaluation:
        """An evaluation with empty predictions; use `replace` to fill them in."""
        return cls(gold, Ranking.from_lists([[] for _ in range(gold.shape[0])]), **rest)

    @property
    def documents(self) -> int:
        """The number of documents."""
        return int(self.gold.shape[0])

    @property
    def labels(self) -> int:
        """The number of label columns."""
        return int(self.gold.shape[1])

    @property
    def ordered(self) -> Ranking:
        """The ranking that measures with a depth use."""
        return self.predicted if self.ranked is None else self.ranked

    @property
    def frequencies(self) -> npt.NDArray[np.integer[Any]]:
        """Training frequencies; ConfigError if they were not given."""
        if self.training_frequencies is None:
            raise ConfigError(
                "training frequencies are needed; pass them to the evaluation, or pass a "
                "collection to `score` with --vocab"
            )
        return self.training_frequencies

    @cached_property
    def predicted_hits(self) -> npt.NDArray[np.bool_]:
        """For every predicted label, whether it is gold."""
        return self._hits(self.predicted)

    @cached_property
    def ordered_hits(self) -> npt.NDArray[np.bool_]:
        """For every label of `ordered`, whether it is gold."""
        return self.predicted_hits if self.ranked is None else self._hits(self.ranked)

    @cached_property
    def document_counts(self) -> Counts:
        """Correct, predicted and gold labels of each document."""
        return Counts(
            summed_by_document(self.predicted, self.predicted_hits).astype(np.int64),
            self.predicted.lengths,
            np.diff(self.gold.indptr).astype(np.int64),
        )

    @cached_property
    def label_counts(self) -> Counts:
        """For each label, the numbers of documents in which it is correct, predicted and gold."""
        columns = self.predicted.columns
        return Counts(
            np.bincount(columns[self.predicted_hits], minlength=self.labels),
            np.bincount(columns, minlength=self.labels),
            np.bincount(self.gold.indices, minlength=self.labels),
        )

    def taken(self, places: Integers) -> Evaluation:
        """The documents at the positions `places`, in that order and with repeats."""
        return replace(
            self,
            gold=self.gold[places],
            predicted=taken(self.predicted, places),
            ranked=None if self.ranked is None else taken(self.ranked, places),
        )

    def restricted(self, labels: npt.NDArray[np.bool_]) -> Evaluation:
        """Keep only the labels for which the mask is true; column numbers do not change.

        Documents left with neither gold nor predicted labels are dropped, so
        that they do not dilute means.
        """
        gold = self.gold.copy()
        gold.data = labels[gold.indices].astype(np.int8)
        gold.eliminate_zeros()
        predicted = self.predicted.kept(labels[self.predicted.columns])
        restricted = replace(
            self,
            gold=gold,
            predicted=predicted,
            ranked=None if self.ranked is None else self.ranked.kept(labels[self.ranked.columns]),
        )
        return restricted.taken(
            np.flatnonzero((np.diff(gold.indptr) > 0) | (predicted.lengths > 0))
        )

    def _hits(self, ranking: Ranking) -> npt.NDArray[np.bool_]:
        gold_rows = np.repeat(np.arange(self.documents), np.diff(self.gold.indptr))
        gold_keys = gold_rows * self.labels + self.gold.indices
        keys = _keys(ranking, self.labels)
        if len(gold_keys) == 0:
            return np.zeros(len(keys), dtype=np.bool_)
        # Rows are in order and columns sorted within each, so the keys are sorted.
        places = np.minimum(np.searchsorted(gold_keys, keys), len(gold_keys) - 1)
        return np.asarray(gold_keys[places] == keys)


def summed_by_document(ranking: Ranking, values: npt.NDArray[Any]) -> Floats:
    """Sum `values`, one per ranked label, over each document."""
    documents = np.repeat(np.arange(len(ranking)), ranking.lengths)
    weights = np.asarray(values, dtype=np.float64)
    return np.bincount(documents, weights, len(ranking)).astype(np.float64, copy=False)


def taken(ranking: Ranking, places: Integers) -> Ranking:
    """The documents of a ranking at the positions `places`, in that order."""
    lengths = ranking.lengths[places]
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    inside = np.arange(starts[-1]) + np.repeat(ranking.starts[places] - starts[:-1], lengths)
    return Ranking(starts, ranking.columns[inside], ranking.scores[inside])


def _zero_one(gold: csr_matrix[Any]) -> csr_matrix[Any]:
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(gold, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.data = np.ones(len(matrix.data), dtype=np.int8)
    return matrix


def _keys(ranking: Ranking, labels: int) -> Integers:
    """One number per ranked label that identifies document and label."""
    documents = np.repeat(np.arange(len(ranking), dtype=np.int64), ranking.lengths)
    return documents * labels + ranking.columns


def _check(ranking: Ranking, documents: int, labels: int) -> None:
    if len(ranking) != documents:
        raise ValueError(f"{len(ranking)} predicted documents for {documents} gold ones")
    columns = ranking.columns
    if len(columns) and (columns.min() < 0 or columns.max() >= labels):
        raise ValueError(f"predicted columns are outside the {labels} of the gold labels")
    keys = np.sort(_keys(ranking, labels))
    if np.any(keys[1:] == keys[:-1]):
        raise ValueError("a label is predicted twice for a document")
