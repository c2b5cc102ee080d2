"""The joint autoencoder: torch and NumPy, training, and starting from a model."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin.autoencoder.architecture import (
    Architecture,
    JointArchitecture,
    architecture_from_json,
    latent_size,
)
from labelkin.autoencoder.ballots import cast_ballots, log_frequencies
from labelkin.autoencoder.joint import JointAutoencoder, rare_frequency
from labelkin.autoencoder.model import LabelModel, ModelInfo, save_model
from labelkin.autoencoder.training_data import TrainingData, TrainingNeighbours, TrainingTexts
from labelkin.exceptions import ConfigError, ModelDamagedError, TrainingError

from .joint_data import JOINT, joint_data, named_of
from .label_data import label_sets_of, topics

torch = pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder.joint_network import JointNetwork
from labelkin.autoencoder.joint_task import JointTask
from labelkin.autoencoder.training import Trainer, make_task

CPU = torch.device("cpu")


class Small:
    """A trained network and the model that was saved of it."""

    def __init__(self, data: TrainingData, folder: Path, **changes: Any) -> None:
        self.data = data
        trainer = Trainer(data, replace(JOINT, **changes), folder)
        trained = trainer.run()
        assert isinstance(trainer.network, JointNetwork)
        self.network = trainer.network
        info = ModelInfo(
            trained.architecture,
            tuple(f"L{n}" for n in range(data.labels)),
            "v",
            0,
            data={"documents": len(data.rows), "held_out": len(data.held_out)},
        )
        save_model(folder, info, trained.tensors, "card")
        self.model = LabelModel(folder)
        self.autoencoder = JointAutoencoder(self.model)
        # The best weights, and the tables with half the digits, as they are stored.
        weights = {
            name: torch.from_numpy(np.array(value))
            for name, value in self.model.tensors().items()
            if name not in ("words", "idf")
        }
        self.network.load_state_dict(weights)
        self.network.eval()

    def ballots(self, places: list[int], near: int = 60, named: Any = None) -> Any:
        neighbours, texts = self.data.neighbours, self.data.texts
        assert neighbours is not None
        assert texts is not None
        at = np.array(places, dtype=np.int64)
        return cast_ballots(
            neighbours.near[at, :near],
            neighbours.weights[at, :near],
            texts.named.taken(at) if named is None else named,
            self.data.columns,
            self.data.label_sets,
        )

    def by_torch(self, ballots: Any, texts: Any) -> np.ndarray:
        with torch.no_grad():
            return self.network.decode(ballots, texts).numpy()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(joint_data(160), tmp_path_factory.mktemp("joint"))


@pytest.fixture(scope="module")
def wordless(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """Trained on texts without a word that is frequent enough."""
    data = joint_data(60, [[f"w{n}"][: n % 2] for n in range(60)])
    return Small(data, tmp_path_factory.mktemp("wordless"), epochs=1)


def test_numpy_equals_torch(small):
    places = list(range(30))
    ballots, texts = small.ballots(places), small.data.texts.weighted[:30]
    expected = small.by_torch(ballots, texts)
    # What differs between documents is much larger than what is allowed here.
    assert np.ptp(expected, axis=0).min() > 0.01
    np.testing.assert_allclose(
        small.autoencoder.decode(ballots, small.autoencoder.tally(ballots), texts),
        expected,
        atol=1e-5,
    )
    for some in ([5, 20, 7], [0], [39, 0], []):
        columns = np.array(some, dtype=np.int64)
        logits = small.autoencoder.decode(ballots, small.autoencoder.tally(ballots), texts, columns)
        np.testing.assert_allclose(logits, expected[:, columns], atol=1e-5)


def test_votes_and_weights_are_those_of_torch(small):
    ballots = small.ballots([3, 4, 5])
    with torch.no_grad():
        weights, votes = small.network.weights(ballots), small.network.votes(ballots)
    np.testing.assert_allclose(small.autoencoder.weights(ballots), weights, atol=1e-6)
    np.testing.assert_allclose(small.autoencoder.votes(ballots), votes, atol=1e-6)
    np.testing.assert_allclose(small.autoencoder.weights(ballots).sum(1), 1, atol=1e-6)
    np.testing.assert_allclose(votes.sum(), 5 * 3, atol=1e-4)


@pytest.mark.parametrize("what", ["words", "neighbours", "places", "names", "anything"])
def test_documents_that_lack_something(small, what):
    places = list(range(12))
    near, named, texts = 60, None, small.data.texts.weighted[:12]
    ballots = small.ballots(places)
    if what in ("words", "anything"):
        texts = small.autoencoder.texts([["unheard"], [], *([["t5"]] * 10)])
        assert np.diff(texts.indptr)[:2].tolist() == [0, 0]
    if what in ("neighbours", "anything"):
        near = 0
    if what in ("names", "anything"):
        named = named_of([[] for _ in places])
    if what == "places":
        rows = np.full((12, 60), -1, dtype=np.int64)
        rows[3, :2] = small.data.neighbours.near[3, :2]
        closeness = np.where(rows >= 0, 0.3, 0).astype(np.float32)
        ballots = cast_ballots(
            rows,
            closeness,
            small.data.texts.named.taken(np.array(places)),
            small.data.columns,
            small.data.label_sets,
        )
    else:
        ballots = small.ballots(places, near, named)
    if near == 0:
        # torch sees empty places where NumPy sees none.
        filled = cast_ballots(
            np.full((12, 60), -1),
            np.zeros((12, 60), dtype=np.float32),
            small.data.texts.named.taken(np.array(places)) if named is None else named,
            small.data.columns,
            small.data.label_sets,
        )
        expected = small.by_torch(filled, texts)
    else:
        expected = small.by_torch(ballots, texts)
    found = small.autoencoder.decode(ballots, small.autoencoder.tally(ballots), texts)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_no_terms_at_all(wordless):
    assert wordless.model.words() == []
    assert wordless.model.info.architecture.terms == 0
    texts = wordless.autoencoder.texts([["w1"], []])
    assert texts.shape == (2, 0)
    ballots = wordless.ballots([0, 1])
    np.testing.assert_allclose(
        wordless.autoencoder.decode(ballots, wordless.autoencoder.tally(ballots), texts),
        wordless.by_torch(ballots, texts),
        atol=1e-5,
    )


def test_texts_are_counted_as_in_training(small):
    words = [["t5", "text", "w3"], ["text"], ["t10", "t10", "unheard"]]
    terms = small.data.texts.terms
    expected = terms.columns.weighted(terms.columns.counts(words), pairs=True)
    assert small.model.words() == terms.words
    np.testing.assert_array_equal(small.autoencoder.texts(words).toarray(), expected.toarray())


def test_empty_places_have_no_weight(small):
    """However far the neighbours are: closeness 0 is still closer than nobody."""
    rows = np.full((1, 60), -1, dtype=np.int64)
    rows[0, :2] = small.data.rows[:2]
    ballots = cast_ballots(
        rows,
        np.zeros((1, 60), dtype=np.float32),
        named_of([[]]),
        small.data.columns,
        small.data.label_sets,
    )
    with torch.no_grad():
        weights = small.network.weights(ballots).numpy()
    for one in (weights, small.autoencoder.weights(ballots)):
        assert one[0, :2].sum() == pytest.approx(1)
        assert not one[0, 2:].any()


def test_labels_that_the_model_lacks_have_votes_and_names_alone(small):
    """Without its last ten labels the model scores the others by the same corrections."""
    columns = small.data.columns
    ballots = small.ballots([0, 1, 2, 3])
    whole = small.autoencoder.corrections(ballots, small.autoencoder.votes(ballots))
    fewer = JointAutoencoder(small.model)
    fewer._labels = known = len(columns) - 10
    documents, labels, logits = fewer.decode_new(ballots, fewer.tally(ballots))
    new = ballots.labels >= known
    assert 0 < len(labels) < len(new)
    assert (documents.tolist(), labels.tolist()) == (
        ballots.documents[new].tolist(),
        ballots.labels[new].tolist(),
    )
    # All labels of the small collection are of about the same frequency as a rare one.
    expected = whole[new] + small.model.tensor("rare")
    assert np.corrcoef(logits, expected)[0, 1] > 0.99


def test_a_new_label_counts_as_rare(wordless):
    """In a small collection as well, where rare labels have a positive feature."""
    expected = log_frequencies(np.zeros(1, dtype=np.int64), 60)[0]
    assert expected > 0.3
    assert rare_frequency(wordless.model) == pytest.approx(expected)


def test_a_joint_model_has_its_own_format(small, tmp_path):
    content = json.loads((small.model.folder / "model.json").read_text())
    assert content["format_version"] == 2
    assert content["architecture"]["recipe"] == "joint"
    assert small.model.is_joint
    assert architecture_from_json(content["architecture"]) == small.model.info.architecture
    # An older description does not name its recipe.
    old = architecture_from_json({"first": 4, "second": 3, "latent": 2, "activation": "relu"})
    assert old == Architecture(4, 3, 2, "relu")


@pytest.mark.parametrize("name", ["terms.weight", "inputs.weight", "outputs.weight", "words"])
def test_a_tensor_that_is_missing(small, tmp_path, name):
    tensors = small.model.tensors()
    del tensors[name]
    save_model(tmp_path, small.model.info, tensors, "card")
    with pytest.raises(ModelDamagedError, match="train the model again"):
        autoencoder = JointAutoencoder(LabelModel(tmp_path))
        ballots = small.ballots([0])
        autoencoder.decode(ballots, autoencoder.tally(ballots), autoencoder.texts([["text"]]))


def test_the_size_of_the_latent_space():
    assert latent_size("48", 10, 10) == 48
    assert latent_size("auto", 17_561, 43_000) == 512
    assert latent_size("auto", 3, 4) == 32
    sizes = [latent_size("auto", 10_000, documents) for documents in (100, 1000, 10_000, 100_000)]
    assert sizes == sorted(sizes)
    with pytest.raises(ConfigError, match="--recipe paper"):
        latent_size("large", 10, 10)
    for size in ("0", "-3", "1000000000"):
        with pytest.raises(ConfigError, match="1 to 10,000"):
            latent_size(size, 10, 10)
    with pytest.raises(ConfigError, match="at least 1"):
        JointArchitecture(0, 10)
    with pytest.raises(ConfigError, match=r"not in \[0, 1\)"):
        JointArchitecture(8, 10, vote_dropout=1.0)


def test_parameters_are_counted(small):
    count = sum(weight.numel() for weight in small.network.parameters())
    assert small.model.info.architecture.trainable_parameters(small.data.labels) == count


def test_it_learns_from_neighbours_and_texts(tmp_path):
    data = joint_data(300)
    trained = Trainer(data, replace(JOINT, epochs=12, learning_rate=0.01), tmp_path).run()
    first, best = trained.history[0], trained.history[trained.best_epoch - 1]
    assert best["validation_loss"] < first["validation_loss"]
    assert best["MiF"] > 0.95
    assert 0 < best["threshold"] < 1


def test_the_same_seed_gives_the_same_weights(tmp_path):
    data = joint_data(100)
    runs = [
        Trainer(data, replace(JOINT, seed=seed), tmp_path / name).run().tensors
        for name, seed in (("a", 0), ("b", 0), ("c", 1))
    ]
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert not np.array_equal(runs[0]["outputs.weight"], runs[2]["outputs.weight"])


class Interrupted(Trainer):
    def _step(self, *values: Any) -> float:
        if self.position.steps == 9:
            # In the middle of a step; it takes effect after the step.
            signal.raise_signal(signal.SIGINT)
        return super()._step(*values)


@pytest.mark.parametrize("sampled_outputs", [0, 10])
def test_resumed_in_the_middle_it_ends_the_same(tmp_path, sampled_outputs):
    settings = replace(JOINT, sampled_outputs=sampled_outputs)
    whole = Trainer(joint_data(120), settings, tmp_path / "whole").run()
    with pytest.raises(KeyboardInterrupt, match="--resume"):
        Interrupted(joint_data(120), settings, tmp_path / "cut").run()
    trainer = Trainer(joint_data(120), settings, tmp_path / "cut")
    trainer.resume()
    assert trainer.position.steps == 10
    resumed = trainer.run()
    assert {"rare", "frequencies", "words", "idf"} < set(whole.tensors)
    for name, tensor in whole.tensors.items():
        np.testing.assert_array_equal(resumed.tensors[name], tensor, err_msg=name)


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    data = joint_data(60)
    Trainer(data, replace(JOINT, epochs=1), tmp_path).run()
    words = [[f"t{n % 4}", "other", "text"] for n in range(60)]
    texts = data.texts
    changed = {
        "documents": joint_data(61),
        "words": joint_data(60, words),
        "neighbours": joint_data(60, near=5),
        "names": replace(data, texts=replace(texts, named=named_of([[0]] * 60)) if texts else None),
    }
    for what, other in changed.items():
        with pytest.raises(TrainingError, match="other settings or documents"):
            Trainer(other, replace(JOINT, epochs=1), tmp_path).resume()
            pytest.fail(what)
    with pytest.raises(TrainingError, match="other settings or documents"):
        Trainer(data, replace(JOINT, epochs=1, preset="32"), tmp_path).resume()
    Trainer(data, replace(JOINT, epochs=1), tmp_path).resume()


def test_it_is_not_trained_without_neighbours(tmp_path):
    data = replace(joint_data(60), neighbours=None)
    with pytest.raises(TrainingError, match="neighbours and texts"):
        Trainer(data, JOINT, tmp_path)


def test_few_documents_have_known_neighbours(tmp_path):
    data = joint_data(60)

    def limited(rows: Any) -> TrainingData:
        assert data.neighbours is not None
        assert data.texts is not None
        at = np.searchsorted(data.neighbours.rows, rows)
        neighbours = TrainingNeighbours(rows, data.neighbours.near[at], data.neighbours.weights[at])
        texts = TrainingTexts(data.texts.terms, data.texts.weighted[at], data.texts.named.taken(at))
        return replace(data, neighbours=neighbours, texts=texts)

    # None of them is held out: validated on those that are there.
    trained = Trainer(limited(data.rows[:20]), replace(JOINT, epochs=1), tmp_path).run()
    assert trained.history[0]["validation_loss"] > 0
    with pytest.raises(TrainingError, match=r"only 1 document .* \[joint\]"):
        Trainer(limited(np.union1d(data.rows[:1], data.held_out)), JOINT, tmp_path)


ODD = {
    "two documents": ([[0], [0]], [["a"], ["b"]]),
    "one label": ([[0]] * 20, None),
    "three alike": ([[0], [0], [0]], [["a", "a"]] * 3),
    "each label once": ([[n] for n in range(30)], None),
    "some without labels": ([[], [1, 2], [], [2], [3]], [["a"]] * 5),
    "no text": (topics(20), [[]] * 20),
}


@pytest.mark.parametrize(("sets", "words"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("near", [8, 0], ids=["neighbours", "nobody"])
def test_small_and_odd_collections(tmp_path, sets, words, near):
    trained = Trainer(joint_data(sets, words, near=near), JOINT, tmp_path).run()
    assert all(np.isfinite(tensor).all() for tensor in trained.tensors.values())


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_sampled_outputs_fit_as_well(tmp_path, precision):
    data = joint_data(300)
    settings = replace(
        JOINT, epochs=12, learning_rate=0.01, sampled_outputs=12, precision=precision
    )
    trainer = Trainer(data, settings, tmp_path)
    assert [id(table) for table in trainer.task.lazy_tables] == [id(trainer.network.outputs.weight)]
    trained = trainer.run()
    assert max(entry["MiF"] for entry in trained.history) > 0.9


def test_a_sample_of_all_labels_is_the_whole_loss(small):
    from labelkin.autoencoder.network import OutputSample

    task = make_task(small.data, JOINT, CPU)
    assert isinstance(task, JointTask)
    batch = task.prepare(small.data.rows[:20])
    labels = small.data.labels
    everything = OutputSample(torch.arange(labels), torch.ones(labels))
    small.network.eval()
    with torch.no_grad():
        whole, sampled = small.network(batch), small.network(batch, everything)
    assert sampled.item() == pytest.approx(whole.item(), rel=1e-6)


def test_the_first_predictions_are_the_frequencies(small):
    network = make_task(small.data, JOINT, CPU).network
    chances = torch.sigmoid(network.outputs.bias.detach()).numpy()
    documents = len(small.data.rows) + len(small.data.held_out)
    np.testing.assert_allclose(chances, small.data.frequencies / documents, atol=0.01)


def test_own_labels_are_targets_only():
    """Nothing that a document is decoded from changes with its own labels."""
    data = joint_data([[n % 7, 7 + n % 5] for n in range(40)])
    task = make_task(data, JOINT, CPU)
    assert isinstance(task, JointTask)
    row = int(data.rows[3])
    batch = task.prepare(np.array([row]))
    assert row not in data.neighbours.near[data.neighbours.rows == row]
    others = [[n % 7, 7 + n % 5] if n != row else [30] for n in range(40)]
    other = make_task(replace(data, label_sets=label_sets_of(others)), JOINT, CPU)
    again = other.prepare(np.array([row]))
    assert again.targets.labels.tolist() != batch.targets.labels.tolist()
    for name in ("documents", "labels", "shares", "named", "pairs", "voters", "neighbours"):
        np.testing.assert_array_equal(
            getattr(again.ballots, name), getattr(batch.ballots, name), err_msg=name
        )
    # A neighbour's ballots do change.
    voter = int(data.neighbours.rows[(data.neighbours.near == row).any(1)][0])
    before, after = (one.prepare(np.array([voter])).ballots for one in (task, other))
    assert len(before.pairs) != len(after.pairs)
