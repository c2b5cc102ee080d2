"""Measures that give credit for labels near the gold ones in the hierarchy.

Definitions: Kosmopoulos et al., "Evaluation measures for hierarchical
classification: a unified view and novel approaches" (Data Mining and Knowledge
Discovery 29, 2015), with the conventions of the authors' HEMKit: a dummy root
stands above parentless labels, and a maximum distance of d lets a label reach
d + 1 levels of ancestors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelkin.evaluate.evaluation import Evaluation, Floats
from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.evaluate.measure import Family, Measure, mean_of_documents, ratio, register
from labelkin.exceptions import ConfigError

_DISTANCE = {"distance": 4.0}


def extended_counts(evaluation: Evaluation, distance: int) -> Floats:
    """Per document the common, predicted and gold nodes after ancestors were added."""
    if evaluation.hierarchy is None:
        raise ConfigError("a hierarchy is needed; give one to the evaluation")
    hierarchy = evaluation.hierarchy
    above: dict[int, frozenset[int]] = {}
    gold, predicted = evaluation.gold, evaluation.predicted
    counts = np.zeros((evaluation.documents, 3))
    for place in range(evaluation.documents):
        wanted = gold.indices[gold.indptr[place] : gold.indptr[place + 1]].tolist()
        extended_gold = _extended(hierarchy, wanted, distance, above)
        extended = _extended(hierarchy, predicted[place][0].tolist(), distance, above)
        counts[place] = (len(extended & extended_gold), len(extended), len(extended_gold))
    return counts


def _extended(
    hierarchy: Hierarchy, labels: list[int], distance: int, above: dict[int, frozenset[int]]
) -> frozenset[int]:
    """The labels with their ancestors; `above` remembers those of each label."""
    for label in labels:
        if label not in above:
            above[label] = frozenset(hierarchy.distances(label, distance + 1))
    return frozenset().union(*(above[label] for label in labels))


def _add(name: str, definition: str, quotient: Callable[[Floats], Floats]) -> None:
    def statistics(evaluation: Evaluation, measure: Measure) -> Floats:
        distance = int(measure.parameters["distance"])
        return quotient(extended_counts(evaluation, distance))[:, None]

    register(Family(name, definition, mean_of_documents, statistics, options=_DISTANCE))


_add(
    "hP",
    "Mean over documents of precision after all labels were extended by their ancestors.",
    lambda counts: ratio(counts[:, 0], counts[:, 1]),
)
_add(
    "hR",
    "Mean over documents of recall after all labels were extended by their ancestors.",
    lambda counts: ratio(counts[:, 0], counts[:, 2]),
)
_add(
    "hF",
    "Mean over documents of the harmonic mean of hierarchical precision and recall.",
    lambda counts: ratio(2 * counts[:, 0], counts[:, 1] + counts[:, 2]),
)
