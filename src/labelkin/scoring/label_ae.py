"""The method `label-ae`: the neighbours' latent vectors, averaged and decoded into headings.

With z_i the latent vectors of the neighbours and w_i their weights, the
decoder turns Σ w_i z_i / Σ w_i into a score per heading (section 3.3 of the
paper). Each heading's evidence is exact: what its score (as a logit) loses when
one neighbour is left out of the average. A heading that no neighbour carries
is inferred from the neighbours' headings without which it would score lowest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.latents import LatentStore
from labelkin.autoencoder.model import LabelModel
from labelkin.exceptions import ModelMismatchError
from labelkin.neighbours.neighbours import DISTANCES, NO_NEIGHBOUR, Neighbours
from labelkin.scoring.evidence import NeighbourEvidence, neighbour_evidence
from labelkin.scoring.knn import cut_by, cuts_to_try, scorer_values, weights_of
from labelkin.scoring.method import Method
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.scoring.suggestion import Suggestion
from labelkin.scoring.votes import WEIGHTINGS
from labelkin.store.models import Model
from labelkin.store.reader import Reader
from labelkin.store.snapshot import Snapshot, Views

logger = logging.getLogger(__name__)

# Headings with a lower score are not ranked at all.
_FLOOR = 0.005
# Documents decoded at a time, and at most this many values of their neighbours' vectors.
_CHUNK = 256
_VALUES = 20_000_000
_LEAST_KNOWN = 0.5
_INFERRED_FROM = 3

Floats = npt.NDArray[np.float32]


class LabelAe(Method):
    """Ranks labels by decoding the average of the neighbours' latent vectors."""

    name = "label-ae"
    votes = True

    def required_models(self) -> tuple[type[Model], ...]:
        """The label autoencoder."""
        return (LabelModel,)

    def depth(self, settings: Settings) -> int:
        """As many neighbours as are averaged."""
        return settings.label_ae.k

    def rank(self, queries: Queries, settings: Settings) -> Ranking:
        """All labels that score above a floor, best first."""
        return decoded(queries, settings.label_ae, settings)

    def cut(self, queries: Queries, ranking: Ranking, settings: Settings) -> Ranking:
        """The labels above the threshold, or as many as the neighbours have."""
        return cut_by(queries, ranking, settings.label_ae, settings)

    def explain(
        self,
        queries: Queries,
        given: Ranking,
        settings: Settings,
        *,
        signals: bool = False,  # noqa: ARG002
    ) -> list[list[Suggestion]]:
        """The given labels with what each neighbour contributes to them."""
        decoder = Decoder.of(queries)
        policy = queries.policy(settings.include, settings.exclude)
        near = queries.neighbours(settings.label_ae.k)
        distances = near.distances(settings.label_ae.distance)
        weights = _weights(near, settings.label_ae)
        around = neighbour_evidence(queries.snapshot, near, distances, policy)
        suggestions: list[list[Suggestion]] = []
        for place, ((columns, scores), evidence) in enumerate(zip(given, around, strict=True)):
            mine = weights[place, evidence.places]
            suggestions.append(decoder.explain(columns, scores, evidence, mine, policy))
        return suggestions

    def threshold(self, settings: Settings) -> float:
        """The smallest score of the decoder."""
        return settings.label_ae.threshold

    def with_threshold(self, settings: Settings, threshold: float) -> Settings:
        """The settings with another threshold."""
        return replace(settings, label_ae=replace(settings.label_ae, threshold=threshold))

    def uncut(self, settings: Settings) -> Settings:
        """The settings without count and threshold."""
        return replace(settings, label_ae=replace(settings.label_ae, count=None, threshold=0.0))

    def sweep(
        self, settings: Settings, ks: Sequence[int], thresholds: Sequence[float]
    ) -> Iterator[list[Settings]]:
        """All k, weightings by distance and distances; counts alone and thresholds alone."""
        for k, weighting, distance in product(ks, WEIGHTINGS[1:], DISTANCES):
            scorer = replace(settings.label_ae, k=k, weighting=weighting, distance=distance)
            yield [replace(settings, label_ae=one) for one in cuts_to_try(scorer, thresholds)]

    def swept(self, settings: Settings) -> dict[str, Any]:
        """Everything about the average."""
        return scorer_values(settings.label_ae)

    def as_config(self, settings: Settings) -> dict[str, dict[str, Any]]:
        """The section is called label_ae."""
        return {"label_ae": self.swept(settings)}


