"""Trying many settings over the same neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure
from labelkin.neighbours.neighbours import DISTANCES, Neighbours
from labelkin.scoring.cut import COUNT_SCHEMES
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.methods import Method
from labelkin.scoring.mix import Mix, MixRanked
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.scoring.votes import WEIGHTINGS

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KS = (5, 10, 20, 30, 50, 100)
THRESHOLDS = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2).tolist())
SHARES = tuple(np.round(np.arange(0.0, 1.0001, 0.1), 2).tolist())

# A method whose ranking serves several cuts, and these cuts with their settings.
Base = tuple[Method, list[tuple[Method, Settings]]]


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings and how well they did."""

    settings: Settings
    value: float


def sweep(
    method: Method,
    settings: Settings,
    neighbours: Neighbours,
    gold: csr_matrix[Any],
    measure: Measure,
    ks: Sequence[int] = KS,
    thresholds: Sequence[float] = THRESHOLDS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """All combinations of what the method's settings can be, best first.

    For `knn` these are k, weighting and the cut (counts alone, thresholds
    alone); for `label-ae` also the distance; for `mix` the label-AE's
    threshold; for `mix-ranked` its share and the cut.
    """
    trials: list[Trial] = []
    near = [k for k in ks if k <= neighbours.k] or [neighbours.k]
    if isinstance(method, Mix | MixRanked):
        # Found once here, it serves all copies with other settings.
        method.parts(neighbours)
    bases = list(_bases(method, settings, near, thresholds))
    for number, (base, cuts) in enumerate(bases, start=1):
        ranked = base.rank(neighbours)
        for cutting, tried in cuts:
            given = cutting.cut(neighbours, ranked)
            trials.append(Trial(tried, measure.value(Evaluation(gold, given, ranked))))
        if progress is not None:
            progress(number, len(bases))
    # Of equal values the earlier, simpler setting wins.
    return sorted(trials, key=lambda trial: -trial.value)


def _bases(
    method: Method, settings: Settings, ks: Sequence[int], thresholds: Sequence[float]
) -> Iterator[Base]:
    if isinstance(method, Knn):
        for k, weighting in product(ks, WEIGHTINGS):
            base = replace(settings.knn, k=k, weighting=weighting, limit=0)
            cuts: list[tuple[Method, Settings]] = [
                (method.changed(scorer), replace(settings, knn=scorer))
                for scorer in _cuts(base, thresholds)
            ]
            yield method.changed(base), cuts
    elif isinstance(method, LabelAe):
        for k, weighting, distance in product(ks, WEIGHTINGS[1:], DISTANCES):
            base = replace(settings.label_ae, k=k, weighting=weighting, distance=distance, limit=0)
            cuts = [
                (method.changed(scorer), replace(settings, label_ae=scorer))
                for scorer in _cuts(base, thresholds)
            ]
            yield method.changed(base), cuts
    elif isinstance(method, Mix):
        for threshold in thresholds:
            mixed = method.changed(threshold)
            scorer = replace(settings.label_ae, count=None, threshold=threshold)
            yield mixed, [(mixed, replace(settings, label_ae=scorer))]
    elif isinstance(method, MixRanked):
        for share in SHARES:
            mix = replace(settings.mix, share=share)
            tried = [
                *(replace(mix, count=count, threshold=0.0) for count in COUNT_SCHEMES[:1]),
                *(replace(mix, count=None, threshold=threshold) for threshold in thresholds),
            ]
            yield (
                method.changed(mix),
                [(method.changed(one), replace(settings, mix=one)) for one in tried],
            )


def _cuts(base: ScorerSettings, thresholds: Sequence[float]) -> Iterator[ScorerSettings]:
    for count in COUNT_SCHEMES:
        yield replace(base, count=count, threshold=0.0)
    for threshold in thresholds:
        yield replace(base, count=None, threshold=threshold)
