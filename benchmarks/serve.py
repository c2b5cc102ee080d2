"""The HTTP service under load, beside Annif's, and ten minutes of mixed load.

    python benchmarks/serve.py                        # an hour; writes results/serve.md
    python benchmarks/serve.py --seconds 3 --rounds 1 --minutes 0.5 --out /tmp/serve.md

Needs ../shared/data, a trained mesh47k collection (benchmarks/runtime.py makes one) and Annif's
projects (benchmarks/annif_projects.py). Every measurement is kept in WORK/serve.json as soon as it
is made: an interrupted run goes on where it stopped, unless `--fresh`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from http_load import Plan, texts_of
from serve_report import report

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
TEXTS = SHARED / "mesh47k" / "l1000.json.gz"
WORK = ROOT / "benchmarks" / "work"
# The servers and writers of the tests, as a package.
_harness = types.ModuleType("harness")
_harness.__path__ = [str(ROOT / "tests" / "serve")]
sys.modules["harness"] = _harness

from harness.mixed_load import MixedLoad  # noqa: E402
from harness.processes import (  # noqa: E402
    Server,
    cpu_seconds,
    labelkin_server,
    proportional_megabytes,
    resident_megabytes,
    serving,
)
from harness.writers import headings_of, records_of  # noqa: E402

METHODS = ("rerank", "knn", "mix-ranked", "mix", "label-ae", "lexical")
WITH_EVIDENCE = ("rerank", "knn")
PROJECTS = ("ensemble", "omikuji")
CLIENTS = (1, 8, 32)
WORKERS = (1, 2)
LIMIT = 10
# Unmeasured: once per server, until all models of all its processes are loaded, and before each
# measurement.
LOADING_CLIENTS, LOADING_SECONDS, WARM_UP = 32, 5.0, 3.0
NAME = "mesh"


@dataclass(frozen=True)
class Target:
    """What is asked of a system: a method or project through an API."""

    system: str
    name: str
    api: str

    def plan(self, server: Server, clients: int, warm_up: float, seconds: float) -> Plan:
        """The load of some clients on a server."""
        is_form = self.api == "v1"
        if is_form:
            project = f"{NAME}:{self.name}" if self.system == "labelkin" else self.name
            path, body = f"/v1/projects/{project}/suggest", {"limit": LIMIT}
        else:
            path = f"/api/v1/collections/{NAME}/suggest"
            body = {"limit": LIMIT, "method": self.name}
        return Plan(
            server.port, path, str(TEXTS), body, is_form, clients, warm_up, seconds, server.pids()
        )


LABELKIN = [
    *(Target("labelkin", method, "v1") for method in METHODS),
    *(Target("labelkin", method, "api/v1") for method in WITH_EVIDENCE),
]
ANNIF = [Target("Annif", project, "v1") for project in PROJECTS]


@dataclass(frozen=True)
class Measurement:
    """One measurement: so many clients ask a target that some processes serve."""

    round: int
    clients: int
    target: Target
    workers: int

    @property
    def key(self) -> str:
        target = self.target
        return (
            f"{self.round}/{target.system}/{target.name}/{target.api}/{self.workers}/{self.clients}"
        )


class Figures:
    """What was measured, in a file that is written after each measurement."""

    def __init__(self, path: Path, settings: dict[str, Any], *, fresh: bool) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        known = json.loads(path.read_text()) if path.exists() and not fresh else {}
        if known and known["settings"] != settings:
            print(f"{path} has other settings: starting anew", flush=True)
            known = {}
        self.content: dict[str, Any] = known or {"settings": settings, "points": {}}

    def save(self) -> None:
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self.content, indent=1))
        part.replace(self._path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, default=WORK / "serve", help="folder for figures")
    parser.add_argument("--collection", type=Path, default=WORK / "runtime" / "mesh47k")
    parser.add_argument("--annif", type=Path, default=WORK / "annif", help="Annif's projects")
    parser.add_argument("--annif-env", type=Path, help="Annif's environment; default ANNIF/env")
    parser.add_argument("--without-annif", action="store_true")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=2, help="the better round counts")
    parser.add_argument("--minutes", type=float, default=10.0, help="of mixed load; 0: none")
    parser.add_argument("--fresh", action="store_true", help="forget an interrupted run")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "serve.md")
    arguments = parser.parse_args()
    if not (arguments.collection / "documents.sqlite").exists():
        sys.exit(f"{arguments.collection}: no collection; see --collection, benchmarks/runtime.py")
    annif = None
    if not arguments.without_annif:
        env = arguments.annif_env or arguments.annif / "env"
        annif = Annif(arguments.annif.resolve(), env.absolute())
        if not (annif.projects.exists() and annif.gunicorn.exists()):
            sys.exit(
                f"{arguments.annif}: no trained projects; run benchmarks/annif_projects.py, or "
                "leave them out with --without-annif"
            )
    settings = {
        "seconds": arguments.seconds,
        "rounds": arguments.rounds,
        "minutes": arguments.minutes,
        "annif": annif is not None,
        "commit": commit(),
    }
    figures = Figures(arguments.work / "serve.json", settings, fresh=arguments.fresh)
    figures.content["machine"] = {"cores": os.cpu_count(), "python": platform.python_version()}
    measure_speed(arguments, annif, figures)
    if arguments.minutes and "mixed" not in figures.content:
        figures.content["mixed"] = measure_mixed(arguments)
        figures.save()
    arguments.out.write_text(report(figures.content), encoding="utf-8")
    print(f"written to {arguments.out}", flush=True)


def commit() -> str:
    """The commit that is measured, with a mark if files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Annif:
    """Annif's environment, and the folder with its trained projects."""

    work: Path
    env: Path

    @property
    def projects(self) -> Path:
        return self.work / "projects.cfg"

    @property
    def gunicorn(self) -> Path:
        return self.env / "bin" / "gunicorn"

    @property
    def environment(self) -> dict[str, str]:
        return {"ANNIF_PROJECTS": str(self.projects), "ANNIF_DATADIR": str(self.work / "data")}

    def server(self, workers: int, log: Path) -> Server:
        """Annif 1.4 as its documentation serves it: gunicorn with workers of uvicorn."""
        port = free_port()
        command = [str(self.gunicorn), "--bind", f"127.0.0.1:{port}", "--workers", str(workers)]
        command += ["--timeout", "600", "--worker-class", "uvicorn.workers.UvicornWorker"]
        return Server([*command, "annif:create_app()"], log, port, ready_path="/v1/projects")


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def measurements(rounds: int, with_annif: bool) -> Iterator[Measurement]:
    """All measurements: what is compared is measured one after the other, and again later."""
    for round_ in range(rounds):
        for clients in CLIENTS:
            for place in range(max(len(LABELKIN), len(ANNIF))):
                for workers in WORKERS:
                    yield Measurement(round_, clients, LABELKIN[place], workers)
                    if with_annif and place < len(ANNIF):
                        yield Measurement(round_, clients, ANNIF[place], workers)


