"""Training a reranker on documents whose own labels no statistic has seen.

Some documents are held out. Statistics are counted, and signals fitted, over the
rest; the trees are trained on the features that the held-out documents then
have. One held-out document in five is not used for the trees: these calibrate the
scores and show whether the reranker is better than votes. The statistics that
are saved count all documents. Everything is read from one snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.corpus.document import Document
from labelkin.evaluate.gold import gold_matrix
from labelkin.exceptions import ConfigError, TrainingError
from labelkin.memo import Memo
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.search import NeighbourSearch
from labelkin.rerank.calibration import (
    Calibration,
    calibrate,
    calibration_error,
    reliability,
)
from labelkin.rerank.features import Evidence, Knowledge, find_candidates, remaining
from labelkin.rerank.headings import Headings, describe_headings
from labelkin.rerank.labelled_candidates import LabelledCandidates, with_replacements
from labelkin.rerank.labelled_texts import (
    LabelledTexts,
    Progress,
    Terms,
    count_wording,
    label_matrix,
    read_labelled_texts,
)
from labelkin.rerank.model import RerankInfo, RerankParts
from labelkin.rerank.pairs import Floats, Integers
from labelkin.rerank.ranker import Ranker, fit_ranker
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import SIGNALS, feature_names, ordered
from labelkin.rerank.statistics import count_statistics
from labelkin.rerank.term_columns import TermColumns
from labelkin.scoring.policy import policy_for
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.store.held_out import LARGEST_SHARE, LEAST_DOCUMENTS, Fold, HeldOut
from labelkin.store.models import Models, software_versions
from labelkin.store.snapshot import Snapshot, Views

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.neighbours.indexes import Indexes
    from labelkin.neighbours.vector_search import VectorSearch

Value = TypeVar("Value")

# One held-out document in five calibrates.
_CALIBRATING = 5
_NEAREST = 20
_BATCH = 500


@dataclass(frozen=True, eq=False)
class TrainedReranker:
    """A reranker, and its scores of held-out documents that its trees were not trained on."""

    info: RerankInfo
    parts: RerankParts
    held_out: LabelledCandidates
    scores: Floats


class TrainingContext:
    """The documents that everything is counted and fitted over, for signals to fit.

    `texts` are all labelled documents, or those that are not held out.
    """

    def __init__(self, trainer: RerankTrainer, texts: LabelledTexts, places: Integers) -> None:
        self._trainer = trainer
        self._places = places
        self.texts = texts

    @property
    def snapshot(self) -> Snapshot:
        """The state of the collection."""
        return self._trainer.snapshot

    @property
    def settings(self) -> RerankTrainingSettings:
        """How the reranker is trained."""
        return self._trainer.settings

    @property
    def has_autoencoder(self) -> bool:
        """Whether there is a label autoencoder that has not seen the held-out documents."""
        return self._trainer.has_autoencoder

    @property
    def terms(self) -> TermColumns:
        """The terms that texts are counted by."""
        return self._trainer.terms().columns

    def wording(self) -> tuple[Terms, csr_matrix[Any]]:
        """All words of the texts, stop words and numbers too, and how often each text has them."""
        terms, counts = self._trainer.wording()
        return terms, counts[self._places]

    def nearest(self) -> Integers:
        """For each text the places of its nearest among the texts, −1 for none."""
        nearest = self._trainer.nearest()
        inside = np.full(len(nearest), -1, dtype=np.int64)
        inside[self._places] = np.arange(len(self._places))
        mine = nearest[self._places]
        near = np.where(mine >= 0, inside[mine], -1)
        # Without those that are held out, the next ones move up.
        order = np.argsort(near < 0, axis=1, kind="stable")[:, :_NEAREST]
        return np.take_along_axis(near, order, 1)

    def vector_search(self) -> VectorSearch:
        """The search by the vectors of the settings' encoder; it has those of all texts."""
        return self._trainer.vector_search()

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """A value that does not depend on the labels, computed once for all folds."""
        return self._trainer.once(key, make)

    def report(self, stage: str, done: int, total: int) -> None:
        """Report the progress of a long step."""
        self._trainer.report(stage, done, total)


