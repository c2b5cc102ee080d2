"""What every step costs as a collection grows to 1.7 million records, and what stops at 37 million.

python benchmarks/million.py --work FOLDER                  # run all steps at all sizes, report
python benchmarks/million.py --work FOLDER run --sizes 10000,100000 --steps add,build,info
python benchmarks/million.py --work FOLDER publish report   # what there is so far, as Markdown

Needs ../shared/data and Linux. Each step is a `labelkin` command in a new process. Its result is
in FOLDER/million.json as soon as it is there: an interrupted run goes on with the first step that
is missing. A step that fails, or takes longer than `--step-minutes`, is recorded as such, steps
that need it are left out, and `--retry` runs it again. `--epochs` shortens the training of the
label autoencoder, for a trial. `publish` copies the figures of all steps that are done to
results/speed, from where benchmarks/speed.py takes `section` into results/speed.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelkin import read_corpus
from measure import Costs, Ran, folder_bytes, run

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data" / "yso"
LANGUAGES = ("fi", "en")
RECORDS = 1_709_153
SIZES = (10_000, 100_000, 1_000_000, RECORDS)
LARGE = 1_000_000
ANNOTATED = {"large": 100_000, "small": 2_000}
CHANGED = 10_000
MEDLINE = 37_000_000
MACHINE_GIGABYTES = 64
# How many times as long as a title a text with an abstract is.
TEXT = 10
TITLE = "Renewable energy and the environmental awareness of young people in Finland"
METHODS = ("knn", "label-ae", "rerank")
COLD_STARTS = 3
ATTEMPTS = 3
FIGURE = "speed-scale.png"
PUBLISHED = ROOT / "results" / "speed"


# Records: a sample of both files that depends on line numbers only.


def line_keys(first: int, count: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A random number for each line (splitmix64), by its number in both files."""
    keys = np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    mixed: np.ndarray[Any, np.dtype[np.uint64]] = keys ^ (keys >> np.uint64(31))
    return mixed


def source_lines(language: str) -> Iterator[str]:
    with gzip.open(SHARED / f"yso-finna-{language}.tsv.gz", "rt", encoding="utf-8") as file:
        yield from file


