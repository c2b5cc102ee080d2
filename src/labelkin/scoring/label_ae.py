"""The method `label-ae`: the neighbours' latent vectors, averaged and decoded into headings.

With z_i the latent vectors of the neighbours and w_i their weights, the
decoder turns Σ w_i z_i / Σ w_i into a score per heading (section 3.3 of the
paper). Each heading's evidence is exact: what its score (as a logit) loses when
one neighbour is left out of the average. A heading that no neighbour carries
is said to be inferred from the neighbours' headings without which it would
score lowest.
"""

from __future__ import annotations

import logging
from copy import copy
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.latents import LatentFolder
from labelkin.autoencoder.model import MODEL_NAME, LabelModel
from labelkin.exceptions import ModelMismatchError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.scoring.cut import cut
from labelkin.scoring.evidence import Circle, circles
from labelkin.scoring.knn import Knn
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings
from labelkin.scoring.suggestion import Suggestion
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

# Headings with a lower score are not ranked at all.
_FLOOR = 0.005
# Documents decoded at a time, and at most this many values of their neighbours' vectors.
_CHUNK = 256
_VALUES = 20_000_000
_LEAST_KNOWN = 0.5
_INFERRED_FROM = 3

Floats = npt.NDArray[np.float32]


class LabelAe:
    """Ranks labels by decoding averages, for one state of a collection.

    The model is the collection's own, or the one in `folder`.
    """

    def __init__(
        self,
        collection: Collection,
        settings: ScorerSettings,
        votes: Knn | None = None,
        folder: Path | None = None,
    ) -> None:
        # Weights, counts and what may be suggested are the same as for votes.
        self._votes = Knn(collection, settings) if votes is None else votes.changed(settings)
        self.model = LabelModel(folder or model_folder(collection))
        self.columns = _matched(collection, self.model)
        latents = LatentFolder(collection, self.model, self.columns)
        self._latents = latents.open(self._votes.label_sets)
        self._targets = self.columns.columns.copy()
        if self._votes.policy is not None:
            known = self._targets >= 0
            self._targets[known] = self._votes.policy.target[self._targets[known]]

    @property
    def settings(self) -> ScorerSettings:
        """How neighbours are weighed, and the cut."""
        return self._votes.settings

    def changed(self, settings: ScorerSettings) -> LabelAe:
        """The same with other settings; what may be suggested stays as it was."""
        other = copy(self)
        other._votes = self._votes.changed(settings)
        return other

    def unknown_labels(self) -> int:
        """How many labels of the collection's documents the model has never seen."""
        collection = self._votes.collection
        width = len(self.columns.places)
        dropped = collection.tombstones(collection.generation())
        used = self._votes.label_sets.frequencies(width, dropped) > 0
        return int(np.count_nonzero(used & (self.columns.places < 0)))

    def rank(self, queries: Queries) -> Ranking:
        """All labels that score above a floor, best first."""
        return self.rank_by(queries.neighbours)

    def rank_by(self, neighbours: Neighbours) -> Ranking:
        """The same from neighbours alone."""
        near = neighbours.nearest(self.settings.k)
        weights = self._weights(near)
        parts = []
        chunk = max(1, min(_CHUNK, _VALUES // max(near.k * self.model.latent, 1)))
        for start in range(0, len(near), chunk):
            part = slice(start, start + chunk)
            averages = self._averages(near.rows[part], weights[part])
            logits = self.model.decode(averages)
            logits[weights[part].sum(1) == 0] = -np.inf
            parts.append(self._ranked(logits))
        return Ranking.joined(parts) if parts else Ranking.from_lists([])

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:
        """The labels that are given out."""
        settings = self.settings
        counts = self._votes.counts(queries)
        return cut(ranking, counts, settings.threshold or None, settings.limit or None)

    def suggestions(self, queries: Queries, given: Ranking) -> list[list[Suggestion]]:
        """The given labels with what each neighbour contributes to them."""
        near = queries.neighbours.nearest(self.settings.k)
        votes = self._votes
        distances = near.distances(self.settings.distance)
        weights = self._weights(near)
        around = circles(votes.collection, near, distances, votes.label_sets, votes.policy)
        found: list[list[Suggestion]] = []
        for place, ((columns, scores), circle) in enumerate(zip(given, around, strict=True)):
            mine = weights[place, circle.places]
            found.append(self._explained(columns, scores, circle, mine))
        return found

    def _explained(
        self, columns: npt.NDArray[np.int32], scores: Floats, circle: Circle, weights: Floats
    ) -> list[Suggestion]:
        labels = self._labels_of(columns, circle, weights)
        parts = self._contributions(labels, circle, weights)
        foreign = [n for n, column in enumerate(columns) if not len(circle.carrying(int(column)))]
        reasons = self._inferred(labels[foreign], circle, weights)
        sources = dict(zip(foreign, reasons, strict=True))
        wanted = {int(column) for column in columns} | {c for found in reasons for c in found}
        concepts = self._votes.collection.concepts(sorted(wanted))
        suggestions = []
        for number, (column, score) in enumerate(zip(columns.tolist(), scores, strict=True)):
            carrying = circle.carrying(column)
            shares = np.maximum(parts[:, number], 0)
            shares = shares / (shares.sum() or 1.0)
            speaking = np.flatnonzero(shares > 0)
            speaking = np.union1d(speaking, carrying)
            order = speaking[np.argsort(-shares[speaking], kind="stable")]
            suggestions.append(
                Suggestion(
                    concept=concepts[column],
                    score=float(score),
                    rank=number + 1,
                    carriers=circle.carriers(order.tolist(), shares[order], carrying),
                    neighbours=len(circle),
                    inferred_from=tuple(concepts[c] for c in sources.get(number, ())),
                )
            )
        return suggestions

    def _labels_of(
        self, columns: npt.NDArray[np.int32], circle: Circle, weights: Floats
    ) -> npt.NDArray[np.int64]:
        """The label that each column stands for: of several, the one that scores best.

        A column differs from its label where the label's concept was replaced.
        """
        vectors = self._latents.of(circle.rows)
        whole = (weights @ vectors / max(weights.sum(), np.finfo(np.float32).tiny))[None]
        labels = []
        for column in columns.tolist():
            standing = np.flatnonzero(self._targets == column)
            logits = self.model.decode(whole, standing)[0]
            labels.append(int(standing[logits.argmax()]))
        return np.array(labels, dtype=np.int64)

    def _contributions(
        self, labels: npt.NDArray[np.int64], circle: Circle, weights: Floats
    ) -> Floats:
        """What the logit of each label loses without each neighbour: neighbours × labels."""
        if len(circle) < 2:
            return np.ones((len(circle), len(labels)), dtype=np.float32)
        vectors = self._latents.of(circle.rows)
        total, sum_of_weights = weights @ vectors, weights.sum()
        rest = np.maximum(sum_of_weights - weights, np.finfo(np.float32).tiny)
        without = (total - weights[:, None] * vectors) / rest[:, None]
        whole = total / max(sum_of_weights, np.finfo(np.float32).tiny)
        logits = self.model.decode(np.vstack((whole, without)), labels)
        differences: Floats = logits[0] - logits[1:]
        return differences

    def _inferred(
        self, labels: npt.NDArray[np.int64], circle: Circle, weights: Floats
    ) -> list[list[int]]:
        """For each label the columns of those headings in the circle that bring it about.

        Each heading in turn is taken away from all neighbours that carry it;
        these are encoded again and the average decoded again.
        """
        if len(labels) == 0 or len(circle) == 0:
            return [[] for _ in labels]
        sets = self.columns.matrix(self._votes.label_sets, circle.rows)
        who = np.repeat(np.arange(len(circle)), np.diff(sets.indptr))
        headings = np.unique(sets.indices)
        if len(headings) == 0:
            return [[] for _ in labels]
        # One line per neighbour and heading: its label set without the heading.
        reduced = sets[who]
        lines = np.repeat(np.arange(len(who)), np.diff(reduced.indptr))
        reduced.data[reduced.indices == sets.indices[lines]] = 0
        vectors = self._latents.of(circle.rows)
        losses = (self.model.encode(reduced) - vectors[who]) * weights[who, None]
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

    def _weights(self, near: Neighbours) -> Floats:
        weights = np.where(near.rows != NOBODY, self._votes.weights(near), 0)
        return weights.astype(np.float32)

    def _ranked(self, logits: Floats) -> Ranking:
        documents, labels = np.nonzero(logits > np.log(_FLOOR / (1 - _FLOOR)))
        columns = self._targets[labels]
        scores = 1 / (1 + np.exp(-logits[documents, labels]))
        allowed = columns >= 0
        documents, columns, scores = documents[allowed], columns[allowed], scores[allowed]
        order = np.lexsort((self._votes.label_order[columns], -scores, documents))
        documents, columns, scores = documents[order], columns[order], scores[order]
        if self._votes.policy is not None:
            # Several labels may stand for one concept today: the best of them counts.
            keys = documents * len(self._votes.label_order) + columns
            first = np.sort(np.unique(keys, return_index=True)[1])
            documents, columns, scores = documents[first], columns[first], scores[first]
        return Ranking.from_pairs(documents, columns, scores, len(logits))


def model_folder(collection: Collection) -> Path:
    """Where a collection keeps its label autoencoder."""
    return collection.path / "models" / MODEL_NAME


def _matched(collection: Collection, model: LabelModel) -> LabelColumns:
    """Where the model's labels are in the collection's vocabulary."""
    by_id = collection.columns_by_id()
    columns = np.array([by_id.get(label, -1) for label in model.info.labels], dtype=np.int64)
    known = int(np.count_nonzero(columns >= 0))
    if known < _LEAST_KNOWN * len(columns):
        raise ModelMismatchError(
            f"{model.folder}: trained on another vocabulary ({known:,} of its "
            f"{len(columns):,} headings are in this one); train it again"
        )
    if known < len(columns):
        logger.warning(
            "%s: %d headings of the model are not in the vocabulary any more and are left out",
            model.folder,
            len(columns) - known,
        )
    return LabelColumns(columns, len(by_id))
