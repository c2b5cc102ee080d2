"""Training the joint autoencoder on collections, and starting it from another one's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer, Vocabulary
from labelkin.autoencoder import fitting
from labelkin.autoencoder.ballots import NEIGHBOURS, cast_ballots
from labelkin.autoencoder.joint import rare_frequency
from labelkin.autoencoder.model import LabelModel
from labelkin.autoencoder.training_data import TrainingData
from labelkin.autoencoder.training_settings import TrainingSettings, paper_settings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import TrainingError
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.store.config import CONFIG_NAME, update_config

from .joint_data import JOINT

pytest.importorskip("torch", reason="needs the extra `train`")

DOCUMENTS = 150
LEFT_OUT = 5
ADOPTED = replace(JOINT, epochs=0)
SETTINGS = Settings(method="label-ae", label_ae=ScorerSettings(count=None, threshold=0.02))


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("joint") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        indexer.train_label_ae(replace(JOINT, epochs=2))
    return path


@pytest.fixture
def model(joint: Path) -> LabelModel:
    return LabelModel(joint / "models" / "label-ae")


@pytest.fixture
def small(model: LabelModel, tmp_path: Path) -> Iterator[Indexer]:
    """Few documents; the vocabulary lacks some headings of the model and has a new one."""
    gone = set(model.info.labels[-LEFT_OUT:])
    concepts = [
        replace(c, broader=tuple(one for one in c.broader if one not in gone))
        for c in demo_concepts(0)
        if c.id not in gone
    ]
    vocabulary = Vocabulary([Concept("NEW", {"en": "New"}), *concepts])
    documents = [
        replace(d, labels=tuple(label for label in d.labels if label not in gone))
        for d in list(demo_documents(DOCUMENTS + 40, 0))[DOCUMENTS:]
    ]
    some = [
        replace(d, body=d.body + " zeppelin", labels=(*d.labels, "NEW")) for d in documents[:20]
    ]
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


class Captured:
    """The data and the weights that a training starts with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data: TrainingData | None = None
        self.weights: dict[str, np.ndarray] = {}
        fit = fitting.fit_label_model

        def captured(data: TrainingData, *values: Any, **named: Any) -> Any:
            self.data = data
            return fit(data, *values, **named)

        from labelkin.autoencoder.training import Trainer

        run = Trainer.run

        def starting(trainer: Any, *values: Any) -> Any:
            weights = trainer.network.state_dict()
            self.weights = {name: value.numpy().copy() for name, value in weights.items()}
            return run(trainer, *values)

        monkeypatch.setattr(fitting, "fit_label_model", captured)
        monkeypatch.setattr(Trainer, "run", starting)


def test_no_document_is_its_own_neighbour_and_none_is_held_out(tmp_path, monkeypatch):
    captured = Captured(monkeypatch)
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(220, 0))
        indexer.remove(["demo-00007"])
        some = list(indexer.documents())[::4]
        indexer.add(replace(one, id=f"copy of {one.id}") for one in some)
        held_out = RerankTrainingSettings(documents=30).held_out(indexer.snapshot())
        indexer.train_label_ae(replace(JOINT, epochs=1), held_out=held_out)
        gone = indexer.collection.tombstones()
        rows_of = indexer.collection.rows_of(
            [name for one in some for name in (one.id, f"copy of {one.id}")]
        )
        twins = {rows_of[one.id]: rows_of[f"copy of {one.id}"] for one in some}
        twins |= {copy: row for row, copy in twins.items()}
        data = captured.data
        assert data is not None
        assert data.neighbours is not None
        near, rows = data.neighbours.near, data.neighbours.rows
        assert len(held_out.unseen) >= 20
        assert not np.isin(near, held_out.unseen).any()
        assert not np.isin(rows, held_out.unseen).any()
        assert not np.isin(near, gone).any()
        assert not (near == rows[:, None]).any()
        # Nor a copy of its text, which would give its labels away.
        assert len(np.intersect1d(rows, list(twins))) > 50
        assert not any(twins.get(int(row)) in mine for row, mine in zip(rows, near, strict=True))
        # Those that were left out are replaced by the next ones.
        assert near.shape[1] == NEIGHBOURS
        assert (near >= 0).mean() > 0.9
        texts = data.texts
        assert texts is not None
        ballots = cast_ballots(
            near, data.neighbours.weights, texts.named, data.columns, data.label_sets
        )
        owners, places = np.divmod(ballots.voters, near.shape[1])
        assert (near[owners, places] != rows[owners]).all()
        assert len(texts.named) == texts.weighted.shape[0] == len(rows)


