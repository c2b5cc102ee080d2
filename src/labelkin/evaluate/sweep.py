"""Trying many settings over the same neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure
from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.cut import COUNT_SCHEMES
from labelkin.scoring.knn import Knn, KnnSettings
from labelkin.scoring.votes import WEIGHTINGS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KS = (5, 10, 20, 30, 50, 100)
THRESHOLDS = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2).tolist())


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings and how well they did."""

    settings: KnnSettings
    value: float


def sweep(
    knn: Knn,
    neighbours: Neighbours,
    gold: csr_matrix[Any],
    measure: Measure,
    ks: Sequence[int] = KS,
    thresholds: Sequence[float] = THRESHOLDS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """All combinations of k, weighting and cut (counts alone, thresholds alone), best first."""
    trials: list[Trial] = []
    combinations = list(product([k for k in ks if k <= neighbours.k], WEIGHTINGS))
    for number, (k, weighting) in enumerate(combinations, start=1):
        base = replace(knn.settings, k=k, weighting=weighting, limit=0)
        ranked = knn.changed(base).rank(neighbours)
        cuts = [replace(base, count=count, threshold=0.0) for count in COUNT_SCHEMES]
        cuts += [replace(base, count=None, threshold=threshold) for threshold in thresholds]
        for settings in cuts:
            given = knn.changed(settings).cut(neighbours, ranked)
            trials.append(Trial(settings, measure.value(Evaluation(gold, given, ranked))))
        if progress is not None:
            progress(number, len(combinations))
    # Of equal values the earlier, simpler setting wins.
    return sorted(trials, key=lambda trial: -trial.value)
