"""Training a reranker on documents whose own labels no statistic has seen.

Some documents are held out. Statistics are counted, and signals fitted, over the
rest; the trees are trained on the features that the held-out documents then
have. This is repeated with other documents for each fold. One document in five of
the first fold is not used for the trees: these calibrate the scores and show
whether the reranker is better than votes. The statistics that are saved count all
documents. Everything is read from one snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.corpus.document import Document
from labelkin.evaluate.gold import gold_matrix
from labelkin.exceptions import ConfigError, TrainingError
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.search import NeighbourSearch
from labelkin.represent.counted_texts import Progress
from labelkin.rerank.calibration import (
    Calibration,
    calibrate,
    calibration_error,
    reliability,
)
from labelkin.rerank.features import Evidence, Knowledge, find_candidates, remaining
from labelkin.rerank.labelled_candidates import LabelledCandidates, with_replacements
from labelkin.rerank.labelled_texts import LabelledTexts
from labelkin.rerank.model import RerankInfo, RerankParts
from labelkin.rerank.pairs import Floats, Integers
from labelkin.rerank.ranker import Ranker, fit_ranker
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import SIGNALS, feature_names, ordered
from labelkin.rerank.signals.autoencoder import AUTOENCODER_SIGNALS
from labelkin.rerank.statistics import count_statistics
from labelkin.rerank.training_data import TrainingContext, TrainingData
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import RERANK_DEPTH
from labelkin.store.held_out import LEAST_DOCUMENTS, Fold, HeldOut, with_reserve
from labelkin.store.models import Models, software_versions
from labelkin.store.snapshot import Views

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.neighbours.indexes import Indexes

# One document in five of the first part calibrates.
_CALIBRATING = 5
_BATCH = 500


@dataclass(frozen=True, eq=False)
class TrainedReranker:
    """A reranker, and its scores of held-out documents that its trees were not trained on."""

    info: RerankInfo
    parts: RerankParts
    held_out: LabelledCandidates
    scores: Floats


class Autoencoders(Protocol):
    """Trains a label autoencoder for a fold."""

    def without(self, unseen: Integers) -> AbstractContextManager[LabelModel]:
        """An autoencoder that has not seen these rows, for as long as it is needed."""
        ...


class RerankTrainer:
    """Trains a reranker on one snapshot of a collection.

    `autoencoder` has not seen the documents of the first fold, unless `has_seen`;
    `autoencoders` gives one for each fold of which it has. `indexes` is needed if
    the settings name an encoder.
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
        has_seen: bool = False,
        autoencoders: Autoencoders | None = None,
        indexes: Indexes | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.data = TrainingData(
            views, held_out.rows, search, settings, indexes=indexes, progress=progress
        )
        self.settings = settings
        # Without one for each fold, one that has seen the first is of no use.
        self._autoencoder = None if has_seen and autoencoders is None else autoencoder
        self._has_seen_first = has_seen
        self._autoencoders = autoencoders
        self._models = models
        self._held_out = held_out
        context = self.context(np.zeros(0, dtype=np.int64))
        wanted = [name for name in settings.groups or SIGNALS.names() if name in SIGNALS]
        self.groups = tuple(
            signal.name for signal in ordered(wanted) if signal.is_available(context)
        )
        names = feature_names(self.groups)
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two signals have a feature {repeated[0]!r}; rename one of them")

    def context(self, places: Integers) -> TrainingContext:
        """What signals see of the texts at some places."""
        return TrainingContext(self.data, places, autoencoder=self._autoencoder)

    def train(self, given: Sequence[Document] = ()) -> TrainedReranker:
        """A reranker, trained on held-out documents and on those `given`."""
        started = time.monotonic()
        candidates, knowledge = self.collect(given)
        return self._trained(candidates, knowledge, len(given), started)

    def collect(self, given: Sequence[Document] = ()) -> tuple[list[LabelledCandidates], Knowledge]:
        """The candidates to train on, and knowledge over all texts.

        Those of each fold, after those of the given documents, or before them if
        these are too few to calibrate with. Of the held-out documents, only some of
        the wrong candidates are kept, unless they are among those that calibrate.
        """
        candidates = [
            self._fold_candidates(number, fold) for number, fold in enumerate(self._held_out.folds)
        ]
        knowledge = self._knowledge(np.arange(len(self.data.texts)))
        if given:
            place = 0 if len(given) >= LEAST_DOCUMENTS else len(candidates)
            candidates.insert(place, self.given_candidates(knowledge, given))
        return candidates, knowledge

    def given_candidates(
        self, knowledge: Knowledge, documents: Sequence[Document]
    ) -> LabelledCandidates:
        """The candidates of documents that have labels and are not in the collection."""
        gold = gold_matrix(documents, self.data.snapshot.vocabulary).astype(np.float32)
        if self.data.policy is not None:
            gold = with_replacements(gold, self.data.policy)
        parts = []
        for start in range(0, len(documents), _BATCH):
            batch = documents[start : start + _BATCH]
            evidence = Evidence(self._queries(batch, None, self._autoencoder), knowledge)
            parts.append(self._labelled(evidence, gold[start : start + len(batch)].tocsr()))
            self.data.report("Scoring given documents", start + len(batch), len(documents))
        return LabelledCandidates.joined(parts)

    def _knowledge(self, places: Integers) -> Knowledge:
        """Everything counted and fitted over the texts at some places."""
        context = self.context(places)
        texts, terms = context.texts, context.terms
        self.data.report("Counting", 0, 1)
        statistics = count_statistics(texts.labels, texts.counts, terms, texts.mentions)
        self.data.report("Counting", 1, 1)
        fitted = {signal.name: signal.fit(context) for signal in ordered(self.groups)}
        return Knowledge(
            statistics,
            self.data.headings,
            terms,
            self.groups,
            {name: value for name, value in fitted.items() if value is not None},
        )

    @contextmanager
    def _autoencoder_for(self, number: int, fold: Fold) -> Iterator[LabelModel | None]:
        """A label autoencoder that has not seen the documents of a fold; None if there is none."""
        uses_one = not AUTOENCODER_SIGNALS.isdisjoint(self.groups)
        has_seen = number > 0 or self._has_seen_first
        if not has_seen or not uses_one or self._autoencoders is None:
            yield None if has_seen else self._autoencoder
            return
        with self._autoencoders.without(fold.unseen) as autoencoder:
            yield autoencoder

    def _fold_candidates(self, number: int, fold: Fold) -> LabelledCandidates:
        texts = self.data.texts
        rest = self._knowledge(np.flatnonzero(~np.isin(texts.rows, fold.unseen)))
        mine = texts.at(self._held_out.places(fold))
        with self._autoencoder_for(number, fold) as autoencoder:
            return self._held_out_candidates(rest, mine, fold, autoencoder, is_first=number == 0)

    def _held_out_candidates(
        self,
        knowledge: Knowledge,
        texts: LabelledTexts,
        fold: Fold,
        autoencoder: LabelModel | None,
        *,
        is_first: bool,
    ) -> LabelledCandidates:
        is_held_out = np.zeros(self.data.label_sets.rows, dtype=np.bool_)
        is_held_out[fold.unseen] = True
        k = with_reserve(RERANK_DEPTH)
        unknown = set()
        if not is_first:
            unknown = {one.name for one in ordered(self.groups) if one.trained_before}
            if autoencoder is not None:
                unknown -= AUTOENCODER_SIGNALS
        parts = []
        random = np.random.default_rng(self.settings.seed)
        for start in range(0, len(texts), _BATCH):
            places = np.arange(start, min(start + _BATCH, len(texts)))
            batch = texts.at(places)
            near = remaining(self.data.search.search_rows(batch.rows, k), is_held_out)
            stored = self.data.snapshot.texts_of(batch.rows.tolist())
            documents = [stored[int(row)] for row in batch.rows]
            queries = self._queries(documents, near, autoencoder)
            queries.given("mentions", batch.mentions)
            if encoder := self.settings.encoder:
                search = self.data.vector_search()
                by_vectors = remaining(search.search_rows(batch.rows, k), is_held_out)
                queries.give_vectors(encoder, search.stored_vectors(batch.rows), by_vectors)
            evidence = Evidence(queries, knowledge, unknown=unknown, counts=batch.counts)
            part = self._labelled(evidence, batch.labels)
            if is_first:
                parts.append(part.thinned(random, _calibrates(places)))
            else:
                # These need no sample of the whole, only one of each batch.
                parts.append(part.thinned(np.random.default_rng(self.settings.seed)))
            self.data.report("Scoring held-out documents", int(places[-1]) + 1, len(texts))
        return LabelledCandidates.joined(parts)

    def _queries(
        self,
        documents: Sequence[Document],
        near: Neighbours | None,
        autoencoder: LabelModel | None,
    ) -> Queries:
        queries = Queries(
            self.data.views,
            self._models,
            documents,
            self.data.search.context.cache,
            self.data.search if near is None else None,
            neighbours=near,
            store_terms=near is None,
            # Only the neighbours that are given: a search would find held-out documents.
            indexes=self.data.indexes if near is None else None,
        )
        if autoencoder is not None:
            # The one that has not seen the held-out documents, whatever is trained meanwhile.
            queries.pin(autoencoder)
        return queries

    def _labelled(self, evidence: Evidence, gold: csr_matrix[Any]) -> LabelledCandidates:
        candidates = find_candidates(evidence)
        sizes = np.diff(gold.indptr).astype(np.int64)
        right = candidates.pairs.entries(gold[:, : self.data.width].tocsr()) > 0
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
        is_calibrating = _calibrates(np.arange(candidates[0].pairs.count))
        held_out = candidates[0].of(is_calibrating)
        shown = [candidates[0].of(~is_calibrating), *candidates[1:]]
        self.data.report("Training trees", 0, 2)
        first = _fitted(shown, names, settings)
        raw = first.scores(held_out.features)
        calibration = _calibrated(held_out, raw)
        self.data.report("Training trees", 1, 2)
        ranker = _fitted(candidates, names, settings)
        self.data.report("Training trees", 2, 2)
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
            neighbours=self.data.search.settings_fingerprint(),
            encoder=self.data.vector_search().settings_fingerprint() if settings.encoder else {},
        )
        parts = RerankParts(ranker, knowledge, self.data.terms.words)
        return TrainedReranker(info, parts, held_out, calibration.scores(raw))


def _calibrates(places: Integers) -> npt.NDArray[np.bool_]:
    """Which documents of the first part calibrate, by their places in it."""
    calibrates: npt.NDArray[np.bool_] = places % _CALIBRATING == 0
    return calibrates


def _fitted(
    candidates: Sequence[LabelledCandidates], names: list[str], settings: RerankTrainingSettings
) -> Ranker:
    sample = LabelledCandidates.joined(
        [part.thinned(np.random.default_rng(settings.seed)).sampled() for part in candidates]
    )
    return fit_ranker(
        sample.features,
        sample.right,
        names,
        rounds=settings.rounds,
        seed=settings.seed,
        weights=sample.weights,
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
