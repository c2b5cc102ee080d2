"""Records per CPU-second of all systems in one run.

Every system labels many records and few, each time in a new process. What the two runs differ in
is the labelling: start-up and loading are in both. Systems take turns, so that a busy machine slows
all of them; of several rounds the least CPU time counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .data_folder import FEW, MANY
from .meter import Cost

TEXT, READY = "text", "ready"


@dataclass(frozen=True)
class Throughput:
    """Of one system, from the text on or from ready features.

    `start` is the CPU time of a process that labels few records, `peak` the memory of one that
    labels many.
    """

    records_per_cpu_second: float | None
    start: float
    peak_megabytes: float


def throughput(many: Sequence[Cost], few: Sequence[Cost], sizes: Mapping[str, int]) -> Throughput:
    """From the costs of several rounds."""
    most, least = (min(one.cpu_seconds for one in costs) for costs in (many, few))
    more = sizes[MANY] - sizes[FEW]
    # Too few records, or too noisy: no difference, no rate.
    rate = more / (most - least) if most > least and more > 0 else None
    peak = max(one.peak_megabytes for one in (*many, *few))
    return Throughput(rate, least, peak)


def of_rounds(
    rounds: Sequence[Mapping[str, Any]], sizes: Mapping[str, int]
) -> dict[str, dict[str, Throughput]]:
    """The throughput of every system: system → `text` or `ready` → throughput.

    A round has `SYSTEM/WAY/PART` → cost. Only what has succeeded in every round counts.
    """
    if not rounds:
        return {}
    done = [{key for key, cost in one.items() if "failed" not in cost} for one in rounds]
    common = set.intersection(*done)
    found: dict[str, dict[str, Throughput]] = {}
    for key in sorted(common):
        system, way, part = key.split("/")
        if part == MANY and f"{system}/{way}/{FEW}" in common:
            many, few = (
                [Cost(**one[f"{system}/{way}/{size}"]) for one in rounds] for size in (MANY, FEW)
            )
            found.setdefault(system, {})[way] = throughput(many, few, sizes)
    return found


def ratios(
    rates: Mapping[str, float | None], rows: Sequence[str], columns: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """How many times as fast the system of a row is as that of a column; None if unknown."""
    return {
        row: {column: _ratio(rates.get(row), rates.get(column)) for column in columns}
        for row in rows
    }


def _ratio(first: float | None, second: float | None) -> float | None:
    return first / second if first is not None and second else None
