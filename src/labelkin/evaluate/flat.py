"""Measures of label sets, without ranks or hierarchy.

Micro, macro and example-based measures are those of the official BioASQ
evaluator (Tsoumakas et al., "Mining Multi-label Data", 2010, section 7).
A quotient with denominator 0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelkin.evaluate.evaluation import Counts, Evaluation, Floats, Integers
from labelkin.evaluate.measure import Family, Measure, mean_of_documents, ratio, register

Quotient = Callable[[Counts], Floats]


def precision(counts: Counts) -> Floats:
    """Correct labels / predicted labels."""
    return ratio(counts.correct, counts.predicted)


def recall(counts: Counts) -> Floats:
    """Correct labels / gold labels."""
    return ratio(counts.correct, counts.gold)


def f_score(counts: Counts) -> Floats:
    """Harmonic mean of precision and recall."""
    return ratio(2 * counts.correct, counts.predicted + counts.gold)


def jaccard(counts: Counts) -> Floats:
    """Correct labels / labels that are predicted or gold."""
    return ratio(counts.correct, counts.predicted + counts.gold - counts.correct)


def _add_micro(name: str, definition: str, quotient: Quotient) -> None:
    def statistics(evaluation: Evaluation, measure: Measure) -> Floats:  # noqa: ARG001
        counts = evaluation.document_counts
        columns = (counts.correct, counts.predicted, counts.gold)
        return np.stack(columns, axis=1).astype(np.float64)

    def combine(totals: Floats, documents: int) -> Floats:  # noqa: ARG001
        return quotient(Counts(*np.moveaxis(totals, -1, 0)))

    register(Family(name, definition, combine, statistics))


def _add_macro(
    name: str, definition: str, quotient: Quotient, averaged: Callable[[Counts], Integers]
) -> None:
    def value(evaluation: Evaluation, measure: Measure) -> float:  # noqa: ARG001
        counts = evaluation.label_counts
        chosen = averaged(counts) > 0
        return float(ratio(quotient(counts)[chosen].sum(), chosen.sum()))

    register(Family(name, definition, value))


def _add_mean(name: str, definition: str, of_documents: Quotient, *, is_goal: bool = True) -> None:
    def statistics(evaluation: Evaluation, measure: Measure) -> Floats:  # noqa: ARG001
        return of_documents(evaluation.document_counts)[:, None]

    register(Family(name, definition, mean_of_documents, statistics, is_goal=is_goal))


_add_micro("MiP", "Share of all predicted labels that are gold.", precision)
_add_micro("MiR", "Share of all gold labels that are predicted.", recall)
_add_micro("MiF", "Harmonic mean of MiP and MiR.", f_score)
_add_macro(
    "MaP",
    "Mean over the labels that are predicted anywhere of each label's precision.",
    precision,
    lambda counts: counts.predicted,
)
_add_macro(
    "MaR",
    "Mean over the labels that are gold anywhere of each label's recall.",
    recall,
    lambda counts: counts.gold,
)
_add_macro(
    "MaF",
    "Mean over the labels that are gold anywhere of each label's F.",
    f_score,
    lambda counts: counts.gold,
)
_add_mean("EBP", "Mean over documents of the share of predicted labels that are gold.", precision)
_add_mean("EBR", "Mean over documents of the share of gold labels that are predicted.", recall)
_add_mean("EBF", "Mean over documents of the harmonic mean of precision and recall.", f_score)
_add_mean(
    "Acc",
    "Mean over documents of the number of labels both gold and predicted, divided by the number "
    "that are either.",
    jaccard,
)
_add_mean(
    "predicted",
    "Mean number of predicted labels per document.",
    lambda counts: counts.predicted.astype(np.float64),
    is_goal=False,
)
_add_mean(
    "gold",
    "Mean number of gold labels per document.",
    lambda counts: counts.gold.astype(np.float64),
    is_goal=False,
)
_add_mean(
    "count-error",
    "Mean absolute difference between the numbers of predicted and gold labels of a document.",
    lambda counts: np.abs(counts.predicted - counts.gold).astype(np.float64),
    is_goal=False,
)
