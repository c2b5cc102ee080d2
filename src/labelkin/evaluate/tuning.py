"""Finding the settings that do best: first how representations are fused, then the method's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from labelkin.evaluate.gold import gold_evaluation
from labelkin.evaluate.measure import Measure
from labelkin.evaluate.sweep import KS, Trial, sweep, sweep_fusion
from labelkin.neighbours.fused_search import FusedSearch
from labelkin.neighbours.fusion import fuse
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import Settings


def tune(
    queries: Queries,
    settings: Settings,
    measure: Measure,
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """How all combinations of the method's settings do, best first.

    The documents of the queries have labels. If representations are fused, the
    fusion and the weights are chosen first, at the given settings.
    """
    measure.check_goal()
    gold = gold_evaluation(queries.documents, queries.snapshot)
    search = queries.search
    if settings.k == 0 or not isinstance(search, FusedSearch):
        return sweep(settings, queries, gold, measure, progress=progress)
    depth = max(*KS, settings.k)
    fusion = queries.snapshot.config.fusion
    parts = search.parts(queries, depth)
    best = sweep_fusion(
        settings,
        queries.with_neighbours,
        [part.nearest(max(settings.k, fusion.depth)) for part in parts],
        gold,
        measure,
        fusion.rank_constant,
        progress,
    )[0].fusion
    if best is None:
        return []
    chosen = fuse(parts, depth, best.weights, best.method, fusion.rank_constant)
    trials = sweep(settings, queries.with_neighbours(chosen), gold, measure, progress=progress)
    return [replace(trial, fusion=best) for trial in trials]
