"""The signals of the reranker by name, in the order of their features."""

from __future__ import annotations

from collections.abc import Iterable

from labelkin.registry import Registry
from labelkin.rerank.signal import Signal

SIGNALS: Registry[Signal] = Registry(
    "labelkin.signals",
    "signal",
    {
        "votes": "labelkin.rerank.signals.votes:VotesSignal",
        "frequency": "labelkin.rerank.signals.priors:FrequencySignal",
        "document": "labelkin.rerank.signals.priors:DocumentSignal",
        "named": "labelkin.rerank.signals.names:NamedSignal",
        "naming rate": "labelkin.rerank.signals.names:NamingRateSignal",
        "name words": "labelkin.rerank.signals.names:NameWordsSignal",
        "words": "labelkin.rerank.signals.words:WordsSignal",
        "related": "labelkin.rerank.signals.relations:RelatedSignal",
        "hierarchy": "labelkin.rerank.signals.relations:HierarchySignal",
        "autoencoder": "labelkin.rerank.signals.autoencoder:AutoencoderSignal",
        "latent": "labelkin.rerank.signals.autoencoder:LatentSignal",
        "linear": "labelkin.rerank.signals.linear:LinearSignal",
        "vectors": "labelkin.rerank.signals.vectors:VectorsSignal",
    },
)


def ordered(names: Iterable[str]) -> list[Signal]:
    """Some signals in the order of the registry."""
    wanted = set(names)
    return [SIGNALS[name] for name in SIGNALS.names() if name in wanted]


def feature_names(names: Iterable[str]) -> list[str]:
    """The features of some signals, in the order of the matrix."""
    return [feature for signal in ordered(names) for feature in signal.features]
