"""Trying many settings over the same neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure
from labelkin.neighbours.fusion import FusionMethod, fuse
from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.cut import COUNT_SCHEMES
from labelkin.scoring.knn import Knn, KnnSettings
from labelkin.scoring.votes import WEIGHTINGS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KS = (5, 10, 20, 30, 50, 100)
# In how many parts a weight is divided, by the number of representations.
_WEIGHT_STEPS = {2: 20, 3: 10, 4: 5}
THRESHOLDS = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2).tolist())


@dataclass(frozen=True, slots=True)
class Fusion:
    """A way to fuse the neighbours of several representations."""

    method: FusionMethod
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings and how well they did."""

    settings: KnnSettings
    value: float
    fusion: Fusion | None = None


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


def sweep_fusion(
    knn: Knn,
    parts: Sequence[Neighbours],
    gold: csr_matrix[Any],
    measure: Measure,
    rank_constant: float,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Both ways to fuse with weights from a grid, at the settings of `knn`, best first."""
    trials: list[Trial] = []
    grid = _weights(len(parts), _WEIGHT_STEPS.get(len(parts), len(parts)))
    combinations = list(product(get_args(FusionMethod), grid))
    for number, (method, weights) in enumerate(combinations, start=1):
        found = fuse(parts, knn.settings.k, weights, method, rank_constant)
        ranked = knn.rank(found)
        evaluation = Evaluation(gold, knn.cut(found, ranked), ranked)
        trials.append(Trial(knn.settings, measure.value(evaluation), Fusion(method, weights)))
        if progress is not None:
            progress(number, len(combinations))
    return sorted(trials, key=lambda trial: -trial.value)


def _weights(parts: int, steps: int) -> list[tuple[float, ...]]:
    """All ways to divide 1 among the parts, in steps; equal weights first."""
    whole = [shares for shares in product(range(steps + 1), repeat=parts) if sum(shares) == steps]
    whole.sort(key=lambda shares: max(shares) - min(shares))
    return [tuple(round(share / steps, 4) for share in shares) for shares in whole]
