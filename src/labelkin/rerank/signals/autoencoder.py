"""The label autoencoder's scores of a heading."""

from __future__ import annotations

from collections.abc import Mapping

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Floats, Pairs
from labelkin.rerank.signal import Signal, Values
from labelkin.rerank.training_data import TrainingContext
from labelkin.scoring.decoder import Decoder
from labelkin.scoring.settings import ScorerSettings

# How the scores are computed, whatever the settings of the method label-ae are.
DECODING = ScorerSettings(k=20, weighting="difference", count=None)


class AutoencoderSignal(Signal):
    """Score and rank of a heading by the label autoencoder."""

    name = "autoencoder"
    features = ("decoded", "decoded_rank")
    reason = "label autoencoder"
    trained_before = True

    def is_available(self, context: TrainingContext) -> bool:
        """Whether there is an autoencoder that has not seen the held-out documents."""
        return context.has_autoencoder

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """0 for headings that the decoder does not score."""
        return self._with_ranks(_scores(evidence, pairs)[0], pairs)

    def _with_ranks(self, scores: Floats, pairs: Pairs) -> Mapping[str, Values]:
        score, rank = self.features
        return {score: scores, rank: pairs.ranks(scores)}


class LatentSignal(AutoencoderSignal):
    """Score and rank of a heading by the latent space of the joint autoencoder alone.

    The corrections by votes and names are left out: both are signals of their own.
    """

    name = "latent"
    features = ("latent", "latent_rank")

    def is_available(self, context: TrainingContext) -> bool:
        """Whether there is a joint autoencoder: that of the paper has nothing to add."""
        return context.has_joint_autoencoder

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """0 for headings that are new to the autoencoder."""
        return self._with_ranks(_scores(evidence, pairs)[1], pairs)


#: The signals that need a label autoencoder.
AUTOENCODER_SIGNALS = frozenset({AutoencoderSignal.name, LatentSignal.name})


def _scores(evidence: Evidence, pairs: Pairs) -> tuple[Floats, Floats]:
    queries = evidence.queries
    return evidence.once(
        ("decoded", pairs),
        lambda: Decoder.of(queries).scores_of(
            queries, DECODING, queries.policy(), pairs.documents, pairs.columns
        ),
    )
