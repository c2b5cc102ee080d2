"""An optional signal: a sparse linear classifier for each heading, trained one against the rest.

A heading's classifier is trained on its documents, on the nearest documents
that lack it (the ones that are hard to tell apart) and on some at random; those
of headings that a tenth of all documents have are trained on all. Small weights
are dropped.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import MissingExtraError
from labelkin.memo import Memo
from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Floats, Integers, Pairs, best_keys, matrix_keys
from labelkin.rerank.signal import Arrays, Signal, Values
from labelkin.rerank.training import TrainingContext

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BEST = 50
# The margin of a heading that is not among the best.
_UNRANKED = -3.0
_MIN_DOCUMENTS = 2
_FREQUENT = 0.1
_AT_RANDOM = 1000
_SMALL_WEIGHT = 0.1
_KEPT = 100
_CHUNK = 250
_TOLERANCE = 0.1
_ROUNDS = 50


class LinearSignal(Signal):
    """Margin and rank of a heading by its classifier."""

    name = "linear"
    features = ("margin", "margin_rank")
    reason = "linear classifier"

    def is_available(self, context: TrainingContext) -> bool:
        """Only if requested: it is the slowest part of a training."""
        return context.settings.linear

    def fit(self, context: TrainingContext) -> LinearScorer:
        """Train a classifier per heading."""
        settings = context.settings
        return fit_linear(
            context.terms.weighted(context.texts.counts, pairs=True),
            context.texts.labels,
            context.nearest(),
            cost=settings.linear_cost,
            seed=settings.seed,
            threads=settings.threads or os.cpu_count() or 1,
            progress=lambda done, total: context.report("Training classifiers", done, total),
        )

    def to_arrays(self, fitted: LinearScorer) -> Arrays:
        """Weights in half precision."""
        return fitted.arrays()

    def from_arrays(self, arrays: Arrays) -> LinearScorer:
        """The inverse of `to_arrays`."""
        return LinearScorer.from_arrays(arrays)

    def propose(self, evidence: Evidence) -> Integers:
        """The headings with the largest margins."""
        keys, values = matrix_keys(_margins(evidence), evidence.width)
        return best_keys(keys, values, evidence.width, _BEST)

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """A low margin for headings that are not among the best."""
        margins = pairs.entries(_margins(evidence), _UNRANKED)
        return {"margin": margins, "margin_rank": pairs.ranks(margins)}


def _margins(evidence: Evidence) -> csr_matrix[Any]:
    scorer: LinearScorer = evidence.fitted("linear")
    terms = evidence.knowledge.terms
    return evidence.once(
        "margins",
        lambda: scorer.margins(terms.weighted(evidence.counts, pairs=True), evidence.width),
    )


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Weights (headings × terms) and shifts of the classifiers, and their columns."""

    weights: csr_matrix[Any]
    shifts: Floats
    columns: Integers

    _derived: Memo = field(default_factory=Memo, repr=False)

    @property
    def _by_term(self) -> csr_matrix[Any]:
        return self._derived.get("by term", lambda: self.weights.T.tocsr())

    def margins(self, weighted: csr_matrix[Any], width: int) -> csr_matrix[Any]:
        """How far each document is on a heading's side, for its best headings."""
        from scipy.sparse import csr_matrix, vstack

        if len(self.columns) == 0 or weighted.shape[0] == 0:
            nothing = np.zeros(weighted.shape[0] + 1, dtype=np.int64)
            return csr_matrix(
                (np.zeros(0, dtype=np.float32), nothing[:0], nothing),
                shape=(weighted.shape[0], width),
            )
        kept = min(_KEPT, len(self.columns))
        parts = []
        for first in range(0, weighted.shape[0], _CHUNK):
            scores = (weighted[first : first + _CHUNK] @ self._by_term).toarray() + self.shifts
            best = np.argpartition(-scores, kept - 1, axis=1)[:, :kept]
            values = np.take_along_axis(scores, best, 1).astype(np.float32)
            rows = np.repeat(np.arange(len(scores)), kept)
            places = (rows, self.columns[best.ravel()])
            parts.append(csr_matrix((values.ravel(), places), shape=(len(scores), width)))
        margins: csr_matrix[Any] = vstack(parts, format="csr")
        return margins

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as plain arrays, weights in half precision."""
        return {
            "data": self.weights.data.astype(np.float16),
            "indices": self.weights.indices.astype(np.int32),
            "indptr": self.weights.indptr.astype(np.int64),
            "terms": np.array(self.weights.shape[1]),
            "shifts": self.shifts,
            "columns": self.columns,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LinearScorer:
        """The inverse of `arrays`."""
        from scipy.sparse import csr_matrix

        parts = (arrays["data"].astype(np.float32), arrays["indices"], arrays["indptr"])
        shape = (len(arrays["columns"]), int(arrays["terms"]))
        return cls(csr_matrix(parts, shape=shape), arrays["shifts"], arrays["columns"])


def fit_linear(
    weighted: csr_matrix[Any],
    labels: csr_matrix[Any],
    near: Integers,
    *,
    cost: float,
    seed: int,
    threads: int,
    progress: Callable[[int, int], None] | None = None,
) -> LinearScorer:
    """Train on documents: their weighted terms, their labels, and the places of their nearest.

    `near` has a line per document, filled up with −1.
    """
    from scipy.sparse import csr_matrix

    by_label = labels.tocsc()
    frequencies = np.diff(by_label.indptr)
    columns = np.flatnonzero(frequencies >= _MIN_DOCUMENTS)
    documents = labels.shape[0]
    classifier = _classifier(cost, seed)
    lock = Lock()

    def fitted(column: int) -> tuple[Integers, Floats, float]:
        having = by_label.indices[by_label.indptr[column] : by_label.indptr[column + 1]]
        lacking = np.ones(documents, dtype=np.bool_)
        if len(having) < _FREQUENT * documents:
            random = np.random.default_rng((seed, column))
            others = random.choice(documents, max(_AT_RANDOM, 2 * len(having)))
            around = near[having].ravel()
            lacking[:] = False
            lacking[others] = True
            lacking[around[around >= 0]] = True
        lacking[having] = False
        chosen: Integers = np.concatenate((having, np.flatnonzero(lacking)))
        if len(chosen) == len(having):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32), 1.0
        model = classifier()
        lines = weighted[chosen]
        # liblinear has one source of random numbers for all threads.
        with lock:
            model.fit(lines, np.arange(len(chosen)) < len(having))
        weights = model.coef_.ravel()
        kept = np.flatnonzero(np.abs(weights) > _SMALL_WEIGHT)
        return kept, weights[kept].astype(np.float32), float(model.intercept_[0])

    classifiers = []
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        # Rounds are limited on purpose.
        warnings.filterwarnings("ignore", "Liblinear failed to converge")
        for number, one in enumerate(pool.map(fitted, columns.tolist()), start=1):
            classifiers.append(one)
            if progress is not None and (number % 100 == 0 or number == len(columns)):
                progress(number, len(columns))
    lengths = [len(kept) for kept, _, _ in classifiers]
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    no_values, no_columns = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int64)
    weights = csr_matrix(
        (
            np.concatenate([values for _, values, _ in classifiers] or [no_values]),
            np.concatenate([kept for kept, _, _ in classifiers] or [no_columns]),
            starts,
        ),
        shape=(len(columns), weighted.shape[1]),
    )
    shifts = np.array([shift for _, _, shift in classifiers], dtype=np.float32)
    return LinearScorer(weights, shifts, columns.astype(np.int64))


def _classifier(cost: float, seed: int) -> Callable[[], Any]:
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the linear scorer needs scikit-learn: pip install 'labelkin[linear]'"
        ) from error
    return lambda: LinearSVC(C=cost, tol=_TOLERANCE, dual=True, max_iter=_ROUNDS, random_state=seed)
