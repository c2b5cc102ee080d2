"""Two sparse linear classifiers for each heading, trained one against the rest.

One reads stems, as everything else does; the other all words of the text, stop
words and numbers too, and the title apart. A heading's classifier is trained on
its documents, on the nearest documents that lack it (the ones that are hard to
tell apart) and on some at random; those of headings that a tenth of all
documents have are trained on all. Small weights are dropped.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import MissingExtraError
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.matrices import HalfMatrix
from labelkin.rerank.pairs import (
    Floats,
    Integers,
    Pairs,
    best_half_entries,
    best_keys,
    matrix_keys,
    pays_compiling,
)
from labelkin.rerank.signal import Arrays, Signal, Values
from labelkin.rerank.training_data import TrainingContext

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

_BEST = 75
# The margin of a heading that is not among the best.
_UNRANKED = -3.0
_MIN_DOCUMENTS = 2
_FREQUENT = 0.1
_AT_RANDOM = 300
_SMALL_WEIGHT = 0.15
_KEPT = 100
_CHUNK = 250
_TOLERANCE = 0.1
_ROUNDS = 50
# Headings that a process trains at a time, and documents times headings that are worth processes.
_HEADINGS_A_TASK = 100
_WORTH_PROCESSES = 20_000_000


class LinearSignal(Signal):
    """Margins and ranks of a heading by its classifiers."""

    name = "linear"
    features = ("margin", "margin_rank", "wording_margin", "wording_margin_rank")
    reason = "linear classifiers"

    def is_available(self, context: TrainingContext) -> bool:
        """Unless switched off: it is the slowest part of a training."""
        return context.settings.linear

    def fit(self, context: TrainingContext) -> LinearScorers:
        """Train two classifiers per heading."""
        settings, near = context.settings, context.nearest()
        wording, counts = context.wording()

        def fitted(weighted: csr_matrix[Any], stage: str) -> LinearScorer:
            return fit_linear(
                weighted,
                context.texts.labels,
                near,
                cost=settings.linear_cost,
                seed=settings.seed,
                processes=settings.threads or os.cpu_count() or 1,
                progress=lambda done, total: context.report(stage, done, total),
            )

        return LinearScorers(
            fitted(
                context.terms.weighted(context.texts.counts, pairs=True), "Training classifiers"
            ),
            fitted(wording.columns.weighted(counts, pairs=True), "Training classifiers of words"),
            wording.columns,
        )

    def to_arrays(self, fitted: LinearScorers) -> Arrays:
        """Weights by term, in half precision."""
        return fitted.arrays()

    def from_arrays(self, arrays: Arrays) -> LinearScorers:
        """The inverse of `to_arrays`."""
        return LinearScorers.from_arrays(arrays)

    def propose(self, evidence: Evidence) -> Integers:
        """The headings with the largest margins of each kind."""
        keys = [
            best_keys(*matrix_keys(margins, evidence.width), evidence.width, _BEST)
            for margins in (_margins(evidence), _wording_margins(evidence))
        ]
        return np.concatenate(keys)

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """A low margin for headings that are not among the best, none for those without classifier.

        So the trees do not take a heading that is new for one that does not fit.
        """
        scorers: LinearScorers = evidence.fitted("linear")
        values: dict[str, Values] = {}
        for name, scorer, margins in (
            ("margin", scorers.stems, _margins(evidence)),
            ("wording_margin", scorers.wording, _wording_margins(evidence)),
        ):
            has_none = ~np.isin(pairs.columns, scorer.columns)
            found = pairs.entries(margins, _UNRANKED)
            found[has_none] = np.nan
            ranks = pairs.ranks(found)
            ranks[has_none] = np.nan
            values |= {name: found, f"{name}_rank": ranks}
        return values


def _margins(evidence: Evidence) -> csr_matrix[Any]:
    scorers: LinearScorers = evidence.fitted("linear")
    terms = evidence.knowledge.terms
    return evidence.once(
        "margins",
        lambda: scorers.stems.margins(terms.weighted(evidence.counts, pairs=True), evidence.width),
    )


def _wording_margins(evidence: Evidence) -> csr_matrix[Any]:
    scorers: LinearScorers = evidence.fitted("linear")

    def computed() -> csr_matrix[Any]:
        counts = scorers.terms.counts(evidence.queries.wording())
        return scorers.wording.margins(scorers.terms.weighted(counts, pairs=True), evidence.width)

    return evidence.once("wording margins", computed)


@dataclass(frozen=True, eq=False)
class LinearScorers:
    """The classifiers that read stems, those that read the wording, and the terms of the latter."""

    stems: LinearScorer
    wording: LinearScorer
    terms: TermColumns

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as plain arrays."""
        arrays = {f"stems/{name}": array for name, array in self.stems.arrays().items()}
        arrays |= {f"wording/{name}": array for name, array in self.wording.arrays().items()}
        arrays["words"] = np.frombuffer(self.terms.names, dtype=np.uint8)
        arrays["idf"] = self.terms.idf
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LinearScorers:
        """The inverse of `arrays`."""

        def part(prefix: str) -> LinearScorer:
            mine = {name.removeprefix(prefix): array for name, array in arrays.items()}
            return LinearScorer.from_arrays(mine)

        terms = TermColumns(arrays["words"].tobytes(), arrays["idf"])
        return cls(part("stems/"), part("wording/"), terms)


