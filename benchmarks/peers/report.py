"""results/peers.md from what is in the work folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import features
from .benchmark import Benchmark, machine
from .cuts import from_json
from .data_folder import DataFolder
from .datasets import DATA_SETS
from .meter import NOTHING, Cost
from .peer import Peer, System
from .registry import OURS, PEERS
from .results import Results
from .tables import ratio_table, table
from .throughput import READY, TEXT, Throughput, of_rounds

_FIRST = ("MiF", "P@5")
_MORE = ("MiP", "MiR", "MaF", "EBF", "P@1", "R@10", "nDCG@10", "PSP@5", "hF")
_BANDS = ("head", "torso", "tail")
# More than rounding.
_DIFFERENT = 5e-4


@dataclass(frozen=True)
class Row:
    """A system that has been measured."""

    peer: Peer
    system: System
    results: Results

    @property
    def name(self) -> str:
        """The name of the system."""
        return self.system.name

    @property
    def parts(self) -> dict[str, Any]:
        """The measures of each part."""
        parts: dict[str, Any] = self.results.outcome(f"scores {self.name}")["parts"]
        return parts

    def training(self) -> Cost | None:
        """What all its trainings cost; None if they were not done here."""
        total = NOTHING
        for training in self.system.trainings:
            outcome = self.results.outcome(f"train {training}") or {}
            if "cpu_seconds" not in outcome:
                return None
            total += Cost(*(outcome[key] for key in ("seconds", "cpu_seconds", "peak_megabytes")))
        return total if self.system.trainings else None


def report(benchmark: Benchmark) -> str:
    """The whole page."""
    return "\n".join(_page(benchmark)) + "\n"


def _page(benchmark: Benchmark) -> Iterator[str]:
    yield "# Peers"
    yield ""
    yield (
        "labelkin's methods beside the tools of the field, on the same records, split and machine. "
        "Made by `make bench-peers` (`make bench-peers PEER=omikuji` for one row); "
        f"{machine()}, {benchmark.threads} thread."
    )
    yield ""
    yield from _rules()
    for name in DATA_SETS:
        if (benchmark.work / name / "data" / "data.json").exists():
            yield from _data_set(benchmark, benchmark.data(name))
    yield from _peers(benchmark)


def _rules() -> Iterator[str]:
    yield (
        "- **Cuts.** Every system ranks 100 labels. Its list is cut by one threshold, by one "
        "count, or at the mean count of the record's 20 neighbours in labelkin's k-NN: what "
        "is best by MiF on dev. P@k, R@k and nDCG@k are of the ranking before the cut."
    )
    yield (
        "- **Labels.** Labels that the vocabulary lacks count as missed. Bands are labels with at "
        "least 1,000, 100 to 999, and fewer than 100 training records."
    )
    yield (
        "- **Features** of Omikuji, PECOS and napkinXC: TF-IDF of stems in at least "
        f"{features.LEAST_RECORDS} records; `-pairs` adds pairs of neighbouring words."
    )
    yield (
        "- **Costs.** Each step is a process of its own in the peer's environment; CPU time is "
        "that of its process tree. Records per CPU-second: two processes label many records and "
        "few; what they differ in is the labelling, *from the text* on or from *ready* features. "
        "Start is the CPU time of the process with few records."
    )


def rows(benchmark: Benchmark, data: DataFolder) -> list[Row]:
    """All systems that have been measured on a data set."""
    return [
        Row(peer, system, results)
        for peer in PEERS.values()
        for results in [benchmark.results(peer, data)]
        for system in peer.systems(data)
        if results.outcome(f"scores {system.name}") is not None
    ]


def _data_set(benchmark: Benchmark, data: DataFolder) -> Iterator[str]:
    yield ""
    yield f"## {data.name}"
    yield ""
    sizes = ", ".join(f"{part} {size:,}" for part, size in data.sizes.items())
    yield f"Records: {sizes}." + ("" if benchmark.sample is None else " **A sample, for trial.**")
    measured = rows(benchmark, data)
    if measured:
        yield from _quality(measured)
        yield from _bands(measured)
        yield from _costs(benchmark, data, measured)
        yield from _check(data, measured)
    failures = [
        f"- {peer.name}, {step}: {reason}"
        for peer in PEERS.values()
        for step, reason in benchmark.results(peer, data).failures().items()
    ]
    missing = [
        f"- {peer.name}: not run yet"
        for peer in PEERS.values()
        if peer.systems(data)
        and not any(row.peer is peer for row in measured)
        and not benchmark.results(peer, data).failures()
    ]
    if failures or missing:
        yield from ("", "### Not measured", "", *failures, *missing)


def _quality(measured: Sequence[Row]) -> Iterator[str]:
    """Measures of all parts: the most important ones side by side, then all others."""
    parts = list(dict.fromkeys(part for row in measured for part in row.parts))
    shown = [part for part in parts if part != "dev"]
    yield from ("", "### Quality", "")
    header = [f"{part} {measure}" for part in shown for measure in _FIRST]
    yield from table(
        ["system", "cut", "dev MiF", *header],
        [
            [
                row.name,
                str(from_json(row.results.outcome(f"scores {row.name}")["cuts"])[0]),
                _number(_value(row, "dev", "MiF")),
                *(_number(_value(row, part, name)) for part in shown for name in _FIRST),
            ]
            for row in measured
        ],
    )
    for part in shown:
        yield from ("", f"More measures of {part}:", "")
        yield from table(
            ["system", *_MORE],
            [
                [row.name, *(_number(_value(row, part, name)) for name in _MORE)]
                for row in measured
                if part in row.parts
            ],
        )


def _bands(measured: Sequence[Row]) -> Iterator[str]:
    parts = list(dict.fromkeys(part for row in measured for part in row.parts if part != "dev"))
    yield from ("", "MiF by the frequency of labels:", "")
    yield from table(
        ["system", *(f"{part} {band}" for part in parts for band in _BANDS)],
        [
            [
                row.name,
                *(
                    _number(row.parts[part]["bands"][band]["MiF"]) if part in row.parts else ""
                    for part in parts
                    for band in _BANDS
                ),
            ]
            for row in measured
        ],
    )


def _costs(benchmark: Benchmark, data: DataFolder, measured: Sequence[Row]) -> Iterator[str]:
    path = benchmark.work / data.name / "throughput.json"
    stored = json.loads(path.read_text()) if path.exists() else {"rounds": []}
    speeds = of_rounds(stored["rounds"], data.description["timed"])
    yield from ("", "### Costs", "")
    yield from table(
        [
            "system",
            "training, CPU-s",
            "training, wall s",
            "training, peak MB",
            "size, MB",
            "start, CPU-s",
            "labelling, peak MB",
            "records/CPU-s from the text",
            "records/CPU-s, ready features",
        ],
        [_cost_row(row, speeds.get(row.name, {})) for row in measured if row.peer.runs],
    )
    shared = benchmark.shared_results(data)
    fitted = [
        f"`{name}` {cost['cpu_seconds']:.0f}"
        for name in features.LENGTHS
        if (cost := shared.outcome(f"fit-features {name}")) is not None
    ]
    if fitted:
        yield ""
        yield (
            "Features of the training records, which Omikuji, PECOS and napkinXC need besides, "
            f"took these CPU-seconds: {', '.join(fitted)}."
        )
    rates = {
        name: ways[TEXT].records_per_cpu_second for name, ways in speeds.items() if TEXT in ways
    }
    ours = [row.name for row in measured if row.peer.name == OURS and row.name in rates]
    others = [row.name for row in measured if row.peer.name != OURS and row.name in rates]
    if ours and others:
        yield ""
        yield (
            f"How many times as fast each method is as each peer, from the text on, in one run "
            f"({stored['started']}, {len(stored['rounds'])} rounds):"
        )
        yield ""
        yield from ratio_table(rates, ours, others)


def _cost_row(row: Row, speeds: dict[str, Throughput]) -> list[str]:
    training = row.training()
    text, ready = speeds.get(TEXT), speeds.get(READY)
    trained = ["", "", ""]
    if training is not None:
        trained = [
            f"{training.cpu_seconds:,.0f}",
            f"{training.seconds:,.0f}",
            f"{training.peak_megabytes:,.0f}",
        ]
    elif row.system.trainings:
        trained = ["given", "", ""]
    size = row.results.outcome(f"size {row.name}")
    return [
        row.name,
        *trained,
        "" if size is None else f"{size:,.0f}",
        "" if text is None else f"{text.start:.1f}",
        "" if text is None else f"{text.peak_megabytes:,.0f}",
        _rate(text),
        _rate(ready),
    ]


def _rate(speed: Throughput | None) -> str:
    if speed is None or speed.records_per_cpu_second is None:
        return ""
    return f"{speed.records_per_cpu_second:,.0f}"


def _check(data: DataFolder, measured: Sequence[Row]) -> Iterator[str]:
    """What peers' own evaluations say of the same predictions."""
    lines = []
    for row in measured:
        own = row.results.outcome(f"own {row.name}")
        if own is None:
            continue
        for measure, theirs in own.items():
            ours = _value(row, data.timed, measure)
            if ours is not None:
                note = row.peer.evaluation_note or "not explained"
                reason = note if abs(theirs - ours) > _DIFFERENT else ""
                lines.append([row.name, measure, f"{theirs:.4f}", f"{ours:.4f}", reason])
    if lines:
        yield from ("", f"### Our measures and the peers' own, on {data.timed}", "")
        yield from table(["system", "measure", "its own", "ours", ""], lines)


def _peers(benchmark: Benchmark) -> Iterator[str]:
    """Packages and settings."""
    yield from ("", "## Settings", "")
    for peer in PEERS.values():
        pinned = ", ".join(
            package for one in peer.installs for package in one if not package.startswith("-")
        )
        yield f"- **{peer.name}**{f' ({pinned})' if pinned else ''}. {peer.note}".rstrip()
        for name in DATA_SETS:
            if not (benchmark.work / name / "data" / "data.json").exists():
                continue
            for system in peer.systems(benchmark.data(name)):
                settings = ", ".join(f"{key} {value}" for key, value in system.settings.items())
                if settings:
                    yield f"  - `{system.name}`, {name}: {settings}"


def _value(row: Row, part: str, measure: str) -> float | None:
    measures: dict[str, float] = row.parts.get(part, {}).get("measures", {})
    return measures.get(measure)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
