"""results/peers.md from the figures of a benchmark, in its work folder or published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import features, plots
from .benchmark import Benchmark, machine, systems
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
# A step that has waited so much longer than it has worked was held up by other work.
_HELD_UP = 1.5
# The part and measure of the plots, and the data sets of the one over collection sizes.
_PLOTTED, _PLOTTED_MEASURE = "l1000-clean", "MiF"
_GROWTH = ("mesh5k", "mesh15k", "mesh47k")
# What a person has to say of the figures.
READING = "reading.md"


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

    def is_newer_than(self, speeds: dict[str, Any]) -> bool:
        """Whether it was trained again after rounds of throughput."""
        return any(
            (self.results.outcome(f"train {training}") or {}).get("finished", "")
            != speeds["models"].get(f"{self.peer.name} {training}", "")
            for training in self.system.trainings
        )


def report(benchmark: Benchmark, figures: Path) -> str:
    """The whole page; its plots are written to `figures`, a folder beside it."""
    return "\n".join(_page(benchmark, figures)) + "\n"


def _page(benchmark: Benchmark, figures: Path) -> Iterator[str]:
    yield "# Peers"
    yield ""
    yield (
        "labelkin's methods beside the tools of the field, on the same records, split and machine. "
        "Made by `make bench-peers` (`make bench-peers PEER=omikuji` for one row) from the figures "
        f"in `results/peers/`; {_machines(benchmark)}, {_threads(benchmark)}."
    )
    reading = benchmark.work / READING
    if reading.exists():
        yield from ("", reading.read_text(encoding="utf-8").rstrip("\n"))
    yield from ("", "## How it was measured", "")
    yield from _rules()
    for data in benchmark.known_data():
        yield from _data_set(benchmark, data)
    yield from _plots(benchmark, figures)
    yield from _peers(benchmark)


def _trainings(benchmark: Benchmark) -> dict[tuple[str, str], dict[str, Any]]:
    """What is known of the trainings that were run, by data set and name."""
    return {
        (data.name, training): outcome
        for data in benchmark.known_data()
        for peer in PEERS.values()
        for results in [benchmark.results(peer, data)]
        for training in results.names("train")
        if "machine" in (outcome := results.outcome(f"train {training}"))
    }


def _threads(benchmark: Benchmark) -> str:
    """With how many threads the trainings were run."""
    used = sorted({int(one.get("threads", 1)) for one in _trainings(benchmark).values()} or {1})
    return "1 thread" if used == [1] else f"{' or '.join(map(str, used))} threads"


def _machines(benchmark: Benchmark) -> str:
    """What the trainings were run on, and which of them were run on another machine."""
    by_training = {key: str(one["machine"]) for key, one in _trainings(benchmark).items()}
    if not by_training:
        return machine()
    (usual, _), *others = Counter(by_training.values()).most_common()
    exceptions = []
    for other, _ in others:
        elsewhere = [key for key, value in by_training.items() if value == other]
        exceptions.append(f"{', '.join(_named(elsewhere, by_training))}: {other}")
    return f"{usual} ({'; '.join(exceptions)})" if exceptions else usual


def _named(chosen: Sequence[tuple[str, str]], known: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Trainings by name, or data sets if all of their trainings are chosen."""
    known = list(known)
    for name in dict.fromkeys(data for data, _ in chosen):
        mine = [training for data, training in chosen if data == name]
        if len(mine) == sum(data == name for data, _ in known):
            yield name
        else:
            yield from (f"{training} of {name}" for training in mine)


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
        "- **Features** of Omikuji, PECOS, napkinXC and the classic methods: TF-IDF of stems in at "
        f"least {features.LEAST_RECORDS} records; `-pairs` adds pairs of neighbouring words, "
        "`-log` has 1 + log of the frequency in the record for the frequency itself."
    )
    yield (
        "- **Costs.** Each step is a process of its own in the peer's environment; CPU time is "
        "that of its process tree. Records per CPU-second: two processes label many records and "
        "few; what they differ in is the labelling, *from the text* on or from *ready* features. "
        "Start is the CPU time of the process with few records. Wall time is left out where it is "
        f"more than {_HELD_UP} times the CPU time: other work has held the step up."
    )


