"""An optional scorer: a sparse linear classifier for each heading, trained one against the rest.

A heading's classifier learns from its documents, from the nearest documents
that lack it (the ones that are hard to tell apart) and from some at random;
headings that a tenth of all documents have learn from all. Small weights are dropped.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import MissingExtraError
from labelkin.rerank.pairs import Floats, Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_LEAST_DOCUMENTS = 2
_FREQUENT = 0.1
_AT_RANDOM = 1000
_SMALL_WEIGHT = 0.1
_KEPT = 100
_CHUNK = 250
_TOLERANCE = 0.1
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Weights (headings × terms) and shifts of the classifiers, and their columns."""

    weights: csr_matrix[Any]
    shifts: Floats
    columns: Integers

    @cached_property
    def _by_term(self) -> csr_matrix[Any]:
        turned: csr_matrix[Any] = self.weights.T.tocsr()
        return turned

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
        found: csr_matrix[Any] = vstack(parts, format="csr")
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as plain arrays, weights in half precision, to be written down."""
        return {
            "data": self.weights.data.astype(np.float16),
            "indices": self.weights.indices.astype(np.int32),
            "indptr": self.weights.indptr.astype(np.int64),
            "terms": np.array(self.weights.shape[1]),
            "shifts": self.shifts,
            "columns": self.columns,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> LinearScorer:
        """What `arrays` gave."""
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

    `near` has a line per document, −1 where there is nobody.
    """
    from scipy.sparse import csr_matrix

    by_label = labels.tocsc()
    frequencies = np.diff(by_label.indptr)
    columns = np.flatnonzero(frequencies >= _LEAST_DOCUMENTS)
    documents = labels.shape[0]
    classifier = _classifier(cost, seed)
    alone = Lock()

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
        with alone:
            model.fit(lines, np.arange(len(chosen)) < len(having))
        weights = model.coef_.ravel()
        kept = np.flatnonzero(np.abs(weights) > _SMALL_WEIGHT)
        return kept, weights[kept].astype(np.float32), float(model.intercept_[0])

    found = []
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        # Rounds are limited on purpose.
        warnings.filterwarnings("ignore", "Liblinear failed to converge")
        for number, one in enumerate(pool.map(fitted, columns.tolist()), start=1):
            found.append(one)
            if progress is not None and (number % 100 == 0 or number == len(columns)):
                progress(number, len(columns))
    starts = np.concatenate(([0], np.cumsum([len(kept) for kept, _, _ in found]))).astype(np.int64)
    weights = csr_matrix(
        (
            np.concatenate([values for _, values, _ in found] or [np.zeros(0, dtype=np.float32)]),
            np.concatenate([kept for kept, _, _ in found] or [np.zeros(0, dtype=np.int64)]),
            starts,
        ),
        shape=(len(columns), weighted.shape[1]),
    )
    shifts = np.array([shift for _, _, shift in found], dtype=np.float32)
    return LinearScorer(weights, shifts, columns.astype(np.int64))


def _classifier(cost: float, seed: int) -> Callable[[], Any]:
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the linear scorer needs scikit-learn: pip install 'labelkin[linear]'"
        ) from error
    return lambda: LinearSVC(C=cost, tol=_TOLERANCE, dual=True, max_iter=_ROUNDS, random_state=seed)
