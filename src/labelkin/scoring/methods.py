"""Methods by name: each ranks labels, cuts the ranking and explains what is left."""

from __future__ import annotations

from typing import Protocol

from labelkin.scoring.knn import Knn
from labelkin.scoring.queries import Queries
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import METHOD_NAMES, MethodName, Settings
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


def usable_methods(collection: Collection) -> list[MethodName]:
    """The methods whose models have been trained, and those that need none."""
    from labelkin.autoencoder.model import MODEL_NAME
    from labelkin.rerank.model import RERANK_NAME

    models = collection.path / "models"
    needs: dict[MethodName, str] = {
        "label-ae": MODEL_NAME,
        "mix": MODEL_NAME,
        "mix-ranked": MODEL_NAME,
        "rerank": RERANK_NAME,
    }
    return [
        name
        for name in METHOD_NAMES
        if name not in needs or (models / needs[name] / "model.json").exists()
    ]


def method_digest(collection: Collection, method: MethodName) -> str:
    """Changes whenever the model that a method uses is trained anew."""
    from labelkin.autoencoder.model import model_digest
    from labelkin.scoring.label_ae import model_folder

    if method != "rerank":
        return model_digest(model_folder(collection))
    from labelkin.rerank.model import reranker_digest, reranker_info
    from labelkin.rerank.open import reranker_folder

    folder = reranker_folder(collection)
    digest = reranker_digest(folder)
    if "autoencoder" not in reranker_info(folder).groups:
        return digest
    return f"{digest} {model_digest(model_folder(collection))}"
