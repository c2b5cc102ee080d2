from __future__ import annotations

import json
import logging
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer, Vocabulary
from labelkin.autoencoder.model import LabelModel
from labelkin.autoencoder.origin import Origin, find_origin
from labelkin.autoencoder.training_data import OutputSampling, TrainingData, make_training_data
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import ModelMismatchError, ModelNotFoundError, TrainingError
from labelkin.scoring.settings import Settings

from .label_data import QUICK, topics

pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder.training import Trainer

TAKEN = replace(QUICK, epochs=0)
LEFT_OUT = 5


@pytest.fixture(scope="module")
def model(trained: Indexer) -> LabelModel:
    return LabelModel(trained.collection.path / "models" / "label-ae")


@pytest.fixture
def small(model: LabelModel, tmp_path: Path) -> Iterator[Indexer]:
    """Few documents; the vocabulary lacks some headings of the model and has a new one."""
    without = set(model.info.labels[-LEFT_OUT:])
    concepts = [concept for concept in demo_concepts(0) if concept.id not in without]
    vocabulary = Vocabulary([Concept("NEW", {"es": "Nuevo"}), *concepts])
    documents = list(demo_documents(660, 0))[600:]
    some = [replace(document, labels=(*document.labels, "NEW")) for document in documents[:20]]
    with Indexer.create(tmp_path / "small", vocabulary, language="en") as indexer:
        indexer.add(some + documents[20:])
        yield indexer


def own_model(indexer: Indexer) -> LabelModel:
    return LabelModel(indexer.collection.path / "models" / "label-ae")


def places_of(result: LabelModel, model: LabelModel) -> tuple[list[int], list[int]]:
    """The places of the common labels in either model."""
    number = {label: place for place, label in enumerate(model.info.labels)}
    both = [place for place, label in enumerate(result.info.labels) if label in number]
    return both, [number[result.info.labels[place]] for place in both]


def origin_and_data(indexer: Indexer, model: LabelModel) -> tuple[Origin, TrainingData]:
    collection = indexer.collection
    origin = find_origin(model.folder, collection.columns_by_id())
    data = make_training_data(
        collection.label_sets(),
        len(indexer.vocabulary),
        np.empty(0, dtype=np.int64),
        held_out=QUICK.held_out,
        min_frequency=1,
        seed=0,
        kept=origin.known,
    )
    return origin, data


def test_common_labels_are_copied_and_nothing_else_changes(small, model):
    small.train_label_ae(TAKEN, start_from=model.folder)
    result = own_model(small)
    before, after = model.tensors(), result.tensors()
    mine, theirs = places_of(result, model)
    assert len(mine) == len(model.info.labels) - LEFT_OUT
    assert mine != theirs
    for name in before:
        if name in ("inputs.weight", "outputs.weight", "outputs.bias"):
            np.testing.assert_array_equal(after[name][mine], before[name][theirs])
        else:
            np.testing.assert_array_equal(after[name], before[name])


def test_a_new_heading_starts_at_its_odds_and_changes_no_other(small, model):
    small.train_label_ae(TAKEN, start_from=model.folder)
    result = own_model(small)
    place = result.info.labels.index("NEW")
    tensors = result.tensors()
    assert not tensors["inputs.weight"][place].any()
    assert tensors["outputs.bias"][place] == pytest.approx(np.log(20.5 / 40.5), abs=1e-5)
    latent = np.random.default_rng(0).normal(size=(3, result.latent)).astype(np.float32)
    logits = result.decode(latent)
    assert np.ptp(logits[:, place]) == 0
    mine, theirs = places_of(result, model)
    np.testing.assert_allclose(logits[:, mine], model.decode(latent)[:, theirs], atol=1e-5)


def test_headings_that_no_document_carries_stay(small, model):
    small.train_label_ae(TAKEN, start_from=model.folder)
    carried = {label for document in small.documents() for label in document.labels}
    info = own_model(small).info
    unseen = set(model.info.labels[:-LEFT_OUT]) - carried
    assert unseen
    assert unseen <= set(info.labels)
    assert not set(info.labels) & set(model.info.labels[-LEFT_OUT:])
    assert info.origin["in_no_document"] == len(unseen)
    settings = Settings.from_config(small.config, "label-ae").changed(limit=len(info.labels))
    given = small.suggest([Document("q", "wheat storage", language="en")], settings=settings)
    assert {one.concept.id for one in given[0]} & unseen


def test_a_model_records_its_origin(small, model, caplog):
    with caplog.at_level(logging.INFO, "labelkin"):
        small.train_label_ae(replace(QUICK, epochs=1, preset="large"), start_from=model.folder)
    info = own_model(small).info
    origin = info.origin
    assert origin["model"] == model.checksum
    assert origin["data"]["documents"] == model.info.data["documents"]
    assert origin["taken_over"] == len(model.info.labels) - LEFT_OUT
    assert (origin["left_out"], origin["taken_over"] + origin["new"]) == (
        LEFT_OUT,
        len(info.labels),
    )
    assert info.architecture == model.info.architecture
    assert f"{origin['new']:,} new, {LEFT_OUT} left out" in caplog.text
    card = (small.collection.path / "models" / "label-ae" / "README.md").read_text()
    assert f"| started from | model `{model.checksum}`" in card

    first = own_model(small).checksum
    small.train_label_ae(TAKEN, start_from=small.collection.path)
    again = own_model(small).info
    assert again.origin["model"] == first
    assert again.origin["origin"] == origin
    assert again.data == info.data
    assert not (small.collection.path / "models" / "label-ae" / "training.csv").exists()
    assert "adopted as it is" in (own_model(small).folder / "README.md").read_text()


