"""Decodes neighbours, their votes and the text together.

Each heading's evidence is exact: what its score (as a logit) loses when one
neighbour is left out and the others move up, and what it loses without all
neighbours, without the words of the text, and without the names in it. A heading
that no neighbour carries and the text does not name is inferred from the
neighbours' headings without whose latent vectors it would score lowest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.ballots import NEIGHBOURS, Ballots, NamedLabels, cast_ballots
from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.joint import JointAutoencoder
from labelkin.autoencoder.model import LabelModel
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.scoring.decoder import (
    CHUNK,
    INFERRED_FROM,
    LOWEST,
    Decoder,
    Floats,
    Integers,
    labels_by_column,
    matched,
)
from labelkin.scoring.evidence import NeighbourEvidence
from labelkin.scoring.mentions import named_labels
from labelkin.scoring.policy import LabelPolicy
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import ScorerSettings
from labelkin.scoring.suggestion import CARRIED, NAMED, WORDS, SignalWeight, Suggestion
from labelkin.store.snapshot import Snapshot

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# How many labels of a document are ranked.
_MOST = 200
# At most this many logits are in memory, whatever the number of labels.
_LOGITS = 20_000_000
# Logits of other batches differ by less, by rounding alone.
_ROUNDING = 1e-5


class JointDecoder(Decoder):
    """The joint label autoencoder over one snapshot.

    Vocabulary columns that the model does not know follow its labels: they are
    scored by votes and names alone.
    """

    def __init__(self, snapshot: Snapshot, model: LabelModel) -> None:
        super().__init__(snapshot, model)
        known = matched(snapshot, model)
        others = np.flatnonzero(known.places < 0)
        self.columns = LabelColumns(np.concatenate((known.columns, others)), len(known.places))
        self._known = len(known)
        self._autoencoder: JointAutoencoder = model.derived.get(
            "joint", lambda: JointAutoencoder(model)
        )

    def depth(self, scorer: ScorerSettings) -> int:  # noqa: ARG002 - always the same
        """As many as it was trained with."""
        return NEIGHBOURS

    def rank(
        self,
        queries: Queries,
        scorer: ScorerSettings,  # noqa: ARG002
        policy: LabelPolicy | None,
    ) -> Ranking:
        """The 200 best labels that the model knows and all new ones, above a floor, best first."""
        is_allowed = self.targets(policy)[: self._known] >= 0
        parts = []
        chunk = _chunk(self._known)
        for start in range(0, len(queries), chunk):
            inputs = _Inputs.of(self, queries, slice(start, start + chunk))
            ballots = inputs.ballots(self)
            tally = self._autoencoder.tally(ballots)
            logits = self._autoencoder.decode(ballots, tally, inputs.texts)
            logits[~inputs.has_any()] = -np.inf
            logits[:, ~is_allowed] = -np.inf
            documents, labels = _best_places(logits)
            owners, new, values = self._autoencoder.decode_new(ballots, tally)
            high = values > LOWEST
            pairs = (
                np.concatenate((documents, owners[high])),
                np.concatenate((labels, new[high])),
                np.concatenate((logits[documents, labels], values[high])),
            )
            parts.append(self.ranked(pairs, len(logits), policy))
        return Ranking.joined(parts) if parts else Ranking.from_lists([])

    def scores_of(
        self,
        queries: Queries,
        scorer: ScorerSettings,  # noqa: ARG002
        policy: LabelPolicy | None,
        documents: Integers,
        columns: Integers,
    ) -> tuple[Floats, Floats]:
        """The scores of some pairs of document and column, and those of the latent space alone.

        A column that is new to the model has a score by votes and names, none by the latent
        space.
        """
        pairs, labels = labels_by_column(self.targets(policy), columns)
        owners = documents[pairs]
        logits = np.full((2, len(columns)), -np.inf, dtype=np.float32)
        chunk = _chunk(int(np.count_nonzero(np.bincount(labels))))
        for start in range(0, len(queries), chunk):
            inputs = _Inputs.of(self, queries, slice(start, start + chunk))
            ballots = inputs.ballots(self)
            tally = self._autoencoder.tally(ballots)
            has_any = np.zeros(len(queries), dtype=np.bool_)
            has_any[start : start + chunk] = inputs.has_any()
            here = np.flatnonzero(has_any[owners])
            uncorrected, corrected = self._autoencoder.decode_pairs(
                ballots, tally, inputs.texts, owners[here] - start, labels[here]
            )
            # Of several labels that stand for one column the best counts.
            np.maximum.at(logits[0], pairs[here], corrected)
            np.maximum.at(logits[1], pairs[here], uncorrected)
        scores: Floats = np.asarray(1 / (1 + np.exp(-logits)), dtype=np.float32)
        return scores[0], scores[1]

    def explain(
        self,
        queries: Queries,
        place: int,
        given: tuple[npt.NDArray[np.int32], Floats],
        evidence: NeighbourEvidence,
        scorer: ScorerSettings,  # noqa: ARG002
        policy: LabelPolicy | None,
    ) -> list[Suggestion]:
        """The labels that one document is given, with what neighbours and text contribute."""
        columns, scores = given
        inputs = _Inputs.of(self, queries, slice(place, place + 1))
        ballots = inputs.ballots(self)
        labels = self.standing_for(
            columns, lambda some: self._logits(ballots, inputs.texts, some)[0], policy
        )
        parts = self._contributions(inputs, labels, evidence)
        signals = self._signals(inputs, labels)
        named = queries.namings(place)
        inferred = [
            n
            for n, one in enumerate(columns.tolist())
            if one not in named and not len(evidence.carrying(one))
        ]
        sources = dict(
            zip(inferred, self._inferred(ballots, inputs, labels[inferred]), strict=True)
        )
        suggestions = self.suggested(columns, scores, evidence, parts, sources)
        return [
            replace(one, named=named.get(column, ()), signals=mine)
            for one, column, mine in zip(suggestions, columns.tolist(), signals, strict=True)
        ]

    def _logits(self, ballots: Ballots, texts: csr_matrix[Any], labels: Integers) -> Floats:
        """The logits of some labels, new ones too, a line per document."""
        return self._both_logits(ballots, texts, labels)[1]

    def _both_logits(
        self, ballots: Ballots, texts: csr_matrix[Any], labels: Integers
    ) -> tuple[Floats, Floats]:
        """The same without and with the corrections; new ones have no logit without."""
        shape = (len(ballots), len(labels))
        uncorrected, logits = (np.full(shape, -np.inf, dtype=np.float32) for _ in range(2))
        is_known, tally = labels < self._known, self._autoencoder.tally(ballots)
        uncorrected[:, is_known], logits[:, is_known] = self._autoencoder.decode_apart(
            ballots, tally, texts, labels[is_known]
        )
        if not is_known.all():
            places = np.full(len(self.columns), -1, dtype=np.int64)
            places[labels] = np.arange(len(labels))
            documents, new, values = self._autoencoder.decode_new(ballots, tally)
            wanted = places[new] >= 0
            logits[documents[wanted], places[new[wanted]]] = values[wanted]
        return uncorrected, logits

    def _contributions(
        self, inputs: _Inputs, labels: Integers, evidence: NeighbourEvidence
    ) -> Floats:
        """What the logit of each label loses without each neighbour: neighbours × labels."""
        near = inputs.near
        without = [near, *(_left_out(near, int(place)) for place in evidence.places)]
        repeated = np.zeros(len(without), dtype=np.int64)
        ballots = cast_ballots(
            np.concatenate([one.rows for one in without]),
            np.concatenate([_closeness(one) for one in without]),
            inputs.named.taken(repeated),
            self.columns,
            self.snapshot.label_sets(),
        )
        logits = _finite(self._logits(ballots, inputs.texts[repeated], labels))
        differences: Floats = logits[0] - logits[1:]
        return differences

    def _signals(self, inputs: _Inputs, labels: Integers) -> list[tuple[SignalWeight, ...]]:
        """What the logit of each label loses without neighbours, words and names; largest first."""
        lines = np.zeros(1, dtype=np.int64)
        no_words = inputs.texts[lines] * 0
        no_neighbours = inputs.near.nearest(0)
        unnamed = NamedLabels(
            np.zeros(2, dtype=np.int64), inputs.named.columns[:0], inputs.named.features[:0]
        )
        whole, *reduced = (
            _finite(self._logits(_ballots(self, near, names), texts, labels))[0]
            for near, names, texts in (
                (inputs.near, inputs.named, inputs.texts),
                (no_neighbours, inputs.named, inputs.texts),
                (inputs.near, inputs.named, no_words),
                (inputs.near, unnamed, inputs.texts),
            )
        )
        losses = np.array([whole - one for one in reduced])
        signals = []
        for number in range(len(labels)):
            weights = zip((CARRIED, WORDS, NAMED), losses[:, number].tolist(), strict=True)
            mine = [
                SignalWeight(name, weight) for name, weight in weights if abs(weight) > _ROUNDING
            ]
            signals.append(tuple(sorted(mine, key=lambda one: -one.weight)))
        return signals

    def _inferred(self, ballots: Ballots, inputs: _Inputs, labels: Integers) -> list[list[int]]:
        """For each label the columns of the neighbours' headings that it is inferred from."""
        from scipy.sparse import diags

        votes = self._autoencoder.votes(ballots)
        voted = np.flatnonzero((votes > 0) & (ballots.labels < self._known))
        if len(voted) == 0 or not (labels < self._known).any():
            return [[] for _ in labels]
        whole = self._autoencoder.latents(ballots, votes, inputs.texts)
        headings = ballots.labels[voted]
        shape = (len(voted), self._known)
        parts = diags(votes[voted], format="csr")
        parts = type(parts)((parts.data, headings, parts.indptr), shape=shape)
        reduced = whole - self.model.encode(parts)
        # New labels are not in the latent space: they are inferred from none.
        is_known = labels < self._known
        logits = self.model.decode(np.vstack((whole, reduced)), np.where(is_known, labels, 0))
        drops = np.where(is_known, logits[0] - logits[1:], 0)
        best = np.argsort(-drops, axis=0, kind="stable")[:INFERRED_FROM]
        return [
            [
                int(self.columns.columns[headings[heading]])
                for heading in best[:, number]
                if drops[heading, number] > 0
            ]
            for number in range(len(labels))
        ]


