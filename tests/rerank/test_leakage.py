"""Nothing that is learned from may depend on the labels of the documents learned from."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_documents
from labelkin.rerank import learning
from labelkin.rerank.features import feature_names
from labelkin.rerank.learning import Learner
from labelkin.rerank.open import DECODING
from labelkin.rerank.settings import LearningSettings
from labelkin.scoring.label_ae import LabelAe
from labelkin.store.held_out import HeldOut

from .rerank_data import made

AUTOENCODER = TrainingSettings(preset="32/16/8", epochs=2, batch_size=32, device="cpu")
LEARNING = LearningSettings(documents=30, rounds=3, linear=True, threads=1)
DOCUMENTS = 160
HEADINGS = 50


def few_headings() -> list[Document]:
    """Generated documents with their most frequent headings only."""
    documents = list(demo_documents(DOCUMENTS, 0))
    frequencies = Counter(label for document in documents for label in document.labels)
    kept = {label for label, _ in frequencies.most_common(HEADINGS)}
    found = [replace(d, labels=tuple(n for n in d.labels if n in kept)) for d in documents]
    return [document for document in found if document.labels]


def relabelled(documents: list[Document], places: list[int]) -> list[Document]:
    """The documents with other labels at some places: those of the next such document, and one."""
    changed = list(documents)
    for place, other in zip(places, [*places[1:], places[0]], strict=True):
        labels = (*documents[other].labels, documents[place].labels[0])
        changed[place] = replace(documents[place], labels=labels[1:])
    return changed


def chosen(indexer: Indexer) -> HeldOut:
    return LEARNING.held_out(indexer.collection)


def lesson(indexer: Indexer, monkeypatch, *, autoencoder: bool) -> tuple[np.ndarray, np.ndarray]:
    """The features that trees learn from, and which candidates are right."""
    label_ae = None
    held_out = chosen(indexer)
    if autoencoder:
        indexer.train(AUTOENCODER, held_out=held_out)
        label_ae = LabelAe(indexer.collection, DECODING)
    seen = []

    def spy(features, right, names, **settings):
        assert names == feature_names(learner.groups)
        seen.append((features, right))
        return fit_ranker(features, right, names, **settings)

    fit_ranker = learning.fit_ranker
    monkeypatch.setattr(learning, "fit_ranker", spy)
    learner = Learner(indexer.collection, indexer.search(), LEARNING, held_out, label_ae=label_ae)
    learner.learn()
    monkeypatch.undo()
    # The last are the trees that are kept, which learn from all lessons.
    return seen[-1]


@pytest.fixture(scope="module")
def two_worlds(tmp_path_factory):
    """Two collections that differ only in the labels of the documents taken out."""
    folder: Path = tmp_path_factory.mktemp("leakage")
    documents = few_headings()
    one = made(folder / "one", documents)
    places = chosen(one).held_out.tolist()
    assert len(places) == len(documents) // 7 >= 20
    other = made(folder / "other", relabelled(documents, places))
    assert chosen(other).held_out.tolist() == places
    with one, other:
        yield one, other


@pytest.mark.parametrize("autoencoder", [False, True])
def test_features_do_not_know_the_labels_of_their_documents(two_worlds, monkeypatch, autoencoder):
    if autoencoder:
        pytest.importorskip("torch", reason="needs the extra `train`")
    one, other = (lesson(indexer, monkeypatch, autoencoder=autoencoder) for indexer in two_worlds)
    assert one[0].shape == other[0].shape
    groups = tuple(g for g in LEARNING.groups if autoencoder or g != "autoencoder")
    for column, name in enumerate(feature_names(groups)):
        np.testing.assert_array_equal(one[0][:, column], other[0][:, column], err_msg=name)
    # The labels do differ.
    assert np.mean(one[1] != other[1]) > 0.01
