from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from labelkin import Indexer
from labelkin.autoencoder.model import LabelModel
from labelkin.autoencoder.training_data import OutputSampling, batches, steps_of
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionBusyError, CollectionReadOnlyError, TrainingError
from labelkin.store.locks import FileLock
from labelkin.training_plan import TrainingObserver
from labelkin.vocab import Vocabulary

from .label_data import QUICK, data_of, topics

torch = pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin.autoencoder.checkpoint import CheckpointFolder, Position
from labelkin.autoencoder.optimisation import Schedule
from labelkin.autoencoder.training import Trainer, TrainingProgress, _reused_memory


def weights(trainer: Trainer) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in trainer.network.state_dict().items()}


def test_memory_is_reused_only_while_a_training_runs(monkeypatch):
    calls = []

    class Library:
        def mallopt(self, option, value):
            calls.append((option, value))

        def malloc_trim(self, _):
            calls.append("trimmed")

    monkeypatch.setattr("ctypes.CDLL", lambda _: Library())
    with pytest.raises(KeyboardInterrupt), _reused_memory():
        assert [value for _, value in calls] == [1 << 30, 1 << 30]
        raise KeyboardInterrupt
    assert calls[2:] == [(-3, 128 * 1024), (-1, 128 * 1024), "trimmed"]


def test_memory_of_other_c_libraries(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    with _reused_memory():
        pass


def test_training_fits_label_sets_with_a_pattern(tmp_path):
    trainer = Trainer(data_of(topics(400)), replace(QUICK, epochs=20), tmp_path)
    trained = trainer.run()
    first, best = trained.history[0], trained.history[trained.best_epoch - 1]
    assert best["validation_loss"] < first["validation_loss"] / 3
    assert best["MiF"] > 0.95


def test_the_same_seed_gives_the_same_weights(tmp_path):
    runs = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        trainer = Trainer(data_of(topics(100)), replace(QUICK, seed=seed), tmp_path / name)
        runs.append(trainer.run().tensors)
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert not np.array_equal(runs[0]["outputs.weight"], runs[2]["outputs.weight"])


def test_the_log_has_a_line_per_epoch(tmp_path):
    Trainer(data_of(topics(100)), QUICK, tmp_path).run()
    with (tmp_path / "training.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["epoch"] for line in lines] == ["1", "2", "3"]
    assert {"loss", "validation_loss", "MiF", "seconds"} <= set(lines[0])
    assert all(line["loss"] != line["validation_loss"] for line in lines)
    assert all(line["reconstruction_loss"] == line["validation_loss"] for line in lines)


@pytest.mark.parametrize("sampled_outputs", [0, 10])
def test_resumed_in_the_middle_it_ends_the_same(tmp_path, sampled_outputs, monkeypatch):
    settings = replace(QUICK, sampled_outputs=sampled_outputs)
    whole = Trainer(data_of(topics(200)), settings, tmp_path / "whole").run()

    class Interrupted(Trainer):
        def _step(self, *values):
            if self.position.steps == 12:
                # In the middle of a step; it takes effect after the step.
                signal.raise_signal(signal.SIGINT)
            return super()._step(*values)

    with pytest.raises(KeyboardInterrupt, match="--resume"):
        Interrupted(data_of(topics(200)), settings, tmp_path / "cut").run()
    trainer = Trainer(data_of(topics(200)), settings, tmp_path / "cut")
    trainer.resume()
    assert trainer.position.steps == 13
    resumed = trainer.run()
    for name, tensor in whole.tensors.items():
        np.testing.assert_array_equal(resumed.tensors[name], tensor)
    trainer.forget()
    assert not (tmp_path / "cut" / "checkpoint").exists()


def test_nothing_to_resume(tmp_path):
    with pytest.raises(TrainingError, match="nothing to resume"):
        Trainer(data_of(topics(100)), QUICK, tmp_path).resume()


def test_a_checkpoint_of_other_documents_is_refused(tmp_path):
    trainer = Trainer(data_of(topics(100)), QUICK, tmp_path)
    trainer.run()
    with pytest.raises(TrainingError, match="other settings or documents"):
        Trainer(data_of(topics(101)), QUICK, tmp_path).resume()


def test_a_damaged_checkpoint_is_one_line(tmp_path):
    Trainer(data_of(topics(100)), QUICK, tmp_path).run()
    (state,) = (tmp_path / "checkpoint").glob("state-*")
    state.write_bytes(state.read_bytes()[:100])
    with pytest.raises(TrainingError, match="without --resume"):
        Trainer(data_of(topics(100)), QUICK, tmp_path).resume()


def test_a_nan_loss_stops_training_and_keeps_the_checkpoint(tmp_path):
    trainer = Trainer(data_of(topics(200)), QUICK, tmp_path)

    original = trainer._step

    def step(rows, rate):
        if trainer.position.steps == 15:
            with torch.no_grad():
                trainer.network.dense2.weight[0, 0] = float("nan")
        return original(rows, rate)

    trainer._step = step  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match=r"nan in epoch 2, step 5; .* train --resume"):
        trainer.run()
    again = Trainer(data_of(topics(200)), QUICK, tmp_path)
    again.resume()
    assert all(np.isfinite(value).all() for value in weights(again).values())


def test_a_time_budget_ends_training(tmp_path):
    trainer = Trainer(
        data_of(topics(3000)), replace(QUICK, epochs=10_000, minutes=0.02, patience=0), tmp_path
    )
    started = time.monotonic()
    trained = trainer.run()
    assert trained.stopped == "time"
    assert time.monotonic() - started < 60
    assert trained.tensors


def test_time_that_is_up_between_epochs_adds_no_empty_one(tmp_path):
    settings = replace(QUICK, minutes=1e-9)
    trained = Trainer(data_of(topics(100)), settings, tmp_path).run()
    assert [entry["steps"] for entry in trained.history] == [1]
    assert trained.stopped == "time"


def test_a_time_budget_restarts_with_a_resume(tmp_path):
    trainer = Trainer(data_of(topics(100)), replace(QUICK, epochs=1), tmp_path)
    trainer.run()
    trainer.position.seconds = 3600
    trainer._seconds_before = 3600
    trainer._save()
    again = Trainer(data_of(topics(100)), replace(QUICK, minutes=30), tmp_path)
    again.resume()
    assert again.run().stopped == "epochs"
    assert again.position.seconds > 3600


def test_resumed_after_the_last_epoch_it_only_ends(tmp_path):
    settings = replace(QUICK, epochs=200, patience=2, learning_rate=0.01)
    whole = Trainer(data_of(topics(100)), settings, tmp_path).run()
    again = Trainer(data_of(topics(100)), settings, tmp_path)
    again.resume()
    assert len(again.run().history) == len(whole.history)


def test_interrupted_while_the_best_weights_are_written(tmp_path, monkeypatch):
    settings = replace(QUICK, epochs=6)
    trainer = Trainer(data_of(topics(200)), settings, tmp_path)
    write = CheckpointFolder._write

    def broken(self, name, tensors):
        if name.startswith("best-") and trainer.position.epoch == 3:
            raise KeyboardInterrupt
        write(self, name, tensors)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFolder, "_write", broken)
        with pytest.raises(KeyboardInterrupt):
            trainer.run()
    again = Trainer(data_of(topics(200)), settings, tmp_path)
    again.resume()
    assert again.run().tensors


