"""What a command costs: wall time, CPU time and memory of its process tree.

The command is started by a small process of its own: a process counts the memory of the one that
it was forked from as its own peak.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NICENESS = 10
HOURS = 3600.0
# Libraries that would otherwise start as many threads as there are cores.
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
_LAST_BYTES = 4000


class CommandError(Exception):
    """A command that did not succeed; the message is one line."""


@dataclass(frozen=True)
class Cost:
    """Of a process and all its descendants; the peak is that of the largest process."""

    seconds: float
    cpu_seconds: float
    peak_megabytes: float

    def __add__(self, other: Cost) -> Cost:
        """The cost of both, one after the other."""
        return Cost(
            self.seconds + other.seconds,
            self.cpu_seconds + other.cpu_seconds,
            max(self.peak_megabytes, other.peak_megabytes),
        )


NOTHING = Cost(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Command:
    """A command line with what it needs in its environment."""

    arguments: Sequence[str | Path]
    variables: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


def run_all(commands: Sequence[Command], log: Path, limit: float = 12 * HOURS) -> Cost:
    """Run commands one after another; their cost in all."""
    total = NOTHING
    for command in commands:
        total += run(command, log, limit)
    return total


def run(command: Command, log: Path, limit: float = 12 * HOURS) -> Cost:
    """Run a command that has to succeed within `limit` seconds; its output is added to `log`."""
    line = [str(argument) for argument in command.arguments]
    with tempfile.TemporaryDirectory(prefix="meter-") as folder, log.open("ab") as output:
        result = Path(folder) / "cost.json"
        output.write(f"$ {' '.join(line)}\n".encode())
        output.flush()
        # Neither site-packages nor the user's settings: the starter has to be small.
        starter = [sys.executable, "-I", "-S", __file__, str(result), str(limit), *line]
        variables = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), **command.variables}
        subprocess.run(
            starter, stdout=output, stderr=output, env=variables, cwd=command.folder, check=False
        )
        report: dict[str, Any] = {"exit": "killed"}
        if result.exists():
            report = json.loads(result.read_text())
    if report["exit"] == "time":
        raise CommandError(f"{_name(line)} took more than {limit / HOURS:.3g} hours")
    if report["exit"] != 0:
        raise CommandError(f"{_name(line)} failed ({report['exit']}): {last_line(log)}")
    return Cost(report["seconds"], report["cpu_seconds"], report["peak_megabytes"])


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    with log.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - _LAST_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    # Progress bars return to the beginning of their line.
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines()]
    return next((line for line in reversed(lines) if line), "no output")


def _name(line: Sequence[str]) -> str:
    return " ".join([Path(line[0]).name, *line[1:4]])


def _measure(result: Path, limit: float, line: list[str]) -> None:
    """Run a command line in this process's stead and write what it cost."""
    import resource

    _end_with_parent()
    started = time.perf_counter()
    process = subprocess.Popen(line, preexec_fn=_as_child)
    try:
        end: int | str = process.wait(limit)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        end = "time"
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report = {
        "exit": end,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_megabytes": used.ru_maxrss / 1024,
    }
    result.write_text(json.dumps(report))


def _as_child() -> None:
    """Run with a low priority, and end with the process that waits."""
    os.nice(NICENESS)
    _end_with_parent()


def _end_with_parent() -> None:
    """Be killed when the parent ends: a killed benchmark must not leave a training behind."""
    import ctypes
    import signal

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    _measure(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:])
