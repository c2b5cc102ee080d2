"""Trying many settings over the same neighbours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain, product
from typing import get_args

import numpy as np

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure
from labelkin.neighbours.fusion import FusionMethod, fuse
from labelkin.neighbours.neighbours import Neighbours
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import Settings

KS = (5, 10, 20, 30, 50, 100)
# In how many steps weights are tried, by the number of representations, whose multiple it is.
_WEIGHT_STEPS = {2: 20, 3: 12, 4: 8}
THRESHOLDS = tuple(np.round(np.arange(0.05, 1.0001, 0.05), 2).tolist())


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
    settings: Settings,
    queries: Queries,
    gold: Evaluation,
    measure: Measure,
    ks: Sequence[int] = KS,
    thresholds: Sequence[float] = THRESHOLDS,
    progress: Callable[[int, int], None] | None = None,
    varied: Collection[str] | None = None,
) -> list[Trial]:
    """All combinations that the method's `sweep` tries, best first.

    `gold` holds the right labels and what else the measure needs. The present
    settings are among those that are tried; of equal values the one that
    changes least wins. A limit stays as it is. `varied` names the values, as in the
    method's `swept`, that may change; None for all.
    """
    method, depth = settings.implementation, settings.k
    tried = queries.within_depth(list(dict.fromkeys((*ks, depth))))
    if tried and depth:
        # Found once for the largest k.
        queries.neighbours(max(tried))
    groups = list(method.sweep(settings, tried, thresholds))
    if varied is not None:
        fixed = {key: one for key, one in method.swept(settings).items() if key not in varied}
        groups = [
            kept
            for group in groups
            if (kept := [one for one in group if fixed.items() <= method.swept(one).items()])
        ]
    if not any(settings in group for group in groups):
        groups.append([settings])
    groups = _different(groups, settings, queries)
    trials: list[Trial] = []
    for number, group in enumerate(groups, start=1):
        ranked = method.rank(queries, group[0])
        # Checking a long ranking takes longer than measuring; only measures with a depth use it.
        longer = None if measure.depth is None else ranked
        for one in group:
            predicted = method.cut(queries, ranked, one)
            evaluation = replace(gold, predicted=predicted, ranked=longer)
            trials.append(Trial(one, measure.value(evaluation)))
        if progress is not None:
            progress(number, len(groups))
    return sorted(trials, key=lambda trial: (-trial.value, _changes(trial.settings, settings)))


def _different(
    groups: list[list[Settings]], settings: Settings, queries: Queries
) -> list[list[Settings]]:
    """The groups with one of the settings that have the same effect: that which changes least."""
    method = settings.implementation
    kept: dict[Settings, Settings] = {}
    for one in sorted(chain.from_iterable(groups), key=lambda one: _changes(one, settings)):
        kept.setdefault(method.effective(queries, one), one)
    chosen = set(kept.values())
    return [some for group in groups if (some := [one for one in group if one in chosen])]


def _changes(tried: Settings, settings: Settings) -> int:
    """How many settings differ."""
    return sum(
        getattr(mine, one.name) != getattr(theirs, one.name)
        for part in fields(Settings)
        if is_dataclass(mine := getattr(tried, part.name))
        and is_dataclass(theirs := getattr(settings, part.name))
        for one in fields(mine)
    )


def sweep_fusion(
    settings: Settings,
    queries: Callable[[Neighbours], Queries],
    parts: Sequence[Neighbours],
    gold: Evaluation,
    measure: Measure,
    rank_constant: float,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Both ways to fuse with weights from a grid, at the given settings, best first.

    `queries` turns fused neighbours into queries.
    """
    trials: list[Trial] = []
    grid = _weights(len(parts), _WEIGHT_STEPS.get(len(parts), len(parts)))
    combinations = list(product(get_args(FusionMethod), grid))
    method = settings.implementation
    for number, (way, weights) in enumerate(combinations, start=1):
        fused = queries(fuse(parts, settings.k, weights, way, rank_constant))
        ranked = method.rank(fused, settings)
        predicted = method.cut(fused, ranked, settings)
        evaluation = replace(gold, predicted=predicted, ranked=ranked)
        trials.append(Trial(settings, measure.value(evaluation), Fusion(way, weights)))
        if progress is not None:
            progress(number, len(combinations))
    return sorted(trials, key=lambda trial: -trial.value)


def _weights(parts: int, steps: int) -> list[tuple[float, ...]]:
    """All ways to divide 1 among the parts, in steps; equal weights first."""
    whole = [shares for shares in product(range(steps + 1), repeat=parts) if sum(shares) == steps]
    whole.sort(key=lambda shares: max(shares) - min(shares))
    return [tuple(round(share / steps, 4) for share in shares) for shares in whole]
