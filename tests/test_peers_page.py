"""results/peers.md is what the figures in results/peers say."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results" / "peers"


def test_the_page_is_made_from_the_published_figures(tmp_path: Path) -> None:
    page = tmp_path / "results" / "peers.md"
    page.parent.mkdir()
    command = [sys.executable, "-m", "benchmarks.peers", "--only-report"]
    subprocess.run(
        [*command, "--work", tmp_path / "work", "--report", page],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    is_same = page.read_text() == (ROOT / "results" / "peers.md").read_text()
    assert is_same, "make it again: python -m benchmarks.peers --only-report"
    assert list((page.parent / "figures").glob("peers-*.png"))


def test_a_run_of_some_peers_keeps_the_figures_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.peers.benchmark import Benchmark

    published, work = tmp_path / "published", tmp_path / "work"
    shutil.copytree(PUBLISHED, published)
    for name in ("data/data.json", "omikuji/result.json"):
        (work / "mesh47k" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PUBLISHED / "mesh47k" / name, work / "mesh47k" / name)
    shared = {"fit-features words": {"settings": "s", "outcome": {"cpu_seconds": 1.0}}}
    (work / "mesh47k" / "data" / "result.json").write_text(json.dumps(shared))
    speeds = json.loads((PUBLISHED / "mesh47k" / "throughput.json").read_text())
    speeds["rounds"] = [
        {job: cost for job, cost in one.items() if job.startswith("omikuji")}
        for one in speeds["rounds"]
    ]
    (work / "mesh47k" / "throughput.json").write_text(json.dumps(speeds))
    Benchmark(work).publish(published)
    assert _content(published / "mesh47k" / "data" / "result.json") == (
        _content(PUBLISHED / "mesh47k" / "data" / "result.json") | shared
    )
    for path in PUBLISHED.rglob("*.json"):
        name = path.relative_to(PUBLISHED)
        if name.parts != ("mesh47k", "data", "result.json"):
            assert _content(published / name) == _content(path), name
    # A run with all systems takes their place.
    speeds = json.loads((PUBLISHED / "mesh47k" / "throughput.json").read_text())
    speeds["started"] = "now"
    (work / "mesh47k" / "throughput.json").write_text(json.dumps(speeds))
    Benchmark(work).publish(published)
    assert _content(published / "mesh47k" / "throughput.json") == speeds


def _content(path: Path) -> object:
    return json.loads(path.read_text())