def rows(benchmark: Benchmark, data: DataFolder) -> list[Row]:
    """All systems that have been measured on a data set."""
    return [
        Row(peer, system, results)
        for peer in PEERS.values()
        for results in [benchmark.results(peer, data)]
        for system in systems(peer, data)
        if results.outcome(f"scores {system.name}") is not None
    ]


def _data_set(benchmark: Benchmark, data: DataFolder) -> Iterator[str]:
    yield ""
    yield f"## {data.name}"
    yield ""
    sizes = ", ".join(f"{part} {size:,}" for part, size in data.sizes.items())
    yield f"Records: {sizes}." + (" **A sample, for trial.**" if data.is_sample else "")
    measured = rows(benchmark, data)
    if measured:
        yield from _quality(measured)
        yield from _bands(measured)
        yield from _behind(measured)
        yield from _costs(benchmark, data, measured)
        yield from _check(data, measured)
    missing = list(_missing(benchmark, data, measured))
    if missing:
        yield from ("", "### Not measured", "", *missing)


def _missing(benchmark: Benchmark, data: DataFolder, measured: Sequence[Row]) -> Iterator[str]:
    """What has failed, what was not run and what cannot be run, with the reasons."""
    names = {row.name for row in measured}
    for step, reason in benchmark.shared_results(data).failures().items():
        yield f"- {step}, which peers share: {reason}"
    for peer in PEERS.values():
        failures = benchmark.results(peer, data).failures()
        for step, reason in failures.items():
            yield f"- {peer.name}, {step}: {reason}"
        waiting = [
            one.name
            for one in systems(peer, data)
            if one.name not in names
            and not any(one.name in step.split() for step in failures)
            and not any(f"train {training}" in failures for training in one.trainings)
        ]
        if waiting and not {"environment", "prepare"} & failures.keys():
            yield f"- {', '.join(waiting)}: not run yet"
        for name, reason in peer.unable.items():
            if DATA_SETS[data.name].measures(name):
                yield f"- {name}: left out. {reason}."


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
    # A small data set has no frequent labels.
    columns = [
        (part, band)
        for part in parts
        for band in _BANDS
        if any(_cell(row, part, f"MiF {band}") > 0 for row in measured)
    ]
    yield from ("", "MiF by the frequency of labels:", "")
    yield from table(
        ["system", *(f"{part} {band}" for part, band in columns)],
        [
            [
                row.name,
                *(
                    _number(_cell(row, part, f"MiF {band}")) if part in row.parts else ""
                    for part, band in columns
                ),
            ]
            for row in measured
        ],
    )


def _behind(measured: Sequence[Row]) -> Iterator[str]:
    """Where a peer's figure is above that of labelkin's best method."""
    ours = [row for row in measured if row.peer.name == OURS]
    others = [row for row in measured if row.peer.name != OURS]
    if not ours or not others:
        return
    cells = []
    for part in dict.fromkeys(part for row in others for part in row.parts if part != "dev"):
        for name in (*_FIRST, *_MORE, *(f"MiF {band}" for band in _BANDS)):
            best = max((_cell(row, part, name), row.name) for row in ours)
            ahead = [
                (value, row.name) for row in others if (value := _cell(row, part, name)) > best[0]
            ]
            cells += [
                [part, name, f"{one} {value:.3f}", f"{best[1]} {best[0]:.3f}"]
                for value, one in sorted(ahead, reverse=True)
            ]
    yield from ("", "Where a peer is above the best of labelkin's methods:", "")
    if cells:
        yield from table(["part", "measure", "peer", "labelkin"], cells)
    else:
        yield "Nowhere in these tables."


def _cell(row: Row, part: str, name: str) -> float:
    """A measure of a part, or of a band of it; -1 if there is none."""
    band = name.removeprefix("MiF ")
    if part not in row.parts:
        return -1.0
    if band in _BANDS:
        return float(row.parts[part]["bands"][band]["MiF"])
    value = _value(row, part, name)
    return -1.0 if value is None else value


