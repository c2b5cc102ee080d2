"""Finding the settings that do best: first how representations are fused, then the method's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from labelkin.corpus.document import Document
from labelkin.evaluate.gold import gold_evaluation
from labelkin.evaluate.measure import Measure
from labelkin.evaluate.sweep import KS, Trial, sweep, sweep_fusion
from labelkin.neighbours.fused_search import FusedSearch
from labelkin.neighbours.fusion import fuse
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.search import NeighbourSearch
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import Settings


class MakeQueries(Protocol):
    """Turns the documents into queries."""

    def __call__(self, k: int, neighbours: Neighbours | None = None) -> Queries:
        """The queries with `k` neighbours, or with those that are given."""
        ...


def tune(
    documents: Sequence[Document],
    settings: Settings,
    measure: Measure,
    make_queries: MakeQueries,
    open_search: Callable[[], NeighbourSearch],
    progress: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """How all combinations of the method's settings do, best first.

    If representations are fused, the fusion and the weights are chosen first,
    at the given settings.
    """
    measure.check_goal()
    if settings.k == 0:
        queries = make_queries(0)
        gold = gold_evaluation(documents, queries.snapshot)
        return sweep(settings, queries, gold, measure, progress=progress)
    depth = max(*KS, settings.k)
    search = open_search()
    if not isinstance(search, FusedSearch):
        queries = make_queries(depth)
        gold = gold_evaluation(documents, queries.snapshot)
        return sweep(settings, queries, gold, measure, progress=progress)
    gold = gold_evaluation(documents, search.snapshot)
    fusion = search.snapshot.config.fusion
    parts = search.parts(search.texts(documents, store_terms=True), depth)
    near = [part.nearest(max(settings.k, fusion.depth)) for part in parts]
    best = sweep_fusion(
        settings,
        lambda fused: make_queries(settings.k, fused),
        near,
        gold,
        measure,
        fusion.rank_constant,
        progress,
    )[0].fusion
    if best is None:
        return []
    chosen = fuse(parts, depth, best.weights, best.method, fusion.rank_constant)
    trials = sweep(settings, make_queries(depth, chosen), gold, measure, progress=progress)
    return [replace(trial, fusion=best) for trial in trials]
