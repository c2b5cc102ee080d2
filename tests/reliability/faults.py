"""Errors of the disk and jumps of the clock below every command, and what they leave.

A shim for LD_PRELOAD (faults.c) lets the Nth write, sync, truncation, rename or read below a
collection fail. The command must end with one line, or succeed; the collection is in a state that
the command leads to, all of it if the command said so; it opens and is sound.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .state import BATCH, Commands, State, Step, check, create, write_edition

SOURCE = Path(__file__).with_name("faults.c")
# Codes of exit that say what happened: done, failed, done in part, try again.
EXITS = (0, 1, 3, 4)
A_DAY = 86_400
# Kilobytes: less than any index, less than the log of the database, less than the database.
LIMITS = (2, 40, 300)
LABEL_AE = ("--only", "label-ae", "--preset", "16", "--epochs", "1", "--device", "cpu")


@dataclass(frozen=True)
class Kind:
    """A kind of fault: which calls fail with which error, once or from then on."""

    name: str
    calls: str
    number: int
    times: int


READ = Kind("I/O error of a read", "i", errno.EIO, 1)
KINDS = (
    Kind("disk full", "wt", errno.ENOSPC, 0),
    Kind("disk full for a moment", "wt", errno.ENOSPC, 3),
    Kind("I/O error of a write", "wt", errno.EIO, 1),
    Kind("I/O error of a sync", "s", errno.EIO, 1),
    Kind("I/O errors from then on", "wstr", errno.EIO, 0),
    Kind("I/O error of a rename", "r", errno.EIO, 1),
    READ,
)


@dataclass(frozen=True)
class Fault:
    """One fault and what came of it."""

    kind: str
    command: str
    # The call that failed, of so many.
    call: int
    calls: int
    code: int
    stored: str
    line: str
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """For a file of results."""
        return asdict(self)


def compile_shim(folder: Path) -> Path | None:
    """The shim; None where there is no C compiler, or no LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    library = folder / "faults.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return library if done.returncode == 0 else None