@pytest.mark.parametrize("sampled_outputs", [0, 40])
def test_training_leaves_headings_of_no_document_alone(small, model, sampled_outputs):
    settings = replace(QUICK, sampled_outputs=sampled_outputs)
    small.train_label_ae(settings, start_from=model.folder)
    result = own_model(small)
    carried = {label for document in small.documents() for label in document.labels}
    mine, theirs = places_of(result, model)
    is_carried = np.array([result.info.labels[place] in carried for place in mine])
    before, after = model.tensors(), result.tensors()
    for name in ("inputs.weight", "outputs.weight", "outputs.bias"):
        moved = after[name][mine] != before[name][theirs]
        moved = moved.reshape(len(mine), -1).any(1)
        assert not moved[~is_carried].any(), name
        assert moved[is_carried].mean() > 0.8, name
    assert (after["dense2.weight"] != before["dense2.weight"]).any()


def topical(path: Path, documents: int, seed: int) -> Indexer:
    vocabulary = Vocabulary([Concept(f"T{n}", {"en": f"heading {n}"}) for n in range(40)])
    indexer = Indexer.create(path, vocabulary, language="en")
    indexer.add(
        Document(f"d{n}", f"text {n}", labels=tuple(f"T{label}" for label in labels))
        for n, labels in enumerate(topics(documents, seed))
    )
    return indexer


def test_with_little_data_it_is_better_than_a_fresh_one(tmp_path):
    plain = replace(QUICK, averages=False)
    with topical(tmp_path / "large", 400, 0) as large:
        large.train_label_ae(replace(plain, epochs=20))
    with topical(tmp_path / "little", 30, 1) as little:
        fresh = little.train_label_ae(plain).validation
        started = little.train_label_ae(plain, start_from=tmp_path / "large").validation
    assert started["MiF"] > 0.9
    assert fresh["MiF"] < 0.5


def test_resumed_it_ends_the_same(small, model, tmp_path):
    origin, data = origin_and_data(small, model)
    settings = origin.shaped(QUICK)
    whole = Trainer(data, settings, tmp_path / "whole", origin).run()

    class Interrupted(Trainer):
        def _step(self, *values):
            if self.position.steps == 4:
                signal.raise_signal(signal.SIGINT)
            return super()._step(*values)

    with pytest.raises(KeyboardInterrupt):
        Interrupted(data, settings, tmp_path / "cut", origin).run()
    with pytest.raises(TrainingError, match="other settings or documents"):
        Trainer(data, settings, tmp_path / "cut").resume()
    trainer = Trainer(data, settings, tmp_path / "cut", origin)
    trainer.resume()
    assert trainer.position.steps == 5
    resumed = trainer.run()
    for name, tensor in whole.tensors.items():
        np.testing.assert_array_equal(resumed.tensors[name], tensor)


def test_it_is_not_resumed_from_another_model(small, model, tmp_path):
    origin, data = origin_and_data(small, model)
    settings = origin.shaped(replace(QUICK, epochs=1))
    Trainer(data, settings, tmp_path / "t", origin).run()
    small.train_label_ae(settings, start_from=model.folder)
    other = find_origin(small.collection.path, small.collection.columns_by_id())
    with pytest.raises(TrainingError, match="other settings or documents"):
        Trainer(data, settings, tmp_path / "t", other).resume()


def test_adopting_a_model_needs_no_torch(small, model):
    code = (
        "import sys; sys.modules['torch'] = None; from labelkin import Indexer;"
        "from labelkin.autoencoder.training_settings import TrainingSettings;"
        f"indexer = Indexer.open({str(small.collection.path)!r});"
        "report = indexer.train_label_ae(TrainingSettings(epochs=0),"
        f" start_from={str(model.folder)!r});"
        "print(report.info.origin['model'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == model.checksum


def test_a_model_of_other_headings_is_refused(tmp_path, model):
    with topical(tmp_path / "other", 30, 0) as indexer:
        with pytest.raises(ModelMismatchError, match=r"carry none of its .* 'T\d+' here and"):
            indexer.train_label_ae(TAKEN, start_from=model.folder)
        assert not (tmp_path / "other" / "models" / "label-ae" / "model.json").exists()


def test_nothing_to_start_from(small, tmp_path):
    for path in (tmp_path / "nowhere", small.collection.path):
        with pytest.raises(ModelNotFoundError, match="no model"):
            small.train_label_ae(TAKEN, start_from=path)
    with pytest.raises(TrainingError, match="0 epochs"):
        small.train_label_ae(TAKEN)


def test_older_models_have_no_origin(model, tmp_path):
    shutil.copytree(model.folder, tmp_path / "old")
    path = tmp_path / "old" / "model.json"
    content = json.loads(path.read_text())
    del content["origin"], content["checksum"], content["checksums"]
    path.write_text(json.dumps(content))
    assert LabelModel(tmp_path / "old").info.origin == {}


def test_headings_that_are_only_kept_are_never_drawn():
    for size in (0, 100):
        sampling = OutputSampling.of_size(1000, size, 400)
        columns, weights = sampling.draw(np.array([3, 399]), np.random.default_rng(0))
        assert columns.max() == 399
        assert len(columns) == (101 if size else 400)
        # The weights add up to the number of trained labels.
        assert weights.sum() == pytest.approx(400, abs=0.01)