def measure_speed(arguments: argparse.Namespace, annif: Annif | None, figures: Figures) -> None:
    """Measure whatever is not in the figures yet; all servers run, one at a time is asked."""
    points, memory = figures.content["points"], figures.content.setdefault("memory", {})
    todo = [
        one for one in measurements(arguments.rounds, annif is not None) if one.key not in points
    ]
    if not todo:
        return
    total = len(todo)
    print(f"{total} measurements, {total * (arguments.seconds + WARM_UP + 1) / 60:.0f} minutes")
    with ExitStack() as stack:
        servers = {
            (system, workers): stack.enter_context(started(system, workers, arguments, annif))
            for system in ("labelkin", *(["Annif"] if annif else []))
            for workers in WORKERS
        }
        for number, one in enumerate(todo, start=1):
            server = servers[one.target.system, one.workers]
            others = [pid for each in servers.values() if each is not server for pid in each.pids()]
            idle, began = cpu_seconds(others), time.perf_counter()
            plan = one.target.plan(server, one.clients, WARM_UP, arguments.seconds)
            # Other texts first in each round, none of them just seen in the warm-up.
            plan.first = 331 * one.round
            point = asked(plan)
            point["other cores"] = (cpu_seconds(others) - idle) / (time.perf_counter() - began)
            points[one.key] = point
            memory[f"{one.target.system}/{one.workers}"] = {
                "proportional": proportional_megabytes(server.pids()),
                "resident": resident_megabytes(server.pids()),
            }
            figures.save()
            print(
                f"{number}/{total} {one.key}: {point['per second']:.1f}/s, p50 {point['p50']:.1f} "
                f"ms, p99 {point['p99']:.1f} ms, {point['cpu']:.1f} CPU ms, {point['errors']} "
                "errors",
                flush=True,
            )


@contextmanager
def started(
    system: str, workers: int, arguments: argparse.Namespace, annif: Annif | None
) -> Iterator[Server]:
    """A server that has answered every target with all its processes."""
    log = arguments.work / f"{system.lower()}-{workers}.log"
    log.unlink(missing_ok=True)
    if system == "labelkin":
        options = ("--workers", str(workers))
        server = labelkin_server({NAME: arguments.collection}, log, *options)
        server.start({"PYTHONPATH": str(ROOT / "src")})
        targets = LABELKIN
    else:
        assert annif is not None
        server = annif.server(workers, log)
        server.start(annif.environment)
        targets = ANNIF
    try:
        server.wait_until_ready()
        for target in targets:
            point = asked(target.plan(server, LOADING_CLIENTS, 0.0, LOADING_SECONDS))
            if point["errors"]:
                sys.exit(f"{target}: {point['first errors']}; see {log}")
        print(f"{system} with {workers} workers is up: {server.pids()}", flush=True)
        yield server
        server.stop()
    finally:
        server.end()


def asked(plan: Plan) -> dict[str, Any]:
    """What the clients have measured, in a process of their own."""
    command = [sys.executable, str(ROOT / "benchmarks" / "http_load.py")]
    content = json.dumps(asdict(plan))
    done = subprocess.run(command, check=True, input=content, stdout=subprocess.PIPE, text=True)
    point: dict[str, Any] = json.loads(done.stdout)
    return point


def measure_mixed(arguments: argparse.Namespace) -> dict[str, Any]:
    """Readers and writers on a copy of the collection."""
    copy = arguments.work / "mixed"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(arguments.collection, copy)
    records = records_of(texts_of(TEXTS))
    log = arguments.work / "mixed.log"
    log.unlink(missing_ok=True)
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    print(f"mixed load, {arguments.minutes:g} minutes", flush=True)
    with serving({NAME: copy}, log) as server:
        with server.session() as session:
            headings = headings_of(session, NAME, 1000)
        seconds = 60 * arguments.minutes
        load = MixedLoad(server, NAME, METHODS, records, headings, seconds)
        figures = load.run()
    figures["tracebacks"] = log.read_text(encoding="utf-8").count("Traceback")
    shutil.rmtree(copy)
    print(json.dumps({key: figures[key] for key in figures if key != "samples"}), flush=True)
    return figures


if __name__ == "__main__":
    main()
