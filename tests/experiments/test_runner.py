"""The whole runner on generated data: finished stages are reused after any interruption."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from labelkin import Indexer, read_corpus
from labelkin.evaluate import evaluate, parse_measure
from labelkin.exceptions import CollectionBusyError
from labelkin.experiments.models import ModelStage
from labelkin.experiments.runner import RunReport, missing, read_journal, run
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.store.locks import FileLock

from .small_grid import Silent, plan_of

Change = Callable[..., str]


@pytest.fixture
def copied(done: tuple[Path, RunReport], tmp_path: Path) -> Path:
    """A copy of the finished work folder, for one test."""
    return Path(shutil.copytree(done[0], tmp_path / "work"))


def test_every_stage_is_carried_out_once(done: tuple[Path, RunReport]) -> None:
    work, report = done
    titles = [stage.title for stage in report.made]
    assert len(titles) == len(set(titles)) == 34
    assert not report.reused
    assert {stage.kind for stage in report.made} == {
        "collection", "index", "neighbours", "fusion", "model", "measures", "details", "claims",
    }  # fmt: skip
    assert set(read_journal(work)) == {stage.fingerprint for stage in report.made}


def test_a_second_run_repeats_nothing(
    done: tuple[Path, RunReport], grid_file: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, first = done
    times = {path: path.stat().st_mtime_ns for path in (work / "measures").iterdir()}
    monkeypatch.setattr("labelkin.indexer.Indexer.open", None)
    again = run(plan_of(grid_file, work, data), Silent())
    assert not again.made
    assert len(again.reused) == len(first.made)
    assert times == {path: path.stat().st_mtime_ns for path in (work / "measures").iterdir()}


def test_a_change_repeats_only_dependent_stages(
    copied: Path, changed_grid: Change, data: Path
) -> None:
    grid = changed_grid("cuts = [0.50, 0.75]", "cuts = [0.50, 0.75, 0.60]")
    titles = [stage.title for stage in run(plan_of(grid, copied, data), Silent()).made]
    assert titles == [
        *(
            f"measures: tiny, {weighting}, dense, k = {k}, all documents"
            for weighting in ("difference", "square")
            for k in (3, 5)
        ),
        "details: medium, dense, all documents",
    ]


def test_unneeded_intermediate_results_may_be_deleted(
    copied: Path, grid_file: Path, data: Path
) -> None:
    for kind in ("collection", "index", "neighbours", "model"):
        shutil.rmtree(copied / kind)
    assert missing(plan_of(grid_file, copied, data))[0] == []


def test_a_lost_record_is_rebuilt_with_what_it_needs(
    copied: Path, grid_file: Path, data: Path
) -> None:
    lost = next((copied / "measures").glob("tiny--square--stems--k---4-*"))
    before = lost.read_text()
    lost.unlink()
    shutil.rmtree(copied / "neighbours")
    made = run(plan_of(grid_file, copied, data), Silent()).made
    assert [stage.title for stage in made] == [
        "neighbours: dev by stems, all documents",
        "neighbours: test by stems, all documents",
        "measures: tiny, square, stems, k = 4, all documents",
    ]
    assert lost.read_text() == before


def test_damaged_results_are_rebuilt(copied: Path, grid_file: Path, data: Path) -> None:
    for kind, content in (("measures", "{"), ("details", "[]")):
        next((copied / kind).iterdir()).write_text(content)
    made = run(plan_of(grid_file, copied, data), Silent()).made
    assert [stage.kind for stage in made] == ["measures", "details"]


def test_an_interrupted_run_is_resumed(tmp_path: Path, grid_file: Path, data: Path) -> None:
    work = tmp_path / "work"
    stopped = Silent(stop_at="fusion")
    with pytest.raises(KeyboardInterrupt):
        run(plan_of(grid_file, work, data), stopped)
    again = run(plan_of(grid_file, work, data), Silent())
    finished = stopped.begun[:-1]
    assert {stage.title for stage in again.reused} == set(finished)
    assert again.made[0].title == stopped.begun[-1]


KILLED = """
import sys
from pathlib import Path
import labelkin.autoencoder.training as training
training._CHECKPOINT_SECONDS = 0.02
from labelkin.experiments.grid import read_grid
from labelkin.experiments.plan import Plan
from labelkin.experiments.runner import run
class Silent:
    def begin(self, *_): pass
    def progress(self, *_): pass
    def end(self, *_): pass
