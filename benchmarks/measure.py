"""Running a piece of work, or a command, in a process of its own and measuring what it took."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_SUBREAPER = 36
# Short commands are looked at more often than long ones.
_SOON, _LATER, _LONG = 0.05, 0.5, 10.0
_DISK_SECONDS = 2.0
# What a command has to end in good order after its time is up.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Measured:
    """What a call returned and what it cost."""

    result: Any
    seconds: float
    cpu_seconds: float
    peak_megabytes: float


def measure(function: Callable[..., Any], *arguments: Any) -> Measured:
    """Call `function` in a fresh process; peak memory is that process's alone."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_run, (function, arguments))


def _run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Measured:
    started, cpu = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return Measured(
        result,
        time.perf_counter() - started,
        time.process_time() - cpu,
        _peak_kilobytes() / 1024,
    )


def _peak_kilobytes() -> int:
    """The most memory this process has had; `ru_maxrss` would count its parent's as well."""
    return _status(os.getpid(), "VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@dataclass
class Costs:
    """What a command, or a part of it, took. Memory is in megabytes, disk in bytes.

    `tree` is the most that all of its processes had together, pages that several share or
    that are mapped from files included; `held` is the part that is no file and cannot be
    dropped; `main` is the most that the first process had (VmHWM).
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    tree: float = 0.0
    held: float = 0.0
    main: float = 0.0
    disk: int = 0


@dataclass(frozen=True)
class Ran:
    """What a command printed and cost; `code` is None if its time was up.

    A command with marks has parts: up to the first mark, up to the next one, and so on.
    """

    code: int | None
    output: str
    costs: Costs
    parts: dict[str, Costs]


def run(
    command: Sequence[str],
    *,
    seconds: float = float("inf"),
    folder: Path | None = None,
    marks: Mapping[str, Path] | None = None,
    last: str = "",
) -> Ran:
    """Run a command to its end, or for so many seconds, and watch its processes (Linux only).

    `folder` is the one whose size is watched. `marks` names files that the command
    writes when a part of it is done, in order; `last` is the name of the rest.
    """
    # Processes that outlive their parent become ours, so that their time is not lost.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            list(command), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        watch = _Watch(process.pid, folder, dict(marks or {}), last)
        code: int | None = None
        try:
            while not watch.is_over():
                if watch.elapsed() > seconds:
                    _end(process.pid, signal.SIGINT)
                    deadline = time.monotonic() + _PATIENCE
                    while not watch.is_over() and time.monotonic() < deadline:
                        time.sleep(_SOON)
                    break
                watch.sleep()
            else:
                code = watch.code
        finally:
            _end(process.pid, signal.SIGKILL)
            watch.finish()
            process.returncode = watch.code
        output.seek(0)
        return Ran(code, output.read(), watch.whole, watch.parts)


@dataclass
class _Watch:
    """Looks at the processes of a command from time to time."""

    pid: int
    folder: Path | None
    marks: dict[str, Path]
    last: str
    whole: Costs = field(default_factory=Costs)
    parts: dict[str, Costs] = field(default_factory=dict)
    code: int = 0

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._wall = time.time()
        self._begun = Costs()
        self._current = Costs()
        self._seen = {self.pid}
        self._cpu = 0.0
        self._disk_at = 0.0
        self._is_over = False

    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def sleep(self) -> None:
        time.sleep(_SOON if self.elapsed() < _LONG else _LATER)

    def is_over(self) -> bool:
        """Whether the first process has ended; takes a look otherwise."""
        if not self._is_over:
            self._look()
            ended, status, used = os.wait4(self.pid, os.WNOHANG)
            if ended:
                self._is_over = True
                self.code = os.waitstatus_to_exitcode(status)
                self._cpu += used.ru_utime + used.ru_stime
        return self._is_over

    def finish(self) -> None:
        """Collect what the last processes have used; all of them have been told to end."""
        deadline = time.monotonic() + _PATIENCE
        while not self.is_over() and time.monotonic() < deadline:
            time.sleep(_SOON)
        for pid in self._seen - {self.pid}:
            with suppress(ChildProcessError):
                _, _, used = os.wait4(pid, 0)
                self._cpu += used.ru_utime + used.ru_stime
        self._measure_disk()
        self.whole.seconds, self.whole.cpu_seconds = self.elapsed(), self._cpu
        if self.parts or not self.marks:
            self._close_part(self.last)

    def _look(self) -> None:
        pids = _tree(self.pid)
        self._seen |= set(pids)
        tree = held = 0.0
        for pid in pids:
            resident, anonymous = _memory(pid)
            tree, held = tree + resident, held + anonymous
        for costs in (self.whole, self._current):
            costs.tree, costs.held = max(costs.tree, tree), max(costs.held, held)
            costs.main = max(costs.main, _status(self.pid, "VmHWM") / 1024)
        if self.elapsed() - self._disk_at > _DISK_SECONDS:
            self._measure_disk()
        for name, path in list(self.marks.items()):
            if path.exists() and path.stat().st_mtime >= self._wall:
                del self.marks[name]
                self.whole.seconds = self.elapsed()
                self.whole.cpu_seconds = sum(map(_cpu_seconds, pids))
                self._close_part(name)
                # The largest amount begins anew.
                with suppress(OSError):
                    Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _close_part(self, name: str) -> None:
        part, self._current = self._current, Costs()
        part.seconds = self.whole.seconds - self._begun.seconds
        part.cpu_seconds = self.whole.cpu_seconds - self._begun.cpu_seconds
        self._begun = Costs(self.whole.seconds, self.whole.cpu_seconds)
        if name:
            self.parts[name] = part

    def _measure_disk(self) -> None:
        self._disk_at = self.elapsed()
        if self.folder is not None:
            used = folder_bytes(self.folder)
            for costs in (self.whole, self._current):
                costs.disk = max(costs.disk, used)


def folder_bytes(folder: Path) -> int:
    """The size of all files in a folder, which may change meanwhile."""
    total = 0
    for path in folder.rglob("*") if folder.is_dir() else [folder]:
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


@dataclass(frozen=True)
class Usage:
    """What one process has used so far: seconds of CPU, and megabytes as in `Costs.tree`."""

    pid: int
    parent: int
    cpu_seconds: float
    megabytes: float
    command: str


def usage(root: int) -> list[Usage]:
    """What a process and all that it has started have used; each without its children."""
    found = []
    for pid in _tree(root):
        fields = _stat(pid)
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            if fields:
                cpu = sum(map(int, fields[11:13])) / _TICKS
                found.append(Usage(pid, int(fields[1]), cpu, _memory(pid)[0], command))
    return found


def _end(pid: int, number: signal.Signals) -> None:
    """Send a signal to all processes that a command has started."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def _tree(root: int) -> list[int]:
    """A process and all that it has started, by their parents and by their session."""
    parents: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1]), int(fields[3])
    return [
        pid
        for pid, (_, session) in parents.items()
        if session == root or root in _ancestors(pid, parents)
    ]


def _ancestors(pid: int, parents: Mapping[int, tuple[int, int]]) -> set[int]:
    found: set[int] = set()
    while pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid][0]
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none for a process that has ended."""
    try:
        content = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return content.rpartition(")")[2].split()


def _cpu_seconds(pid: int) -> float:
    """What a process and the children that it has waited for have used."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / _TICKS if fields else 0.0


def _memory(pid: int) -> tuple[float, float]:
    """Megabytes of a process: its share of all pages, and of those that are in no file."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    values = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    return int(values.get("Pss", 0)) / 1024, int(values.get("Pss_Anon", 0)) / 1024


def _status(pid: int, key: str) -> int:
    """A value of /proc/PID/status in kilobytes; 0 for a process that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1])
    return 0
