"""The benchmark of peers: what is repeated, reused, published and reported."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from benchmarks.peers.benchmark import Benchmark

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


def _benchmark(work: Path, data: str = "tibkat-en", **settings: Any) -> Benchmark:
    """A benchmark that has prepared a data set."""
    from benchmarks.peers.benchmark import Benchmark

    path = work / data / "data" / "data.json"
    path.parent.mkdir(parents=True)
    description = {
        "name": data,
        "language": "en",
        "sizes": {"train": 3, "dev": 2, "test": 2},
        "timed": {"many": 2, "few": 1},
        "settings": {"timed": "test", "sample": None},
        "fingerprint": "f",
    }
    path.write_text(json.dumps(description))
    return Benchmark(work, **settings)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _scored(*systems: str) -> dict[str, Any]:
    return {f"scores {name}": {"settings": None, "outcome": {"parts": {}}} for name in systems}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends orphans on Linux only")
def test_a_killed_benchmark_leaves_no_command_behind(tmp_path: Path) -> None:
    seen = tmp_path / "pid"
    sleeper = f"import os, time; open({str(seen)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys; from pathlib import Path; from benchmarks.peers.meter import Command, run; "
        f"run(Command([sys.executable, '-c', {sleeper!r}]), Path({str(tmp_path / 'log')!r}))"
    )
    benchmark = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    _wait(lambda: seen.exists() and seen.read_text() != "")
    benchmark.kill()
    benchmark.wait()
    _wait(lambda: not _runs(int(seen.read_text())))


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_named_peer_is_repeated_once_until_the_run_is_finished(tmp_path: Path) -> None:
    from benchmarks.peers.registry import PEERS

    benchmark = _benchmark(tmp_path)
    (data,) = benchmark.known_data()
    result = tmp_path / "tibkat-en" / "napkinxc" / "result.json"
    complete = _scored(*(one.name for one in PEERS["napkinxc"].systems(data)))
    _write(result, complete)
    benchmark._begin_again(PEERS["napkinxc"], data)
    assert not result.exists()
    # Measured again and interrupted on another data set: continued.
    _write(result, complete)
    benchmark._begin_again(PEERS["napkinxc"], data)
    assert result.exists()
    benchmark.finish()
    benchmark._begin_again(PEERS["napkinxc"], data)
    assert not result.exists()


def test_a_peer_without_systems_on_a_data_set_is_passed_over(tmp_path: Path) -> None:
    from benchmarks.peers.registry import PEERS

    benchmark = _benchmark(tmp_path)
    (data,) = benchmark.known_data()
    benchmark._begin_again(PEERS["mti"], data)
    benchmark.finish()


class _Scorer:
    """Counts what is measured."""

    measured = 0

    def scores(self, rankings: object, *, sees_dev: bool) -> dict[str, Any]:
        self.measured += 1
        return {"cuts": [], "parts": {}}


def test_scores_of_other_settings_or_threads_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from benchmarks.peers import benchmark as module
    from benchmarks.peers.meter import CommandError
    from benchmarks.peers.registry import PEERS

    scorer, settings, failing = _Scorer(), {"weight": 1}, []
    monkeypatch.setattr(module, "_scorer", lambda _: scorer)

    class Stub(type(PEERS["mti"])):  # type: ignore[misc]
        name = "stub"

        def systems(self, data: object) -> Any:
            return [module.System("stub", settings, ("stub",))]

        def parts(self, data: object) -> Any:
            return []

        def train(self, place: object, training: str) -> Any:
            if failing:
                raise CommandError("no")
            return []

    benchmark = _benchmark(tmp_path)
    (data,) = benchmark.known_data()
    for _ in range(2):
        benchmark._run_peer(Stub(), data)
    assert scorer.measured == 1
    settings["weight"] = 2
    benchmark._run_peer(Stub(), data)
    assert scorer.measured == 2
    # A step fails: the figures of other settings are not shown as if they were of these.
    failing.append(True)
    replace(benchmark, threads=2)._run_peer(Stub(), data)
    assert scorer.measured == 2
    assert not benchmark.is_complete(Stub(), data)
    assert benchmark.results(Stub(), data).failures() == {"train stub": "no"}
    failing.clear()
    replace(benchmark, threads=2)._run_peer(Stub(), data)
    assert scorer.measured == 3


def test_a_peer_whose_own_evaluation_fails_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.peers import benchmark as module
    from benchmarks.peers.meter import Command
    from benchmarks.peers.peer import OwnEvaluation
    from benchmarks.peers.registry import PEERS

    monkeypatch.setattr(module, "_scorer", lambda _: _Scorer())

    class Stub(type(PEERS["mti"])):  # type: ignore[misc]
        name = "stub"

        def systems(self, data: object) -> Any:
            return [module.System("stub")]

        def parts(self, data: object) -> Any:
            return []

        def own_evaluation(self, place: object, system: object) -> OwnEvaluation:
            return OwnEvaluation("test", Command([sys.executable, "-c", "raise ValueError"]), {})

    benchmark = _benchmark(tmp_path)
    (data,) = benchmark.known_data()
    benchmark._run_peer(Stub(), data)
    assert benchmark.is_complete(Stub(), data)
    assert list(benchmark.results(Stub(), data).failures()) == ["own stub"]


def _published(tmp_path: Path) -> Path:
    """A folder of published figures with all systems of a peer."""
    published = tmp_path / "published"
    _benchmark(published)
    variants = ("pecos-xr-linear", "pecos-xr-linear-log", "pecos-xr-linear-3")
    _write(published / "tibkat-en" / "pecos" / "result.json", _scored(*variants))
    return published


def test_an_interrupted_repetition_does_not_take_the_place_of_published_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published, benchmark = _published(tmp_path), _benchmark(tmp_path / "work")
    result = Path("tibkat-en", "pecos", "result.json")
    before = (published / result).read_text()
    _write(benchmark.work / result, _scored("pecos-xr-linear"))
    benchmark.publish(published)
    assert (published / result).read_text() == before
    assert "pecos-xr-linear-log" in capsys.readouterr().out


def test_a_sample_is_not_published(tmp_path: Path) -> None:
    published, benchmark = _published(tmp_path), _benchmark(tmp_path / "work")
    path = benchmark.work / "tibkat-en" / "data" / "data.json"
    description = json.loads(path.read_text())
    description["settings"]["sample"] = {"train": 300, "held_out": 50}
    _write(path, description | {"fingerprint": "of the sample"})
    before = {file: file.read_text() for file in published.rglob("*.json")}
    benchmark.publish(published)
    assert {file: file.read_text() for file in published.rglob("*.json")} == before


def test_the_page_tells_what_failed_from_what_was_not_run(tmp_path: Path) -> None:
    from benchmarks.peers.report import report

    benchmark = _benchmark(tmp_path / "work")
    _write(benchmark.work / "tibkat-en" / "data" / "result.json", _failed("counts"))
    _write(benchmark.work / "tibkat-en" / "annif" / "result.json", _failed("train mllm"))
    _write(benchmark.work / "tibkat-en" / "omikuji" / "result.json", _failed("environment"))
    page = report(benchmark, tmp_path / "figures")
    missing = page.partition("### Not measured")[2].partition("\n## ")[0]
    assert "- counts, which peers share: broken" in missing
    assert "- annif, train mllm: broken\n- annif-tfidf, annif-omikuji: not run yet" in missing
    assert "- omikuji, environment: broken\n- pecos-xr-linear" in missing


def _failed(step: str) -> dict[str, Any]:
    return {step: {"settings": None, "failed": "broken"}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "no peer 'nobody'; known: ours, omikuji"),
        (["--sample", "300"], "TRAIN:HELD_OUT, such as 3000:200, not '300'"),
        (["--sample", "0:50"], "not '0:50'"),
        (["--collection", "here"], "DATA=FOLDER, not 'here'"),
        (["--threads", "0"], "1 or more, not 0"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    from benchmarks.peers.__main__ import main

    work = tmp_path / "work"
    given = ["peers", *arguments, "--only-report", "--work", str(work)]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit):
        main()
    assert message in capsys.readouterr().err
    assert not work.exists()


def test_missing_data_of_one_set_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.peers import datasets
    from benchmarks.peers.__main__ import _run
    from benchmarks.peers.benchmark import Benchmark

    monkeypatch.setattr(datasets, "SHARED", tmp_path / "shared")
    failed = _run(Benchmark(tmp_path), ["mesh47k", "tibkat-en"], ["mti"])
    assert [one.partition(":")[0] for one in failed] == ["mesh47k", "tibkat-en"]
    assert "gnd-core-en.tsv.gz" in failed[1]


def test_the_page_says_which_speeds_are_of_earlier_models(tmp_path: Path) -> None:
    from benchmarks.peers.peer import System
    from benchmarks.peers.registry import PEERS
    from benchmarks.peers.report import Row

    benchmark = _benchmark(tmp_path)
    (data,) = benchmark.known_data()
    step = {"settings": None, "outcome": {"finished": "on Tuesday"}}
    _write(benchmark.place(PEERS["napkinxc"], data).folder / "result.json", {"train plt": step})
    row = Row(
        PEERS["napkinxc"],
        System("plt", {}, ("plt",)),
        benchmark.results(PEERS["napkinxc"], data),
    )
    assert not row.is_newer_than({"models": {"napkinxc plt": "on Tuesday"}})
    assert row.is_newer_than({"models": {"napkinxc plt": "on Monday"}})
