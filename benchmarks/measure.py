"""Running a piece of work in a process of its own and measuring what it took."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