grid, work, data = sys.argv[1:]
run(Plan(read_grid(grid), Path(work), Path(data)), Silent())
"""


def test_a_killed_training_is_resumed_from_its_checkpoint(
    tmp_path: Path, changed_grid: Change, data: Path
) -> None:
    grid = changed_grid("epochs = 2", "epochs = 60\npatience = 0")
    work = tmp_path / "work"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, grid, str(work), str(data)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        checkpoints = list(work.glob("model/*/checkpoint/checkpoint.json"))
        if checkpoints and '"epoch": 0' not in checkpoints[0].read_text():
            break
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    steps = json.loads(checkpoints[0].read_text())["steps"]
    assert steps > 0
    plan = plan_of(grid, work, data)
    todo, kept = missing(plan)
    assert [stage.kind for stage in kept].count("collection") == 1
    assert todo[0].kind == "model"
    epochs: list[int] = []
    model = next(stage for stage in todo if isinstance(stage, ModelStage))

    class Watching(Silent):
        def progress(self, done: int, total: int, note: str) -> None:
            if note.startswith("epoch "):
                epochs.append(int(note.split()[1].rstrip(",")))

    run(plan, Watching())
    info = model.info()
    assert info is not None
    assert info.training["epochs"] == 60
    assert min(epochs) > 1
    assert not (model.path / "checkpoint").exists()


def test_an_interrupted_training_names_no_other_command(
    copied: Path, changed_grid: Change, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt("interrupted; `labelkin train … --resume` continues")

    monkeypatch.setattr("labelkin.autoencoder.fitting.fit_label_model", interrupted)
    plan = plan_of(changed_grid("epochs = 2", "epochs = 3"), copied, data)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(plan, Silent())
    assert str(caught.value) == ""


def test_a_model_with_other_settings_is_not_reused(
    copied: Path, grid_file: Path, data: Path
) -> None:
    stage = plan_of(grid_file, copied, data).model(0, "tiny")
    assert stage.is_done()
    stage.settings = replace(stage.settings, dropout=0.5)
    assert not stage.is_done()


def test_values_are_those_of_the_indexer(
    done: tuple[Path, RunReport], grid_file: Path, data: Path
) -> None:
    plan = plan_of(grid_file, done[0], data)
    row = next(r for r in plan.rows if r.table == "basic" and r.group.k == 10)
    values = plan.measures(row.group).values(row.cell)
    documents = list(read_corpus(data / "test.jsonl").documents())
    with Indexer.open(plan.collection(0).path) as indexer:
        settings = Settings(knn=ScorerSettings(k=10))
        evaluation = replace(
            indexer.evaluate(documents, settings=settings, representation="stems"), ranked=None
        )
    measures = [parse_measure(name) for name in values["test"]]
    assert values["test"] == pytest.approx(evaluate(evaluation, measures), abs=1e-6)


def test_mix_is_that_of_the_indexer(
    done: tuple[Path, RunReport], grid_file: Path, data: Path, tmp_path: Path
) -> None:
    plan = plan_of(grid_file, done[0], data)
    folder = Path(shutil.copytree(plan.collection(0).path, tmp_path / "c"))
    shutil.copytree(plan.model(0, "tiny").path, folder / "models" / "label-ae")
    documents = list(read_corpus(data / "test.jsonl").documents())
    for row in plan.rows:
        if row.table not in ("mix-medium", "ranked") or row.group.k != 5:
            continue
        settings = Settings(method=row.cell.method, knn=ScorerSettings(k=5))
        count, threshold = ("mean", 0.0) if row.cell.cut == "count" else (None, row.cell.cut)
        settings = replace(
            settings,
            label_ae=ScorerSettings(
                k=5, weighting=row.group.weighting, count=None, threshold=threshold
            ),
            mix=replace(settings.mix, share=row.cell.share, count=count, threshold=threshold),
        )
        with Indexer.open(folder) as indexer:
            evaluation = replace(indexer.evaluate(documents, settings=settings), ranked=None)
        values = plan.measures(row.group).values(row.cell)["test"]
        measures = [parse_measure(name) for name in values]
        assert values == pytest.approx(evaluate(evaluation, measures), abs=1e-6), row


def test_a_part_of_the_collection_has_its_own_stages(
    copied: Path, grid_file: Path, data: Path
) -> None:
    report = run(plan_of(grid_file, copied, data, quick=True), Silent())
    assert not report.reused
    plan = plan_of(grid_file, copied, data, quick=True)
    assert plan.collection(60).record()["documents"] == 60
    assert len(missing(plan)[0]) == 0


def test_one_run_at_a_time(copied: Path, grid_file: Path, data: Path) -> None:
    lock = FileLock(copied / ".lock")
    with lock:
        assert lock.take()
        with pytest.raises(CollectionBusyError, match="another run"):
            run(plan_of(grid_file, copied, data), Silent())


def test_the_time_left_falls(tmp_path: Path, grid_file: Path, data: Path) -> None:
    observer = Silent()
    run(plan_of(grid_file, tmp_path / "work", data), observer)
    assert observer.left[0] > observer.left[-1] > 0
