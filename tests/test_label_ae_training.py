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
from labelkin.autoencoder.origin import Origin
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import FITTED, TrainingSettings, paper_settings
from labelkin.corpus.text import document_key
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionBusyError, ConfigError, TrainingError
from labelkin.label_ae_training import TrainingSources, _training_data, fold_autoencoders
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.training_plan import TrainingObserver

pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder.training import TrainingProgress

TINY = TrainingSettings(preset="8", epochs=2, device="cpu")
NEW = Concept("NEW", names={"en": "Weather Balloons"})
OLD_DOCUMENTS, NEW_DOCUMENTS = 200, 40
LABEL_TABLES = ("inputs.weight", "outputs.weight", "outputs.bias")


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


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TrainingData, Origin]]:
    """The data that models were fitted to, and the models that they started from."""
    seen: list[tuple[TrainingData, Origin]] = []
    original = fitting.fit_label_model

    def spy(data: TrainingData, *rest: Any, origin: Origin, **options: Any) -> Any:
        seen.append((data, origin))
        return original(data, *rest, origin=origin, **options)

    monkeypatch.setattr(fitting, "fit_label_model", spy)
    return seen


def test_an_update_keeps_what_the_model_knows(
    grown: Indexer, fitted: list[tuple[TrainingData, Origin]]
) -> None:
    before = model_of(grown)
    assert grown.update_label_ae() is not None
    after, ((data, origin),) = model_of(grown), fitted
    old, new = before.tensors(), after.tensors()
    for name in old.keys() - {*LABEL_TABLES, "frequencies"}:
        assert np.array_equal(old[name], new[name]), name
    places = origin.places(data)
    is_renewed = data.renewed
    assert is_renewed is not None
    for name in (*LABEL_TABLES, "frequencies"):
        kept = ~is_renewed & (places >= 0)
        assert np.array_equal(new[name][kept], old[name][places[kept]]), name
    known = places >= 0
    assert np.array_equal(new["inputs.weight"][known], old["inputs.weight"][places[known]])
    trained = is_renewed & known & (data.frequencies > 3)
    assert not np.array_equal(new["outputs.bias"][trained], old["outputs.bias"][places[trained]])


def test_headings_with_mostly_new_documents_are_trained(
    grown: Indexer, fitted: list[tuple[TrainingData, Origin]]
) -> None:
    grown.update_label_ae(epochs=1)
    ((data, origin),) = fitted
    assert data.renewed is not None
    sets = [set(data.batch(np.array([row]))[0].tolist()) for row in data.all_rows]
    is_new = data.all_rows >= OLD_DOCUMENTS
    for label, renewed in enumerate(data.renewed.tolist()):
        carriers = np.array([label in one for one in sets])
        share = (carriers & is_new).sum() / max(carriers.sum(), 1)
        assert renewed == (share >= 0.5)
    assert data.renewed[origin.places(data) < 0].all()
    assert 0 < np.count_nonzero(data.renewed) < data.labels / 2


def test_a_new_heading_begins_as_votes_and_names_score_it(
    grown: Indexer, fitted: list[tuple[TrainingData, Origin]]
) -> None:
    grown.update_label_ae(epochs=1)
    ((data, origin),) = fitted
    fresh = {name: np.ones_like(value) for name, value in model_of(grown).tensors().items()}
    tensors = origin.joint_tensors(data, fresh | {"outputs.bias": data.log_odds()})
    (place,) = np.flatnonzero(data.columns.columns == grown.snapshot().columns_by_id()["NEW"])
    assert not tensors["inputs.weight"][place].any()
    assert not tensors["outputs.weight"][place].any()
    rare = origin.model.tensors()["rare"]
    assert tensors["outputs.bias"][place] == max(rare, data.log_odds()[place])


def test_an_update_is_trained_on_what_is_new_and_some_of_the_rest(
    grown: Indexer,
    fitted: list[tuple[TrainingData, Origin]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("labelkin.label_ae_training._LEAST_AGAIN", 10)
    grown.update_label_ae()
    ((data, _),) = fitted
    is_new = data.rows >= OLD_DOCUMENTS
    assert 20 < np.count_nonzero(is_new) <= NEW_DOCUMENTS
    assert np.count_nonzero(~is_new) == np.count_nonzero(data.all_rows >= OLD_DOCUMENTS)
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


def test_a_reranker_does_without_an_adopted_model(
    grown: Indexer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has not been trained here, so no other can be trained in its way for a fold."""
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    grown.train_label_ae(replace(TINY, epochs=1))
    adopted = replace(TINY, epochs=0, held_out=0.2)
    rerank = RerankTrainingSettings(documents=20, rounds=2, linear=False, threads=1)
    with Indexer.create(tmp_path / "d", Vocabulary(demo_concepts(0)), language="en") as other:
        other.add(demo_documents(160, 1))
        report = other.train(label_ae=adopted, rerank=rerank, start_from=grown.collection.path)
    assert report.label_ae is not None
    # Whether a reranker is trained beside it or not.
    assert report.cuts is None
    assert report.rerank is not None
    assert "autoencoder" not in report.rerank.info.groups
    assert "the model that it started from may have seen the documents" in caplog.text


def test_an_update_needs_an_epoch(grown: Indexer) -> None:
    with pytest.raises(TrainingError, match="at least 1 epoch"):
        grown.update_label_ae(epochs=0)


def test_an_update_does_not_discard_an_unfinished_training(grown: Indexer) -> None:
    class Interrupting(TrainingObserver):
        def epoch(self, progress: TrainingProgress) -> None:
            if progress.epoch > 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grown.train_label_ae(TINY, observer=Interrupting())
    with pytest.raises(TrainingError, match=r"unfinished training.*--resume"):
        grown.update_label_ae()
    grown.train_label_ae(TINY, resume=True)


def test_documents_to_validate_with_are_always_searched(grown: Indexer) -> None:
    views = grown.runtime.views()
    few = replace(TINY, documents=30, held_out=0.1)
    data = _training_data(views.snapshot, few, None)
    found = TrainingSources(grown.search(), views).completed(data, few)
    assert found.neighbours is not None
    assert len(found.neighbours.rows) == 30
    assert set(data.held_out.tolist()) <= set(found.neighbours.rows.tolist())


def test_a_model_of_another_collection_may_have_seen_everything(
    grown: Indexer, tmp_path: Path
) -> None:
    adopted = replace(TINY, epochs=0)
    with Indexer.create(tmp_path / "other", Vocabulary(demo_concepts(0)), language="en") as other:
        other.add(demo_documents(50, 0))
        other.train_label_ae(adopted, start_from=grown.collection.path)
        assert model_of(other).info.data["left_out"] is None
    grown.train_label_ae(adopted, start_from=grown.collection.path)
    assert model_of(grown).info.data["left_out"] is not None


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


def test_documents_that_were_replaced_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []

    def fitted(self: TrainingSettings, documents: int) -> TrainingSettings:
        counted.append(documents)
        return replace(self, epochs=1)

    monkeypatch.setattr(TrainingSettings, "fitted", fitted)
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(30, 0))
        indexer.add(replace(one, title=f"{one.title}, again") for one in demo_documents(30, 0))
        indexer.train_label_ae(replace(TINY, epochs=FITTED))
    assert counted == [30]


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