def test_patience(tmp_path):
    settings = replace(QUICK, epochs=200, patience=2, learning_rate=0.01)
    trained = Trainer(data_of(topics(100)), settings, tmp_path).run()
    assert trained.stopped == "no gain"
    losses = [entry["validation_loss"] for entry in trained.history]
    assert len(losses) == max(trained.best_epoch, int(np.argmin(losses)) + 1) + 2


def test_the_best_epoch_has_the_best_score():
    position = Position()
    outcomes = []
    for loss, score in ((5.0, 0.0), (4.0, 0.0), (4.5, 0.2), (3.0, 0.1), (4.4, 0.2), (9.0, 0.1)):
        position.epoch += 1
        outcomes.append(position.is_best(loss, score))
        position.record(loss, score)
    assert outcomes == [True, True, True, False, True, False]
    assert (position.best_epoch, position.best_score, position.gained) == (5, 0.2, 5)


@pytest.mark.parametrize(
    ("sets", "message"),
    [([], "0 documents"), ([[1]], "1 document "), ([[], [1], []], "1 document ")],
)
def test_too_few_training_documents(sets, message):
    with pytest.raises(TrainingError, match=message):
        data_of(sets)


@pytest.mark.parametrize(
    "sets",
    [[[0], [0]], [[0], [0], [0]], [[n] for n in range(30)], [[], [1, 2], [], [2], [3]]],
    ids=["one label", "three alike", "each label once", "some without labels"],
)
def test_small_and_odd_collections(tmp_path, sets):
    trained = Trainer(data_of(sets), QUICK, tmp_path).run()
    assert all(np.isfinite(tensor).all() for tensor in trained.tensors.values())


def test_no_label_is_frequent_enough():
    with pytest.raises(TrainingError, match="min_frequency"):
        data_of([[n] for n in range(30)], min_frequency=2)


def test_rare_labels_are_left_out():
    data = data_of([[0, 1], [0], [0, 2]], min_frequency=2)
    assert data.columns.columns.tolist() == [0]
    labels, starts = data.batch(np.array([0, 1, 2]))
    assert (labels.tolist(), starts.tolist()) == ([0, 0, 0], [0, 1, 2, 3])


def test_every_document_comes_once_an_epoch():
    data = data_of(topics(320), held_out=0.0)
    epoch = list(batches(data.rows, 0, 32, 0))
    assert len(epoch) == steps_of(len(data.rows), 32)
    seen = np.concatenate(epoch)
    assert sorted(seen.tolist()) == data.rows.tolist()
    assert not np.array_equal(seen, np.concatenate(list(batches(data.rows, 1, 32, 0))))


