"""Training the label autoencoder further, for folds, and on what several trainings share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer, Vocabulary
from labelkin.autoencoder import fitting
from labelkin.autoencoder.model import LabelModel, save_model
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import FITTED, TrainingSettings, paper_settings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionBusyError, ConfigError, TrainingError
from labelkin.label_ae_training import TrainingSources, fold_autoencoders
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.store.held_out import document_key
from labelkin.training_plan import TrainingObserver

pytest.importorskip("torch", reason="needs the extra `train`")

TINY = TrainingSettings(preset="8", epochs=2, device="cpu")
NEW = Concept("NEW", names={"en": "Weather Balloons"})
OLD_DOCUMENTS, NEW_DOCUMENTS = 200, 40


@pytest.fixture
def grown(tmp_path: Path) -> Iterator[Indexer]:
    """A collection that has grown since its autoencoder was trained, by a new heading too."""
    vocabulary = Vocabulary([*demo_concepts(0), NEW])
    documents = list(demo_documents(OLD_DOCUMENTS + NEW_DOCUMENTS, 0))
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        indexer.add(documents[:OLD_DOCUMENTS])
        held_out = RerankTrainingSettings(documents=20).held_out(indexer.snapshot())
        indexer.train_label_ae(TINY, held_out=held_out)
        indexer.add(
            replace(one, title=f"{one.title} and weather balloons", labels=(*one.labels, "NEW"))
            for one in documents[OLD_DOCUMENTS:]
        )
        indexer.build()
        yield indexer


def model_of(indexer: Indexer) -> LabelModel:
    return LabelModel(indexer.collection.path / "models" / "label-ae")


def test_an_update_gives_new_headings_a_place(grown: Indexer) -> None:
    before = model_of(grown)
    assert "NEW" not in before.info.labels
    report = grown.update_label_ae()
    assert report is not None
    after = model_of(grown)
    assert "NEW" in after.info.labels
    assert set(before.info.labels) <= set(after.info.labels)
    assert after.words() == before.words()
    # What was held out for a reranker stays unseen; nothing is new any more.
    assert after.info.data["left_out"] == before.info.data["left_out"]
    assert after.info.settings == before.info.settings
    assert grown.update_label_ae() is None
    (suggested,) = grown.suggest([Document("q", "A study of weather balloons")])
    assert suggested


def test_an_update_keeps_what_the_model_knows(grown: Indexer) -> None:
    before = model_of(grown)
    assert grown.update_label_ae(epochs=1) is not None
    after = model_of(grown)
    places = [after.info.labels.index(label) for label in before.info.labels]
    old, new = before.tensors()["outputs.weight"], after.tensors()["outputs.weight"][places]
    moved = np.linalg.norm(new - old, axis=1) / np.linalg.norm(old, axis=1)
    assert np.median(moved) < 0.5


def test_an_update_is_trained_on_what_is_new_and_some_of_the_rest(
    grown: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TrainingData] = []
    original = fitting.fit_label_model

    def spy(data: TrainingData, *rest: Any, **options: Any) -> Any:
        seen.append(data)
        return original(data, *rest, **options)

    monkeypatch.setattr(fitting, "fit_label_model", spy)
    monkeypatch.setattr("labelkin.label_ae_training._LEAST_AGAIN", 10)
    grown.update_label_ae()
    (data,) = seen
    is_new = data.rows >= OLD_DOCUMENTS
    assert 20 < np.count_nonzero(is_new) <= NEW_DOCUMENTS
    assert np.count_nonzero(~is_new) == NEW_DOCUMENTS
    assert data.neighbours is not None
    assert data.left_out is not None
    bound = int(str(data.left_out["bound"]), 16)
    unseen = {row for one, row in grown.snapshot().identifiers() if document_key(one, 0) <= bound}
    assert len(unseen) >= 20
    assert unseen.isdisjoint(data.rows.tolist())
    near = set(data.neighbours.near.ravel().tolist())
    assert unseen.isdisjoint(near)
    # All others may be neighbours, as in prediction, whether they are trained on or not.
    assert not near <= {-1, *data.rows.tolist(), *data.held_out.tolist()}


def test_the_papers_network_is_trained_anew(grown: Indexer) -> None:
    grown.train_label_ae(paper_settings(preset="8/8/4", epochs=1, device="cpu"))
    with pytest.raises(TrainingError, match="only a joint label autoencoder"):
        grown.update_label_ae()


def test_a_model_of_another_collection_is_not_updated(grown: Indexer, tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "d", Vocabulary(demo_concepts(0)), language="en") as other:
        other.add(demo_documents(60, 1))
        other.train_label_ae(replace(TINY, epochs=0), start_from=grown.collection.path)
        other.add(demo_documents(80, 1))
        other.build()
        with pytest.raises(TrainingError, match="trained on another collection"):
            other.update_label_ae()


def test_autoencoders_of_folds_do_not_stay(grown: Indexer) -> None:
    runtime, views = grown.runtime, grown.runtime.views()
    observer = TrainingObserver()
    sources = TrainingSources(grown.search(), views, observer)
    autoencoders = fold_autoencoders(runtime, views, sources, observer)
    assert autoencoders is not None
    before = model_of(grown).checksum
    with autoencoders.without(np.arange(20)) as model:
        assert model.is_joint
        assert model.checksum != before
        folder = model.folder
        assert folder.is_dir()
    assert not folder.exists()
    assert model_of(grown).checksum == before


def test_what_trainings_share_is_found_once(
    grown: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = grown.runtime.views()
    search, calls = grown.search(), []
    original = type(search).search_rows

    def counting(self: Any, rows: Any, k: int) -> Any:
        calls.append(len(rows))
        return original(self, rows, k)

    monkeypatch.setattr(type(search), "search_rows", counting)
    sources = TrainingSources(search, views)
    autoencoders = fold_autoencoders(grown.runtime, views, sources, TrainingObserver())
    assert autoencoders is not None
    for unseen in (np.arange(10), np.arange(10, 20)):
        with autoencoders.without(unseen):
            pass
    assert sum(calls) == OLD_DOCUMENTS + NEW_DOCUMENTS


@pytest.mark.parametrize(
    ("documents", "epochs"), [(0, 60), (300, 60), (4000, 12), (43_000, 8), (10**6, 8)]
)
def test_few_documents_have_more_epochs(documents: int, epochs: int) -> None:
    assert TrainingSettings().epochs == FITTED
    assert TrainingSettings().fitted(documents).epochs == epochs
    assert TrainingSettings(epochs=3).fitted(documents).epochs == 3


class Interrupting(TrainingObserver):
    """Presses Ctrl+C while epochs are reported."""

    def epoch(self, progress: Any) -> None:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupted_update_changes_nothing(grown: Indexer) -> None:
    before = model_of(grown).checksum
    with pytest.raises(KeyboardInterrupt) as error:
        grown.update_label_ae(observer=Interrupting())
    # An update is not resumed: it starts again.
    assert not error.value.args
    assert not (model_of(grown).folder / "checkpoint").exists()
    assert model_of(grown).checksum == before
    assert grown.update_label_ae() is not None


def test_what_a_killed_training_left_is_removed(grown: Indexer) -> None:
    runtime, views = grown.runtime, grown.runtime.views()
    observer = TrainingObserver()
    left = runtime.models.folder / ".fold-killed"
    left.mkdir()
    (left / "training.csv").write_text("epoch\n")
    sources = TrainingSources(grown.search(), views, observer)
    autoencoders = fold_autoencoders(runtime, views, sources, observer)
    assert autoencoders is not None
    with autoencoders.without(np.arange(20)):
        assert not left.exists()


class Rival(TrainingObserver):
    """Trains the autoencoder anew while an update looks for neighbours."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.trained = ""

    def stage(self, name: str, done: int, total: int) -> None:
        if not self.trained:
            with Indexer.open(self._path) as other:
                other.train_label_ae(replace(TINY, epochs=1, seed=1))
                self.trained = model_of(other).checksum


