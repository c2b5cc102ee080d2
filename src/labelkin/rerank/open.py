"""The reranker of a collection, ready to suggest."""

from __future__ import annotations

from pathlib import Path

from labelkin.exceptions import ModelMismatchError
from labelkin.rerank.method import Rerank
from labelkin.rerank.model import RERANK_NAME, RerankModel
from labelkin.scoring.knn import Knn
from labelkin.scoring.label_ae import LabelAe
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.store.collection import Collection

# How the autoencoder's scores are made, whatever the settings of the method label-ae are.
DECODING = ScorerSettings(k=20, weighting="difference", count=None)


def reranker_folder(collection: Collection) -> Path:
    """Where a collection's reranker is."""
    return collection.path / "models" / RERANK_NAME


def open_reranker(collection: Collection, settings: Settings, knn: Knn) -> Rerank:
    """The method `rerank`, for one state of a collection."""
    folder = reranker_folder(collection)
    model = RerankModel(folder)
    state = model.info.state
    if not collection.knows(state["generation"], state["token"]):
        raise ModelMismatchError(
            f"{folder}: learned from another collection, or from a later state of this one; "
            "run `labelkin train`"
        )
    label_ae = None
    if "autoencoder" in model.info.groups:
        label_ae = LabelAe(collection, DECODING)
    return Rerank(collection, settings.rerank, model, knn, label_ae)