class _Inputs:
    """The input of the network for some documents of a batch: neighbours, weighted terms, names."""

    def __init__(self, near: Neighbours, texts: csr_matrix[Any], named: NamedLabels) -> None:
        self.near = near
        self.texts = texts
        self.named = named

    @classmethod
    def of(cls, decoder: JointDecoder, queries: Queries, part: slice) -> _Inputs:
        autoencoder = decoder._autoencoder
        near = queries.neighbours(NEIGHBOURS).nearest(NEIGHBOURS)[part]
        texts = queries.once(
            ("joint texts", decoder.model.checksum),
            lambda: autoencoder.texts(queries.wording()),
        )
        named = queries.once("named labels", lambda: named_labels(queries.mentions()))
        places = np.arange(*part.indices(len(queries)))
        return cls(near, texts[places], named.taken(places))

    def ballots(self, decoder: JointDecoder) -> Ballots:
        return _ballots(decoder, self.near, self.named)

    def has_any(self) -> npt.NDArray[np.bool_]:
        """Which documents have a neighbour, a known word or a name: others get no headings."""
        is_there: npt.NDArray[np.bool_] = (self.near.rows != NO_NEIGHBOUR).any(1)
        return is_there | (np.diff(self.texts.indptr) > 0) | (np.diff(self.named.starts) > 0)


