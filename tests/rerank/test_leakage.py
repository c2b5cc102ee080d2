"""Nothing that is trained on may depend on the labels of the held-out documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.model import LabelModel
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_documents
from labelkin.rerank import training
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import SIGNALS, feature_names
from labelkin.rerank.training import RerankTrainer
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.held_out import HeldOut

from .rerank_data import made

AUTOENCODER = TrainingSettings(preset="32/16/8", epochs=2, batch_size=32, device="cpu")
SETTINGS = RerankTrainingSettings(documents=30, rounds=3, linear=True, threads=1)
DOCUMENTS = 160
HEADINGS = 50


def few_headings() -> list[Document]:
    """Generated documents with their most frequent headings only."""
    documents = list(demo_documents(DOCUMENTS, 0))
    frequencies = Counter(label for document in documents for label in document.labels)
    kept = {label for label, _ in frequencies.most_common(HEADINGS)}
    reduced = [replace(d, labels=tuple(n for n in d.labels if n in kept)) for d in documents]
    return [document for document in reduced if document.labels]


def relabelled(documents: list[Document], places: list[int]) -> list[Document]:
    """The documents with other labels at some places: those of the next such document, and one."""
    changed = list(documents)
    for place, other in zip(places, [*places[1:], places[0]], strict=True):
        labels = (*documents[other].labels, documents[place].labels[0])
        changed[place] = replace(documents[place], labels=labels[1:])
    return changed


def exchanged(documents: list[Document], places: list[int]) -> list[Document]:
    """The documents with each other's labels at some places.

    The mean number of words in the names of a document's headings stays the same: it is all that
    scores of neighbours know of the headings of other documents.
    """
    changed = list(documents)
    for place, other in zip(places, [*places[1:], places[0]], strict=True):
        changed[place] = replace(documents[place], labels=documents[other].labels)
    return changed


def held_out_of(indexer: Indexer) -> HeldOut:
    return SETTINGS.held_out(indexer.snapshot())


def training_data(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch, *, autoencoder: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The features that trees are trained on, and which candidates are right."""
    held_out = held_out_of(indexer)
    if autoencoder:
        indexer.train_label_ae(AUTOENCODER, held_out=held_out)
    trainer = RerankTrainer(
        indexer.runtime.views(),
        indexer.runtime.models,
        indexer.search(),
        SETTINGS,
        held_out,
        autoencoder=indexer.runtime.models.get(LabelModel) if autoencoder else None,
    )
    unavailable = () if autoencoder else ("autoencoder",)
    assert trainer.groups == tuple(name for name in SIGNALS.names() if name not in unavailable)
    seen = []

    def spy(features, right, names, **settings):
        assert names == feature_names(trainer.groups)
        seen.append((features, right))
        return fit_ranker(features, right, names, **settings)

    fit_ranker = training.fit_ranker
    with monkeypatch.context() as patched:
        patched.setattr(training, "fit_ranker", spy)
        trainer.train()
    # The last are the trees that are kept, which are trained on all candidates.
    return seen[-1]


@pytest.fixture(scope="module", params=["texts only", "texts and headings"])
def collections(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Indexer, Indexer]]:
    """Two collections that differ only in the labels of the held-out documents."""
    folder: Path = tmp_path_factory.mktemp("leakage")
    documents = few_headings()
    one = made(folder / "one", documents)
    places = held_out_of(one).held_out.tolist()
    assert len(places) == len(documents) // 7 >= 20
    is_plain = request.param == "texts only"
    changed = relabelled(documents, places) if is_plain else exchanged(documents, places)
    other = made(folder / "other", changed)
    if is_plain:
        for indexer in (one, other):
            path = indexer.collection.path / CONFIG_NAME
            update_config(path, {"neighbours": {"heading_weight": 0.0}})
    assert held_out_of(other).held_out.tolist() == places
    with one, other:
        yield one, other


@pytest.mark.parametrize("autoencoder", [False, True])
def test_features_do_not_know_the_labels_of_their_documents(collections, monkeypatch, autoencoder):
    if autoencoder:
        pytest.importorskip("torch", reason="needs the extra `train`")
    one, other = (
        training_data(indexer, monkeypatch, autoencoder=autoencoder) for indexer in collections
    )
    assert one[0].shape == other[0].shape
    groups = [name for name in SIGNALS.names() if autoencoder or name != "autoencoder"]
    assert one[0].shape[1] == len(feature_names(groups))
    for column, name in enumerate(feature_names(groups)):
        np.testing.assert_array_equal(one[0][:, column], other[0][:, column], err_msg=name)
    # The labels do differ.
    assert np.mean(one[1] != other[1]) > 0.01
