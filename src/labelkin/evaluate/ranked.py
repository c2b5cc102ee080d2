"""Measures of the first k ranked labels, before any cut.

The propensity-scored ones follow Jain et al., "Extreme Multi-label Loss
Functions for Recommendation, Tagging, Ranking & Other Missing Label
Applications" (KDD 2016): a label with N_l of N training documents has the
propensity 1 / (1 + C e^(-A log(N_l + B))) with C = (log N - 1)(B + 1)^A. Like
the scripts of the Extreme Classification Repository they divide the sum over
documents by the sum that the best possible ranking would reach. Coverage counts
labels with a true positive, as in Schultheis et al., "Generalized test
utilities for long-tail performance in extreme multi-label classification"
(NeurIPS 2023).
"""

from __future__ import annotations

import numpy as np

from labelkin.evaluate.evaluation import Evaluation, Floats, summed_by_document
from labelkin.evaluate.measure import (
    Family,
    Measure,
    mean_of_documents,
    ratio,
    ratio_of_sums,
    register,
)
from labelkin.exceptions import ConfigError
from labelkin.scoring.ranking import Ranking

_PROPENSITY = {"A": 0.55, "B": 1.5}


def inverse_propensities(evaluation: Evaluation, a: float = 0.55, b: float = 1.5) -> Floats:
    """1 / p_l for every label: the weight of a correct label, higher for rare ones."""
    frequencies = evaluation.frequencies
    if not evaluation.training_documents:
        raise ConfigError(
            "the number of training documents is needed; pass it to the evaluation, or pass a "
            "collection to `score` with --vocab"
        )
    c = (np.log(evaluation.training_documents) - 1) * (b + 1) ** a
    return np.asarray(1 + c * (frequencies + b) ** -a, dtype=np.float64)


def _gains(ranking: Ranking, gains: Floats, k: int, *, discounted: bool) -> Floats:
    """Sum `gains`, one per ranked label, over the first k labels of each document."""
    ranks = ranking.ranks
    counted = np.where(ranks < k, gains, 0.0)
    if discounted:
        counted = counted / np.log2(ranks + 2)
    return summed_by_document(ranking, counted)


def _hits(evaluation: Evaluation, k: int, *, discounted: bool = False) -> Floats:
    hits = evaluation.ordered_hits.astype(np.float64)
    return _gains(evaluation.ordered, hits, k, discounted=discounted)


def _ideal(evaluation: Evaluation, k: int) -> Floats:
    """The discounted gain of a ranking with all gold labels first."""
    discounts = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(k) + 2))))
    return discounts[np.minimum(evaluation.document_counts.gold, k)]


def _precision(evaluation: Evaluation, measure: Measure) -> Floats:
    return _hits(evaluation, measure.k)[:, None] / measure.k


def _recall(evaluation: Evaluation, measure: Measure) -> Floats:
    return ratio(_hits(evaluation, measure.k), evaluation.document_counts.gold)[:, None]


def _ndcg(evaluation: Evaluation, measure: Measure) -> Floats:
    gained = _hits(evaluation, measure.k, discounted=True)
    return ratio(gained, _ideal(evaluation, measure.k))[:, None]


def _propensity_gains(
    evaluation: Evaluation, measure: Measure, *, discounted: bool
) -> tuple[Floats, Floats]:
    """The actual and the best attainable gain of each document."""
    options = measure.parameters
    weights = inverse_propensities(evaluation, options["A"], options["B"])
    ordered, gold = evaluation.ordered, evaluation.gold
    gains = evaluation.ordered_hits * weights[ordered.columns]
    rows = np.repeat(np.arange(evaluation.documents), np.diff(gold.indptr))
    order = np.lexsort((-weights[gold.indices], rows))
    best = weights[gold.indices][order]
    ideal = Ranking(gold.indptr.astype(np.int64), gold.indices[order], best.astype(np.float32))
    return (
        _gains(ordered, gains, measure.k, discounted=discounted),
        _gains(ideal, best, measure.k, discounted=discounted),
    )


def _ps_precision(evaluation: Evaluation, measure: Measure) -> Floats:
    return np.stack(_propensity_gains(evaluation, measure, discounted=False), axis=1)


def _ps_ndcg(evaluation: Evaluation, measure: Measure) -> Floats:
    gained, best = _propensity_gains(evaluation, measure, discounted=True)
    ideal = _ideal(evaluation, measure.k)
    return np.stack((ratio(gained, ideal), ratio(best, ideal)), axis=1)


def _coverage(evaluation: Evaluation, measure: Measure) -> float:
    ordered = evaluation.ordered
    correct = evaluation.ordered_hits & (ordered.ranks < measure.k)
    covered = np.unique(ordered.columns[correct]).size
    return float(ratio(covered, (evaluation.label_counts.gold > 0).sum()))


for _family in (
    Family(
        "P",
        "Mean over documents of the gold labels among the first k, divided by k.",
        mean_of_documents,
        _precision,
        has_depth=True,
    ),
    Family(
        "R",
        "Mean over documents of the share of gold labels that are among the first k.",
        mean_of_documents,
        _recall,
        has_depth=True,
    ),
    Family(
        "nDCG",
        "Mean over documents of the binary gains of the first k, discounted by log2(rank + 1), "
        "divided by those of a ranking with all gold labels first.",
        mean_of_documents,
        _ndcg,
        has_depth=True,
    ),
    Family(
        "PSP",
        "Gold labels among the first k, each weighted by its inverse propensity, divided by the "
        "best attainable sum.",
        ratio_of_sums,
        _ps_precision,
        has_depth=True,
        options=_PROPENSITY,
    ),
    Family(
        "PSnDCG",
        "nDCG@k with gains weighted by inverse propensity, divided by the best attainable value.",
        ratio_of_sums,
        _ps_ndcg,
        has_depth=True,
        options=_PROPENSITY,
    ),
    Family(
        "coverage",
        "Share of the gold labels that are among the first k of at least one document that has "
        "them.",
        _coverage,
        has_depth=True,
    ),
):
    register(_family)
