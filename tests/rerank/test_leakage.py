"""Nothing that is trained on may depend on the labels of the held-out documents."""

from __future__ import annotations

import importlib.util
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
from labelkin.label_ae_training import TrainingSources, fold_autoencoders
from labelkin.rerank.labelled_candidates import LabelledCandidates
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.signals import SIGNALS, feature_names
from labelkin.rerank.training import RerankTrainer
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.held_out import HeldOut
from labelkin.training_plan import TrainingObserver

from .rerank_data import made

AUTOENCODER = TrainingSettings(preset="8", epochs=2, batch_size=32, device="cpu")
HAS_FAISS = importlib.util.find_spec("faiss") is not None
SETTINGS = RerankTrainingSettings(
    documents=30, rounds=3, linear=True, threads=1, encoder="lsa" if HAS_FAISS else ""
)
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


def available(*, autoencoder: bool) -> tuple[str, ...]:
    """The signals that take part in the training."""
    has = {"autoencoder": autoencoder, "latent": autoencoder, "vectors": HAS_FAISS}
    return tuple(name for name in SIGNALS.names() if has.get(name, True))


def training_data(
    indexer: Indexer, *, autoencoder: bool, for_each_fold: bool = True
) -> list[LabelledCandidates]:
    """The candidates that trees are trained on, by folds."""
    held_out = held_out_of(indexer)
    runtime, views = indexer.runtime, indexer.runtime.views()
    autoencoders = None
    if autoencoder:
        indexer.train_label_ae(AUTOENCODER, held_out=held_out)
        observer = TrainingObserver()
        sources = TrainingSources(indexer.search(), views, observer)
        if for_each_fold:
            autoencoders = fold_autoencoders(runtime, views, sources, observer)
            assert autoencoders is not None
    trainer = RerankTrainer(
        views,
        runtime.models,
        indexer.search(),
        SETTINGS,
        held_out,
        autoencoder=runtime.models.get(LabelModel) if autoencoder else None,
        autoencoders=autoencoders,
        indexes=indexer.runtime.indexes,
    )
    assert trainer.groups == available(autoencoder=autoencoder)
    candidates, _ = trainer.collect()
    return candidates


@pytest.fixture(scope="module", params=[0, 1])
def fold(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module", params=["texts only", "texts and headings"])
def collections(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, fold: int
) -> Iterator[tuple[Indexer, Indexer]]:
    """Two collections that differ only in the labels of the documents of one fold."""
    folder: Path = tmp_path_factory.mktemp("leakage")
    documents = few_headings()
    one = made(folder / "one", documents)
    held_out = held_out_of(one)
    assert len(held_out.folds) == 2
    places = held_out.folds[fold].rows.tolist()
    assert len(places) == len(documents) // 7 >= 20
    is_plain = request.param == "texts only"
    changed = relabelled(documents, places) if is_plain else exchanged(documents, places)
    other = made(folder / "other", changed)
    if is_plain:
        for indexer in (one, other):
            path = indexer.collection.path / CONFIG_NAME
            update_config(path, {"neighbours": {"heading_weight": 0.0}})
    assert held_out_of(other).folds[fold].rows.tolist() == places
    with one, other:
        yield one, other


@pytest.mark.parametrize("autoencoder", [False, True])
def test_features_do_not_know_the_labels_of_their_documents(
    collections, fold, monkeypatch, autoencoder
):
    if autoencoder:
        pytest.importorskip("torch", reason="needs the extra `train`")
    # All candidates, so that the same are compared.
    monkeypatch.setattr("labelkin.rerank.labelled_candidates._WRONG", 1.0)
    one, other = (training_data(each, autoencoder=autoencoder)[fold] for each in collections)
    assert one.pairs.keys.tolist() == other.pairs.keys.tolist()
    groups = available(autoencoder=autoencoder)
    assert one.features.shape[1] == len(feature_names(groups))
    of_autoencoder = SIGNALS["autoencoder"].features + SIGNALS["latent"].features
    for column, name in enumerate(feature_names(groups)):
        # Products of matrices may differ in the last digit from one run to the next.
        np.testing.assert_allclose(
            one.features[:, column],
            other.features[:, column],
            rtol=1e-5 if name in of_autoencoder else 0,
            err_msg=name,
        )
    # The labels do differ.
    assert np.mean(one.right != other.right) > 0.01
    if autoencoder:
        # One was trained without the fold: nothing is unknown.
        assert not np.isnan(one.features[:, feature_names(groups).index("decoded")]).any()


def test_what_the_autoencoder_has_seen_is_unknown_to_the_trees(collections):
    pytest.importorskip("torch", reason="needs the extra `train`")
    first, second = training_data(collections[0], autoencoder=True, for_each_fold=False)
    names = feature_names(available(autoencoder=True))
    of_autoencoder = np.isin(names, SIGNALS["autoencoder"].features + SIGNALS["latent"].features)
    # Not every heading has a classifier.
    of_others = ~of_autoencoder & ~np.isin(names, SIGNALS["linear"].features)
    assert not np.isnan(first.features[:, of_autoencoder | of_others]).any()
    np.testing.assert_array_equal(np.isnan(second.features).all(0), of_autoencoder)
    assert not np.isnan(second.features[:, of_others]).any()
