"""The methods that the paper names: ML-kNN, binary relevance, classifier chains, label powerset.

ML-kNN is written out here after Zhang and Zhou (2007): scikit-multilearn's does not run with
current scikit-learn. The others are scikit-learn's linear SVM in the three well-known reductions.
What would not fit is left out and said: classifier chains need a dense matrix of records × labels
and as many classifiers in sequence as there are labels, and a label powerset has a class for nearly
every record.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from .features import PACKAGES
from .label_sets import LabelSets
from .peer import TOP, FeaturePeer

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BLOCK = 512
_SEED = 0
Floats = npt.NDArray[np.float64]


class Classic(FeaturePeer):
    """Reductions of multi-label to single-label problems, and ML-kNN."""

    name = "classic"
    installs = (PACKAGES,)
    variants: ClassVar = {
        "ml-knn": {"features": "words", "k": 10, "smoothing": 1.0},
        "binary-relevance": {"features": "words", "classifiers": 1000, "C": 1.0},
        "classifier-chain": {"features": "words", "labels": 200, "C": 1.0},
        "label-powerset": {"features": "words", "label_sets": 1000, "C": 1.0},
    }
    note = (
        "k and smoothing of ML-kNN are its paper's. Binary relevance has `classifiers` for the "
        "most frequent labels: on mesh47k one takes about a second (on tibkat, where one takes a "
        "hundredth of that, they are as many). The chain has only the most "
        "frequent `labels`: it trains them one after another and keeps dense weights, 36,061 for "
        "each of 17,561 labels on mesh47k. The powerset has only the most frequent `label_sets`: "
        "on mesh47k 43,178 records have 43,133 different sets, and 4 of 1,211 test records have a "
        "set that occurs in training."
    )

    def fit(
        self,
        settings: Mapping[str, Any],
        rows: csr_matrix[Any],
        labels: csr_matrix[Any],
        model: Path,
        threads: int,
    ) -> None:
        """Train what the settings ask for."""
        if "k" in settings:
            arrays = fit_ml_knn(rows, labels, settings["k"], settings["smoothing"])
        elif "classifiers" in settings:
            arrays = fit_binary_relevance(rows, labels, settings, threads)
        elif "labels" in settings:
            arrays = fit_chain(rows, labels, settings)
        else:
            arrays = fit_powerset(rows, labels, settings)
        np.savez(model / "model.npz", allow_pickle=False, **arrays)

    def rank(
        self,
        settings: Mapping[str, Any],
        model: Path,
        rows: csr_matrix[Any],
        threads: int,  # noqa: ARG002
    ) -> LabelSets:
        """Score labels block by block and keep the best."""
        with np.load(model / "model.npz") as stored:
            arrays = {name: stored[name] for name in stored.files}
        columns: list[npt.ArrayLike] = []
        scores: list[npt.ArrayLike] = []
        for first in range(0, rows.shape[0], _BLOCK):
            block = rows[first : first + _BLOCK]
            if "k" in settings:
                values = ml_knn_scores(arrays, block, settings["k"])
                labels = np.arange(values.shape[1])
            elif "classifiers" in settings:
                values, labels = linear_scores(arrays, block), arrays["columns"]
            elif "labels" in settings:
                values, labels = chain_scores(arrays, block), arrays["columns"]
            else:
                values, labels = powerset_scores(arrays, block)
            best = np.argsort(-values, axis=1, kind="stable")[:, :TOP]
            columns += list(labels[best])
            scores += list(np.take_along_axis(values, best, axis=1))
        return LabelSets.from_lists(columns, scores)


# ML-kNN.


def fit_ml_knn(
    rows: csr_matrix[Any], labels: csr_matrix[Any], k: int, smoothing: float
) -> dict[str, npt.NDArray[Any]]:
    """For each label its prior, and how many neighbours carry it with and without the label.

    P(label) = (s + n) / (2 s + N); P(j neighbours carry it | label) = (s + n_j) / (s (k + 1) + n),
    counted over the training records with themselves left out.
    """
    records, width = labels.shape
    having = np.zeros((width, k + 1), dtype=np.int32)
    lacking = np.zeros((width, k + 1), dtype=np.int32)
    for first in range(0, records, _BLOCK):
        block = slice(first, min(first + _BLOCK, records))
        own = np.arange(block.start, block.stop)
        counts = carried(nearest(rows[block], rows, k, own), labels)
        for row in range(counts.shape[0]):
            span = slice(counts.indptr[row], counts.indptr[row + 1])
            places, numbers = counts.indices[span], counts.data[span].astype(np.int64)
            start, end = labels.indptr[first + row], labels.indptr[first + row + 1]
            has = np.isin(places, labels.indices[start:end])
            having[places[has], numbers[has]] += 1
            lacking[places[~has], numbers[~has]] += 1
    frequency = np.bincount(labels.indices, minlength=width)
    # What no neighbour carries has not been counted.
    having[:, 0] = frequency - having[:, 1:].sum(axis=1)
    lacking[:, 0] = records - frequency - lacking[:, 1:].sum(axis=1)
    prior = (smoothing + frequency) / (2 * smoothing + records)
    odds_with = _smoothed(having, smoothing)
    odds_without = _smoothed(lacking, smoothing)
    with_label = prior[:, None] * odds_with
    posterior = with_label / (with_label + (1 - prior)[:, None] * odds_without)
    return {
        "posterior": posterior.astype(np.float32),
        "starts": rows.indptr,
        "places": rows.indices,
        "values": rows.data,
        "shape": np.array(rows.shape),
        "label_starts": labels.indptr,
        "label_places": labels.indices,
    }


def _smoothed(counts: npt.NDArray[np.int32], smoothing: float) -> Floats:
    totals = counts.sum(axis=1, keepdims=True)
    shares: Floats = (smoothing + counts) / (smoothing * counts.shape[1] + totals)
    return shares


def ml_knn_scores(
    arrays: Mapping[str, npt.NDArray[Any]], block: csr_matrix[Any], k: int
) -> npt.NDArray[np.float32]:
    """P(label | number of neighbours that carry it) of all labels."""
    from scipy.sparse import csr_matrix

    parts = (arrays["values"], arrays["places"], arrays["starts"])
    rows = csr_matrix(parts, shape=tuple(arrays["shape"]))
    posterior: npt.NDArray[np.float32] = arrays["posterior"]
    places, starts = arrays["label_places"], arrays["label_starts"]
    ones = np.ones(len(places), dtype=np.float32)
    labels = csr_matrix((ones, places, starts), shape=(rows.shape[0], len(posterior)))
    counts = carried(nearest(block, rows, k), labels).toarray().astype(np.int64)
    scores: npt.NDArray[np.float32] = posterior[np.arange(len(posterior)), counts]
    return scores


def nearest(
    queries: csr_matrix[Any],
    rows: csr_matrix[Any],
    k: int,
    own: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.int64]:
    """The k rows with the highest cosine; `own` are those that queries must not find."""
    similar = (queries @ rows.T).toarray()
    if own is not None:
        similar[np.arange(len(own)), own] = -1.0
    found: npt.NDArray[np.int64] = np.argpartition(-similar, k - 1, axis=1)[:, :k]
    return found


def carried(neighbours: npt.NDArray[np.int64], labels: csr_matrix[Any]) -> csr_matrix[Any]:
    """How many neighbours carry each label."""
    from scipy.sparse import csr_matrix

    count, k = neighbours.shape
    starts = np.arange(0, count * k + 1, k)
    ones = np.ones(count * k, dtype=np.float32)
    chosen = csr_matrix((ones, neighbours.ravel(), starts), shape=(count, labels.shape[0]))
    return csr_matrix(chosen @ labels)


# Linear classifiers.


def fit_binary_relevance(
    rows: csr_matrix[Any], labels: csr_matrix[Any], settings: Mapping[str, Any], threads: int
) -> dict[str, npt.NDArray[Any]]:
    """A classifier per label; weights below 0.01 are dropped, as in DiSMEC."""
    from joblib import Parallel, delayed
    from scipy.sparse import csr_matrix, vstack

    frequency = np.bincount(labels.indices, minlength=labels.shape[1])
    order = np.argsort(-frequency, kind="stable")[: settings["classifiers"]]
    columns = np.sort(order[frequency[order] > 0])
    by_label = labels.tocsc()
    chosen = [by_label.indices[by_label.indptr[one] : by_label.indptr[one + 1]] for one in columns]
    fitted = Parallel(n_jobs=threads)(
        delayed(_classifier)(rows, positive, settings["C"]) for positive in chosen
    )
    weights = csr_matrix(vstack([one for one, _ in fitted])).T.tocsr()
    return {
        "columns": columns,
        "bias": np.array([bias for _, bias in fitted]),
        "starts": weights.indptr,
        "places": weights.indices,
        "values": weights.data,
        "shape": np.array(weights.shape),
    }


def _classifier(
    rows: csr_matrix[Any], positive: npt.NDArray[np.int32], c: float
) -> tuple[csr_matrix[Any], float]:
    from scipy.sparse import csr_matrix

    fitted = _svm(c).fit(rows, np.isin(np.arange(rows.shape[0]), positive))
    weights = fitted.coef_.astype(np.float32)
    weights[np.abs(weights) < 0.01] = 0
    return csr_matrix(weights), float(fitted.intercept_[0])


def _svm(c: float) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(C=c, random_state=_SEED)


def linear_scores(
    arrays: Mapping[str, npt.NDArray[Any]], block: csr_matrix[Any]
) -> npt.NDArray[np.float32]:
    """Margins of all classifiers."""
    from scipy.sparse import csr_matrix

    parts = (arrays["values"], arrays["places"], arrays["starts"])
    weights = csr_matrix(parts, shape=tuple(arrays["shape"]))
    margins: npt.NDArray[np.float32] = (block @ weights).toarray() + arrays["bias"]
    return margins


def fit_chain(
    rows: csr_matrix[Any], labels: csr_matrix[Any], settings: Mapping[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    """Classifiers in sequence, each with the labels before it as features."""
    from scipy.sparse import csr_matrix, hstack

    frequency = np.bincount(labels.indices, minlength=labels.shape[1])
    columns = np.argsort(-frequency, kind="stable")[: settings["labels"]]
    targets = labels[:, columns].toarray() > 0
    weights = np.zeros((len(columns), rows.shape[1]), dtype=np.float32)
    links = np.zeros((len(columns), len(columns)), dtype=np.float32)
    bias = np.zeros(len(columns), dtype=np.float32)
    for place in range(len(columns)):
        before = csr_matrix(targets[:, :place].astype(np.float32))
        fitted = _svm(settings["C"]).fit(csr_matrix(hstack([rows, before])), targets[:, place])
        weights[place] = fitted.coef_[0, : rows.shape[1]]
        links[place, :place] = fitted.coef_[0, rows.shape[1] :]
        bias[place] = fitted.intercept_[0]
    return {"columns": columns, "weights": weights, "links": links, "bias": bias}


def chain_scores(
    arrays: Mapping[str, npt.NDArray[Any]], block: csr_matrix[Any]
) -> npt.NDArray[np.float32]:
    """Margins in the order of the chain; what is above 0 counts for the labels after it."""
    margins: npt.NDArray[np.float32] = block @ arrays["weights"].T + arrays["bias"]
    is_on = np.zeros_like(margins)
    for place in range(margins.shape[1]):
        margins[:, place] += is_on[:, :place] @ arrays["links"][place, :place]
        is_on[:, place] = margins[:, place] > 0
    return margins


def fit_powerset(
    rows: csr_matrix[Any], labels: csr_matrix[Any], settings: Mapping[str, Any]
) -> dict[str, npt.NDArray[Any]]:
    """A class for each of the most frequent label sets; records with others are left out."""
    sets = [
        tuple(labels.indices[start:end].tolist())
        for start, end in zip(labels.indptr[:-1], labels.indptr[1:], strict=True)
    ]
    numbers: dict[tuple[int, ...], int] = {}
    counts: dict[tuple[int, ...], int] = {}
    for one in sets:
        counts[one] = counts.get(one, 0) + 1
    for one in sorted(counts, key=lambda one: -counts[one])[: settings["label_sets"]]:
        numbers[one] = len(numbers)
    kept = np.array([place for place, one in enumerate(sets) if one in numbers])
    classes = np.array([numbers[sets[place]] for place in kept])
    fitted = _svm(settings["C"]).fit(rows[kept], classes)
    kinds = [np.array(one) for one in numbers]
    return {
        "weights": fitted.coef_.astype(np.float32),
        "bias": fitted.intercept_,
        "set_starts": np.cumsum([0, *(len(one) for one in kinds)]),
        "set_labels": np.concatenate(kinds),
        "width": np.array(labels.shape[1]),
    }


def powerset_scores(
    arrays: Mapping[str, npt.NDArray[Any]], block: csr_matrix[Any]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The highest margin of any set that a label is in."""
    margins = block @ arrays["weights"].T + arrays["bias"]
    columns, places = np.unique(arrays["set_labels"], return_inverse=True)
    sets = np.repeat(np.arange(len(arrays["set_starts"]) - 1), np.diff(arrays["set_starts"]))
    scores = np.full((block.shape[0], len(columns)), -np.inf, dtype=np.float32)
    for one, column in zip(sets, places, strict=True):
        np.maximum(scores[:, column], margins[:, one], out=scores[:, column])
    return scores, columns
