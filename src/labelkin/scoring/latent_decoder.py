"""Decodes the average of the neighbours' latent vectors, as in the paper.

With z_i the latent vectors of the neighbours and w_i their weights, the
decoder turns Σ w_i z_i / Σ w_i into a score per heading (section 3.3 of the
paper). Each heading's evidence is exact: what its score (as a logit) loses when
one neighbour is left out of the average. A heading that no neighbour carries
is inferred from the neighbours' headings without which it would score lowest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.latents import LatentStore
from labelkin.autoencoder.model import LabelModel
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.scoring.decoder import (
    CHUNK,
    INFERRED_FROM,
    LOWEST,
    Decoder,
    Floats,
    Integers,
    matched,
    pair_scores,
)
from labelkin.scoring.evidence import NeighbourEvidence
from labelkin.scoring.knn import weights_of
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings
from labelkin.scoring.suggestion import Suggestion
from labelkin.store.snapshot import Snapshot

# At most this many values of neighbours' vectors are in memory.
_VALUES = 20_000_000


class LatentDecoder(Decoder):
    """The paper's label autoencoder over one snapshot, with the latents of its rows."""

    def __init__(self, snapshot: Snapshot, model: LabelModel) -> None:
        super().__init__(snapshot, model)
        store = model.derived.get(
            ("latents", snapshot.path, snapshot.vocabulary_state.key),
            lambda: LatentStore(model, matched(snapshot, model)),
        )
        self.columns = store.columns
        self._latents = store.at(snapshot)

    def depth(self, scorer: ScorerSettings) -> int:
        """As many neighbours as are averaged."""
        return scorer.k

    def rank(self, queries: Queries, scorer: ScorerSettings, policy: LabelPolicy | None) -> Ranking:
        """All labels that score above a floor, best first."""
        near = queries.neighbours(scorer.k).nearest(scorer.k)
        weights = _weights(near, scorer)
        parts = []
        chunk = max(1, min(CHUNK, _VALUES // max(near.k * self.model.latent, 1)))
        for start in range(0, len(near), chunk):
            part = slice(start, start + chunk)
            averages = self._averages(near.rows[part], weights[part])
            logits = self.model.decode(averages)
            logits[weights[part].sum(1) == 0] = -np.inf
            documents, labels = np.nonzero(logits > LOWEST)
            pairs = (documents, labels, logits[documents, labels])
            parts.append(self.ranked(pairs, len(logits), policy))
        return Ranking.joined(parts) if parts else Ranking.from_lists([])

    def scores_of(
        self,
        queries: Queries,
        scorer: ScorerSettings,
        policy: LabelPolicy | None,
        documents: Integers,
        columns: Integers,
    ) -> tuple[Floats, Floats]:
        """The scores of some pairs of document and column, 0 below the floor of `rank`; twice."""
        near = queries.neighbours(scorer.k).nearest(scorer.k)
        weights = _weights(near, scorer)
        targets = self.targets(policy)
        labels = np.flatnonzero(np.isin(targets, columns))
        logits = self.model.decode(self._averages(near.rows, weights), labels)
        logits[weights.sum(1) == 0] = -np.inf
        logits[logits <= LOWEST] = -np.inf
        scores = pair_scores(targets, labels, logits, documents, columns)
        return scores, scores

    def explain(
        self,
        queries: Queries,
        place: int,
        given: tuple[npt.NDArray[np.int32], Floats],
        evidence: NeighbourEvidence,
        scorer: ScorerSettings,
        policy: LabelPolicy | None,
    ) -> list[Suggestion]:
        """The labels that one document is given, with what each neighbour contributes."""
        columns, scores = given
        near = queries.neighbours(scorer.k).nearest(scorer.k)[place : place + 1]
        weights = _weights(near, scorer)[0, evidence.places]
        labels = self._labels_of(columns, evidence, weights, policy)
        parts = self._contributions(labels, evidence, weights)
        inferred = [n for n, one in enumerate(columns) if not len(evidence.carrying(int(one)))]
        reasons = self._inferred(labels[inferred], evidence, weights)
        sources = dict(zip(inferred, reasons, strict=True))
        return self.suggested(columns, scores, evidence, parts, sources)

    def _labels_of(
        self,
        columns: npt.NDArray[np.int32],
        evidence: NeighbourEvidence,
        weights: Floats,
        policy: LabelPolicy | None,
    ) -> Integers:
        vectors = self._latents.of(evidence.rows)
        whole = (weights @ vectors / max(weights.sum(), np.finfo(np.float32).tiny))[None]
        return self.standing_for(
            columns, lambda labels: self.model.decode(whole, labels)[0], policy
        )

    def _contributions(
        self, labels: Integers, evidence: NeighbourEvidence, weights: Floats
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
        self, labels: Integers, evidence: NeighbourEvidence, weights: Floats
    ) -> list[list[int]]:
        """For each label the columns of the neighbours' headings that it is inferred from.

        Each heading in turn is removed from all neighbours that carry it; these
        are encoded again and the new average is decoded.
        """
        if len(labels) == 0 or len(evidence) == 0:
            return [[] for _ in labels]
        sets = self.columns.matrix(self.snapshot.label_sets(), evidence.rows)
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
        best = np.argsort(-drops, axis=0, kind="stable")[:INFERRED_FROM]
        return [
            [
                int(self.columns.columns[headings[heading]])
                for heading in best[:, number]
                if drops[heading, number] > 0
            ]
            for number in range(len(labels))
        ]

    def _averages(self, rows: Integers, weights: Floats) -> Floats:
        if len(self._latents) == 0:
            return np.zeros((len(rows), self.model.latent), dtype=np.float32)
        vectors = self._latents.of(np.maximum(rows, 0))
        totals = np.maximum(weights.sum(1, keepdims=True), np.finfo(np.float32).tiny)
        averages: Floats = np.einsum("nk,nke->ne", weights / totals, vectors)
        return averages


def _weights(near: Neighbours, scorer: ScorerSettings) -> Floats:
    return np.where(near.rows != NO_NEIGHBOUR, weights_of(near, scorer), 0).astype(np.float32)