@dataclass(frozen=True)
class Records:
    """The records of one size, in files of one folder.

    Samples are nested: the records with the smallest keys are in all of them. Those
    are annotated; those with the largest keys are changed and removed.
    """

    folder: Path
    size: int

    @property
    def annotated(self) -> int:
        return ANNOTATED["large" if self.size >= LARGE else "small"]

    @property
    def changed(self) -> int:
        return min(CHANGED, self.size // 10)

    def corpus(self, language: str) -> Path:
        return self.folder / f"yso-finna-{language}.tsv"

    def write(self) -> None:
        """Write all files, unless they are there."""
        if (self.folder / "complete").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        counts = [sum(1 for _ in source_lines(language)) for language in LANGUAGES]
        firsts = [0, counts[0]]
        keys = np.concatenate([line_keys(*one) for one in zip(firsts, counts, strict=True)])
        ranks = np.empty(len(keys), dtype=np.int64)
        ranks[np.argsort(keys, kind="stable")] = np.arange(len(keys))
        size = min(self.size, len(keys))
        pool = ATTEMPTS * self.changed
        parts = {
            "annotate.tsv": (0, min(self.annotated, size)),
            "update.tsv": (size - pool, size),
            "remove.tsv": (size - 2 * pool, size - pool),
        }
        files = {name: (self.folder / name).open("w", encoding="utf-8") for name in parts}
        for first, language in zip(firsts, LANGUAGES, strict=True):
            with self.corpus(language).open("w", encoding="utf-8") as corpus:
                for number, line in enumerate(source_lines(language), start=first):
                    rank = ranks[number]
                    if rank >= size:
                        continue
                    corpus.write(line)
                    for name, (low, high) in parts.items():
                        if low <= rank < high:
                            files[name].write(line)
        for file in files.values():
            file.close()
        (self.folder / "complete").touch()

    def write_update(self, attempt: int) -> Path:
        """Stored records with another text and other labels."""
        path = self.folder / "update.jsonl"
        before: list[str] = []
        with path.open("w", encoding="utf-8") as file:
            for document in self._part("update.tsv", attempt):
                labels = [*document.labels[:-1], *before[:1]] or list(document.labels)
                before = list(document.labels)
                changed = {
                    "id": document.id,
                    "text": f"{document.text} : second edition",
                    "subjects": labels,
                }
                file.write(json.dumps(changed, ensure_ascii=False) + "\n")
        return path

    def write_removed(self, attempt: int) -> Path:
        path = self.folder / "remove.txt"
        documents = self._part("remove.tsv", attempt)
        path.write_text("".join(f"{document.id}\n" for document in documents))
        return path

    def _part(self, name: str, attempt: int) -> list[Any]:
        """So many of the records in a file; others at each attempt."""
        documents = {one.id: one for one in read_corpus(self.folder / name).documents()}
        first = attempt % ATTEMPTS * self.changed
        return list(documents.values())[first : first + self.changed]


def write_vocabulary(path: Path) -> None:
    """YSO as one table with names in both languages; the files are `<uri>` and name."""
    names: dict[str, dict[str, str]] = {}
    for language in LANGUAGES:
        with gzip.open(SHARED / f"yso-{language}.tsv.gz", "rt", encoding="utf-8") as file:
            for line in file:
                uri, _, name = line.rstrip("\n").partition("\t")
                names.setdefault(uri.strip("<>"), {})[language] = name
    with path.open("w", encoding="utf-8") as file:
        file.write("\t".join(["id", *(f"name_{language}" for language in LANGUAGES)]) + "\n")
        for uri, by_language in names.items():
            file.write("\t".join([uri, *(by_language.get(one, "") for one in LANGUAGES)]) + "\n")


# Steps.


@dataclass(frozen=True)
class Step:
    """One command. `needs` are steps whose results it uses; `records` are what its cost is for.

    `begin` deletes what an interrupted attempt has left.
    """

    name: str
    command: Callable[[Place], list[str]]
    needs: tuple[str, ...] = ()
    records: Callable[[Records], int] | None = None
    begin: Callable[[Place], None] | None = None
    times: int = 1


@dataclass(frozen=True)
class Place:
    """Where the steps of one size work."""

    work: Path
    records: Records
    epochs: int
    attempt: int = 0

    @property
    def collection(self) -> Path:
        return self.records.folder / "collection"

    @property
    def vocabulary(self) -> Path:
        return self.work / "yso.tsv"

    def without(self, *names: str) -> None:
        for name in names:
            shutil.rmtree(self.collection / name, ignore_errors=True)


def _init(place: Place) -> list[str]:
    return ["init", str(place.collection), "--vocab", str(place.vocabulary)]


def _add(place: Place) -> list[str]:
    files = [str(place.records.corpus(language)) for language in LANGUAGES]
    return ["add", str(place.collection), *files]


def _begin_add(place: Place) -> None:
    """An empty collection again."""
    shutil.rmtree(place.collection, ignore_errors=True)
    run(labelkin(*_init(place)))


def _build(place: Place) -> list[str]:
    return ["build", str(place.collection)]


def _info(place: Place) -> list[str]:
    return ["info", str(place.collection)]


def _train(place: Place) -> list[str]:
    command = ["train", str(place.collection)]
    if (place.collection / "models" / "label-ae" / "model.json").exists():
        # An earlier attempt has come so far.
        return [*command, "--only", "rerank"]
    return [*command, "--epochs", str(place.epochs)] if place.epochs else command


def _suggest(method: str) -> Callable[[Place], list[str]]:
    return lambda place: [
        "suggest", str(place.collection), "--title", TITLE, "--method", method, "--json",
    ]  # fmt: skip


def _annotate(method: str) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        output = place.records.folder / f"annotations-{method}.jsonl"
        source = str(place.records.folder / "annotate.tsv")
        return ["annotate", str(place.collection), source, "-o", str(output), "--method", method]

    return command


def _begin_annotate(place: Place) -> None:
    for path in place.records.folder.glob(".*.journal"):
        path.unlink()


def _update(place: Place) -> list[str]:
    return ["add", str(place.collection), str(place.records.write_update(place.attempt))]


def _remove(place: Place) -> list[str]:
    listed = place.records.write_removed(place.attempt)
    return ["remove", str(place.collection), "--from", str(listed)]


def _annotated(records: Records) -> int:
    return records.annotated


def _changed(records: Records) -> int:
    return records.changed


TRAIN, LABEL_AE, RERANK = "train", "train label-ae", "train rerank"
MODELS = {"knn": "build", "label-ae": LABEL_AE, "rerank": RERANK}

STEPS = (
    Step("init", _init, begin=lambda place: shutil.rmtree(place.collection, ignore_errors=True)),
    Step("add", _add, ("init",), lambda records: records.size, _begin_add),
    Step(
        "build",
        _build,
        ("add",),
        lambda records: records.size,
        lambda place: place.without("indexes", "cache"),
    ),
    Step("info", _info, ("add",)),
    Step("suggest knn", _suggest("knn"), ("build",), times=COLD_STARTS),
    Step(TRAIN, _train, ("build",)),
    *(
        Step(f"suggest {method}", _suggest(method), (MODELS[method],), times=COLD_STARTS)
        for method in METHODS[1:]
    ),
    *(
        Step(
            f"annotate {method}",
            _annotate(method),
            (MODELS[method],),
            _annotated,
            _begin_annotate,
        )
        for method in METHODS
    ),
    Step("update", _update, ("add",), _changed),
    Step("catch up", _build, ("update", "build")),
    Step("annotate updated", _annotate("knn"), ("catch up",), _annotated, _begin_annotate),
    Step("remove", _remove, ("add",), _changed),
    Step("catch up removed", _build, ("remove", "build")),
    Step("info again", _info, ("remove",)),
)


def labelkin(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "labelkin", *arguments]


@dataclass
class Results:
    """What has been measured, by size and step; written after every change."""

    path: Path
    content: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def read(cls, work: Path) -> Results:
        path = work / "million.json"
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def of(self, size: int) -> dict[str, dict[str, Any]]:
        return self.content.setdefault(str(size), {})

    def put(self, size: int, step: str, result: dict[str, Any]) -> None:
        self.of(size)[step] = result
        waiting = self.path.with_suffix(".part")
        waiting.write_text(json.dumps(self.content, indent=1) + "\n")
        waiting.replace(self.path)

    def is_done(self, size: int, step: str) -> bool:
        return self.of(size).get(step, {}).get("state") == "done"

    @property
    def sizes(self) -> list[int]:
        return sorted(map(int, self.content))


def run_steps(
    work: Path,
    sizes: Sequence[int],
    steps: Sequence[Step],
    seconds: float,
    epochs: int,
    retry: bool,
) -> None:
    results = Results.read(work)
    if not (work / "yso.tsv").exists():
        write_vocabulary(work / "yso.tsv")
    for size in sizes:
        records = Records(work / str(size), size)
        records.write()
        for step in steps:
            known = results.of(size).get(step.name, {})
            if known.get("state") in ("done", "failed", "too long") and not (
                retry and known["state"] != "done"
            ):
                continue
            if missing := [one for one in step.needs if not results.is_done(size, one)]:
                print(f"{size:,} {step.name}: left out, it needs {', '.join(missing)}", flush=True)
                continue
            attempt = known.get("attempt", -1) + 1
            place = Place(work, records, epochs, attempt)
            results.put(size, step.name, {"state": "begun", "attempt": attempt})
            run_step(step, place, results, seconds)


def run_step(step: Step, place: Place, results: Results, seconds: float) -> None:
    size, records = place.records.size, place.records
    if step.begin is not None:
        step.begin(place)
    marks, last = None, ""
    command = step.command(place)
    if step.name == TRAIN:
        last = RERANK
        if "--only" not in command:
            marks = {LABEL_AE: place.collection / "models" / "label-ae" / "model.json"}
    runs = [
        run(labelkin(*command), seconds=seconds, folder=place.collection, marks=marks, last=last)
        for _ in range(step.times)
    ]
    state = {0: "done", None: "too long"}.get(runs[-1].code, "failed")
    common = {
        "state": state,
        "attempt": place.attempt,
        "command": " ".join(["labelkin", *command]).replace(f"{place.work}{os.sep}", ""),
        "records": step.records(records) if step.records else None,
        "cores": len(os.sched_getaffinity(0)),
        "folders": {
            path.name: folder_bytes(path) for path in sorted(place.collection.iterdir())
        },
        "output": runs[-1].output[-2000:],
    }  # fmt: skip
    for name, part in runs[-1].parts.items():
        part_state = state if name == last else "done"
        results.put(size, name, {**common, **asdict(part), "state": part_state})
    results.put(size, step.name, {**common, **asdict(middle(runs))})
    one = results.of(size)[step.name]
    print(
        f"{size:,} {step.name}: {state}, {one['seconds']:.1f} s, {one['cpu_seconds']:.1f} s of CPU,"
        f" {one['tree']:.0f} MB ({one['held']:.0f} held), {one['disk'] / 1e6:.0f} MB on disk",
        flush=True,
    )


def publish(work: Path) -> None:
    """Add the figures of the steps that are done to those that are kept in the project."""
    kept = Results.read(PUBLISHED)
    for size, steps in Results.read(work).content.items():
        for name, one in steps.items():
            if one["state"] == "done":
                shown = {key: value for key, value in one.items() if key != "output"}
                kept.put(int(size), name, shown)


def middle(runs: Sequence[Ran]) -> Costs:
    """The costs of the run with the median time of CPU."""
    wanted = statistics.median_low(one.costs.cpu_seconds for one in runs)
    return next(one.costs for one in runs if one.costs.cpu_seconds == wanted)


# The report.


class Point(NamedTuple):
    """What one step cost at one size: seconds of CPU, megabytes, bytes."""

    size: int
    seconds: float
    cpu: float
    tree: float
    held: float
    disk: float
    per_record: float | None


REPORTED = (
    "add", "build", "info", "suggest knn", LABEL_AE, RERANK, "suggest label-ae", "suggest rerank",
    "annotate knn", "annotate label-ae", "annotate rerank", "update", "catch up",
    "annotate updated", "remove", "catch up removed", "info again",
)  # fmt: skip
# Their costs are those of so many records, whatever the size of the collection is.
CHANGES = {"update", "remove"}
BATCHES = {*CHANGES, *(f"annotate {method}" for method in (*METHODS, "updated"))}


def points(results: Results, step: str) -> list[Point]:
    found = []
    for size in results.sizes:
        one = results.of(size).get(step, {})
        if one.get("state") != "done":
            continue
        per_record = None
        if step in BATCHES and one["records"]:
            # Starting up is what a single text costs, or what a command does that reads no text.
            begun = step.replace("annotate", "suggest") if step not in CHANGES else "info"
            start = results.of(size).get(begun) or results.of(size).get("suggest knn", {})
            spent = max(one["cpu_seconds"] - start.get("cpu_seconds", 0.0), 0.01)
            per_record = spent / one["records"]
        used = sum(one["folders"].values())
        found.append(
            Point(
                size, one["seconds"], one["cpu_seconds"], one["tree"], one["held"], used, per_record
            )
        )
    return found


def slope(sizes: Sequence[float], values: Sequence[float]) -> float | None:
    """The slope of the line through the logarithms; None for fewer than two points."""
    if len(sizes) < 2 or min(values) <= 0:
        return None
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def extrapolated(sizes: Sequence[float], values: Sequence[float], size: float) -> float | None:
    """The larger of a straight line and a power law through the last two points."""
    if len(sizes) < 2 or min(values) <= 0:
        return None
    (n1, n2), (v1, v2) = sizes[-2:], values[-2:]
    line = v2 + (v2 - v1) / (n2 - n1) * (size - n2)
    power = v2 * (size / n2) ** (math.log(v2 / v1) / math.log(n2 / n1))
    return max(line, power) if v2 > v1 else v2


def section(work: Path, figures: Path) -> Iterator[str]:
    """The part of results/speed.md about a million records; draws its figure."""
    results = Results.read(work)
    sizes = [size for size in results.sizes if results.is_done(size, "add")]
    if not sizes:
        return
    yield ""
    yield "## A million records and more"
    yield ""
    yield (
        f"Both YSO files in one collection, up to {max(sizes):,} library titles in Finnish and "
        "English with YSO subjects, names in both languages. Smaller sizes are samples, chosen by "
        "a hash of the line number, so that both files have their share. Each step is a `labelkin` "
        f"command in a new process (`python benchmarks/million.py`), on {os.cpu_count()} cores "
        "that other work may share: compare seconds of CPU. Memory is the most that all processes "
        "of a command had together, and in brackets what of it is in no file and has to fit; "
        "disk is that of the collection afterwards. `suggest` is one title, the median of "
        f"{COLD_STARTS}."
    )
    yield ""
    yield from _one_core(results)
    yield from _sampling()
    if any(results.of(size).get(TRAIN, {}).get("command", "").count("--epochs") for size in sizes):
        yield "**Trainings with fewer epochs than usual: a trial, not a result.**"
        yield ""
    figures.mkdir(parents=True, exist_ok=True)
    draw(results, figures / FIGURE)
    yield f"![Cost of each step by the number of records](figures/{FIGURE})"
    yield ""
    yield (
        "Slope is that of the logarithm of the cost against that of the size: 1 is linear. Small "
        "collections annotate fewer records; the figure has the cost of as many at every size."
    )
    for step in REPORTED:
        yield from _table(step, points(results, step))
    yield from _folders(results, sizes)
    yield from _unfinished(results)
    yield from _extrapolation(results)


def _one_core(results: Results) -> Iterator[str]:
    """At which sizes trainings had one core only."""
    sizes = [size for size in results.sizes if results.of(size).get(RERANK, {}).get("cores") == 1]
    if sizes:
        yield (
            f"The trainings at {' and '.join(f'{size:,}' for size in sizes)} records had one core: "
            "their seconds of CPU cannot be compared with those of others, and slopes and "
            "extrapolations of trainings mix both."
        )
        yield ""


def _sampling() -> Iterator[str]:
    yield (
        "Trainings are on samples, so that they stop growing with the collection, apart from their "
        "searches. Documents are sampled by a hash of their ids. The label autoencoder reads the "
        "texts and the 60 nearest neighbours of at most 100,000 documents (`documents` in "
        "`[joint]`); neighbours are searched among all. It validates on at most 2,000 of these. "
        "The reranker counts statistics, and trains linear classifiers, over at most 200,000 "
        "documents (`RerankTrainingSettings.statistics_documents`); its trees are trained on at "
        "most 18,000 of these (`documents` in `[rerank]`) in one to three folds, with neighbours "
        "among all documents that are not held out. Cuts are chosen on at most 2,000."
    )
    yield ""


def _table(step: str, found: Sequence[Point]) -> Iterator[str]:
    if not found:
        return
    has_records = found[-1].per_record is not None
    yield ""
    yield f"### `{step}`"
    yield ""
    extra = " CPU-milliseconds per record |" if has_records else ""
    yield f"| records | seconds | CPU-seconds |{extra} peak memory, MB | disk, MB |"
    yield "|---|---|---|---|---|" + ("---|" if has_records else "")
    for one in found:
        shown = f" {1000 * one.per_record:.2f} |" if one.per_record is not None else ""
        yield (
            f"| {one.size:,} | {one.seconds:.1f} | {one.cpu:.1f} |{shown} {one.tree:,.0f} "
            f"({one.held:,.0f}) | {one.disk / 1e6:,.0f} |"
        )
    cells = [
        _slope(found, lambda one: one.seconds),
        _slope(found, lambda one: one.cpu),
        *([_slope(found, lambda one: one.per_record or 0.0)] if has_records else []),
        f"{_slope(found, lambda one: one.tree)} ({_slope(found, lambda one: one.held)})",
        _slope(found, lambda one: one.disk),
    ]
    yield f"| slope | {' | '.join(cells)} |"


def _slope(found: Sequence[Point], value: Callable[[Point], float]) -> str:
    result = slope([one.size for one in found], [value(one) for one in found])
    return "–" if result is None else f"{result:.2f}"


def _folders(results: Results, sizes: Sequence[int]) -> Iterator[str]:
    yield ""
    yield "Disk by folder after the last step, MB:"
    yield ""
    last = {size: _last_folders(results, size) for size in sizes}
    names = sorted({name for one in last.values() for name in one})
    names = [name for name in names if max(one.get(name, 0) for one in last.values()) > 1e5]
    yield f"| records | {' | '.join(names)} |"
    yield "|---|" + "---|" * len(names)
    for size in sizes:
        cells = " | ".join(f"{last[size].get(name, 0) / 1e6:,.1f}" for name in names)
        yield f"| {size:,} | {cells} |"


def _last_folders(results: Results, size: int) -> dict[str, int]:
    done = [results.of(size).get(step, {}) for step in REPORTED]
    return next((one["folders"] for one in reversed(done) if "folders" in one), {})


# A step that was interrupted has only begun.
STATES = {"begun": "interrupted"}


def _unfinished(results: Results) -> Iterator[str]:
    lines = [
        f"- `{step}` at {size:,} records: {STATES.get(one['state'], one['state'])}"
        + (f" after {one['seconds']:,.0f} s" if "seconds" in one else "")
        for size in results.sizes
        for step, one in results.of(size).items()
        if one["state"] != "done"
    ]
    if lines:
        yield ""
        yield "Not finished:"
        yield ""
        yield from lines


def _extrapolation(results: Results) -> Iterator[str]:
    rows, over, most = [], [], []
    for step in REPORTED:
        found = points(results, step)
        sizes = [one.size for one in found]
        cpu, tree, held, disk = (
            extrapolated(sizes, [value(one) for one in found], MEDLINE)
            for value in (
                (lambda one: one.cpu), (lambda one: one.tree),
                (lambda one: one.held), (lambda one: one.disk),
            )
        )  # fmt: skip
        if cpu is None or tree is None or held is None or disk is None:
            continue
        rows.append(
            f"| `{step}` | {cpu / 3600:,.1f} | {held / 1024:,.1f} | {tree / 1024:,.1f} "
            f"| {disk / 1e9:,.0f} |"
        )
        most.append((held / 1024, step))
        if held / 1024 > MACHINE_GIGABYTES:
            over.append((_reached(sizes, [one.held for one in found]), step))
    if not rows:
        return
    yield ""
    yield f"### {MEDLINE:,} records"
    yield ""
    yield (
        "The larger of a straight line and a power law through the two largest sizes, for records "
        f"like these (MEDLINE's have abstracts: about {TEXT} times the text). Memory that is held "
        f"has to fit a machine of {MACHINE_GIGABYTES} GB; mapped files are read again if they do "
        "not."
    )
    yield ""
    yield "| step | CPU-hours | memory held, GB | with mapped files, GB | disk, GB |"
    yield "|---|---|---|---|---|"
    yield from rows
    yield ""
    if over:
        size, step = min(over)
        yield (
            f"The first step that stops fitting {MACHINE_GIGABYTES} GB is `{step}`, at about "
            f"{size / 1e6:,.0f} million records."
        )
    else:
        held, step = max(most)
        yield (
            f"By these figures no step holds more than {MACHINE_GIGABYTES} GB; `{step}` holds "
            f"most, {held:,.0f} GB."
        )
    yield from _with_abstracts(results)
    if len(points(results, RERANK)) < 2:
        yield ""
        yield "Trainings were finished at one size only and are not extrapolated."


def _with_abstracts(results: Results) -> Iterator[str]:
    """Which step first reads its files again and again if texts are as long as MEDLINE's."""
    full, most = [], (0.0, "")
    for step in REPORTED:
        found = points(results, step)
        sizes = [one.size for one in found]
        held = [one.held for one in found]
        # Mapped files are postings and terms, which grow with the text; the rest does not.
        needed = [one.held + TEXT * (one.tree - one.held) for one in found]
        needed_then = (extrapolated(sizes, needed, MEDLINE) or 0.0) / 1024
        most = max(most, (needed_then, step))
        if needed_then >= MACHINE_GIGABYTES:
            full.append((_reached(sizes, needed), step, extrapolated(sizes, held, MEDLINE) or 0.0))
    yield ""
    if full:
        size, step, held_then = min(full)
        yield (
            f"With {TEXT} times the text, and mapped files that grow with it, `{step}` is the "
            f"first step whose memory and mapped files are more than {MACHINE_GIGABYTES} GB "
            f"together, at about {size / 1e6:,.0f} million records: from there on its postings "
            "no longer stay in memory and are read from disk for every batch. It goes on, at the "
            f"speed of the disk; what it holds itself fits ({held_then / 1024:,.1f} GB at "
            f"{MEDLINE:,})."
        )
    else:
        yield (
            f"With {TEXT} times the text, and mapped files that grow with it, memory and mapped "
            f"files of every step are less than {MACHINE_GIGABYTES} GB together; those of "
            f"`{most[1]}` come nearest, {most[0]:,.0f} GB."
        )


def _reached(sizes: Sequence[float], needed: Sequence[float]) -> float:
    """About how many records fill the machine."""
    tried = np.geomspace(sizes[-1], MEDLINE, 1000)
    return next(
        (
            size
            for size in tried.tolist()
            if (extrapolated(sizes, needed, size) or 0.0) >= MACHINE_GIGABYTES * 1024
        ),
        float(MEDLINE),
    )


def _done(results: Results, step: str) -> list[int]:
    return [size for size in results.sizes if results.is_done(size, step)]


def draw(results: Results, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    shown = [step for step in REPORTED if points(results, step)]
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    styles = ("-", "--", ":")
    # Batches are smaller in small collections: what is drawn is the cost of the largest.
    batches = {
        step: max(results.of(size)[step]["records"] for size in _done(results, step))
        for step in shown
        if step in BATCHES - CHANGES
    }
    for axes, title in ((panels[0], "seconds of CPU"), (panels[1], "memory held, MB")):
        for number, step in enumerate(shown):
            found = points(results, step)
            if axes is panels[1]:
                values = [one.held for one in found]
            elif step in batches:
                values = [(one.per_record or 0.0) * batches[step] for one in found]
            else:
                values = [one.cpu for one in found]
            axes.plot(
                [one.size for one in found],
                values,
                styles[number // len(colours) % len(styles)],
                color=colours[number % len(colours)],
                marker="o",
                markersize=3,
                label=f"{step}, {batches[step]:,}" if step in batches else step,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("records in the collection")
        axes.set_title(title, loc="left")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8
    )
    with path.open("wb") as file:
        canvas.print_png(file)


PARTS = ("run", "publish", "report")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--steps", default=",".join(step.name for step in STEPS))
    parser.add_argument("--step-minutes", type=float, default=math.inf)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--figures", type=Path, default=ROOT / "results" / "figures")
    given = parser.parse_args()
    wanted = given.steps.split(",")
    if unknown := set(wanted) - {step.name for step in STEPS}:
        parser.error(f"unknown steps {sorted(unknown)}; known: {[step.name for step in STEPS]}")
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    if "run" in given.parts:
        run_steps(
            given.work,
            [int(size) for size in given.sizes.split(",")],
            [step for step in STEPS if step.name in wanted],
            60 * given.step_minutes,
            given.epochs,
            given.retry,
        )
    if "publish" in given.parts:
        publish(given.work)
    if "report" in given.parts:
        print("\n".join(section(PUBLISHED, given.figures)))


if __name__ == "__main__":
    main()
