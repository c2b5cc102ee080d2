from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from labelkin import (
    Indexer,
    RerankTrainingSettings,
    TrainingObserver,
    TrainingSettings,
    Vocabulary,
)
from labelkin.autoencoder.training_settings import paper_settings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionBusyError
from labelkin.store.models import training_lock
from labelkin.training_plan import NEIGHBOURS_A_SECOND, TrainingPlan

if TYPE_CHECKING:
    from labelkin.autoencoder.fitting import AutoencoderReport
    from labelkin.autoencoder.training import TrainingProgress

PLAN = TrainingPlan(
    documents=43_178,
    headings=17_561,
    held_out=6000,
    unseen=6000,
    label_ae=TrainingSettings(epochs=8),
    rerank=RerankTrainingSettings(linear=False),
)


def test_more_takes_longer() -> None:
    fewer = replace(PLAN, documents=10_000)
    assert 0 < fewer.label_ae_seconds() < PLAN.label_ae_seconds()
    assert 0 < fewer.rerank_seconds() < PLAN.rerank_seconds()
    assert replace(PLAN, given=5000).rerank_seconds() > PLAN.rerank_seconds()
    linear = replace(PLAN, rerank=RerankTrainingSettings(linear=True))
    assert linear.rerank_seconds() > PLAN.rerank_seconds()
    assert replace(PLAN, unseen=0).label_ae_seconds() > PLAN.label_ae_seconds()


def test_each_fold_takes_a_training_but_no_search() -> None:
    one, three = (replace(PLAN, folds=folds).rerank_seconds() for folds in (1, 3))
    assert one == PLAN.rerank_seconds()
    searching = (PLAN.documents - PLAN.unseen) / NEIGHBOURS_A_SECOND
    assert three - one == pytest.approx(2 * (PLAN.label_ae_seconds() - searching))
    # An autoencoder that has seen the first fold is of no use there.
    seen = [replace(PLAN, folds=folds, unseen=0).rerank_seconds() for folds in (0, 1)]
    assert seen[1] > seen[0]


def test_a_time_budget_is_kept() -> None:
    short = replace(PLAN, label_ae=paper_settings(minutes=1, averages=False))
    assert short.label_ae_seconds() == 60


def test_what_is_not_trained_takes_no_time() -> None:
    nothing = replace(PLAN, label_ae=TrainingSettings(epochs=0), rerank=None)
    assert nothing.label_ae_seconds() == nothing.rerank_seconds() == 0


class Intruder(TrainingObserver):
    """Changes the collection while a training goes on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.stages: list[str] = []

    def stage(self, name: str, done: int, total: int) -> None:
        # A training begins with the state that has been indexed.
        if name in (*self.stages, "Indexing"):
            return
        self.stages.append(name)
        with Indexer.open(self._path) as other:
            some = list(other.documents())
            # Every document again, under its own id and with other labels, and new ones.
            swapped = zip(some, [*some[7:], *some[:7]], strict=True)
            other.add(
                [replace(one, title=one.title + ".", labels=two.labels) for one, two in swapped]
            )
            other.add([replace(one, id=f"{name} {one.id}") for one in some[:20]])
            other.remove([some[3].id])


def test_changes_during_a_training_do_not_reach_it(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    for name in ("calm", "busy"):
        with Indexer.create(tmp_path / name, Vocabulary(demo_concepts(0)), language="en") as made:
            made.add(demo_documents(240, 0))
    label_ae = TrainingSettings(preset="8", epochs=2, batch_size=32, device="cpu")
    rerank = RerankTrainingSettings(documents=30, rounds=5, threads=1)
    intruder = Intruder(tmp_path / "busy")
    reports = []
    for name, observer in (("calm", None), ("busy", intruder)):
        with Indexer.open(tmp_path / name) as indexer:
            reports.append(indexer.train(label_ae=label_ae, rerank=rerank, observer=observer))
    assert len(intruder.stages) > 3
    calm, busy = reports
    assert calm.rerank is not None
    assert busy.rerank is not None
    assert "autoencoder" in busy.rerank.info.groups
    assert busy.rerank.info.calibration == calm.rerank.info.calibration
    assert (busy.rerank.score, busy.rerank.votes) == (calm.rerank.score, calm.rerank.votes)
    for kind in ("ranker", "statistics"):
        names = [
            [path.name for path in (tmp_path / name / "models" / "rerank").glob(f"{kind}-*")]
            for name in ("calm", "busy")
        ]
        assert names[0] == names[1]


class Rival(TrainingObserver):
    """Tries to train the reranker in the middle of another training, while epochs are reported."""

    def __init__(self, path: Path, settings: RerankTrainingSettings) -> None:
        self._path = path
        self._settings = settings
        self.problems: list[str] = []

    def epoch(self, progress: TrainingProgress) -> None:
        with Indexer.open(self._path) as other:
            try:
                other.train(label_ae=False, rerank=self._settings)
            except CollectionBusyError as error:
                self.problems.append(str(error))


def test_one_training_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as made:
        made.add(demo_documents(240, 0))
    label_ae = TrainingSettings(preset="8", epochs=2, batch_size=32, device="cpu")
    rerank = RerankTrainingSettings(documents=30, rounds=5, linear=False, threads=1)
    rival = Rival(tmp_path / "c", rerank)
    with Indexer.open(tmp_path / "c") as indexer:
        report = indexer.train(label_ae=label_ae, rerank=rerank, observer=rival)
    assert report.rerank is not None
    assert rival.problems
    assert {*rival.problems} == {
        f"{tmp_path / 'c' / 'models' / 'rerank'}: another process is training"
    }
    # Neither is the autoencoder trained for nothing.
    started: list[str] = []
    with (
        training_lock(tmp_path / "c" / "models" / "rerank"),
        Indexer.open(tmp_path / "c") as indexer,
        pytest.raises(CollectionBusyError),
    ):
        observer = TrainingObserver()
        observer.epoch = lambda _: started.append("epoch")  # type: ignore[method-assign]
        indexer.train(label_ae=label_ae, rerank=rerank, observer=observer)
    assert not started


class InterruptingFolds(TrainingObserver):
    """Presses Ctrl+C when the autoencoder is trained again for a fold of the reranker."""

    is_trained = False

    def trained_label_ae(self, report: AutoencoderReport) -> None:
        self.is_trained = True

    def epoch(self, progress: TrainingProgress) -> None:
        if self.is_trained:
            signal.raise_signal(signal.SIGINT)


def test_an_interrupted_reranker_is_trained_alone(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as made:
        made.add(demo_documents(240, 0))
    label_ae = TrainingSettings(preset="8", epochs=2, batch_size=32, device="cpu")
    rerank = RerankTrainingSettings(documents=90, rounds=5, linear=False, threads=1)
    with Indexer.open(tmp_path / "c") as indexer:
        with pytest.raises(KeyboardInterrupt, match="--only rerank` does the rest"):
            indexer.train(label_ae=label_ae, rerank=rerank, observer=InterruptingFolds())
        assert indexer.train(label_ae=False, rerank=rerank).rerank is not None


def test_a_damaged_reranker_is_no_failure_of_the_autoencoder(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    with Indexer.create(tmp_path / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(60, 0))
        damaged = indexer.runtime.models.folder / "rerank" / "model.json"
        damaged.parent.mkdir(parents=True)
        damaged.write_text("{")
        label_ae = TrainingSettings(preset="8", epochs=1, device="cpu")
        report = indexer.train(label_ae=label_ae, rerank=False)
    assert report.label_ae is not None
    assert not report.outdated_reranker
