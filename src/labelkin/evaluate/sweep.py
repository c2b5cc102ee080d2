"""Trying many settings over the same neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import get_args

import numpy as np

from labelkin.corpus.document import Document
from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure
from labelkin.neighbours.fusion import FusionMethod, fuse
from labelkin.neighbours.neighbours import DISTANCES, Neighbours
from labelkin.scoring.cut import COUNT_SCHEMES
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.lexical import Lexical
from labelkin.scoring.methods import Method
from labelkin.scoring.mix import Mix, MixRanked
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.scoring.votes import WEIGHTINGS

KS = (5, 10, 20, 30, 50, 100)
# In how many parts a weight is divided, by the number of representations, whose multiple it is.
_WEIGHT_STEPS = {2: 20, 3: 12, 4: 8}
THRESHOLDS = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2).tolist())
SHARES = tuple(np.round(np.arange(0.0, 1.0001, 0.1), 2).tolist())

# A method whose ranking serves several cuts, and these cuts with their settings.
Base = tuple[Method, list[tuple[Method, Settings]]]


@dataclass(frozen=True, slots=True)
class Fusion:
    """A way to fuse the neighbours of several representations."""

    method: FusionMethod
    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """Settings and how well they did."""

    settings: Settings
    value: float
    fusion: Fusion | None = None


def sweep(
    method: Method,
    settings: Settings,
    queries: Queries,
    gold: Evaluation,
    measure: Measure,
    ks: Sequence[int] = KS,
    thresholds: Sequence[float] = THRESHOLDS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """All combinations of what the method's settings can be, best first.

    `gold` holds the right labels and what else the measure needs. The present
    settings are among those that are tried, and of equal values the one that
    changes least wins; a limit stays as it is.

    For `knn` these are k, weighting and the cut (counts alone, thresholds
    alone); for `label-ae` also the distance; for `mix` the label-AE's
    threshold; for `mix-ranked` its share and the cut; for `lexical` the threshold; for
    `rerank` the expected F and the threshold.
    """
    trials: list[Trial] = []
    present = settings.label_ae.k if isinstance(method, LabelAe) else settings.knn.k
    near = [k for k in dict.fromkeys((*ks, present)) if k <= queries.neighbours.k]
    near = near or [queries.neighbours.k]
    if isinstance(method, Mix | MixRanked):
        # Found once here, it serves all copies with other settings.
        method.parts(queries)
    bases = list(_bases(method, settings, near, thresholds))
    for number, (base, cuts) in enumerate(bases, start=1):
        ranked = base.rank(queries)
        for cutting, tried in cuts:
            given = cutting.cut(queries, ranked)
            evaluation = replace(gold, predicted=given, ranked=ranked)
            trials.append(Trial(tried, measure.value(evaluation)))
        if progress is not None:
            progress(number, len(bases))
    return sorted(trials, key=lambda trial: (-trial.value, _changes(trial.settings, settings)))


def _changes(tried: Settings, settings: Settings) -> int:
    """How many settings differ."""
    return sum(
        getattr(mine, one.name) != getattr(theirs, one.name)
        for part in fields(Settings)
        if is_dataclass(mine := getattr(tried, part.name))
        and is_dataclass(theirs := getattr(settings, part.name))
        for one in fields(mine)
    )


def _bases(
    method: Method, settings: Settings, ks: Sequence[int], thresholds: Sequence[float]
) -> Iterator[Base]:
    if isinstance(method, Knn):
        for k, weighting in product(ks, WEIGHTINGS):
            base = replace(settings.knn, k=k, weighting=weighting)
            cuts: list[tuple[Method, Settings]] = [
                (method.changed(scorer), replace(settings, knn=scorer))
                for scorer in _cuts(base, thresholds)
            ]
            yield method.changed(base), cuts
    elif isinstance(method, LabelAe):
        for k, weighting, distance in product(ks, WEIGHTINGS[1:], DISTANCES):
            base = replace(settings.label_ae, k=k, weighting=weighting, distance=distance)
            cuts = [
                (method.changed(scorer), replace(settings, label_ae=scorer))
                for scorer in _cuts(base, thresholds)
            ]
            yield method.changed(base), cuts
    elif isinstance(method, Mix):
        for threshold in dict.fromkeys((*thresholds, settings.label_ae.threshold)):
            mixed = method.changed(threshold)
            scorer = replace(settings.label_ae, count=None, threshold=threshold)
            yield mixed, [(mixed, replace(settings, label_ae=scorer))]
    elif isinstance(method, Lexical):
        named = settings.lexical
        by_threshold = (replace(named, threshold=threshold) for threshold in thresholds)
        cut_so = dict.fromkeys((*by_threshold, named))
        yield method, [(method.changed(one), replace(settings, lexical=one)) for one in cut_so]
    elif settings.method == "rerank":
        yield method, list(_reranker_cuts(method, settings, thresholds))
    elif isinstance(method, MixRanked):
        for share in dict.fromkeys((*SHARES, settings.mix.share)):
            mix = replace(settings.mix, share=share)
            by_count = (replace(mix, count=count, threshold=0.0) for count in COUNT_SCHEMES[:1])
            by_bar = (replace(mix, count=None, threshold=threshold) for threshold in thresholds)
            tried = dict.fromkeys((*by_count, *by_bar, mix))
            yield (
                method.changed(mix),
                [(method.changed(one), replace(settings, mix=one)) for one in tried],
            )


def _reranker_cuts(
    method: Method, settings: Settings, thresholds: Sequence[float]
) -> Iterator[tuple[Method, Settings]]:
    from labelkin.rerank.method import Rerank

    if isinstance(method, Rerank):
        base = settings.rerank
        by_threshold = (replace(base, count=None, threshold=threshold) for threshold in thresholds)
        by_count = replace(base, count="expected-f", threshold=0.0)
        for one in dict.fromkeys((by_count, *by_threshold, base)):
            yield method.changed(one), replace(settings, rerank=one)


def _cuts(base: ScorerSettings, thresholds: Sequence[float]) -> Iterable[ScorerSettings]:
    """Counts alone, thresholds alone, and the cut as it is."""
    by_count = (replace(base, count=count, threshold=0.0) for count in COUNT_SCHEMES)
    by_threshold = (replace(base, count=None, threshold=threshold) for threshold in thresholds)
    return dict.fromkeys((*by_count, *by_threshold, base))


def sweep_fusion(
    method: Method,
    settings: Settings,
    documents: Sequence[Document],
    parts: Sequence[Neighbours],
    gold: Evaluation,
    measure: Measure,
    rank_constant: float,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Both ways to fuse with weights from a grid, at the given settings, best first."""
    trials: list[Trial] = []
    grid = _weights(len(parts), _WEIGHT_STEPS.get(len(parts), len(parts)))
    combinations = list(product(get_args(FusionMethod), grid))
    for number, (way, weights) in enumerate(combinations, start=1):
        found = Queries(documents, fuse(parts, settings.k, weights, way, rank_constant))
        ranked = method.rank(found)
        evaluation = replace(gold, predicted=method.cut(found, ranked), ranked=ranked)
        trials.append(Trial(settings, measure.value(evaluation), Fusion(way, weights)))
        if progress is not None:
            progress(number, len(combinations))
    return sorted(trials, key=lambda trial: -trial.value)


def _weights(parts: int, steps: int) -> list[tuple[float, ...]]:
    """All ways to divide 1 among the parts, in steps; equal weights first."""
    whole = [shares for shares in product(range(steps + 1), repeat=parts) if sum(shares) == steps]
    whole.sort(key=lambda shares: max(shares) - min(shares))
    return [tuple(round(share / steps, 4) for share in shares) for shares in whole]
