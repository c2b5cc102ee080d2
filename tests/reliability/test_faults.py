"""One fault below each command; `python -m tests.reliability faults` has hundreds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from .faults import KINDS, READ, Bench, check_line, clock_faults, compile_shim, limit_faults, spread
from .state import check

pytest.importorskip("faiss", reason="needs the extra `dense`")
SLOW = ("train", "lsa")


def compiled(folder: Path) -> Path:
    shim = compile_shim(folder)
    if shim is None:
        pytest.skip("needs Linux and a C compiler")
    return shim


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("faults")
    made = Bench(folder, compiled(folder))
    made.steps = [step for step in made.steps if not {*step.command} & {*SLOW}]
    return made


def test_calls_that_fail(bench: Bench) -> None:
    """Another kind of error for each command."""
    choose, failed = random.Random(0), 0
    for step, kind in zip(bench.steps, cycle(KINDS), strict=False):
        calls = bench.calls(step, kind)
        for call in spread(calls, 1, choose):
            fault = bench.fault(step, kind, call, calls)
            assert fault.problem == "", fault
            failed += fault.code == 1
    assert failed > 2


@pytest.mark.parametrize("verb", ["compact", "backup", "learn"])
def test_reads_that_fail(bench: Bench, verb: str) -> None:
    choose = random.Random(1)
    step = next(step for step in bench.steps if step.verb == verb)
    calls = bench.calls(step, READ)
    for call in spread(calls, 2, choose):
        fault = bench.fault(step, READ, call, calls)
        assert fault.problem == "", fault
        assert "restore it from a backup" not in fault.line


@pytest.mark.soak
def test_a_clock_that_jumps_back(bench: Bench) -> None:
    assert [one.problem for one in clock_faults(bench, (5,))] == [""] * len(bench.steps)


@pytest.mark.soak
def test_a_limit_of_the_size_of_files(bench: Bench) -> None:
    made = [*limit_faults(bench, (40,))]
    assert [one.problem for one in made] == [""] * len(bench.steps)
    # SQLite does not tell this from other errors of a disk.
    assert "what was stored is kept" in next(one.line for one in made if one.command == "add")


@pytest.mark.mount
def test_a_disk_that_is_read_only(tmp_path: Path, mounted: Callable) -> None:
    with mounted(tmp_path / "disk", "size=60m") as mount:
        bench = Bench(tmp_path, compiled(tmp_path))
        mount("remount", "ro")
        try:
            for step in bench.steps:
                if not {*step.command} & {*SLOW}:
                    done = bench.run(step)
                    check_line(done)
                    assert done.returncode == 1, step
                    check(bench.path, [bench.state])
        finally:
            mount("remount", "rw")


@pytest.mark.mount
def test_a_disk_that_is_full(tmp_path: Path, mounted: Callable) -> None:
    with mounted(tmp_path / "disk", "size=24m"):
        bench = Bench(tmp_path, compiled(tmp_path))
        for step in bench.steps:
            if {*step.command} & {*SLOW}:
                continue
            bench.restore()
            ballast = bench.path.parent / "ballast"
            with pytest.raises(OSError, match="No space"), ballast.open("wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            done = bench.run(step)
            ballast.unlink()
            fault = bench.judged(step, done, "disk full")
            assert fault.problem == "", fault
