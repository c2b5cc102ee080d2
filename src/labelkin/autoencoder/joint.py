"""Runs a joint label autoencoder with NumPy; `joint_network.py` is what trains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.ballots import LEAST_VOTE, NO_VOTE, Ballots
from labelkin.autoencoder.model import LabelModel
from labelkin.memo import Memo
from labelkin.represent.term_columns import TermColumns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_matrix

# Pairs whose corrections are computed at a time: their values stay in the processor's cache, and
# products are too small for BLAS to start threads, which wait for each other more than they work.
_PAIRS = 256
# The share of labels from which on all of them are decoded.
_MOSTLY = 0.5

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """What ballots amount to: for each pair of document and label its votes and correction."""

    votes: Floats
    corrections: Floats


class JointAutoencoder:
    """The layers of a joint model.

    Labels from `len(model.info.labels)` on are new to the model: they are scored by
    votes and names alone.
    """

    def __init__(self, model: LabelModel) -> None:
        self.model = model
        self._labels = len(model.info.labels)
        self._memo = Memo()

    @property
    def terms(self) -> TermColumns:
        """The terms that texts are counted by."""
        tensor = self.model.tensor
        return self._memo.get(
            "terms", lambda: TermColumns(tensor("words").tobytes(), tensor("idf"))
        )

    def texts(self, wording: Sequence[Sequence[str]]) -> csr_matrix[Any]:
        """The weighted terms of texts, given as their words."""
        return self.terms.weighted(self.terms.counts(wording), pairs=True)

    def weights(self, ballots: Ballots) -> Floats:
        """The weight of each neighbour; those of a document add up to 1."""
        tensor, features = self.model.tensor, ballots.neighbours
        if not features.size:
            return np.zeros(features.shape[:2], dtype=np.float32)
        inner = np.tanh(features @ tensor("weigh1.weight").T + tensor("weigh1.bias"))
        strength = tensor("sharpness") * features[:, :, 0] + inner @ tensor("weigh2.weight")[0]
        strength = np.where(ballots.is_there, strength, np.float32(NO_VOTE))
        strength = np.exp(strength - strength.max(1, keepdims=True))
        weights: Floats = strength / strength.sum(1, keepdims=True)
        return weights

    def votes(self, ballots: Ballots) -> Floats:
        """The weighted votes of each pair of document and label."""
        given = self.weights(ballots).ravel()[ballots.voters]
        return np.bincount(ballots.pairs, given, len(ballots.labels)).astype(np.float32)

    def latents(self, ballots: Ballots, votes: Floats, texts: csr_matrix[Any]) -> Floats:
        """The latent vectors of documents: those of votes and terms added up."""
        from scipy.sparse import csr_matrix

        known = ballots.labels < self._labels
        counts = np.concatenate(([0], np.cumsum(known)))
        starts = np.concatenate((counts[ballots.starts], counts[-1:]))
        matrix = csr_matrix(
            (votes[known], ballots.labels[known], starts), shape=(len(ballots), self._labels)
        )
        return self.model.encode(matrix) + self.model.encode_terms(texts)

    def corrections(self, ballots: Ballots, votes: Floats) -> Floats:
        """The corrections by votes and names, added to the logit of each pair."""
        tensor = self.model.tensor
        known = ballots.labels < self._labels
        frequencies = np.full(len(known), rare_frequency(self.model), dtype=np.float32)
        frequencies[known] = tensor("frequencies")[ballots.labels[known]]
        features = np.column_stack(
            (
                ballots.shares,
                ballots.named,
                np.sqrt(votes + np.float32(1e-6)),
                np.log(votes + np.float32(LEAST_VOTE)) / 3,
                frequencies,
                ballots.closest[ballots.documents],
            )
        )
        inner_weights, inner_bias = tensor("correct1.weight").T, tensor("correct1.bias")
        corrections = np.empty(len(features), dtype=np.float32)
        for start in range(0, len(features), _PAIRS):
            inner = features[start : start + _PAIRS] @ inner_weights
            inner += inner_bias
            np.maximum(inner, 0, out=inner)
            corrections[start : start + _PAIRS] = inner @ tensor("correct2.weight")[0]
        corrections += tensor("correct2.bias")[0]
        return corrections

    def tally(self, ballots: Ballots) -> Tally:
        """Votes and corrections, which all kinds of decoding need."""
        votes = self.votes(ballots)
        return Tally(votes, self.corrections(ballots, votes))

    def decode(
        self,
        ballots: Ballots,
        tally: Tally,
        texts: csr_matrix[Any],
        columns: Integers | None = None,
    ) -> Floats:
        """The logits of all labels that the model knows, or of some columns."""
        logits = self.model.decode(self.latents(ballots, tally.votes, texts), columns)
        self._correct(logits, ballots, tally.corrections, columns)
        return logits

    def decode_apart(
        self,
        ballots: Ballots,
        tally: Tally,
        texts: csr_matrix[Any],
        columns: Integers | None = None,
    ) -> tuple[Floats, Floats]:
        """The same logits without and with the corrections."""
        uncorrected = self.model.decode(self.latents(ballots, tally.votes, texts), columns)
        logits = uncorrected.copy()
        self._correct(logits, ballots, tally.corrections, columns)
        return uncorrected, logits

    def decode_pairs(
        self,
        ballots: Ballots,
        tally: Tally,
        texts: csr_matrix[Any],
        documents: Integers,
        labels: Integers,
    ) -> tuple[Floats, Floats]:
        """The logits of some pairs of document and label without and with the corrections.

        A label that is new to the model has none without, and with them only if the document
        has votes or a name for it.
        """
        is_known = labels < self._labels
        uncorrected, logits = (np.full(len(labels), -np.inf, dtype=np.float32) for _ in range(2))
        is_asked = np.zeros(self._labels, dtype=np.bool_)
        is_asked[labels[is_known]] = True
        # The weights of some labels have to be copied.
        columns = None if is_asked.mean() > _MOSTLY else np.flatnonzero(is_asked)
        places = np.arange(self._labels) if columns is None else np.cumsum(is_asked) - 1
        at = (documents[is_known], places[labels[is_known]])
        decoded = self.model.decode(self.latents(ballots, tally.votes, texts), columns)
        uncorrected[is_known] = decoded[at]
        self._correct(decoded, ballots, tally.corrections, columns)
        logits[is_known] = decoded[at]
        if not is_known.all():
            width = max(int(labels.max()), int(ballots.labels.max(initial=0))) + 1
            owners, new, values = self.decode_new(ballots, tally)
            keys = owners * width + new
            wanted = documents[~is_known] * width + labels[~is_known]
            found = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
            if len(keys):
                logits[~is_known] = np.where(keys[found] == wanted, values[found], -np.inf)
        return uncorrected, logits

    def _correct(
        self, logits: Floats, ballots: Ballots, corrections: Floats, columns: Integers | None
    ) -> None:
        """Add the corrections to the logits of all labels, or of some columns, in place."""
        if logits.shape[1] == 0:
            return
        places, inside = ballots.labels, ballots.labels < self._labels
        if columns is not None:
            place_of = np.full(self._labels, -1, dtype=np.int64)
            place_of[columns] = np.arange(len(columns))
            places = place_of[np.where(inside, places, 0)]
            inside = inside & (places >= 0)
        logits[ballots.documents[inside], places[inside]] += corrections[inside]

    def decode_new(self, ballots: Ballots, tally: Tally) -> tuple[Integers, Integers, Floats]:
        """The pairs whose label is new to the model, as documents and labels, with their logits."""
        new = ballots.labels >= self._labels
        logits = tally.corrections[new] + self.model.tensor("rare")
        return ballots.documents[new], ballots.labels[new], logits


def rare_frequency(model: LabelModel) -> np.float32:
    """The frequency, as a feature, of a label that is new to a model: that of its rarest."""
    return np.float32(model.tensor("frequencies").min())
