"""What a request costs in an open collection, before and after the runtime was redesigned.

    python benchmarks/runtime.py --work benchmarks/work/runtime    # writes results/runtime.md

A checkout of the commit before the redesign is made in the work folder. It makes and trains the
collections, so that both versions answer from the same models and the same index; then both are
measured in turn, each in processes of its own. Needs ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
BEFORE = "11c7f5e"
METHODS = ("knn", "lexical", "label-ae", "mix", "mix-ranked", "rerank")
GOALS = {"knn": 4, "label-ae": 20, "mix-ranked": 12, "rerank": 25}
WARM_UP, REQUESTS, ADDS = 20, 100, 9
ROUNDS = 2
AUTOENCODER_MINUTES = 14


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work" / "runtime")
    parser.add_argument("--child", nargs=2, metavar=("TASK", "COLLECTION"))
    arguments = parser.parse_args()
    if arguments.child:
        task, collection = arguments.child
        print(json.dumps(CHILDREN[task](collection)))
        return
    work: Path = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    versions = {"before": checkout(work), "after": ROOT / "src"}
    make_collections(work, versions["before"])
    measured = [
        {name: measure(work, source) for name, source in versions.items()} for _ in range(ROUNDS)
    ]
    (work / "runtime.json").write_text(json.dumps(measured, indent=1))
    (ROOT / "results" / "runtime.md").write_text(report(measured))


def checkout(work: Path) -> Path:
    """The sources of the commit before the redesign."""
    folder = work / "before"
    if not folder.exists():
        command = ["git", "-C", str(ROOT), "worktree", "add", "--detach", str(folder), BEFORE]
        subprocess.run(command, check=True)
    return folder / "src"


def make_collections(work: Path, source: Path) -> None:
    """mesh47k with all models, its first 5,000 records, and the Finnish titles, all indexed."""
    mesh, yso = SHARED / "mesh" / "descriptors.tsv.gz", SHARED / "yso" / "yso-fi.tsv.gz"
    if not (work / "mesh47k").exists():
        made = work / "mesh47k.part"
        shutil.rmtree(made, ignore_errors=True)
        labelkin(source, "init", made, "--vocab", mesh, "--language", "en")
        labelkin(source, "add", made, SHARED / "mesh47k" / "train.json.gz")
        labelkin(source, "train", made, "--time-budget", AUTOENCODER_MINUTES)
        made.rename(work / "mesh47k")
    if not (work / "mesh5k").exists():
        made = work / "mesh5k.part"
        shutil.rmtree(made, ignore_errors=True)
        labelkin(source, "init", made, "--vocab", mesh, "--language", "en")
        labelkin(source, "add", made, first_records(work, 5_000))
        labelkin(source, "build", made)
        made.rename(work / "mesh5k")
    if not (work / "yso").exists():
        made = work / "yso.part"
        shutil.rmtree(made, ignore_errors=True)
        labelkin(source, "init", made, "--vocab", yso, "--language", "fi")
        labelkin(source, "add", made, SHARED / "yso" / "yso-finna-fi.tsv.gz")
        labelkin(source, "build", made)
        made.rename(work / "yso")


def first_records(work: Path, count: int) -> Path:
    import gzip

    path = work / f"first-{count}.json"
    with gzip.open(SHARED / "mesh47k" / "train.json.gz", "rt", encoding="utf-8") as file:
        articles = json.load(file)["articles"][:count]
    path.write_text(json.dumps({"articles": articles}), encoding="utf-8")
    return path


def labelkin(source: Path, *arguments: object) -> None:
    command = [sys.executable, "-m", "labelkin", *map(str, arguments)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(source)})


def measure(work: Path, source: Path) -> dict[str, Any]:
    """All figures of one version; changes are made to copies."""
    figures: dict[str, Any] = {
        "requests": child(source, "requests", work / "mesh47k"),
        "memory": child(source, "memory", work / "mesh47k"),
    }
    for name in ("mesh5k", "mesh47k", "yso"):
        copy = work / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(work / name, copy)
        figures[f"add {name}"] = child(source, "adds", copy)
        if name == "mesh47k":
            figures[f"add {name}, rerank"] = child(source, "reranked_adds", copy)
        shutil.rmtree(copy)
    return figures


def child(source: Path, task: str, collection: Path) -> Any:
    command = [sys.executable, __file__, "--child", task, str(collection)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    print(source, task, collection.name, done.stdout.strip(), flush=True)
    return json.loads(done.stdout)


def texts(count: int) -> list[Any]:
    """Records of dev as new texts: no id, no labels."""
    from labelkin import read_corpus

    documents = read_corpus(SHARED / "mesh47k" / "dev.json.gz").documents()
    return [replace(one, id="", labels=()) for one, _ in zip(documents, range(count), strict=False)]


def requests(collection: str) -> dict[str, Any]:
    """CPU and wall milliseconds of a warm request for one text, by every method."""
    from labelkin import Indexer
    from labelkin.scoring.settings import Settings

    documents = texts(WARM_UP + REQUESTS)
    figures = {}
    with Indexer.open(collection) as indexer:
        for method in METHODS:
            settings = Settings.from_config(indexer.config, method)
            for document in documents[:WARM_UP]:
                indexer.suggest([document], settings=settings)
            cpu, wall = [], []
            for document in documents[WARM_UP:]:
                started, used = time.perf_counter(), time.process_time()
                indexer.suggest([document], settings=settings)
                cpu.append(time.process_time() - used)
                wall.append(time.perf_counter() - started)
            limits = []
            for number, document in enumerate(documents[:10], start=1):
                changed = settings.changed(limit=number)
                used = time.process_time()
                indexer.suggest([document], settings=changed)
                limits.append(time.process_time() - used)
            figures[method] = {
                "cpu": 1e3 * statistics.median(cpu),
                "wall": 1e3 * statistics.median(wall),
                "other limit": 1e3 * statistics.median(limits),
            }
    return figures


def memory(collection: str) -> dict[str, float]:
    """Megabytes of a process that has answered with every method."""
    from labelkin import Indexer
    from labelkin.scoring.settings import Settings

    with Indexer.open(collection) as indexer:
        for method in METHODS:
            settings = Settings.from_config(indexer.config, method)
            for document in texts(40):
                indexer.suggest([document], settings=settings)
        lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines if "kB" in line}
    return {"resident": sizes["VmRSS"], "peak": sizes["VmHWM"]}


def adds(collection: str, method: str = "knn") -> dict[str, float]:
    """Milliseconds of adding one document, and of the first request after it."""
    from labelkin import Document, Indexer
    from labelkin.scoring.settings import Settings

    with Indexer.open(collection) as indexer:
        settings = Settings.from_config(indexer.config, method)
        stored = [one for one, _ in zip(indexer.documents(), range(60), strict=False)]
        queries = [replace(one, id="", labels=()) for one in stored[30:]]
        for query in queries[:5]:
            indexer.suggest([query], settings=settings)
        adding, first, cpu = [], [], []
        for number in range(ADDS):
            like = stored[number]
            new = Document(
                f"new-{time.time_ns()}",
                like.title,
                like.body,
                language=like.language,
                labels=like.labels,
            )
            started = time.perf_counter()
            indexer.add([new])
            added, used = time.perf_counter(), time.process_time()
            indexer.suggest([queries[number]], settings=settings)
            adding.append(added - started)
            first.append(time.perf_counter() - added)
            cpu.append(time.process_time() - used)
    return {
        "add": 1e3 * statistics.median(adding),
        "first": 1e3 * statistics.median(first),
        "slowest": 1e3 * max(first),
        "cpu": 1e3 * statistics.median(cpu),
    }


def reranked_adds(collection: str) -> dict[str, float]:
    """The same with the method `rerank`."""
    return adds(collection, "rerank")


CHILDREN = {
    "requests": requests,
    "memory": memory,
    "adds": adds,
    "reranked_adds": reranked_adds,
}


def report(measured: list[dict[str, Any]]) -> str:
    """results/runtime.md."""

    def value(version: str, *path: str) -> float:
        """The better of the rounds: noise only ever adds."""
        found = []
        for one in measured:
            figure: Any = one[version]
            for key in path:
                figure = figure[key]
            found.append(figure)
        return min(found)

    lines = [
        "# The runtime",
        "",
        "What a request costs in an open collection, before (commit "
        f"`{BEFORE}`) and after the redesign around snapshots and shared models. "
        "Made by `python benchmarks/runtime.py` "
        f"on Python {platform.python_version()}, 2 cores, both versions in one run on the same "
        f"collections and models; each figure is the better of {ROUNDS} rounds.",
        "",
        "## A warm request for one text",
        "",
        f"mesh47k (43,178 records, 30,764 headings), CPU milliseconds, median of {REQUESTS} texts "
        "of dev. The headings come with their evidence (documents, words); the weights of the "
        "reranker's signals, which the version before always computed, only on demand. "
        '"Other limit" is a request with a limit that was not asked for before.',
        "",
        "| method | before | after | ratio | goal | other limit, before | other limit, after |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        before, after = (
            value("before", "requests", method, "cpu"),
            value("after", "requests", method, "cpu"),
        )
        changed = [value(v, "requests", method, "other limit") for v in ("before", "after")]
        lines.append(
            f"| `{method}` | {before:.1f} | {after:.1f} | {before / after:.1f} × | "
            f"{GOALS.get(method, '')} | {changed[0]:.1f} | {changed[1]:.1f} |"
        )
    resident = [value(v, "memory", "resident") for v in ("before", "after")]
    peak = [value(v, "memory", "peak") for v in ("before", "after")]
    lines += [
        "",
        "## Memory",
        "",
        "One process that has answered 40 texts with each of the six methods (goal 450 MB):",
        "",
        "| | before | after |",
        "|---|---|---|",
        f"| resident MB | {resident[0]:.0f} | {resident[1]:.0f} |",
        f"| peak MB | {peak[0]:.0f} | {peak[1]:.0f} |",
        "",
        "## The first request after an `add`",
        "",
        f"Wall milliseconds of adding one document and of the next request, which has to see it; "
        f"median and slowest of {ADDS} (goal 150 ms, not growing with the collection). The index "
        "is brought up to date within that request.",
        "",
        "| collection | method | add, before | add, after | first request, before | after | "
        "slowest, before | slowest, after |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key, name, method in (
        ("add mesh5k", "5,000 records", "knn"),
        ("add mesh47k", "43,178 records", "knn"),
        ("add yso", "1,055,694 titles", "knn"),
        ("add mesh47k, rerank", "43,178 records", "rerank"),
    ):
        cells = [
            value(version, key, figure)
            for figure in ("add", "first", "slowest")
            for version in ("before", "after")
        ]
        lines.append(f"| {name} | `{method}` | " + " | ".join(f"{one:.0f}" for one in cells) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