def _chunk(labels: int) -> int:
    """How many documents are decoded at a time."""
    return max(1, min(CHUNK, _LOGITS // max(labels, 1)))


def _best_places(logits: Floats) -> tuple[Integers, Integers]:
    """Where the largest logits of each line are, if they are above the floor."""
    if logits.shape[1] > _MOST:
        labels = np.argpartition(-logits, _MOST - 1, axis=1)[:, :_MOST]
    else:
        labels = np.broadcast_to(np.arange(logits.shape[1]), logits.shape)
    documents, places = np.nonzero(np.take_along_axis(logits, labels, 1) > LOWEST)
    return documents, labels[documents, places]


def _ballots(decoder: JointDecoder, near: Neighbours, named: NamedLabels) -> Ballots:
    return cast_ballots(
        near.rows, _closeness(near), named, decoder.columns, decoder.snapshot.label_sets()
    )


def _closeness(near: Neighbours) -> Floats:
    closeness: Floats = np.where(near.rows == NO_NEIGHBOUR, 0, 1 - near.distances("self"))
    return closeness.astype(np.float32)


def _left_out(near: Neighbours, place: int) -> Neighbours:
    """The neighbours of one document without one of them; the next ones move up."""
    order = np.concatenate((np.delete(np.arange(near.k), place), [place]))
    rows, scores = near.rows[:, order], near.scores[:, order]
    rows[:, -1], scores[:, -1] = NO_NEIGHBOUR, 0
    return Neighbours(near.ids, rows, scores, near.own_scores, near.fingerprint)


def _finite(logits: Floats) -> Floats:
    """Logits with a very low one in place of none: new labels without votes and names."""
    return np.maximum(logits, np.float32(-30))
