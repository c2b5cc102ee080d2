"""The method `rerank`: candidates from all signals, one calibrated score each."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import MissingExtraError, ModelMismatchError
from labelkin.neighbours.search import representation_names, without_state
from labelkin.represent.encoder import is_encoder
from labelkin.represent.representation import kind_names
from labelkin.rerank.calibration import expected_f_counts
from labelkin.rerank.features import Candidates, Evidence, find_candidates
from labelkin.rerank.model import RERANK_NAME, RerankModel, reranker_info
from labelkin.rerank.pairs import Floats, Pairs
from labelkin.rerank.signals import ordered
from labelkin.scoring.cut import cut
from labelkin.scoring.knn import carried
from labelkin.scoring.method import Method
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import RERANK_DEPTH, Settings
from labelkin.scoring.suggestion import BASE, Band, SignalWeight, Suggestion
from labelkin.store.derived import SnapshotOutdatedError
from labelkin.store.models import Model, Models
from labelkin.store.snapshot import Views

logger = logging.getLogger(__name__)

# Candidates with a lower score are not ranked at all.
_FLOOR = 0.01
_BATCH = 500


class Rerank(Method):
    """Scores candidates with trees over the features of all signals."""

    name = "rerank"

    def required_models(self) -> tuple[type[Model], ...]:
        """The reranker; its model says whether the label autoencoder is needed too."""
        return (RerankModel,)

    def models_checksum(self, models: Models) -> str:
        """The label autoencoder counts too, if its scores are a signal."""
        checksum = super().models_checksum(models)
        if reranker_info(models.folder / RERANK_NAME).uses_autoencoder:
            checksum += f" {models.checksum(LabelModel)}"
        return checksum

    def check_representation(self, models: Models, representation: str) -> None:
        """The trees were trained with neighbours by one representation."""
        folder = models.folder / RERANK_NAME
        info = models.get(RerankModel).info
        trained = representation_names(info.neighbours)
        if trained and _parts_of(trained) != _parts_of(representation):
            raise ModelMismatchError(
                f"{folder}: trained with neighbours by {trained}, not by {representation}; use "
                f"--representation {trained}, or run "
                f"`{info.training_command(models.folder.parent)} --representation {representation}`"
            )

    def depth(self, settings: Settings) -> int:  # noqa: ARG002
        """Always the same number: the trees were trained with it."""
        return RERANK_DEPTH

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All candidates above a low floor, best first."""
        label_order = queries.snapshot.label_order()
        parts = []
        for pairs, raw, scores in scored_candidates(queries, settings):
            order = np.lexsort((label_order[pairs.columns], -raw, pairs.documents))
            order = order[scores[order] >= _FLOOR]
            parts.append(
                Ranking.from_pairs(
                    pairs.documents[order], pairs.columns[order], scores[order], pairs.count
                )
            )
        return Ranking.joined(parts) if parts else Ranking.from_lists([])

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:
        """As many headings as maximise the expected F, or those above the threshold."""
        counts = None
        if settings.rerank.count == "expected-f":
            missed = _model(queries).info.calibration.missed
            counts = expected_f_counts(ranking.scores, ranking.starts, missed)
        return cut(ranking, counts, settings.rerank.threshold or None, settings.limit or None)

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,
        *,
        signals: bool = False,
    ) -> list[list[Suggestion]]:
        """The given headings with neighbours, names and band; with `signals`, their weights."""
        suggestions: list[list[Suggestion]] = []
        band = self.bands(queries, settings)
        voting = replace(settings.knn, k=RERANK_DEPTH)
        start = 0
        for part in _parts(queries):
            given_here = given.part(slice(start, start + len(part)))
            start += len(part)
            voted = carried(part, given_here, voting, settings)
            for place, of_document in enumerate(voted):
                columns = given_here[place][0]
                namings = part.namings(place) if len(columns) else {}
                weights: Sequence[tuple[SignalWeight, ...]] = [()] * len(columns)
                if signals:
                    weights = _weights(part, settings, place, columns)
                suggestions.append(
                    [
                        replace(
                            suggestion,
                            named=namings.get(column, ()),
                            signals=of_heading,
                            band=band(suggestion.score),
                        )
                        for suggestion, column, of_heading in zip(
                            of_document, columns.tolist(), weights, strict=True
                        )
                    ]
                )
        return suggestions

    def bands(self, queries: Queries, settings: Settings) -> Callable[[float], Band]:
        """Whether a score is high enough to accept a heading without review, or to show it."""
        calibration = _model(queries).info.calibration
        accept = calibration.threshold(settings.rerank.accept)
        review = calibration.threshold(settings.rerank.review)

        def band(score: float) -> Band:
            if score >= accept:
                return "accept"
            return "review" if score >= review else "hidden"

        return band

    def threshold(self, settings: Settings) -> float:
        """The smallest calibrated score."""
        return settings.rerank.threshold

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold, and without a count."""
        return replace(settings, rerank=replace(settings.rerank, count=None, threshold=threshold))

    def reviewing(self, settings: Settings, models: Models) -> Settings:
        """The settings with a threshold that no heading of the band review is below."""
        calibration = reranker_info(models.folder / RERANK_NAME).calibration
        bar = calibration.threshold(settings.rerank.review)
        return self.with_threshold(settings, min(settings.rerank.threshold, bar))

    def sweep(
        self,
        settings: Settings,
        ks: Sequence[int],  # noqa: ARG002
        thresholds: Sequence[float],
    ) -> Iterator[list[Settings]]:
        """The expected F and the threshold."""
        base = settings.rerank
        by_threshold = (replace(base, count=None, threshold=threshold) for threshold in thresholds)
        by_count = replace(base, count="expected-f", threshold=0.0)
        tried = dict.fromkeys((by_count, *by_threshold, base))
        yield [replace(settings, rerank=one) for one in tried]

    def swept(self, settings: Settings) -> dict[str, Any]:
        """The cut."""
        cutting = settings.rerank
        return {"count": cutting.count or "none", "threshold": cutting.threshold}


def scored_candidates(
    queries: Queries, settings: Settings
) -> Iterator[tuple[Pairs, npt.NDArray[np.float64], npt.NDArray[np.float32]]]:
    """All candidates of the queries, in batches, with raw and with calibrated scores."""
    model = _model(queries)
    _check_neighbours(queries, model)
    model.info.check_encoder(model.folder, queries.encoder_version)
    for part in _parts(queries):
        candidates = _candidates(part, settings)
        raw = model.ranker.scores(candidates.features)
        yield candidates.pairs, raw, model.info.calibration.scores(raw)


def _model(queries: Queries) -> RerankModel:
    """The reranker, if it was trained on this collection."""
    model = queries.model(RerankModel)
    queries.views.get(("reranker", model.checksum), lambda views: _checked(views, model))
    if model.info.uses_autoencoder:
        queries.model(LabelModel)
    return model


def _check_neighbours(queries: Queries, model: RerankModel) -> None:
    """Refuse neighbours by another representation than in training; warn of other settings."""
    trained = model.info.neighbours
    given = _neighbour_settings(queries)
    if not trained or not given or given == trained:
        return
    before, now = representation_names(trained), representation_names(given)
    if _parts_of(before) != _parts_of(now):
        raise ModelMismatchError(
            f"{model.folder}: trained with neighbours by {before}, not by {now}; "
            "search for the neighbours again, or train the reranker again"
        )
    if model.is_new(json.dumps(given, sort_keys=True)):
        logger.warning(
            "%s: trained with other settings of the search by %s (%s); `%s` adapts it",
            model.folder,
            now,
            _difference(trained, given),
            model.info.training_command(queries.snapshot.path),
        )


def _parts_of(representation: str) -> list[set[str]]:
    """The fused parts of a representation, each as a set of kinds or an encoder."""
    parts = [part.strip() for part in representation.split(",")]
    return [{part} if is_encoder(part) else kind_names(part) for part in parts]


def _difference(trained: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    changed = (key for key in {**trained, **given} if trained.get(key) != given.get(key))
    return "; ".join(f"{key}: {trained.get(key)!r}, now {given.get(key)!r}" for key in changed)


def _neighbour_settings(queries: Queries) -> Mapping[str, Any]:
    """What the neighbours are found with; empty if they were given without saying so."""
    if queries.search is not None:
        return queries.search.settings_fingerprint()
    found: Mapping[str, Any] = without_state(queries.neighbours(RERANK_DEPTH).fingerprint)
    return found


def _checked(views: Views, model: RerankModel) -> bool:
    state = model.info.state
    generation, token = state["generation"], state["token"]
    if views.snapshot.knows(generation, token):
        return True
    if views.snapshot.is_outdated(generation, token):
        raise SnapshotOutdatedError(f"{model.folder}: trained on a later state; try again")
    raise ModelMismatchError(
        f"{model.folder}: trained on another collection, or on a later state of this one; "
        "run `labelkin train`"
    )


def _parts(queries: Queries) -> list[Queries]:
    """The queries in batches; always the same objects, which keep what they have computed."""
    if len(queries) <= _BATCH:
        return [queries] if len(queries) else []
    # Search once: the parts share the neighbours.
    queries.neighbours(RERANK_DEPTH)
    return queries.once(
        "parts",
        lambda: [
            queries.part(slice(start, start + _BATCH)) for start in range(0, len(queries), _BATCH)
        ],
    )


def _candidates(queries: Queries, settings: Settings) -> Candidates:
    """The candidates that may be suggested.

    Features are computed as in training, before the policy is applied.
    """
    width = queries.snapshot.generation().next_column

    def computed() -> Candidates:
        return find_candidates(Evidence(queries, _model(queries).knowledge_for(width)))

    candidates = queries.once("candidates", computed)
    return _allowed(candidates, queries.policy(settings.include, settings.exclude))


def _allowed(candidates: Candidates, policy: LabelPolicy | None) -> Candidates:
    """Without headings that may not be suggested."""
    if policy is None:
        return candidates
    pairs = candidates.pairs
    kept = policy.target[pairs.columns] == pairs.columns
    features: Floats = candidates.features[kept]
    return Candidates(Pairs(pairs.keys[kept], pairs.count, pairs.width), features)


def _weights(
    queries: Queries, settings: Settings, place: int, columns: npt.NDArray[np.int32]
) -> list[tuple[SignalWeight, ...]]:
    """For each heading of a document what each kind of signal adds to its log odds."""
    if len(columns) == 0:
        return []
    model = _model(queries)
    candidates = _candidates(queries, settings)
    pairs = candidates.pairs
    lines = np.searchsorted(pairs.keys, place * pairs.width + columns.astype(np.int64))
    try:
        contributions = model.ranker.contributions(candidates.features[lines])
    except MissingExtraError as error:
        if model.is_new("no contributions"):
            logger.warning("no weights of signals: %s", error)
        return [()] * len(columns)
    names = [signal.reason for signal in ordered(model.info.groups) for _ in signal.features]
    names.append(BASE)
    weights = []
    for line in contributions:
        sums: dict[str, float] = {}
        for name, value in zip(names, line.tolist(), strict=True):
            sums[name] = sums.get(name, 0.0) + value
        by_weight = sorted(sums.items(), key=lambda item: -item[1])
        weights.append(tuple(SignalWeight(name, value) for name, value in by_weight))
    return weights
