"""Cuts that fit the collection: chosen on documents that the label autoencoder has not seen.

How high a decoder's scores are depends on the number of documents, of headings and
of headings a document: a threshold that fits one collection gives nothing at all in
another. `labelkin train` therefore tries the cuts of the methods that use the label
autoencoder, and the share of `mix-ranked`, on held-out documents with their
leave-one-out neighbours, and measures plain votes (`knn`) on the same documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.evaluate import parse_measure
from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.gold import gold_matrix
from labelkin.evaluate.sweep import Trial, sweep
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.search import MAX_K, NeighbourSearch
from labelkin.rerank.features import remaining
from labelkin.rerank.labelled_candidates import with_replacements
from labelkin.scoring.policy import policy_for
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import Settings
from labelkin.store.held_out import with_reserve
from labelkin.store.models import Models
from labelkin.store.snapshot import Snapshot, Views

# The values that are chosen, by method; all others stay as they are.
CHOSEN: Mapping[str, tuple[str, ...]] = {
    "label-ae": ("count", "threshold"),
    "mix": ("leading",),
    "mix-ranked": ("share", "count", "threshold"),
}
LEAST_DOCUMENTS = 20
MOST_DOCUMENTS = 2000
# Closer together where small collections have their scores.
THRESHOLDS = tuple(
    np.round(
        np.concatenate(
            (
                np.arange(0.01, 0.06, 0.01),
                np.arange(0.075, 0.4, 0.025),
                np.arange(0.4, 0.66, 0.02),
                np.arange(0.7, 1.001, 0.05),
            )
        ),
        3,
    ).tolist()
)
_BATCH = 500
_MEASURE = parse_measure("MiF")

Integers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Cut:
    """The cut of a method: `values` of a section of labelkin.toml, and how good it is.

    Of the values, those that are `kept` were set by hand. `score` is MiF.
    """

    method: str
    score: float
    section: str
    values: Mapping[str, Any]
    kept: frozenset[str] = frozenset()

    @property
    def chosen(self) -> dict[str, Any]:
        """The values that are not kept."""
        return {name: value for name, value in self.values.items() if name not in self.kept}


@dataclass(frozen=True, slots=True)
class CutReport:
    """The cuts of all methods that use the label autoencoder, beside that of votes.

    All are measured on the same held-out `documents`.
    """

    documents: int
    knn: Cut
    cuts: tuple[Cut, ...]

    @property
    def below_knn(self) -> list[str]:
        """The methods that are worse than votes."""
        return [cut.method for cut in self.cuts if cut.score < self.knn.score]

    def changes(self) -> dict[str, dict[str, Any]]:
        """The values to write into labelkin.toml, by section."""
        changes: dict[str, dict[str, Any]] = {}
        for cut in self.cuts:
            changes.setdefault(cut.section, {}).update(cut.chosen)
        return {section: values for section, values in changes.items() if values}


def choose_cuts(
    queries: Queries,
    gold: Evaluation,
    settings: Settings,
    by_hand: Mapping[str, frozenset[str]] | None = None,
    progress: Progress | None = None,
) -> CutReport:
    """The best cuts for documents whose right labels are `gold`.

    `by_hand` has the names of values that stay as they are, by method.
    """
    names = list(CHOSEN)
    cuts = []
    for number, name in enumerate(names):
        if progress is not None:
            progress(number, len(names))
        kept = frozenset(CHOSEN[name]) & (by_hand or {}).get(name, frozenset())
        varied = [one for one in CHOSEN[name] if one not in kept]
        best = _best(queries, gold, replace(settings, method=name), varied)
        cuts.append(_as_cut(best, CHOSEN[name], kept))
        # What leads a mix may be cut as label-ae cuts: as it will, not as it did.
        settings = best.settings
    if progress is not None:
        progress(len(names), len(names))
    votes = _best(queries, gold, replace(settings, method="knn"), ())
    return CutReport(gold.documents, _as_cut(votes, ("count", "threshold")), tuple(cuts))


def held_out_queries(
    views: Views,
    models: Models,
    search: NeighbourSearch,
    settings: Settings,
    rows: Integers,
    unseen: Integers,
    progress: Progress | None = None,
) -> tuple[Queries, Evaluation]:
    """The documents in some rows as queries, and their right labels.

    None of the `unseen` rows is a neighbour of theirs.
    """
    snapshot = views.snapshot
    is_unseen = np.zeros(snapshot.label_sets().rows, dtype=np.bool_)
    is_unseen[unseen] = True
    depth = max(replace(settings, method=name).k for name in ("knn", *CHOSEN))
    parts = []
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        near = search.search_rows(batch, min(with_reserve(depth), MAX_K))
        parts.append(remaining(near, is_unseen, depth))
        if progress is not None:
            progress(start + len(batch), len(rows))
    texts = snapshot.texts_of(rows.tolist())
    queries = Queries(
        views,
        models,
        [texts[int(row)] for row in rows],
        search.context.cache,
        neighbours=Neighbours.joined(parts),
    )
    return queries, _gold(snapshot, [one.id for one in queries.documents])


def sampled(rows: Integers, seed: int) -> Integers:
    """At most `MOST_DOCUMENTS` of the rows; none if there are too few to choose a cut on."""
    if len(rows) < LEAST_DOCUMENTS:
        return rows[:0]
    if len(rows) > MOST_DOCUMENTS:
        rows = np.random.default_rng(seed).choice(rows, MOST_DOCUMENTS, replace=False)
    return np.sort(rows)


def _gold(snapshot: Snapshot, identifiers: list[str]) -> Evaluation:
    """The right labels; those that the vocabulary lacks count as missed, as in `labelkin eval`."""
    found = map(snapshot.document, identifiers)
    gold = gold_matrix([one for one in found if one is not None], snapshot.vocabulary)
    policy = policy_for(snapshot)
    return Evaluation.unpredicted(gold if policy is None else with_replacements(gold, policy))


def _best(queries: Queries, gold: Evaluation, settings: Settings, varied: Sequence[str]) -> Trial:
    """The best of the settings that differ in some values only."""
    return sweep(settings, queries, gold, _MEASURE, (), THRESHOLDS, varied=varied)[0]


def _as_cut(trial: Trial, names: Sequence[str], kept: frozenset[str] = frozenset()) -> Cut:
    """The values of some names, with the section that they are in."""
    settings = trial.settings
    sections = settings.implementation.as_config(settings)
    (section,) = (one for one, values in sections.items() if names[0] in values)
    values = {name: sections[section][name] for name in names}
    return Cut(settings.method, trial.value, section, values, kept)
