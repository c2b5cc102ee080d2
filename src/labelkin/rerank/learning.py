"""Learning a reranker: from documents whose own labels no statistic has seen.

Some documents are taken out of the collection, everything is counted and
trained over the rest, and the trees learn from what that says about the ones
taken out. A fifth of these are kept from the trees as well: they calibrate the
scores and tell whether the reranker is better than votes. Then the documents
are put back: the statistics that are kept are counted over all.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin._version import __version__
from labelkin.corpus.document import Document
from labelkin.evaluate.gold import gold_matrix
from labelkin.exceptions import TrainingError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.neighbours.search import NeighbourSearch
from labelkin.rerank.calibration import (
    Calibration,
    calibrate,
    calibration_error,
)
from labelkin.rerank.features import OPTIONAL_GROUPS, FeatureMaker, feature_names
from labelkin.rerank.headings import Headings, describe_headings
from labelkin.rerank.lesson import Lesson, joined, remaining, replaced
from labelkin.rerank.linear import LinearScorer, fit_linear
from labelkin.rerank.model import RerankInfo, RerankParts
from labelkin.rerank.pairs import Floats, Integers
from labelkin.rerank.ranker import Ranker, fit_ranker
from labelkin.rerank.reading import (
    LabelledTexts,
    Progress,
    TextReader,
    label_matrix,
    read_labelled_texts,
)
from labelkin.rerank.settings import LearningSettings
from labelkin.rerank.signals import make_signals
from labelkin.rerank.statistics import count_statistics
from labelkin.rerank.term_columns import TermColumns
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.policy import LabelPolicy, policy_for
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.store.collection import Collection
from labelkin.store.held_out import LEAST_DOCUMENTS, HeldOut

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.scoring.label_ae import LabelAe

_CALIBRATING = 5
_NEAREST = 20
_BATCH = 500


@dataclass(frozen=True, eq=False)
class Learned:
    """A reranker and how it did on documents that it was not learned from."""

    info: RerankInfo
    parts: RerankParts
    held_out: Lesson
    scores: Floats


@dataclass(frozen=True, eq=False)
class World:
    """What was counted and trained over some documents."""

    maker: FeatureMaker
    linear: LinearScorer | None


class Learner:
    """Learns a reranker for a collection."""

    def __init__(
        self,
        collection: Collection,
        search: NeighbourSearch,
        settings: LearningSettings,
        held_out: HeldOut,
        *,
        label_ae: LabelAe | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._collection = collection
        self._search = search
        self._settings = settings
        self._held_out = held_out
        self._label_ae = label_ae
        self._progress = progress
        self._policy: LabelPolicy | None = policy_for(collection, (), ())
        self._label_sets = collection.label_sets()
        generation = held_out.generation
        self._state = {"generation": generation.number, "token": generation.token}
        self._width = generation.next_column
        absent = {
            group
            for group, is_there in zip(
                OPTIONAL_GROUPS, (label_ae is not None, settings.linear), strict=True
            )
            if not is_there
        }
        self.groups = tuple(group for group in settings.groups if group not in absent)

    def learn(self, tuning: Sequence[Document] = ()) -> Learned:
        """A reranker, learned from `tuning` documents as well as from some taken out."""
        started = time.monotonic()
        lessons, whole = self.study(tuning)
        return self._learned(lessons, whole, len(tuning), started)

    def study(self, tuning: Sequence[Document] = ()) -> tuple[list[Lesson], World]:
        """What there is to learn from, the `tuning` documents first, and what is known of all."""
        rows, aside = self._held_out.rows, self._held_out.places
        labels = label_matrix(self._label_sets, rows, self._width, self._policy)
        with TextReader(self._collection, self._policy) as reader:
            texts, terms = read_labelled_texts(
                reader, self._collection, rows, labels, self._progress
            )
        headings = describe_headings(
            self._collection.vocabulary, terms, self._collection.only_language() or "en"
        )
        near = self._near(rows) if self._settings.linear else np.zeros((0, 0), dtype=np.int64)
        lessons = []
        if len(aside):
            rest = self._world(texts, terms, headings, near, without=aside)
            lessons.append(self._examine_rows(rest, texts, aside))
        whole = self._world(texts, terms, headings, near)
        if tuning:
            place = 0 if len(tuning) >= LEAST_DOCUMENTS else len(lessons)
            lessons.insert(place, self.examine(whole, tuning))
        return lessons, whole

    def _near(self, rows: Integers) -> Integers:
        """For each document the places of its nearest among `rows`, for the linear scorer."""
        places = np.full(self._label_sets.rows, -1, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        found = np.full((len(rows), _NEAREST), -1, dtype=np.int64)
        for start in range(0, len(rows), _BATCH):
            near = self._search.search_rows(rows[start : start + _BATCH], _NEAREST).rows
            known = (near != NOBODY) & (near < len(places))
            found[start : start + len(near)] = np.where(known, places[np.where(known, near, 0)], -1)
            self._tell("Finding neighbours", start + len(near), len(rows))
        return found

    def _world(
        self,
        texts: LabelledTexts,
        terms: TermColumns,
        headings: Headings,
        near: Integers,
        without: Integers | None = None,
    ) -> World:
        """Everything counted and trained over the texts, or over all but some."""
        inside = np.ones(len(texts), dtype=np.bool_)
        if without is not None:
            inside[without] = False
        places = np.flatnonzero(inside)
        rest = texts.taken(places)
        self._tell("Counting", 0, 1)
        statistics = count_statistics(rest.labels, rest.counts, terms, rest.mentions)
        self._tell("Counting", 1, 1)
        linear = None
        if self._settings.linear:
            renumbered = np.where(inside, np.cumsum(inside) - 1, -1)
            mine = near[places]
            linear = fit_linear(
                terms.weighted(rest.counts, pairs=True),
                rest.labels,
                np.where(mine >= 0, renumbered[mine], -1),
                cost=self._settings.linear_cost,
                seed=self._settings.seed,
                threads=self._settings.threads or os.cpu_count() or 1,
                progress=lambda done, total: self._tell("Training classifiers", done, total),
            )
        maker = FeatureMaker(statistics, headings, terms, self.groups)
        return World(maker, linear)

    def _examine_rows(self, world: World, texts: LabelledTexts, places: Integers) -> Lesson:
        taken = texts.taken(places)
        out = np.zeros(self._label_sets.rows, dtype=np.bool_)
        out[taken.rows] = True
        # Enough neighbours, so that those that are out as well are not missed.
        share = len(places) / max(len(texts), 1)
        k = round(RERANK_DEPTH * (1 + 2 * share)) + 10
        lessons = []
        for start in range(0, len(taken), _BATCH):
            part = np.arange(start, min(start + _BATCH, len(taken)))
            batch = taken.taken(part)
            found = self._search.search_rows(batch.rows, k)
            near = remaining(found, out)
            lessons.append(self._made(world, near, batch.counts, batch.mentions, batch.labels))
            self._tell("Looking at documents taken out", int(part[-1]) + 1, len(taken))
        return joined(lessons)

    def examine(self, world: World, documents: Sequence[Document]) -> Lesson:
        """The candidates of documents that have labels and are not in the collection."""
        gold = gold_matrix(documents, self._collection.vocabulary).astype(np.float32)
        if self._policy is not None:
            gold = replaced(gold, self._policy)
        lessons = []
        with TextReader(self._collection, self._policy) as reader:
            for start in range(0, len(documents), _BATCH):
                batch = documents[start : start + _BATCH]
                found = self._search.search(batch, RERANK_DEPTH)
                # Documents that came after the label sets were read have none here.
                near = remaining(found, np.zeros(self._label_sets.rows, dtype=np.bool_))
                counts = world.maker.terms.counts(reader.stems(batch, store=True))
                mentions = reader.mentions(batch)
                given = gold[start : start + len(batch)]
                lessons.append(self._made(world, near, counts, mentions, given))
                self._tell("Looking at documents given", start + len(batch), len(documents))
        return joined(lessons)

    def _made(
        self,
        world: World,
        near: Neighbours,
        counts: csr_matrix[Any],
        mentions: Mentions,
        gold: csr_matrix[Any],
    ) -> Lesson:
        signals = make_signals(
            near,
            counts,
            mentions,
            width=self._width,
            label_sets=self._label_sets,
            policy=self._policy,
            terms=world.maker.terms,
            label_ae=self._label_ae,
            linear=world.linear,
        )
        candidates = world.maker.make(signals)
        sizes = np.diff(gold.indptr).astype(np.int64)
        known = gold[:, : self._width].tocsr()
        right = candidates.pairs.entries(known) > 0
        return Lesson(candidates.pairs, candidates.features, right, sizes)

    def _learned(self, lessons: list[Lesson], whole: World, tuning: int, started: float) -> Learned:
        if not any(lesson.right.any() for lesson in lessons):
            raise TrainingError(
                "none of the headings to learn from is among the candidates; "
                "do the documents have texts?"
            )
        settings = self._settings
        names = feature_names(self.groups)
        # The first lesson is the one that new documents resemble most.
        calibrating = np.arange(lessons[0].pairs.count) % _CALIBRATING == 0
        held_out = lessons[0].taken(calibrating)
        shown = [lessons[0].taken(~calibrating), *lessons[1:]]
        self._tell("Learning", 0, 2)
        first = _fitted(shown, names, settings)
        raw = first.scores(held_out.features)
        calibration = _calibrated(held_out, raw)
        self._tell("Learning", 1, 2)
        ranker = _fitted(lessons, names, settings)
        self._tell("Learning", 2, 2)
        parts = RerankParts(
            ranker,
            whole.maker.terms,
            whole.maker.statistics,
            whole.maker.headings,
            whole.linear,
        )
        info = RerankInfo(
            groups=self.groups,
            calibration=calibration,
            training={
                "settings": asdict(settings),
                "documents": whole.maker.statistics.documents,
                "taken_out": sum(lesson.pairs.count for lesson in lessons) - tuning,
                "given": tuning,
                "candidates": sum(len(lesson.pairs) for lesson in lessons),
                "candidate_recall": round(
                    sum(int(lesson.right.sum()) for lesson in lessons)
                    / max(sum(int(lesson.gold.sum()) for lesson in lessons), 1),
                    4,
                ),
                "seconds": round(time.monotonic() - started, 1),
            },
            versions={
                "labelkin": __version__,
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in ("numpy", "lightgbm")},
            },
            state=self._state,
        )
        return Learned(info, parts, held_out, calibration.scores(raw))

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(stage, done, total)


def _fitted(lessons: Sequence[Lesson], names: list[str], settings: LearningSettings) -> Ranker:
    return fit_ranker(
        np.concatenate([lesson.features for lesson in lessons]),
        np.concatenate([lesson.right for lesson in lessons]),
        names,
        rounds=settings.rounds,
        seed=settings.seed,
    )


def _calibrated(held_out: Lesson, raw: npt.NDArray[np.float64]) -> Calibration:
    """Calibrated on all of the documents; the error measured on half of them, by the other."""
    pairs = held_out.pairs
    half = pairs.documents % 2 == 0
    missed = float((held_out.gold.sum() - held_out.right.sum()) / max(pairs.count, 1))
    facts: dict[str, Any] = {"missed": round(missed, 4), "documents": pairs.count}
    one = calibrate(raw[half], held_out.right[half], error=0.0, **facts)
    error = calibration_error(one.scores(raw[~half]), held_out.right[~half])
    return calibrate(raw, held_out.right, error=round(error, 5), **facts)