def test_a_sample_has_frequent_and_own_labels():
    sampling = OutputSampling.of_size(1000, 100)
    columns, weights = sampling.draw(np.array([999, 3, 500]), np.random.default_rng(0))
    assert set(range(30)) | {500, 999} <= set(columns.tolist())
    assert np.all(np.diff(columns) > 0)
    assert weights[columns < 30].tolist() == [1.0] * 30
    # The weights of the sampled labels add up to the number of the others.
    assert weights[columns >= 30].sum() == pytest.approx(970)
    assert OutputSampling.of_size(1000, 0) is None
    assert OutputSampling.of_size(140, 100) is None


def test_the_rate_warms_up_and_falls():
    schedule = Schedule(1.0, 10)
    rates = [schedule.rate(step, step / 100) for step in range(101)]
    assert rates[0] == pytest.approx(0.1, abs=0.01)
    assert max(rates) == max(rates[9:12])
    assert rates[-1] == pytest.approx(0.02)


def test_training_again_replaces_the_model(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(200, 0))
        first = indexer.train_label_ae(replace(QUICK, epochs=1))
        folder = first.folder
        before = LabelModel(folder).checksum
        indexer.train_label_ae(replace(QUICK, epochs=1, seed=1))
        assert LabelModel(folder).checksum != before
        assert len(list(folder.glob("weights-*"))) == 1
        assert not (folder / "checkpoint").exists()
        assert (folder / "training.png").read_bytes().startswith(b"\x89PNG")
        assert "64 – 32 – 16 – 32 – 64" in (folder / "README.md").read_text()


def test_one_training_at_a_time(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(60, 0))
        folder = indexer.train_label_ae(replace(QUICK, epochs=1)).folder
        with FileLock(folder / ".training.lock") as lock:
            assert lock.take()
            with pytest.raises(CollectionBusyError, match="another process is training"):
                indexer.train_label_ae(replace(QUICK, epochs=1))


def test_a_collection_that_is_only_read_is_not_trained(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(60, 0))
    with (
        Indexer.open(tmp_path / "c", read_only=True) as reader,
        pytest.raises(CollectionReadOnlyError),
    ):
        reader.train_label_ae(QUICK)


def test_documents_added_while_neighbours_are_found(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        documents = list(demo_documents(80, 0))
        indexer.add(documents[:60])
        more = iter(documents[60:])

        class Adding(TrainingObserver):
            """Adds documents through another indexer after the first batch."""

            stages: ClassVar[list[str]] = []

            def stage(self, name: str, done: int, total: int) -> None:
                self.stages.append(name)
                with Indexer.open(tmp_path / "c") as other:
                    other.add(list(more))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("labelkin.neighbours.search.NeighbourSearch.batch", 20)
            report = indexer.train_label_ae(replace(QUICK, epochs=2), observer=Adding())
        assert report is not None
        # All of it is trained on the state of its beginning.
        assert report.info.data["documents"] + report.info.data["held_out"] == 60
        assert set(Adding.stages) == {"Finding neighbours"}
        assert indexer.info().documents == 80


def test_an_observer_is_told_of_every_epoch(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(60, 0))

        class Counting(TrainingObserver):
            epochs: ClassVar[set[int]] = set()

            def epoch(self, progress: TrainingProgress) -> None:
                self.epochs.add(progress.epoch)

        indexer.train_label_ae(QUICK, observer=Counting())
        assert Counting.epochs >= {1, 2, 3}


def test_no_documents_to_average(tmp_path):
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(60, 0))
        report = indexer.train_label_ae(replace(QUICK, epochs=1, averaged_documents=0))
        assert "predicted_MiF" not in report.validation


KILLED = """
import sys
from dataclasses import replace
from typing import ClassVar
from labelkin import Indexer
from labelkin.autoencoder.training_settings import paper_settings
import labelkin.autoencoder.training as training
training._CHECKPOINT_SECONDS = 0.05
settings = paper_settings(preset="64/32/16", epochs=40, batch_size=32, device="cpu", patience=0)
begun = []
run = training.Trainer.run
training.Trainer.run = lambda self, *w: begun.append(self.position.steps) or run(self, *w)
with Indexer.open(sys.argv[1]) as indexer:
    report = indexer.train_label_ae(settings, resume=len(sys.argv) > 2)
    print(report.info.training["epochs"], begun[0])
"""


def test_killed_and_resumed(tmp_path):
    path = tmp_path / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(300, 0))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", KILLED, str(path)]
    process = subprocess.Popen(command, env=environment)
    checkpoint = path / "models" / "label-ae" / "checkpoint" / "checkpoint.json"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    steps = json.loads(checkpoint.read_text())["steps"]
    assert steps > 0
    resumed = subprocess.run(
        [*command, "resume"], capture_output=True, text=True, env=environment, check=True
    )
    assert resumed.stdout.split() == ["40", str(steps)]
    assert not checkpoint.exists()
    assert LabelModel(path / "models" / "label-ae").info.training["epochs"] == 40
