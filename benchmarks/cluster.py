"""What Spark costs and gains: neighbours and annotation in one process and on clusters.

python benchmarks/cluster.py --work FOLDER --from FOLDER_OF_MILLION    # measure, write results
python benchmarks/cluster.py --work FOLDER report                      # results of what there is
python benchmarks/cluster.py --work FOLDER --from … --sizes 100,1000 --minutes 10

`--from` is the folder of the largest size in the work of benchmarks/million.py: a built collection
of both yso files and the texts to annotate; it is copied, not changed. Needs Linux, Java and the
extras `bulk` and `spark`. Every run is a `labelkin` command; its result is in FOLDER/cluster.json
as soon as it is there, and a later call goes on with the first that is missing. No run begins
after `--minutes`. The standalone cluster is on this machine: a master and workers, each a process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelkin.neighbours import Neighbours
from labelkin.store.config import update_config
from measure import Usage, folder_bytes, usage

ROOT = Path(__file__).parents[1]
SIZES = (100, 1_000, 10_000, 100_000)
ONE, LOCAL, ONE_WORKER, TWO_WORKERS = "one process", "local[2]", "1 worker", "2 workers"
SETUPS = (ONE, LOCAL, ONE_WORKER, TWO_WORKERS)
MEDLINE, NODES, CORES_A_NODE = 37_000_000, 20, 16
SHARD_ROWS = 450_000
POLL_SECONDS = 0.3
PATIENCE = 60
EXECUTOR = "CoarseGrainedExecutorBackend"
# Stages of a search, and what prepares a collection for it.
PREPARE = "prepare"


# A standalone cluster.


@dataclass
class Standalone:
    """A master and workers of one core each, started and stopped here."""

    folder: Path
    workers: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        address = ["--host", "127.0.0.1", "--webui-port", "0"]
        log = self._start("master.Master", [*address, "--port", "0"])
        self.master = self._waited(log, r"(spark://127\.0\.0\.1:\d+)")
        for _ in range(self.workers):
            options = [*address, "--cores", "1", "--memory", "2g", "-d", str(self.folder / "work")]
            log = self._start("worker.Worker", [*options, self.master])
            self._waited(log, "(Successfully registered)")
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, kind: str, arguments: Sequence[str]) -> Path:
        import pyspark

        home = Path(pyspark.__file__).parent
        log = self.folder / f"{kind}-{len(self.processes)}.log"
        environment = {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with log.open("wb") as file:
            process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments],
                stdout=file,
                stderr=file,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        self.processes.append(process)
        return log

    def _waited(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if match := re.search(pattern, log.read_text(errors="replace")):
                return match[1]
            time.sleep(0.1)
        raise RuntimeError(log.read_text(errors="replace"))


@contextmanager
def master_of(setup: str, folder: Path) -> Iterator[tuple[str | None, list[int]]]:
    """The master of a setup, None for one process, and the processes that run beside."""
    if setup in (ONE, LOCAL):
        yield (None if setup == ONE else setup), []
        return
    with Standalone(folder, int(setup.split()[0])) as cluster:
        yield cluster.master, [process.pid for process in cluster.processes]


# Measuring.


@dataclass
class Run:
    """What a command took. Memory in megabytes; `shuffled` and `exchanged` in bytes.

    `executor` is the most that one executor had, its Python included; `held` the most of all
    processes; `exchanged` the most that was in the shared folder of results at a time.
    """

    seconds: float
    cpu_seconds: float
    held: float
    executor: float
    exchanged: int
    shuffled: int
    code: int
    output: str


class Sampler:
    """Looks at processes from time to time; each counts with the last that was seen of it."""

    def __init__(self, roots: Sequence[int], before: dict[int, float]) -> None:
        self._roots = roots
        self._before = before
        self._cpu: dict[int, float] = {}
        self.held = self.executor = 0.0

    def look(self) -> None:
        found: dict[int, Usage] = {one.pid: one for root in self._roots for one in usage(root)}
        for one in found.values():
            self._cpu[one.pid] = one.cpu_seconds - self._before.get(one.pid, 0.0)
        self.held = max(self.held, sum(one.megabytes for one in found.values()))
        for one in found.values():
            if EXECUTOR in one.command:
                of_one = sum(
                    other.megabytes
                    for other in found.values()
                    if one.pid in _line(other.pid, found)
                )
                self.executor = max(self.executor, of_one)

    @property
    def cpu_seconds(self) -> float:
        return sum(self._cpu.values())


def _line(pid: int, found: dict[int, Usage]) -> set[int]:
    """A process and its ancestors."""
    line: set[int] = set()
    while pid in found and pid not in line:
        line.add(pid)
        pid = found[pid].parent
    return line


def measured(command: Sequence[str], beside: Sequence[int], workspace: Path, log: Path) -> Run:
    """Run a command; `beside` are processes that work for it."""
    before = {one.pid: one.cpu_seconds for root in beside for one in usage(root)}
    events = workspace.parent / "events"
    shutil.rmtree(events, ignore_errors=True)
    events.mkdir(parents=True)
    started, exchanged = time.monotonic(), 0
    with log.open("wb") as file:
        process = subprocess.Popen(
            list(command),
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        sampler = Sampler([process.pid, *beside], before)
        while process.poll() is None:
            sampler.look()
            results = workspace / "neighbours"
            exchanged = max(exchanged, folder_bytes(results) if results.is_dir() else 0)
            time.sleep(POLL_SECONDS)
    seconds = time.monotonic() - started
    return Run(
        seconds,
        sampler.cpu_seconds,
        sampler.held,
        sampler.executor,
        exchanged,
        _shuffled(events),
        process.returncode,
        log.read_text(errors="replace")[-2000:],
    )


def _shuffled(events: Path) -> int:
    """The bytes that Spark's log of events reports as written to and read from its shuffle."""
    total = 0
    for path in events.rglob("*"):
        if not path.is_file():
            continue
        for line in path.read_text(errors="replace").splitlines():
            if '"SparkListenerTaskEnd"' in line:
                metrics = json.loads(line).get("Task Metrics") or {}
                total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
                read = metrics.get("Shuffle Read Metrics", {})
                total += read.get("Remote Bytes Read", 0) + read.get("Local Bytes Read", 0)
    return total