def _costs(benchmark: Benchmark, data: DataFolder, measured: Sequence[Row]) -> Iterator[str]:
    stored, speeds = _speeds(benchmark, data)
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
            "Features of the training records, which Omikuji, PECOS, napkinXC and the classic "
            f"methods need besides, took these CPU-seconds: {', '.join(fitted)}."
        )
    earlier = [row.name for row in measured if row.name in speeds and row.is_newer_than(stored)]
    if earlier:
        yield ""
        yield (
            f"Speeds, start and memory of these are of models that were trained before those of "
            f"this page: {', '.join(earlier)}."
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


def _speeds(
    benchmark: Benchmark, data: DataFolder
) -> tuple[dict[str, Any], dict[str, dict[str, Throughput]]]:
    """The stored rounds of throughput, and what they come to."""
    path = benchmark.work / data.name / "throughput.json"
    stored = json.loads(path.read_text()) if path.exists() else {"rounds": []}
    return stored, of_rounds(stored["rounds"], data.description["timed"])


def _cost_row(row: Row, speeds: dict[str, Throughput]) -> list[str]:
    training = row.training()
    text, ready = speeds.get(TEXT), speeds.get(READY)
    trained = ["", "", ""]
    if training is not None:
        trained = [
            f"{training.cpu_seconds:,.0f}",
            f"{training.seconds:,.0f}" if not _held_up(training) else "",
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


def _held_up(cost: Cost) -> bool:
    return cost.seconds > _HELD_UP * cost.cpu_seconds


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
        for data in benchmark.known_data():
            for system in systems(peer, data):
                settings = ", ".join(f"{key} {value}" for key, value in system.settings.items())
                if settings:
                    yield f"  - `{system.name}`, {data.name}: {settings}"


def _plots(benchmark: Benchmark, figures: Path) -> Iterator[str]:
    """Quality against what it costs, and against the number of training records."""
    known = {data.name: data for data in benchmark.known_data()}
    if _GROWTH[-1] not in known:
        return
    data = known[_GROWTH[-1]]
    measured = [row for row in rows(benchmark, data) if row.peer.runs]
    ours = [row.name for row in measured if row.peer.name == OURS]
    quality = {row.name: _cell(row, _PLOTTED, _PLOTTED_MEASURE) for row in measured}
    trained = {row.name: cost.cpu_seconds for row in measured if (cost := row.training())}
    rates = {
        name: ways[TEXT].records_per_cpu_second
        for name, ways in _speeds(benchmark, data)[1].items()
        if TEXT in ways
    }
    growth: dict[str, dict[int, float]] = {}
    for one in (known[name] for name in _GROWTH if name in known):
        for row in rows(benchmark, one):
            if row.peer.runs and DATA_SETS[_GROWTH[0]].measures(row.name):
                value = _cell(row, _PLOTTED, _PLOTTED_MEASURE)
                growth.setdefault(row.name, {})[one.sizes["train"]] = value
    label = f"{_PLOTTED_MEASURE} on {_PLOTTED}"
    figures.mkdir(parents=True, exist_ok=True)
    drawn = []
    for values, title, axis in (
        (trained, "training", "CPU-seconds of training"),
        (rates, "throughput", "records per CPU-second, from the text on"),
    ):
        points = {name: (x, quality[name]) for name, x in values.items() if x and name in quality}
        if points:
            path = figures / f"peers-{title}.png"
            plots.draw_points(points, ours, (axis, label), path)
            drawn.append((f"{label} against {axis}", path))
    lines = {name: values for name, values in growth.items() if len(values) > 1}
    if lines:
        path = figures / "peers-size.png"
        plots.draw_growth(lines, ours, ("training records", label), path)
        drawn.append((f"{label} against the number of training records", path))
    if drawn:
        yield from ("", "## Plots")
    for title, path in drawn:
        yield from ("", f"![{title}]({figures.name}/{path.name})")


def _value(row: Row, part: str, measure: str) -> float | None:
    measures: dict[str, float] = row.parts.get(part, {}).get("measures", {})
    return measures.get(measure)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
