"""Methods by name: each ranks labels, cuts the ranking and explains what is left."""

from __future__ import annotations

from typing import Protocol

from labelkin.scoring.knn import Knn
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.scoring.suggestion import Suggestion
from labelkin.store.collection import Collection


class Method(Protocol):
    """From documents and their neighbours to headings, for one state of a collection."""

    def rank(self, queries: Queries) -> Ranking:
        """All labels that have something to say for them, best first."""
        ...

    def cut(self, queries: Queries, ranking: Ranking) -> Ranking:
        """The labels that are given out."""
        ...

    def suggestions(self, queries: Queries, given: Ranking) -> list[list[Suggestion]]:
        """The given labels with their evidence."""
        ...


def make_method(collection: Collection, settings: Settings) -> Method:
    """The method that the settings name."""
    if settings.method == "lexical":
        from labelkin.scoring.lexical import Lexical

        return Lexical(collection, settings.lexical)
    knn = Knn(collection, settings.knn)
    if settings.method == "knn":
        return knn
    if settings.method == "rerank":
        from labelkin.rerank.open import open_reranker

        return open_reranker(collection, settings, knn)
    from labelkin.scoring.label_ae import LabelAe
    from labelkin.scoring.mix import Mix, MixRanked

    label_ae = LabelAe(collection, settings.label_ae, knn)
    if settings.method == "label-ae":
        return label_ae
    if settings.method == "mix":
        return Mix(knn, label_ae)
    return MixRanked(knn, label_ae, settings.mix)
