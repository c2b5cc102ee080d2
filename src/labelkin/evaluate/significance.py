"""Bootstrap intervals of a measure, and a paired test of two systems.

Both resample documents, not labels: the labels of a document are not
independent. For measures that follow from sums over documents a resample is one
product of counts and statistics; others are recomputed for each resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from labelkin.evaluate.evaluation import Evaluation, Floats, taken
from labelkin.evaluate.measure import Measure
from labelkin.scoring.ranking import Ranking

_BATCH_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the bounds of its percentile bootstrap interval."""

    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True)
class PairedTest:
    """`difference` is a's value minus b's; `p_value` is two-sided."""

    a: float
    b: float
    difference: float
    p_value: float


def bootstrap_interval(
    measure: Measure,
    evaluation: Evaluation,
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Interval:
    """The percentile bootstrap interval over documents (Efron & Tibshirani 1993, chapter 13)."""
    if measure.is_additive:
        return bootstrap_intervals([measure], evaluation, samples, seed, confidence)[0]
    _require_documents(evaluation)
    rng = np.random.default_rng(seed)
    documents = evaluation.documents
    values = np.empty(samples)
    for number in range(samples):
        places = rng.integers(documents, size=documents)
        values[number] = measure.value(evaluation.taken(places))
    return _interval(measure.value(evaluation), values, confidence)


def bootstrap_intervals(
    measures: Sequence[Measure],
    evaluation: Evaluation,
    samples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> list[Interval]:
    """The intervals of several additive measures over the same resamples, drawn once."""
    _require_documents(evaluation)
    rng = np.random.default_rng(seed)
    documents = evaluation.documents
    statistics = [measure.statistics(evaluation) for measure in measures]
    values = np.empty((len(measures), samples))
    uniform = np.full(documents, 1 / documents)
    for span in _batches(samples, documents):
        weights = rng.multinomial(documents, uniform, size=span.stop - span.start)
        for place, (measure, sums) in enumerate(zip(measures, statistics, strict=True)):
            values[place, span] = measure.family.combine(weights @ sums, documents)
    return [
        _interval(measure.value(evaluation), one, confidence)
        for measure, one in zip(measures, values, strict=True)
    ]


def _interval(value: float, resampled: Floats, confidence: float) -> Interval:
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, (tail, 1 - tail))
    return Interval(value, float(low), float(high), confidence)


def paired_test(
    measure: Measure, a: Evaluation, b: Evaluation, samples: int = 1000, seed: int = 0
) -> PairedTest:
    """Approximate randomisation (Noreen 1989): test whether a and b differ.

    Each sample swaps the predictions of a and b for a random half of the
    documents. The p-value is the share of samples, including the actual
    outcome, whose difference is at least as large as the actual one in either
    direction; it cannot be below 1 / (samples + 1).
    """
    _require_documents(a)
    if not _same_gold(a, b):
        raise ValueError("a paired test needs the same gold labels on both sides")
    rng = np.random.default_rng(seed)
    values = measure.value(a), measure.value(b)
    actual = values[0] - values[1]
    differences = np.empty(samples)
    if measure.is_additive:
        _swapped_sums(measure, a, b, rng, differences)
    else:
        for number in range(samples):
            swapped = rng.random(a.documents) < 0.5
            left, right = _exchanged(a, b, swapped), _exchanged(b, a, swapped)
            differences[number] = measure.value(left) - measure.value(right)
    # Differences that are equal in theory may differ in the last bits.
    extreme = int(np.sum(np.abs(differences) >= abs(actual) - 1e-12))
    return PairedTest(*values, actual, (extreme + 1) / (samples + 1))


def _swapped_sums(
    measure: Measure, a: Evaluation, b: Evaluation, rng: np.random.Generator, differences: Floats
) -> None:
    statistics_a, statistics_b = measure.statistics(a), measure.statistics(b)
    gap = statistics_b - statistics_a
    sum_a, sum_b = statistics_a.sum(axis=0), statistics_b.sum(axis=0)
    combine = measure.family.combine
    for span in _batches(len(differences), a.documents):
        swapped = rng.random((span.stop - span.start, a.documents)) < 0.5
        moved = swapped.astype(np.float64) @ gap
        differences[span] = combine(sum_a + moved, a.documents) - combine(
            sum_b - moved, a.documents
        )


def _exchanged(mine: Evaluation, other: Evaluation, swapped: npt.NDArray[np.bool_]) -> Evaluation:
    """`mine` with the predictions of `other` for the swapped documents."""
    places = np.arange(mine.documents) + np.where(swapped, mine.documents, 0)

    def mixed(own: Ranking, others: Ranking) -> Ranking:
        return taken(Ranking.joined([own, others]), places)

    longer = mine.ranked is not None or other.ranked is not None
    return replace(
        mine,
        predicted=mixed(mine.predicted, other.predicted),
        ranked=mixed(mine.ordered, other.ordered) if longer else None,
    )


def _same_gold(a: Evaluation, b: Evaluation) -> bool:
    return (
        a.gold.shape == b.gold.shape
        and np.array_equal(a.gold.indptr, b.gold.indptr)
        and np.array_equal(a.gold.indices, b.gold.indices)
    )


def _batches(samples: int, documents: int) -> list[slice]:
    """Slices of samples that keep the matrix of samples × documents small."""
    step = max(1, _BATCH_CELLS // documents)
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


def _require_documents(evaluation: Evaluation) -> None:
    if evaluation.documents == 0:
        raise ValueError("there are no documents to resample")