@dataclass
class Results:
    path: Path
    content: dict[str, Any]

    @classmethod
    def read(cls, work: Path) -> Results:
        path = work / "cluster.json"
        return cls(path, json.loads(path.read_text()) if path.exists() else {"runs": {}})

    def put(self, key: str, value: dict[str, Any]) -> None:
        self.content["runs"][key] = value
        self.save()

    def save(self) -> None:
        waiting = self.path.with_suffix(".part")
        waiting.write_text(json.dumps(self.content, indent=1))
        waiting.replace(self.path)

    def of(self, name: str, setup: str, size: int) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.content["runs"].get(_key(name, setup, size))
        return found if found and found["code"] == 0 else None


def _key(name: str, setup: str, size: int) -> str:
    return f"{name} | {setup} | {size}"


def run_all(work: Path, source: Path, sizes: Sequence[int], minutes: float) -> None:
    started = time.monotonic()
    collection = work / "collection"
    if not collection.exists():
        waiting = work / "collection.part"
        shutil.rmtree(waiting, ignore_errors=True)
        shutil.copytree(source / "collection", waiting)
        # Removed documents count in the statistics of one index until then, and not in shards.
        subprocess.run([sys.executable, "-m", "labelkin", "compact", str(waiting)], check=True)
        waiting.rename(collection)
    events = f"file:{collection / 'cache' / 'events'}"
    options = [
        "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1",
        "spark.executor.cores=1", "spark.eventLog.enabled=true", f"spark.eventLog.dir={events}",
        "spark.eventLog.compress=false",
    ]  # fmt: skip
    cluster = {"options": options, "executor_memory": "1g", "shard_rows": SHARD_ROWS}
    update_config(collection / "labelkin.toml", {"cluster": cluster})
    results = Results.read(work)
    records = subprocess.run(
        [sys.executable, "-m", "labelkin", "info", str(collection), "--json"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    results.content |= {
        "records": json.loads(records)["documents"],
        "cores": os.cpu_count(),
        "processor": platform.processor() or platform.machine(),
        "shard_rows": SHARD_ROWS,
    }
    results.save()
    plan = [(PREPARE, LOCAL, 1)]
    plan += [("neighbours", setup, size) for size in sizes for setup in SETUPS]
    plan += [("annotate", setup, sizes[-1]) for setup in SETUPS]
    for name, setup, size in plan:
        if _key(name, setup, size) in results.content["runs"]:
            continue
        if time.monotonic() - started > 60 * minutes:
            print(f"{minutes:g} minutes are over; the next is {name}, {setup}, {size:,}")
            return
        run_one(results, work, source, name, setup, size)


def run_one(results: Results, work: Path, source: Path, name: str, setup: str, size: int) -> None:
    collection = work / "collection"
    texts = work / f"texts-{size}.tsv"
    if not texts.exists():
        with (source / "annotate.tsv").open(encoding="utf-8") as file:
            texts.write_text("".join(islice(file, size)), encoding="utf-8")
    workspace = collection / "cache" / ".cluster"
    if name == PREPARE:
        shutil.rmtree(workspace, ignore_errors=True)
    output = work / f"{name}-{setup.replace(' ', '-')}-{size}"
    output = output.with_suffix(".jsonl" if name == "annotate" else ".npz")
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "labelkin"]
    command += ["annotate" if name == "annotate" else "neighbours", str(collection), str(texts)]
    command += ["-o", str(output)]
    if name == "annotate":
        command += ["--method", "knn"]
    logs = work / "logs"
    logs.mkdir(exist_ok=True)
    with master_of(setup, logs) as (master, beside):
        command += [] if master is None else ["--on", master]
        run = measured(command, beside, workspace, logs / f"{output.stem}.log")
    value = asdict(run) | {"equal": _equal(output, name, size, work)}
    results.put(_key(name, setup, size), value)
    print(
        f"{name}, {setup}, {size:,}: {run.seconds:,.0f} s, {run.cpu_seconds:,.0f} CPU-s, "
        f"executor {run.executor:,.0f} MB, code {run.code}, equal {value['equal']}",
        flush=True,
    )


def _equal(output: Path, name: str, size: int, work: Path) -> float | None:
    """The share of texts whose result is that of one process."""
    expected = work / f"{name}-{ONE.replace(' ', '-')}-{size}{output.suffix}"
    if not output.exists() or not expected.exists():
        return None
    if name == "annotate":
        pairs = zip(output.open("rb"), expected.open("rb"), strict=True)
        return float(np.mean([one == other for one, other in pairs]))
    ours, theirs = Neighbours.load(output), Neighbours.load(expected)
    same = (np.sort(ours.rows, axis=1) == np.sort(theirs.rows, axis=1)).all(axis=1)
    close = np.abs(ours.distances() - theirs.distances()).max(axis=1) <= 1e-5
    return float(np.mean(same & close))


# The report.


def report(results: Results) -> Iterator[str]:
    content = results.content
    sizes = sorted({int(key.rpartition(" | ")[2]) for key in content["runs"]} - {1})
    yield "# Spark on one machine, and what a cluster would take"
    yield ""
    yield (
        "Made by `python benchmarks/cluster.py --work FOLDER --from FOLDER/1709153` "
        "(the second is of `benchmarks/million.py`). "
        f"{content['records']:,} records of both yso collections (titles, Finnish and English), "
        f"{content['cores']} cores of one machine, which the driver, the master and the workers "
        "share; a worker has one core. The shared file system is the local disk. What the "
        "network costs is therefore not in these figures."
    )
    yield ""
    yield "## Neighbours"
    yield ""
    yield from _table(results, "neighbours", sizes)
    yield ""
    yield (
        "*Alike*: the share of texts with the same neighbours as in one process, distances to "
        "1e-5. *Executor*: the most memory of one executor, Java and Python, its share of mapped "
        "files included (in `local[2]` tasks run in the driver's processes: see *all*). "
        "*Exchanged*: the most that was in the shared folder of results at a time. Spark's own "
        "shuffle is not used: what tasks exchange goes through that folder, so that an "
        "interrupted job continues."
    )
    yield ""
    yield from _preparation(results)
    yield from _worth(results, sizes)
    if any(results.of("annotate", setup, sizes[-1]) for setup in SETUPS):
        yield "## Annotation by votes (`annotate --method knn`)"
        yield ""
        yield from _table(results, "annotate", sizes[-1:])
        yield ""
    yield from _extrapolation(results, sizes)


def _table(results: Results, name: str, sizes: Sequence[int]) -> Iterator[str]:
    yield (
        "| texts | setup | seconds | CPU-seconds | executor, MB | all, MB | shuffled, bytes "
        "| exchanged, MB | alike |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for size in sizes:
        for setup in SETUPS:
            run = results.of(name, setup, size)
            if run is None:
                failed = results.content["runs"].get(_key(name, setup, size))
                state = "not run" if failed is None else f"failed with code {failed['code']}"
                yield f"| {size:,} | {setup} | {state} | | | | | | |"
                continue
            executor = f"{run['executor']:,.0f}" if run["executor"] else "–"
            shuffled = "–" if setup == ONE else f"{run['shuffled']:,}"
            exchanged = "–" if setup == ONE else f"{run['exchanged'] / 1e6:,.1f}"
            alike = "–" if setup == ONE or run["equal"] is None else f"{run['equal']:.4f}"
            yield (
                f"| {size:,} | {setup} | {run['seconds']:,.1f} | {run['cpu_seconds']:,.1f} "
                f"| {executor} | {run['held']:,.0f} | {shuffled} | {exchanged} | {alike} |"
            )


def _preparation(results: Results) -> Iterator[str]:
    run = results.of(PREPARE, LOCAL, 1)
    if run is None:
        return
    yield (
        f"Before the first search the collection is exported, analysed and cut into shards of "
        f"{results.content['shard_rows']:,} rows, once for each generation: "
        f"{run['seconds']:,.0f} s and {run['cpu_seconds']:,.0f} CPU-seconds with `local[2]`, "
        "which the table leaves out. One process uses the index that `labelkin build` has made."
    )
    yield ""


def line(results: Results, name: str, setup: str, sizes: Sequence[int], what: str) -> Any:
    """Fixed cost and cost per text, from the smallest and the largest size."""
    runs = [(size, run) for size in sizes if (run := results.of(name, setup, size))]
    if len(runs) < 2:
        return None
    (low, first), (high, last) = runs[0], runs[-1]
    slope = (last[what] - first[what]) / (high - low)
    return max(first[what] - slope * low, 0.0), slope


def _worth(results: Results, sizes: Sequence[int]) -> Iterator[str]:
    yield "## What Spark costs, and when it pays"
    yield ""
    one = line(results, "neighbours", ONE, sizes, "seconds")
    lines = {s: line(results, "neighbours", s, sizes, "seconds") for s in SETUPS[1:]}
    if one is None:
        return
    yield "| setup | fixed, s | ms per text |"
    yield "|---|---|---|"
    for setup, found in {ONE: one, **lines}.items():
        if found is not None:
            yield f"| {setup} | {found[0]:.1f} | {1000 * found[1]:.2f} |"
    yield ""
    faster = [
        size
        for size in sizes
        if (here := results.of("neighbours", ONE, size))
        and (there := results.of("neighbours", TWO_WORKERS, size))
        and there["seconds"] < here["seconds"]
    ]
    if faster:
        yield f"Here, two workers are faster than one process from {faster[0]:,} texts on."
    else:
        yield (
            "On this machine no setup of Spark with two workers was faster than one process at "
            "any size: one process has threads for both cores, starts at once, and sends nothing "
            "through files. On one machine, do not use Spark."
        )
    cpu = line(results, "neighbours", TWO_WORKERS, sizes, "cpu_seconds")
    two = lines[TWO_WORKERS]
    if cpu is not None and two is not None:
        yield ""
        cores = NODES * CORES_A_NODE
        yield (
            f"A text costs {1000 * cpu[1]:.2f} CPU-ms on the cluster. With c cores that work "
            f"evenly, n texts take {two[0]:.0f} s + n · {1000 * cpu[1]:.2f} ms / c, against "
            f"{one[0]:.0f} s + n · {1000 * one[1]:.2f} ms in one process here. It pays from"
        )
        yield ""
        for count in (4, 8, 16, cores):
            gain = one[1] - cpu[1] / count
            size = (two[0] - one[0]) / gain if gain > 0 else None
            said = "no size" if size is None else f"about {max(size, 0):,.0f} texts"
            yield f"- {said} on, with {count} cores (computed, not measured)"
        if prepared := results.of(PREPARE, LOCAL, 1):
            yield ""
            yield (
                f"These numbers leave out the {prepared['seconds']:,.0f} s of preparation (above), "
                "once for each generation: a job that has to prepare its generation first takes "
                f"{prepared['cpu_seconds']:,.0f} CPU-seconds / c longer, and pays only from more "
                "texts on."
            )
    yield ""


def _extrapolation(results: Results, sizes: Sequence[int]) -> Iterator[str]:
    cpu = line(results, "neighbours", TWO_WORKERS, sizes, "cpu_seconds")
    prepared = results.of(PREPARE, LOCAL, 1)
    if cpu is None or prepared is None:
        return
    records, cores = results.content["records"], NODES * CORES_A_NODE
    factor = MEDLINE / records
    hours = {
        "export, terms, shards, statistics": prepared["cpu_seconds"] * factor,
        "neighbours of 100,000 texts": 1e5 * cpu[1] * factor,
        "neighbours of all records": MEDLINE * cpu[1] * factor,
    }
    yield f"## {MEDLINE:,} records on {NODES} nodes"
    yield ""
    yield (
        f"By proportion, for {NODES} nodes of {CORES_A_NODE} cores like these. Assumptions: (1) "
        "the work per text is proportional to the records that are searched, which is the upper "
        "bound for postings lists that grow with the collection; (2) texts are as short as these; "
        "the second column takes ten times the terms in texts and in postings, as with abstracts: "
        "ten times the work to prepare, a hundred times to search, less what `max_query_terms` "
        "cuts off; (3) all cores are busy all the time, and the shared file system is as fast for "
        f"{NODES} nodes as the disk is for one; (4) the driver's export, which is one process, is "
        "counted as if it were spread. None of it has been run."
    )
    yield ""
    yield "| step | CPU-hours | on the cluster | with abstracts, CPU-hours | on the cluster |"
    yield "|---|---|---|---|---|"
    for step, seconds in hours.items():
        with_abstracts = seconds * (10 if step.startswith("export") else 100)
        yield (
            f"| {step} | {seconds / 3600:,.1f} | {_hours(seconds / cores)} "
            f"| {with_abstracts / 3600:,.0f} | {_hours(with_abstracts / cores)} |"
        )


def _hours(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", choices=("all", "report"), default="all")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--from", dest="source", type=Path)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "results" / "cluster.md")
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if given.part == "all":
        if given.source is None:
            parser.error("--from is needed to measure")
        sizes = [int(size) for size in given.sizes.split(",")]
        run_all(work, given.source.resolve(), sizes, given.minutes)
    given.output.write_text("\n".join(report(Results.read(work))).rstrip() + "\n")


if __name__ == "__main__":
    main()