@dataclass(frozen=True, eq=False)
class LinearScorer:
    """Weights (terms × headings) and shifts of the classifiers, and their columns."""

    weights: HalfMatrix
    shifts: Floats
    columns: Integers

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
        if pays_compiling(weighted.shape[0]):
            best, values = best_half_entries(weighted, self.weights, kept, self.shifts)
            starts = np.arange(len(best) + 1) * kept
            columns = self.columns[best.ravel()]
            return csr_matrix((values.ravel(), columns, starts), shape=(len(best), width))
        parts = []
        for first in range(0, weighted.shape[0], _CHUNK):
            products = self.weights.product(weighted[first : first + _CHUNK])
            scores = products.toarray() + self.shifts
            lowest = np.partition(scores, -kept, axis=1)[:, [-kept]]
            above, equal = scores > lowest, scores == lowest
            # Of equal ones at the end the first are taken.
            equal &= equal.cumsum(axis=1) <= kept - above.sum(axis=1, keepdims=True)
            rows, best = np.nonzero(above | equal)
            values = scores[rows, best].astype(np.float32)
            places = (rows, self.columns[best])
            parts.append(csr_matrix((values, places), shape=(len(scores), width)))
        margins: csr_matrix[Any] = vstack(parts, format="csr")
        return margins

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as plain arrays."""
        weights = self.weights
        return {
            "starts": weights.starts,
            "places": weights.places,
            "halves": weights.halves,
            "shifts": self.shifts,
            "columns": self.columns,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> LinearScorer:
        """The inverse of `arrays`; earlier versions stored weights by heading."""
        shifts, columns = arrays["shifts"], arrays["columns"]
        if "starts" in arrays:
            starts, places, halves = (arrays[name] for name in ("starts", "places", "halves"))
            return cls(HalfMatrix(starts, places, halves, len(columns)), shifts, columns)
        from scipy.sparse import csr_matrix

        by_heading = (arrays["data"].astype(np.float32), arrays["indices"], arrays["indptr"])
        weights = csr_matrix(by_heading, shape=(len(columns), int(arrays["terms"])))
        return cls(HalfMatrix.of(weights.T.tocsr()), shifts, columns)


def fit_linear(
    weighted: csr_matrix[Any],
    labels: csr_matrix[Any],
    near: Integers,
    *,
    cost: float,
    seed: int,
    processes: int,
    progress: Callable[[int, int], None] | None = None,
) -> LinearScorer:
    """Train on documents: their weighted terms, their labels, and the places of their nearest.

    `near` has a line per document, filled up with −1.
    """
    from scipy.sparse import csr_matrix

    by_label = labels.tocsc()
    frequencies = np.diff(by_label.indptr)
    columns = np.flatnonzero(frequencies >= _MIN_DOCUMENTS)
    if weighted.shape[1] == 0:
        # Texts of numbers, or in a script without spaces: no term is in two of them.
        columns = columns[:0]
    tasks = [columns[at : at + _HEADINGS_A_TASK] for at in range(0, len(columns), _HEADINGS_A_TASK)]
    task = _Task(weighted, by_label, near, cost, seed)
    if len(columns) * labels.shape[0] < _WORTH_PROCESSES:
        processes = 1
    classifiers = []
    for done in _mapped(task, tasks, processes):
        classifiers += done
        if progress is not None:
            progress(len(classifiers), len(columns))
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
    return LinearScorer(HalfMatrix.of(weights.T.tocsr()), shifts, columns.astype(np.int64))


Classifier = tuple[Integers, Floats, float]


def _mapped(task: _Task, tasks: list[Integers], processes: int) -> Iterator[list[Classifier]]:
    """The classifiers of some headings after others, in order."""
    if processes == 1:
        yield from map(task, tasks)
        return
    # liblinear has one source of random numbers for all threads of a process.
    from joblib import Parallel, delayed

    parallel = Parallel(
        processes, return_as="generator", mmap_mode="r", initializer=_ignore_interrupts
    )
    yield from parallel(delayed(task)(columns) for columns in tasks)


def _ignore_interrupts() -> None:
    """Let the process that trains react to Ctrl+C: it ends those that it has started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True, eq=False)
class _Task:
    """Trains the classifiers of some headings; other processes share the matrices."""

    weighted: csr_matrix[Any]
    by_label: csc_matrix[Any]
    near: Integers
    cost: float
    seed: int

    def __call__(self, columns: Integers) -> list[Classifier]:
        """Kept terms, their weights, and the shift of each heading's classifier."""
        with warnings.catch_warnings():
            # Rounds are limited on purpose.
            warnings.filterwarnings("ignore", "Liblinear failed to converge")
            return [self._fitted(column) for column in columns.tolist()]

    def _fitted(self, column: int) -> Classifier:
        documents, starts = self.by_label.shape[0], self.by_label.indptr
        having = self.by_label.indices[starts[column] : starts[column + 1]]
        lacking = np.ones(documents, dtype=np.bool_)
        if len(having) < _FREQUENT * documents:
            random = np.random.default_rng((self.seed, column))
            others = random.choice(documents, max(_AT_RANDOM, 2 * len(having)))
            around = self.near[having].ravel()
            lacking[:] = False
            lacking[others] = True
            lacking[around[around >= 0]] = True
        lacking[having] = False
        chosen: Integers = np.concatenate((having, np.flatnonzero(lacking)))
        if len(chosen) == len(having):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32), 1.0
        model = _classifier(self.cost, self.seed)
        model.fit(self.weighted[chosen], np.arange(len(chosen)) < len(having))
        weights = model.coef_.ravel()
        kept = np.flatnonzero(np.abs(weights) > _SMALL_WEIGHT)
        return kept, weights[kept].astype(np.float32), float(model.intercept_[0])


def _classifier(cost: float, seed: int) -> Any:
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the linear classifiers need scikit-learn: pip install 'labelkin[rerank]'"
        ) from error
    return LinearSVC(C=cost, tol=_TOLERANCE, dual=True, max_iter=_ROUNDS, random_state=seed)