def test_a_document_is_trained_on_its_own_text(joint, tmp_path, monkeypatch):
    """Rows of neighbours, words and names belong together."""
    captured = Captured(monkeypatch)
    grains = ("wheat", "barley", "oat")
    concepts = [Concept(f"C{n}", {"en": name}) for n, name in enumerate(grains)]
    with Indexer.create(tmp_path / "c", Vocabulary(concepts), language="en") as indexer:
        names = [grains[n % 3] for n in range(30)]
        indexer.add(
            Document(f"d{n}", f"{name} and common things", labels=(f"C{n % 3}",))
            for n, name in enumerate(names)
        )
        rows = indexer.collection.rows_of([f"d{n}" for n in range(30)])
        indexer.train_label_ae(replace(JOINT, epochs=1))
        columns = [indexer.vocabulary.column(f"C{n}") for n in range(3)]
    data = captured.data
    assert data is not None
    assert data.neighbours is not None
    assert data.texts is not None
    place = {int(row): n for n, row in enumerate(data.neighbours.rows)}
    words = data.texts.terms.words
    for n, name in enumerate(names):
        at = place[rows[f"d{n}"]]
        named = data.texts.named.taken(np.array([at]))
        assert named.columns.tolist() == [columns[n % 3]]
        mine = {words[column] for column in data.texts.weighted[at].indices}
        assert {word for word in mine if word.lstrip("^") in grains} == {
            name,
            "^" + name,
        }


def test_few_documents_have_their_neighbours_searched(tmp_path, monkeypatch):
    captured = Captured(monkeypatch)
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(100, 0))
        report = indexer.train_label_ae(replace(JOINT, epochs=1, documents=30, terms=50))
    data = captured.data
    assert data is not None
    assert data.neighbours is not None
    # Those that are held out for validation are among them.
    assert len(data.neighbours.rows) == 30
    assert np.isin(data.neighbours.rows, np.union1d(data.rows, data.held_out)).all()
    assert report is not None
    assert report.info.data["documents_with_neighbours"] == len(data.neighbours.rows)
    assert report.info.architecture.terms == 50
    # All headings are known, whichever documents are trained on.
    assert len(report.info.labels) == data.labels == len(data.frequencies)


def test_rows_of_known_headings_and_words_are_taken_over(small, model, monkeypatch):
    captured = Captured(monkeypatch)
    small.train_label_ae(replace(JOINT, epochs=1, preset="auto"), start_from=model.folder)
    result, before, after = own_model(small), model.tensors(), captured.weights
    assert result.info.architecture.latent == model.info.architecture.latent == 16
    mine, theirs = places_of(result, model)
    assert len(mine) == len(model.info.labels) - LEFT_OUT
    for name in ("inputs.weight", "outputs.weight", "outputs.bias"):
        np.testing.assert_array_equal(after[name][mine], before[name][theirs], err_msg=name)
    words, known = result.words(), {word: n for n, word in enumerate(model.words())}
    common = [n for n, word in enumerate(words) if word in known]
    new = [n for n, word in enumerate(words) if word not in known]
    assert "zeppelin" in [words[n] for n in new]
    assert len(common) > 20
    np.testing.assert_array_equal(
        after["terms.weight"][common], before["terms.weight"][[known[words[n]] for n in common]]
    )
    # A new word starts as in a fresh network, a new heading without vectors, at its log-odds.
    assert (after["terms.weight"][new].std(1) > 0.03).all()
    place = result.info.labels.index("NEW")
    assert not after["inputs.weight"][place].any()
    assert not after["outputs.weight"][place].any()
    assert after["outputs.bias"][place] == pytest.approx(np.log(20.5 / 20.5), abs=0.01)
    for name in ("shift", "weigh1.weight", "correct1.weight", "correct2.bias", "sharpness"):
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    # Frequencies are those of the documents here.
    assert after["frequencies"].shape == (len(result.info.labels),)
    origin = result.info.origin
    assert (origin["model"], origin["left_out"]) == (model.checksum, LEFT_OUT)