class Bench:
    """A collection as it is before each fault, and the commands that meet one."""

    def __init__(self, folder: Path, shim: Path) -> None:
        self.folder, self.shim = folder, shim
        self.path, self._kept = folder / "disk" / "c", folder / "kept"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        state = create(self.path, build=True)
        edition = folder / "edition.tsv"
        write_edition(edition)
        files = folder / "files"
        files.mkdir()
        # Something to build, and something to compact.
        commands = Commands(self.path, files, state, 0)
        for step in (commands.add(2 * BATCH), commands.remove(2 * BATCH)):
            assert self.run(step).returncode == 0
        self.state = commands.state
        shutil.copytree(self.path, self._kept)
        self.steps = [*self._steps(files, edition)]

    def _steps(self, files: Path, edition: Path) -> Iterator[Step]:
        for number, verb in enumerate(("add", "learn", "remove")):
            commands = Commands(self.path, files / verb, self.state, number)
            (files / verb).mkdir()
            yield getattr(commands, verb)()
        path = str(self.path)
        yield Step(["build", path])
        yield Step(["build", path, "--representation", "lsa"])
        yield Step(["compact", path])
        yield Step(["backup", path, str(self.path.parent / "copy")])
        yield Step(["backup", path, str(self.path.parent / "copy.tar.gz")])
        yield Step(["train", path, *LABEL_AE])
        update = Step(["vocab", "update", path, str(edition)])
        assert self.run(update).returncode == 0
        yield Step(update.command, (self._state(),))
        self.restore()

    def _state(self) -> State:
        from labelkin import Indexer

        with Indexer.open(self.path) as indexer:
            return State.of(indexer)

    def restore(self) -> None:
        """Bring everything back to the state before faults."""
        for one in self.path.parent.iterdir():
            shutil.rmtree(one) if one.is_dir() else one.unlink()
        shutil.copytree(self._kept, self.path)

    def run(
        self, step: Step, environment: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command with the shim below it."""
        return subprocess.run(
            [sys.executable, "-m", "labelkin", *step.command],
            env={**os.environ, "LD_PRELOAD": str(self.shim), **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            **options,
        )

    def calls(self, step: Step, kind: Kind) -> int:
        """How many calls of a command could fail."""
        self.restore()
        counted = self.folder / "count"
        counted.unlink(missing_ok=True)
        done = self.run(step, {**self._environment(kind), "FAULT_COUNT": str(counted)})
        assert done.returncode == 0, done.stderr
        return max(int(line) for line in counted.read_text().split())

    def _environment(self, kind: Kind) -> dict[str, str]:
        return {
            "FAULT_FOLDER": str(self.path.parent.resolve()),
            "FAULT_CALLS": kind.calls,
            "FAULT_ERRNO": str(kind.number),
            "FAULT_FOR": str(kind.times),
        }

    def fault(self, step: Step, kind: Kind, call: int, calls: int) -> Fault:
        """Let a call of a command fail; what came of it."""
        self.restore()
        done = self.run(step, {**self._environment(kind), "FAULT_AT": str(call)})
        return self.judged(step, done, kind.name, call, calls)

    def judged(
        self,
        step: Step,
        done: subprocess.CompletedProcess[str],
        name: str,
        call: int = 0,
        calls: int = 0,
    ) -> Fault:
        """What came of a command; `problem` says if it is not as it must be."""
        command = " ".join(one for one in step.command if "/" not in one)
        lines = done.stderr.strip().splitlines()
        stored, problem = "", ""
        try:
            check_line(done)
            possible = [self.state, *step.states]
            if done.returncode == 0:
                possible = possible[-1:]
            place, _ = check(self.path, possible)
            stored = "all" if done.returncode == 0 else "some" if place else "nothing"
            self._check_copy(step, done.returncode)
            # Without the fault the same command does all that is left to do.
            again = self.run(step)
            is_refused = done.returncode == 0 and step.verb in ("backup", "remove")
            assert again.returncode in ((0, 1, 3) if is_refused or place else (0,)), again.stderr
            if step.verb != "remove" or not place:
                check(self.path, [self.state, *step.states][-1:])
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        line = next((one for one in reversed(lines) if one.startswith("error:")), "")
        shown = line.replace(str(self.path.parent), "…")
        return Fault(name, command, call, calls, done.returncode, stored, shown, problem)

    def _check_copy(self, step: Step, code: int) -> None:
        if step.verb != "backup":
            return
        copy = Path(step.command[2])
        assert copy.exists() == (code == 0)
        if copy.is_dir():
            check(copy, [self.state])


def check_line(done: subprocess.CompletedProcess[str]) -> None:
    """Assert that a command has succeeded, or has ended with one line that says why not."""
    assert done.returncode in EXITS, f"exit code {done.returncode}: {done.stderr[-500:]}"
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert "this should not happen" not in done.stderr, done.stderr[-500:]
    errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    # What was done in part may say why for each part that was not.
    if done.returncode != 3:
        assert len(errors) == (done.returncode in (1, 4)), done.stderr[-500:]


def spread(calls: int, count: int, choose: random.Random) -> list[int]:
    """So many different calls, the first and the last among them."""
    some = {1, calls} if count > 1 else {choose.randint(1, max(calls, 1))}
    rest = [one for one in range(1, calls + 1) if one not in some]
    with suppress(ValueError):
        some |= {*choose.sample(rest, min(max(count - len(some), 0), len(rest)))}
    return sorted(one for one in some if 1 <= one <= calls)


def faults(
    bench: Bench, count: int, kinds: Sequence[Kind] = KINDS, seed: int = 0
) -> Iterator[Fault]:
    """For every kind of fault and every command, so many calls that fail."""
    choose = random.Random(seed)
    for step in bench.steps:
        for kind in kinds:
            calls = bench.calls(step, kind)
            for call in spread(calls, count, choose):
                yield bench.fault(step, kind, call, calls)


def limit_faults(bench: Bench, limits: Sequence[int] = LIMITS) -> Iterator[Fault]:
    """Every command while no file may become larger than a limit, as on a disk that is full."""
    for step in bench.steps:
        for kilobytes in limits:
            bench.restore()
            most = (1024 * kilobytes, 1024 * kilobytes)
            done = bench.run(
                step, preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, most)
            )
            yield bench.judged(step, done, "limit of the size of files", kilobytes)


def clock_faults(bench: Bench, moments: Sequence[int] = (0, 5, 50)) -> Iterator[Fault]:
    """Every command while the clock jumps back a day, on files that are of tomorrow."""
    for step in bench.steps:
        for asked in moments:
            bench.restore()
            tomorrow = (bench.path / "documents.sqlite").stat().st_mtime + A_DAY
            for file in bench.path.rglob("*"):
                os.utime(file, (tomorrow, tomorrow))
            clock = {"FAULT_CLOCK": str(A_DAY), "FAULT_CLOCK_AT": str(asked)}
            done = bench.run(step, clock)
            fault = bench.judged(step, done, "clock jumps back a day", asked)
            if done.returncode:
                fault = Fault(**{**asdict(fault), "problem": fault.problem or done.stderr[-500:]})
            yield fault
