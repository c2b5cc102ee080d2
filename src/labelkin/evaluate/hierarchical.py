"""Measures that give credit for labels near the gold ones in the hierarchy.

Definitions: Kosmopoulos et al., "Evaluation measures for hierarchical
classification: a unified view and novel approaches" (Data Mining and Knowledge
Discovery 29, 2015), with the conventions of the authors' HEMKit: a dummy root
is the parent of parentless labels, and with a maximum distance of d a label has
d + 1 levels of ancestors (hP, hR, hF), or meets another at most d levels above
both, else at the root (LCA-P, LCA-R, LCA-F).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from labelkin.evaluate.evaluation import Evaluation, Floats
from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.evaluate.lca import Ancestors, lca_graphs
from labelkin.evaluate.measure import Family, Measure, mean_of_documents, ratio, register
from labelkin.exceptions import ConfigError

_DISTANCE = {"distance": 4.0}


def extended_counts(evaluation: Evaluation, distance: int) -> Floats:
    """Numbers of common, predicted and gold nodes per document, with ancestors added."""
    hierarchy = _hierarchy(evaluation)
    cache: dict[int, frozenset[int]] = {}
    counts = np.zeros((evaluation.documents, 3))
    for place, (gold, predicted) in enumerate(_label_sets(evaluation)):
        extended_gold = _extended(hierarchy, gold, distance, cache)
        extended = _extended(hierarchy, predicted, distance, cache)
        counts[place] = (len(extended & extended_gold), len(extended), len(extended_gold))
    return counts


def lca_counts(evaluation: Evaluation, distance: int) -> Floats:
    """Numbers of common, predicted and gold nodes per document, in the LCA graphs."""
    ancestors = Ancestors(_hierarchy(evaluation), distance)
    counts = np.zeros((evaluation.documents, 3))
    for place, (gold, predicted) in enumerate(_label_sets(evaluation)):
        of_gold, of_predicted = lca_graphs(gold, predicted, ancestors)
        counts[place] = (len(of_gold & of_predicted), len(of_predicted), len(of_gold))
    return counts


def _hierarchy(evaluation: Evaluation) -> Hierarchy:
    if evaluation.hierarchy is None:
        raise ConfigError(
            "a hierarchy is needed; pass one to the evaluation, or use `score` with --vocab"
        )
    return evaluation.hierarchy


def _label_sets(evaluation: Evaluation) -> Iterator[tuple[list[int], list[int]]]:
    """Gold and predicted labels of each document."""
    gold, predicted = evaluation.gold, evaluation.predicted
    for place in range(evaluation.documents):
        gold_labels = gold.indices[gold.indptr[place] : gold.indptr[place + 1]]
        yield gold_labels.tolist(), predicted[place][0].tolist()


def _extended(
    hierarchy: Hierarchy, labels: list[int], distance: int, cache: dict[int, frozenset[int]]
) -> frozenset[int]:
    """The labels with their ancestors; `cache` holds those of each label."""
    for label in labels:
        if label not in cache:
            cache[label] = frozenset(hierarchy.distances(label, distance + 1))
    return frozenset().union(*(cache[label] for label in labels))


def _precision(counts: Floats) -> Floats:
    return ratio(counts[:, 0], counts[:, 1])


def _recall(counts: Floats) -> Floats:
    return ratio(counts[:, 0], counts[:, 2])


def _f_score(counts: Floats) -> Floats:
    return ratio(2 * counts[:, 0], counts[:, 1] + counts[:, 2])


def _add(
    name: str,
    definition: str,
    quotient: Callable[[Floats], Floats],
    counts: Callable[[Evaluation, int], Floats],
) -> None:
    def statistics(evaluation: Evaluation, measure: Measure) -> Floats:
        return quotient(counts(evaluation, int(measure.parameters["distance"])))[:, None]

    register(Family(name, definition, mean_of_documents, statistics, options=_DISTANCE))


_add(
    "hP",
    "Mean over documents of precision after all labels were extended by their ancestors.",
    _precision,
    extended_counts,
)
_add(
    "hR",
    "Mean over documents of recall after all labels were extended by their ancestors.",
    _recall,
    extended_counts,
)
_add(
    "hF",
    "Mean over documents of the harmonic mean of hierarchical precision and recall.",
    _f_score,
    extended_counts,
)
_add(
    "LCA-P",
    "Mean over documents of the share of the predicted graph, up to the lowest common ancestors "
    "with gold labels, that is in the gold graph.",
    _precision,
    lca_counts,
)
_add(
    "LCA-R",
    "Mean over documents of the share of the gold graph, up to the lowest common ancestors with "
    "predicted labels, that is in the predicted graph.",
    _recall,
    lca_counts,
)
_add(
    "LCA-F",
    "Mean over documents of the harmonic mean of LCA-P and LCA-R.",
    _f_score,
    lca_counts,
)