def test_the_recipe_of_the_model_wins(small, model):
    asked = paper_settings(epochs=1, batch_size=32, device="cpu", averages=False)
    small.train_label_ae(asked, start_from=model.folder)
    result = own_model(small)
    assert result.is_joint
    assert result.info.settings["recipe"] == "joint"
    assert result.info.settings["preset"] == "16"


def test_a_paper_model_stays_one(small, tmp_path):
    with Indexer.create(tmp_path / "p", Vocabulary(demo_concepts(0)), language="en") as paper:
        paper.add(demo_documents(60, 0))
        paper.train_label_ae(
            paper_settings(preset="16/12/8", epochs=1, batch_size=32, device="cpu", averages=False)
        )
        folder = own_model(paper).folder
    small.train_label_ae(replace(JOINT, epochs=1), start_from=folder)
    result = own_model(small)
    assert not result.is_joint
    assert result.info.architecture.sizes == "16/12/8"
    assert small.suggest([Document("q", "wheat storage")], settings=SETTINGS.changed(limit=3))[0]


def test_an_adopted_model_is_the_same(small, model):
    small.train_label_ae(ADOPTED, start_from=model.folder)
    result, before = own_model(small), model.tensors()
    after = result.tensors()
    assert result.words() == model.words()
    mine, theirs = places_of(result, model)
    assert mine != theirs
    for name, tensor in before.items():
        if name in ("inputs.weight", "outputs.weight", "outputs.bias", "frequencies"):
            np.testing.assert_array_equal(after[name][mine], tensor[theirs], err_msg=name)
        else:
            np.testing.assert_array_equal(after[name], tensor, err_msg=name)
    # A heading that the model lacks scores as one that came later: by votes and names alone.
    place = result.info.labels.index("NEW")
    assert not after["inputs.weight"][place].any()
    assert not after["outputs.weight"][place].any()
    assert after["outputs.bias"][place] == before["rare"]
    assert after["frequencies"][place] == rare_frequency(model)
    text = next(iter(small.documents()))
    (suggestions,) = small.suggest(
        [replace(text, id="q", labels=())], settings=SETTINGS.changed(threshold=0.0, limit=200)
    )
    assert suggestions
    assert "NEW" in {one.concept.id for one in suggestions}


def test_it_suggests_the_same_at_home_and_adopted(joint, tmp_path):
    """A collection with the same documents and vocabulary and the adopted model."""
    text = [Document("q", "wheat storage", language="en")]
    with Indexer.create(tmp_path / "twin", Vocabulary(demo_concepts(0)), language="en") as twin:
        twin.add(demo_documents(DOCUMENTS, 0))
        twin.train_label_ae(ADOPTED, start_from=joint)
        adopted = twin.suggest(text, settings=SETTINGS)
    with Indexer.open(joint) as home:
        expected = home.suggest(text, settings=SETTINGS)
    assert [(one.concept.id, round(one.score, 5)) for one in adopted[0]] == [
        (one.concept.id, round(one.score, 5)) for one in expected[0]
    ]
    assert expected[0]


