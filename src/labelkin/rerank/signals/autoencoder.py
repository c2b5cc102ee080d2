"""The label autoencoder's score of a heading."""

from __future__ import annotations

from collections.abc import Mapping

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.signal import Signal, Values
from labelkin.rerank.training_data import TrainingContext
from labelkin.scoring.decoder import Decoder
from labelkin.scoring.label_ae import decoded
from labelkin.scoring.settings import ScorerSettings

# For up to this many documents only the candidates are decoded, for more all headings at once.
_FEW = 8
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
        """0 for headings that the decoder does not rank."""
        queries = evidence.queries
        if len(evidence) <= _FEW:
            scores = Decoder.of(queries).scores_of(
                queries, DECODING, queries.policy(), pairs.documents, pairs.columns
            )
        else:
            scores = pairs.entries(decoded(queries, DECODING).matrix(pairs.width))
        return {"decoded": scores, "decoded_rank": pairs.ranks(scores)}