class RerankTrainer:
    """Trains a reranker on one snapshot of a collection.

    `indexes` is needed if the settings name an encoder.
    """

    def __init__(
        self,
        views: Views,
        models: Models,
        search: NeighbourSearch,
        settings: RerankTrainingSettings,
        held_out: HeldOut,
        *,
        autoencoder: LabelModel | None = None,
        indexes: Indexes | None = None,
        progress: Progress | None = None,
    ) -> None:
        if settings.encoder and indexes is None:
            raise ConfigError(f"training with vectors by {settings.encoder} needs the indexes")
        self.snapshot = views.snapshot
        self.settings = settings
        self.has_autoencoder = autoencoder is not None
        self._autoencoder = autoencoder
        self._views = views
        self._models = models
        self._search = search
        self._indexes = indexes
        self._held_out = held_out
        self._progress = progress
        self._policy = policy_for(self.snapshot)
        self._label_sets = self.snapshot.label_sets()
        self._width = self.snapshot.generation().next_column
        self._memo = Memo()
        context = TrainingContext(self, _no_texts(), np.zeros(0, dtype=np.int64))
        wanted = [name for name in settings.groups or SIGNALS.names() if name in SIGNALS]
        self.groups = tuple(
            signal.name for signal in ordered(wanted) if signal.is_available(context)
        )

        names = feature_names(self.groups)
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two signals have a feature {repeated[0]!r}; rename one of them")

    def train(self, given: Sequence[Document] = ()) -> TrainedReranker:
        """A reranker, trained on held-out documents and on those `given`."""
        started = time.monotonic()
        candidates, knowledge = self.collect(given)
        return self._trained(candidates, knowledge, len(given), started)

    def collect(self, given: Sequence[Document] = ()) -> tuple[list[LabelledCandidates], Knowledge]:
        """The candidates to train on, and knowledge over all texts.

        The given documents' come first, then those of each fold. Only the
        candidates of the first fold are complete.
        """
        texts = self._texts()
        candidates = []
        for number, fold in enumerate(self._held_out.folds):
            rest = self._knowledge(np.flatnonzero(~np.isin(texts.rows, fold.unseen)))
            mine = texts.at(self._held_out.places(fold))
            candidates.append(self._held_out_candidates(rest, mine, fold, is_first=number == 0))
        knowledge = self._knowledge(np.arange(len(texts)))
        if given:
            place = 0 if len(given) >= LEAST_DOCUMENTS else len(candidates)
            candidates.insert(place, self.given_candidates(knowledge, given))
        return candidates, knowledge

    def given_candidates(
        self, knowledge: Knowledge, documents: Sequence[Document]
    ) -> LabelledCandidates:
        """The candidates of documents that have labels and are not in the collection."""
        gold = gold_matrix(documents, self.snapshot.vocabulary).astype(np.float32)
        if self._policy is not None:
            gold = with_replacements(gold, self._policy)
        parts = []
        for start in range(0, len(documents), _BATCH):
            batch = documents[start : start + _BATCH]
            queries = self._queries(batch, None)
            parts.append(
                self._labelled(queries, knowledge, gold[start : start + len(batch)].tocsr())
            )
            self.report("Scoring given documents", start + len(batch), len(documents))
        return LabelledCandidates.joined(parts)

    def terms(self) -> Terms:
        """The terms that texts are counted by."""
        return self._read()[1]

    def wording(self) -> tuple[Terms, csr_matrix[Any]]:
        """All words of the texts, stop words and numbers too, and how often each text has them."""
        return self._memo.get(
            "wording", lambda: count_wording(self.snapshot, self._held_out.rows, self._progress)
        )

    def nearest(self) -> Integers:
        """For each text the places of its nearest among all texts, −1 for none."""
        return self._memo.get("nearest", self._find_nearest)

    def vector_search(self) -> VectorSearch:
        """The search by the vectors of the settings' encoder."""
        if self._indexes is None:
            raise ConfigError("the training has no encoder")
        return self._indexes.vector_search(self._views, self.settings.encoder)

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """A value that is computed once for all folds."""
        return self._memo.get(("of signals", key), make)

    def report(self, stage: str, done: int, total: int) -> None:
        """Report the progress of a long step."""
        if self._progress is not None:
            self._progress(stage, done, total)

    def _texts(self) -> LabelledTexts:
        return self._read()[0]

    def _read(self) -> tuple[LabelledTexts, Terms]:
        rows = self._held_out.rows
        return self._memo.get(
            "texts",
            lambda: read_labelled_texts(
                self.snapshot,
                self._search.context.cache,
                rows,
                label_matrix(self._label_sets, rows, self._width, self._policy),
                self._progress,
            ),
        )

    def _headings(self) -> Headings:
        snapshot = self.snapshot
        return self._memo.get(
            "headings",
            lambda: describe_headings(
                snapshot.vocabulary, self.terms().columns, snapshot.only_language() or "en"
            ),
        )

    def _find_nearest(self) -> Integers:
        rows = self._held_out.rows
        places = np.full(self._label_sets.rows, -1, dtype=np.int64)
        places[rows] = np.arange(len(rows))
        k = _with_reserve(_NEAREST)
        nearest = np.full((len(rows), k), -1, dtype=np.int64)
        for start in range(0, len(rows), _BATCH):
            near = self._search.search_rows(rows[start : start + _BATCH], k).rows
            known = near != NO_NEIGHBOUR
            nearest[start : start + len(near)] = np.where(
                known, places[np.where(known, near, 0)], -1
            )
            self.report("Finding neighbours", start + len(near), len(rows))
        return nearest

    def _knowledge(self, places: Integers) -> Knowledge:
        """Everything counted and fitted over the texts at some places."""
        texts, terms = self._texts().at(places), self.terms().columns
        self.report("Counting", 0, 1)
        statistics = count_statistics(texts.labels, texts.counts, terms, texts.mentions)
        self.report("Counting", 1, 1)
        context = TrainingContext(self, texts, places)
        fitted = {signal.name: signal.fit(context) for signal in ordered(self.groups)}
        return Knowledge(
            statistics,
            self._headings(),
            terms,
            self.groups,
            {name: value for name, value in fitted.items() if value is not None},
        )

    def _held_out_candidates(
        self, knowledge: Knowledge, texts: LabelledTexts, fold: Fold, *, is_first: bool
    ) -> LabelledCandidates:
        is_held_out = np.zeros(self._label_sets.rows, dtype=np.bool_)
        is_held_out[fold.unseen] = True
        k = _with_reserve(RERANK_DEPTH)
        parts = []
        for start in range(0, len(texts), _BATCH):
            places = np.arange(start, min(start + _BATCH, len(texts)))
            batch = texts.at(places)
            near = remaining(self._search.search_rows(batch.rows, k), is_held_out)
            stored = self.snapshot.texts_of(batch.rows.tolist())
            documents = [stored[int(row)] for row in batch.rows]
            queries = self._queries(documents, near)
            queries.given("mentions", batch.mentions)
            queries.given(("evidence", "term counts"), batch.counts)
            if encoder := self.settings.encoder:
                search = self.vector_search()
                by_vectors = remaining(search.search_rows(batch.rows, k), is_held_out)
                queries.give_vectors(encoder, search.stored_vectors(batch.rows), by_vectors)
            part = self._labelled(queries, knowledge, batch.labels, has_seen=not is_first)
            parts.append(part if is_first else part.thinned(self.settings.seed))
            self.report("Scoring held-out documents", int(places[-1]) + 1, len(texts))
        return LabelledCandidates.joined(parts)

    def _queries(self, documents: Sequence[Document], near: Neighbours | None) -> Queries:
        queries = Queries(
            self._views,
            self._models,
            documents,
            self._search.context.cache,
            self._search if near is None else None,
            neighbours=near,
            store_terms=near is None,
            # Only the neighbours that are given: a search would find held-out documents.
            indexes=self._indexes if near is None else None,
        )
        if self._autoencoder is not None:
            # The one that has not seen the held-out documents, whatever is trained meanwhile.
            queries.pin(self._autoencoder)
        return queries

    def _labelled(
        self,
        queries: Queries,
        knowledge: Knowledge,
        gold: csr_matrix[Any],
        *,
        has_seen: bool = False,
    ) -> LabelledCandidates:
        candidates = find_candidates(Evidence(queries, knowledge, has_seen=has_seen))
        sizes = np.diff(gold.indptr).astype(np.int64)
        right = candidates.pairs.entries(gold[:, : self._width].tocsr()) > 0
        return LabelledCandidates(candidates.pairs, candidates.features, right, sizes)

    def _trained(
        self,
        candidates: list[LabelledCandidates],
        knowledge: Knowledge,
        given: int,
        started: float,
    ) -> TrainedReranker:
        if not any(part.right.any() for part in candidates):
            raise TrainingError(
                "none of the headings to train on is among the candidates; "
                "do the documents have words and headings in common?"
            )
        settings = self.settings
        names = feature_names(self.groups)
        # The first part is the one that new documents resemble most.
        is_calibrating = np.arange(candidates[0].pairs.count) % _CALIBRATING == 0
        held_out = candidates[0].of(is_calibrating)
        shown = [candidates[0].of(~is_calibrating), *candidates[1:]]
        self.report("Training trees", 0, 2)
        first = _fitted(shown, names, settings)
        raw = first.scores(held_out.features)
        calibration = _calibrated(held_out, raw)
        self.report("Training trees", 1, 2)
        ranker = _fitted(candidates, names, settings)
        self.report("Training trees", 2, 2)
        generation = self._held_out.generation
        info = RerankInfo(
            groups=self.groups,
            calibration=calibration,
            training={
                "settings": {**asdict(settings), "groups": list(self.groups)},
                "documents": knowledge.statistics.documents,
                "held_out": sum(part.pairs.count for part in candidates) - given,
                "given": given,
                "folds": len(self._held_out.folds),
                "candidates": sum(part.size for part in candidates),
                "candidate_recall": round(
                    sum(int(part.right.sum()) for part in candidates)
                    / max(sum(int(part.gold.sum()) for part in candidates), 1),
                    4,
                ),
                "seconds": round(time.monotonic() - started, 1),
            },
            versions=software_versions("numpy", "lightgbm"),
            state={"generation": generation.number, "token": generation.token},
            neighbours=self._search.settings_fingerprint(),
            encoder=self.vector_search().settings_fingerprint() if settings.encoder else {},
        )
        parts = RerankParts(ranker, knowledge, self.terms().words)
        return TrainedReranker(info, parts, held_out, calibration.scores(raw))