def decoded(
    queries: Queries,
    scorer: ScorerSettings,
    settings: Settings | None = None,
) -> Ranking:
    """All labels that the decoder scores above a floor; computed once per batch and weighting."""
    include, exclude = ((), ()) if settings is None else (settings.include, settings.exclude)
    key = ("decoded", scorer.k, scorer.weighting, scorer.distance, include, exclude)
    return queries.once(
        key,
        lambda: Decoder.of(queries).rank(
            queries.neighbours(scorer.k), scorer, queries.policy(include, exclude)
        ),
    )


class Decoder:
    """The label autoencoder over one snapshot: its labels as columns, the latents of its rows."""

    def __init__(self, snapshot: Snapshot, model: LabelModel) -> None:
        self.model = model
        self._snapshot = snapshot
        store = model.derived.get(
            ("latents", snapshot.path, snapshot.vocabulary_state.key),
            lambda: LatentStore(model, _matched(snapshot, model)),
        )
        self.columns: LabelColumns = store.columns
        self._latents = store.at(snapshot)

    @classmethod
    def of(cls, queries: Queries) -> Decoder:
        """The decoder for a batch of queries."""
        return cls.at(queries.views, queries.model(LabelModel))

    @classmethod
    def at(cls, views: Views, model: LabelModel) -> Decoder:
        """The decoder of a snapshot, made once."""
        key = ("decoder", model.checksum)
        decoder = views.get(key, lambda views: cls(views.snapshot, model))
        for other in views.used():
            # A model that has been trained again takes the place of the old one.
            if isinstance(other, tuple) and other[0] == "decoder" and other != key:
                views.drop(other)
        return decoder

    def unknown_labels(self) -> int:
        """How many labels of the collection's documents the model has never seen."""
        snapshot = self._snapshot
        width = len(self.columns.places)
        used = snapshot.label_sets().frequencies(width, snapshot.tombstones()) > 0
        return int(np.count_nonzero(used & (self.columns.places < 0)))

    def rank(
        self, neighbours: Neighbours, scorer: ScorerSettings, policy: LabelPolicy | None
    ) -> Ranking:
        """All labels that score above a floor, best first."""
        near = neighbours.nearest(scorer.k)
        weights = _weights(near, scorer)
        targets = self._targets(policy)
        parts = []
        chunk = max(1, min(_CHUNK, _VALUES // max(near.k * self.model.latent, 1)))
        for start in range(0, len(near), chunk):
            part = slice(start, start + chunk)
            averages = self._averages(near.rows[part], weights[part])
            logits = self.model.decode(averages)
            logits[weights[part].sum(1) == 0] = -np.inf
            parts.append(self._ranked(logits, targets, has_policy=policy is not None))
        return Ranking.joined(parts) if parts else Ranking.from_lists([])

    def scores_of(
        self,
        near: Neighbours,
        scorer: ScorerSettings,
        policy: LabelPolicy | None,
        documents: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int64],
    ) -> Floats:
        """The scores of some pairs of document and column, 0 below the floor of `rank`."""
        weights = _weights(near, scorer)
        averages = self._averages(near.rows, weights)
        targets = self._targets(policy)
        labels = np.flatnonzero(np.isin(targets, columns))
        logits = self.model.decode(averages, labels)
        logits[weights.sum(1) == 0] = -np.inf
        logits[logits <= np.log(_FLOOR / (1 - _FLOOR))] = -np.inf
        # Several labels may stand for one concept: the best of them counts.
        distinct, places = np.unique(targets[labels], return_inverse=True)
        best = np.full((len(near), len(distinct)), -np.inf, dtype=np.float32)
        np.maximum.at(best.T, places, logits.T)
        scores = np.zeros(len(columns), dtype=np.float32)
        if len(distinct):
            at = np.minimum(np.searchsorted(distinct, columns), len(distinct) - 1)
            is_known = distinct[at] == columns
            scores[is_known] = 1 / (1 + np.exp(-best[documents[is_known], at[is_known]]))
        return scores

    def explain(
        self,
        columns: npt.NDArray[np.int32],
        scores: Floats,
        evidence: NeighbourEvidence,
        weights: Floats,
        policy: LabelPolicy | None,
    ) -> list[Suggestion]:
        """One document's labels with what each neighbour contributes."""
        labels = self._labels_of(columns, evidence, weights, self._targets(policy))
        parts = self._contributions(labels, evidence, weights)
        inferred = [n for n, one in enumerate(columns) if not len(evidence.carrying(int(one)))]
        reasons = self._inferred(labels[inferred], evidence, weights)
        sources = dict(zip(inferred, reasons, strict=True))
        wanted = {int(column) for column in columns} | {c for one in reasons for c in one}
        concepts = self._snapshot.concepts(sorted(wanted))
        suggestions = []
        for number, (column, score) in enumerate(zip(columns.tolist(), scores, strict=True)):
            carrying = evidence.carrying(column)
            shares = np.maximum(parts[:, number], 0)
            shares = shares / (shares.sum() or 1.0)
            contributing = np.union1d(np.flatnonzero(shares > 0), carrying)
            order = contributing[np.argsort(-shares[contributing], kind="stable")]
            suggestions.append(
                Suggestion(
                    concept=concepts[column],
                    score=float(score),
                    rank=number + 1,
                    carriers=evidence.carriers(order.tolist(), shares[order], carrying),
                    neighbours=len(evidence),
                    inferred_from=tuple(concepts[c] for c in sources.get(number, ())),
                )
            )
        return suggestions

    def _targets(self, policy: LabelPolicy | None) -> npt.NDArray[np.int64]:
        """The column that each label is suggested as, −1 for none."""
        targets = self.columns.columns
        if policy is None:
            return targets
        targets = targets.copy()
        known = targets >= 0
        targets[known] = policy.target[targets[known]]
        return targets

    def _labels_of(
        self,
        columns: npt.NDArray[np.int32],
        evidence: NeighbourEvidence,
        weights: Floats,
        targets: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """The label that each column stands for: of several, the one that scores best.

        A column differs from its label if the label's concept was replaced.
        """
        vectors = self._latents.of(evidence.rows)
        whole = (weights @ vectors / max(weights.sum(), np.finfo(np.float32).tiny))[None]
        labels = []
        for column in columns.tolist():
            standing = np.flatnonzero(targets == column)
            if len(standing) > 1:
                logits = self.model.decode(whole, standing)[0]
                standing = standing[[logits.argmax()]]
            labels.append(int(standing[0]))
        return np.array(labels, dtype=np.int64)

    def _contributions(
        self, labels: npt.NDArray[np.int64], evidence: NeighbourEvidence, weights: Floats
    ) -> Floats:
        """What the logit of each label loses without each neighbour: neighbours × labels."""
        if len(evidence) < 2:
            return np.ones((len(evidence), len(labels)), dtype=np.float32)
        vectors = self._latents.of(evidence.rows)
        total, sum_of_weights = weights @ vectors, weights.sum()
        rest = np.maximum(sum_of_weights - weights, np.finfo(np.float32).tiny)
        without = (total - weights[:, None] * vectors) / rest[:, None]
        whole = total / max(sum_of_weights, np.finfo(np.float32).tiny)
        logits = self.model.decode(np.vstack((whole, without)), labels)
        differences: Floats = logits[0] - logits[1:]
        return differences

    def _inferred(
        self, labels: npt.NDArray[np.int64], evidence: NeighbourEvidence, weights: Floats
    ) -> list[list[int]]:
        """For each label the columns of the neighbours' headings that it is inferred from.

        Each heading in turn is removed from all neighbours that carry it; these
        are encoded again and the new average is decoded.
        """
        if len(labels) == 0 or len(evidence) == 0:
            return [[] for _ in labels]
        sets = self.columns.matrix(self._snapshot.label_sets(), evidence.rows)
        owners = np.repeat(np.arange(len(evidence)), np.diff(sets.indptr))
        headings = np.unique(sets.indices)
        if len(headings) == 0:
            return [[] for _ in labels]
        # One line per neighbour and heading: its label set without the heading.
        reduced = sets[owners]
        lines = np.repeat(np.arange(len(owners)), np.diff(reduced.indptr))
        reduced.data[reduced.indices == sets.indices[lines]] = 0
        vectors = self._latents.of(evidence.rows)
        losses = (self.model.encode(reduced) - vectors[owners]) * weights[owners, None]
        changes = np.zeros((len(headings), losses.shape[1]), dtype=np.float32)
        np.add.at(changes, np.searchsorted(headings, sets.indices), losses)
        whole = weights @ vectors
        averages = np.vstack((whole, whole + changes)) / max(weights.sum(), 1e-12)
        logits = self.model.decode(averages, labels)
        drops = logits[0] - logits[1:]
        best = np.argsort(-drops, axis=0, kind="stable")[:_INFERRED_FROM]
        return [
            [
                int(self.columns.columns[headings[heading]])
                for heading in best[:, number]
                if drops[heading, number] > 0
            ]
            for number in range(len(labels))
        ]

    def _averages(self, rows: npt.NDArray[np.int64], weights: Floats) -> Floats:
        if len(self._latents) == 0:
            return np.zeros((len(rows), self.model.latent), dtype=np.float32)
        vectors = self._latents.of(np.maximum(rows, 0))
        totals = np.maximum(weights.sum(1, keepdims=True), np.finfo(np.float32).tiny)
        averages: Floats = np.einsum("nk,nke->ne", weights / totals, vectors)
        return averages

    def _ranked(
        self, logits: Floats, targets: npt.NDArray[np.int64], *, has_policy: bool
    ) -> Ranking:
        documents, labels = np.nonzero(logits > np.log(_FLOOR / (1 - _FLOOR)))
        columns = targets[labels]
        scores = 1 / (1 + np.exp(-logits[documents, labels]))
        allowed = columns >= 0
        documents, columns, scores = documents[allowed], columns[allowed], scores[allowed]
        label_order = self._snapshot.label_order()
        order = np.lexsort((label_order[columns], -scores, documents))
        documents, columns, scores = documents[order], columns[order], scores[order]
        if has_policy:
            # Several labels may stand for one concept: the best of them counts.
            keys = documents * len(label_order) + columns
            first = np.sort(np.unique(keys, return_index=True)[1])
            documents, columns, scores = documents[first], columns[first], scores[first]
        return Ranking.from_pairs(documents, columns, scores, len(logits))


def _weights(near: Neighbours, scorer: ScorerSettings) -> Floats:
    return np.where(near.rows != NO_NEIGHBOUR, weights_of(near, scorer), 0).astype(np.float32)


def _matched(reader: Reader, model: LabelModel) -> LabelColumns:
    """The columns of the model's labels in the collection's vocabulary."""
    by_id = reader.columns_by_id()
    columns = np.array([by_id.get(label, -1) for label in model.info.labels], dtype=np.int64)
    known = int(np.count_nonzero(columns >= 0))
    if known < _LEAST_KNOWN * len(columns):
        raise ModelMismatchError(
            f"{model.folder}: trained on another vocabulary ({known:,} of its "
            f"{len(columns):,} headings are in this one); train it again"
        )
    if known < len(columns):
        logger.warning(
            "%s: skipping %d headings of the model that are not in the vocabulary any more",
            model.folder,
            len(columns) - known,
        )
    return LabelColumns(columns, len(by_id))