def test_an_update_does_not_undo_a_training_that_ended_meanwhile(grown: Indexer) -> None:
    rival = Rival(grown.collection.path)
    with pytest.raises(CollectionBusyError, match="has been trained anew meanwhile"):
        grown.update_label_ae(observer=rival)
    assert model_of(grown).checksum == rival.trained


def test_documents_without_headings_are_nothing_new(grown: Indexer) -> None:
    assert grown.update_label_ae() is not None
    before = model_of(grown).checksum
    grown.add([Document("unlabelled", "A study of weather balloons")])
    grown.build()
    assert grown.update_label_ae() is None
    assert model_of(grown).checksum == before


def test_an_update_counts_all_documents_that_the_model_knows(
    grown: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.label_ae_training._LEAST_AGAIN", 10)
    before = model_of(grown).info.data
    report = grown.update_label_ae()
    assert report is not None
    data = report.info.data
    assert data["documents"] > before["documents"]
    assert data["documents"] + data["held_out"] <= OLD_DOCUMENTS + NEW_DOCUMENTS


def test_a_model_from_another_machine_is_trained_on_what_is_here(
    grown: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    model = model_of(grown)
    info = replace(model.info, settings={**model.info.settings, "device": "cuda"})
    save_model(model.folder, info, model.tensors(), "")
    runtime, views = grown.runtime, grown.runtime.views()
    sources = TrainingSources(grown.search(), views)
    autoencoders = fold_autoencoders(runtime, views, sources, TrainingObserver())
    assert autoencoders is not None
    assert autoencoders.settings.device == "auto"
    with pytest.raises(ConfigError, match="no cuda device here"):
        grown.update_label_ae(device="cuda")
    assert grown.update_label_ae() is not None


def test_headings_that_are_all_too_rare(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(
            Document(f"d{n}", f"Text {n}", labels=(concept.id,))
            for n, concept in enumerate(list(demo_concepts(0))[:3])
        )
        with pytest.raises(
            TrainingError, match=r"lower min_frequency in \[joint\] of labelkin.toml"
        ):
            indexer.train_label_ae(TINY)