def test_adopting_and_predicting_need_no_torch(small, model):
    code = (
        "import sys; sys.modules['torch'] = None; from labelkin import Document, Indexer;"
        "from labelkin.autoencoder.training_settings import TrainingSettings;"
        "from labelkin.scoring.settings import Settings;"
        f"indexer = Indexer.open({str(small.collection.path)!r});"
        "report = indexer.train_label_ae(TrainingSettings(epochs=0),"
        f" start_from={str(model.folder)!r});"
        "settings = Settings.from_config(indexer.config, 'label-ae').changed(limit=3);"
        "print(report.info.origin['model'],"
        " len(indexer.suggest([Document('q', 'wheat storage')], settings=settings)[0]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [model.checksum, "3"]


ODD: dict[str, list[Document]] = {
    "no texts": [Document(f"d{n}", "", labels=(f"L{n % 3}",)) for n in range(8)],
    "three alike": [Document(f"d{n}", "the same text", labels=("L0",)) for n in range(3)],
    "each heading once": [Document(f"d{n}", f"text {n}", labels=(f"L{n}",)) for n in range(20)],
    "one heading": [Document(f"d{n}", f"some text {n % 4}", labels=("L1",)) for n in range(20)],
    "two documents": [Document(f"d{n}", "a text", labels=("L1", "L2")) for n in range(2)],
    "some unlabelled": [
        Document(f"d{n}", f"a text {n % 5}", labels=("L1",) if n % 2 else ()) for n in range(20)
    ],
    "no spaces": [
        Document(f"d{n}", "小麦の病気と大麦", labels=(f"L{n % 2}",), language="ja")
        for n in range(9)
    ],
}


@pytest.mark.parametrize("documents", ODD.values(), ids=ODD)
def test_odd_collections(documents, tmp_path):
    vocabulary = Vocabulary([Concept(f"L{n}", {"en": f"heading {n}"}) for n in range(20)])
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        indexer.add(documents)
        report = indexer.train_label_ae(replace(JOINT, epochs=2))
        assert report is not None
        result = own_model(indexer)
        assert all(np.isfinite(tensor).all() for tensor in result.tensors().values())
        for method in ("label-ae", "mix", "mix-ranked"):
            settings = Settings.from_config(indexer.config, method).changed(limit=3, threshold=0.0)
            assert len(indexer.suggest(documents[:2], settings=settings)) == 2
        assert "# Label autoencoder" in (result.folder / "README.md").read_text()


def test_one_document_is_too_few(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary([Concept("L", {"en": "l"})])) as indexer:
        indexer.add([Document("d", "text", labels=("L",))])
        with pytest.raises(TrainingError, match="at least 2"):
            indexer.train_label_ae(JOINT)


def test_settings_come_from_their_sections(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        config = indexer.config
        assert TrainingSettings.from_config(config) == TrainingSettings()
        assert TrainingSettings.from_config(config, "paper") == paper_settings()
        update_config(
            tmp_path / "c" / CONFIG_NAME,
            {
                "joint": {"latent": 24, "epochs": 3, "terms": 7, "documents": 9, "dropout": 0.1},
                "training": {"epochs": 11, "batch_size": 64, "dropout": 0.3, "seed": 4},
            },
        )
    with Indexer.open(tmp_path / "c") as indexer:
        joint = TrainingSettings.from_config(indexer.config)
        paper = TrainingSettings.from_config(indexer.config, "paper")
    assert (joint.recipe, joint.preset, joint.epochs, joint.terms) == ("joint", "24", 3, 7)
    assert (joint.documents, joint.searched_documents, joint.dropout) == (9, 9, 0.1)
    assert (paper.recipe, paper.preset, paper.epochs, paper.dropout) == ("paper", "auto", 11, 0.3)
    assert joint.batch_size == paper.batch_size == 64
    assert joint.seed == paper.seed == 4