def _with_reserve(k: int) -> int:
    """Enough neighbours to have `k` after the held-out ones are dropped."""
    return round(k * (1 + 2 / LARGEST_SHARE)) + 10


def _no_texts() -> LabelledTexts:
    empty: Any = None
    return LabelledTexts(np.zeros(0, dtype=np.int64), empty, empty, empty)


def _fitted(
    candidates: Sequence[LabelledCandidates], names: list[str], settings: RerankTrainingSettings
) -> Ranker:
    thinned = LabelledCandidates.joined([part.thinned(settings.seed) for part in candidates])
    return fit_ranker(
        thinned.features,
        thinned.right,
        names,
        rounds=settings.rounds,
        seed=settings.seed,
        weights=thinned.weights,
    )


def _calibrated(held_out: LabelledCandidates, raw: npt.NDArray[np.float64]) -> Calibration:
    """Calibrated on all of the documents; the error of each half measured on the other."""
    pairs, right = held_out.pairs, held_out.right
    missed = float((held_out.gold.sum() - right.sum()) / max(pairs.count, 1))
    facts: dict[str, Any] = {"missed": round(missed, 4), "documents": pairs.count, "error": 0.0}
    is_even = pairs.documents % 2 == 0
    scores = np.zeros(len(raw), dtype=np.float32)
    for half in (is_even, ~is_even):
        scores[~half] = calibrate(raw[half], right[half], **facts).scores(raw[~half])
    bins = reliability(scores, right)
    return replace(
        calibrate(raw, right, **facts),
        error=round(calibration_error(bins), 5),
        reliability=tuple(bins),
    )
