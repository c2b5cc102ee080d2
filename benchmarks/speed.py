"""What batches, single texts and searches cost, before and after compiled code.

python benchmarks/speed.py --work FOLDER             # all parts, one after another
python benchmarks/speed.py --work FOLDER PARTS...    # neighbours batch quality cold memory
                                                     # requests report

Writes results/speed.md; needs ../shared/data and Linux. All parts but `neighbours` use
FOLDER/mesh47k, the collection that `labelkin train` was run on, and train it if it is not there.
The figures of each part are kept in results/speed, beside those of benchmarks/million.py; the
report is made from them and from those of the peers in results/peers. Times are seconds of CPU:
ratios of one run can be compared, figures of different runs hardly.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import million
from labelkin import Indexer, __version__, compiled, read_corpus, read_vocabulary
from labelkin.evaluate import evaluate, parse_measure
from labelkin.neighbours import bulk
from labelkin.neighbours.term_search import TermSearch
from labelkin.scoring.settings import RERANK_DEPTH, Settings
from labelkin.store.config import CONFIG_NAME, update_config
from measure import measure
from neighbours import SHARED, zipf_documents
from peers.tables import ratio_table
from peers.throughput import TEXT, of_rounds

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "results" / "speed"
PEERS = ROOT / "results" / "peers"
PARTS = ("neighbours", "batch", "quality", "cold", "memory", "requests", "report")
SIZES = (200_000, 1_000_000)
K = 100
BATCH = 1000
TITLE = "Rheumatoid arthritis in pregnant women: a randomised trial of low-dose prednisolone"
METHODS = ("knn", "lexical", "label-ae", "rerank")
QUALITY_METHODS = ("knn", "label-ae", "rerank")
SAME_SCORE = 1e-6
_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"
WORKERS = 4
WARM = ", warmed up"
WITHOUT_LINEAR = "the same, no linear classifiers"
ONE_FOLD = 6000
SPLITS = ("dev", "test", "l1000")
MEASURES = ("MiF", "P@5", "nDCG@10")
REQUESTS = 100


def saved(part: str, content: Any) -> None:
    PUBLISHED.mkdir(parents=True, exist_ok=True)
    (PUBLISHED / f"{part}.json").write_text(json.dumps(content, indent=1) + "\n")
    print(part, json.dumps(content), flush=True)


# Neighbours: tantivy against postings.


def neighbours(work: Path) -> None:
    found = []
    for size in (0, *SIZES):
        folder = work / f"neighbours-{size or 'mesh47k'}"
        built = indexed(folder, size)
        compared = measure(compare_engines, folder, size).result
        for engine, costs in built.items():
            compared[engine] |= costs
        found.append(compared)
        saved("neighbours", found)


def indexed(folder: Path, size: int) -> dict[str, dict[str, float]]:
    """The collection with both indexes, and what each has cost; made once."""
    path = folder / "built.json"
    if not path.exists():
        shutil.rmtree(folder, ignore_errors=True)
        measure(make_collection, folder, size)
        costs = {}
        for engine in ("tantivy", "postings"):
            run = measure(build, folder, engine)
            costs[engine] = {
                "build": run.cpu_seconds,
                "peak": run.peak_megabytes,
                "disk": run.result / 1e6,
            }
        path.write_text(json.dumps(costs))
    built: dict[str, dict[str, float]] = json.loads(path.read_text())
    return built


def make_collection(folder: Path, size: int) -> None:
    if folder.exists():
        return
    if size:
        with Indexer.create(folder, language="en") as indexer:
            indexer.add(zipf_documents(size, 0, "d"))
        return
    vocabulary = read_vocabulary(SHARED / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(folder, vocabulary, language="en") as indexer:
        indexer.add(read_corpus(SHARED / "mesh47k" / "train.json.gz"))


def build(folder: Path, engine: str) -> int:
    """Build one index; its bytes on disk. The second one finds the terms in the cache."""
    before = disk(folder)
    with Indexer.open(folder) as indexer:
        if engine == "tantivy":
            indexer.build()
        else:
            bulk._LOADING = bulk._INDEXING = 0.0
            indexer.search().expect(BATCH)
    return disk(folder) - before


def disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "indexes").rglob("*") if path.is_file())


def compare_engines(folder: Path, size: int) -> dict[str, Any]:
    """Queries per CPU-second of both engines, alone and from the text on, and what both find."""
    if size:
        documents = list(zipf_documents(400, 1, "q"))
    else:
        names = ("l1000", "test")
        files = [SHARED / "mesh47k" / f"{name}.json.gz" for name in names]
        documents = [one for path in files for one in read_corpus(path).documents()][:2000]
    bulk._LOADING = bulk._INDEXING = 0.0
    with Indexer.open(folder) as indexer:
        search = indexer.search()
        assert isinstance(search, TermSearch)
        search.context.threads = 1
        rows, speeds = {}, {}
        for engine in ("tantivy", "postings"):
            kept, search._bulk = search._bulk, search._bulk if engine == "postings" else None
            search.search(search.texts(documents[:100]), K)
            texts = search.texts(documents)
            started = time.process_time()
            result = search.search(texts, K)
            whole = time.process_time() - started
            searcher = search._searcher
            if search._bulk is not None:
                other = search._bulk.searcher_for(len(documents), search.snapshot, searcher)
                assert other is not None
                searcher = other
            queries = [one.weighted for one in search._queries(texts, search._searcher, 0)]
            started = time.process_time()
            for first in range(0, len(queries), 16):
                part = slice(first, first + 16)
                searcher.nearest(queries[part], K, texts.own_rows[part])
            alone = time.process_time() - started
            rows[engine] = result.rows
            speeds[engine] = {"whole": len(documents) / whole, "alone": len(documents) / alone}
            search._bulk = kept
        count = indexer.collection.count()
    same = [len({*a} & {*b}) / K for a, b in zip(*(rows[e].tolist() for e in rows), strict=True)]
    return {"documents": count, "queries": len(documents), "overlap": float(np.mean(same))} | speeds


# Batches: the reranker as it was, compiled, and with the second engine.


def trained(work: Path) -> Path:
    """The collection with all models, which takes half an hour to train."""
    folder = work / "mesh47k"
    make_collection(folder, 0)
    if not (folder / "models" / "rerank" / "model.json").exists():
        with Indexer.open(folder) as indexer:
            indexer.train()
    return folder


def trained_without_linear(work: Path) -> Path:
    """A copy of that collection whose reranker has no linear classifiers.

    Its trees are as many as by default, but trained on one fold, which takes minutes.
    """
    folder = work / "mesh47k-without-linear"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(trained(work), folder)
        update_config(folder / CONFIG_NAME, {"rerank": {"documents": ONE_FOLD}})
        command = [sys.executable, "-m", "labelkin", "train", str(folder), "--only", "rerank"]
        subprocess.run([*command, "--no-linear"], check=True)
        (folder / "complete").touch()
    return folder


def batch(work: Path) -> None:
    folder, found = trained(work), {}
    for name, is_compiled, has_bulk in (
        ("NumPy, SciPy and LightGBM", False, False),
        ("compiled", True, False),
        ("compiled, second engine", True, True),
    ):
        run = measure(rerank_batch, folder, is_compiled, has_bulk)
        found[name] = run.result | {"peak": run.peak_megabytes}
    rankings = {name: one.pop("scores") for name, one in found.items()}
    reference = rankings.pop("NumPy, SciPy and LightGBM")
    for name, scores in rankings.items():
        common = [key for key in scores if key in reference]
        differences = [abs(scores[key] - reference[key]) for key in common]
        found[name] |= {
            "difference": max(differences),
            "common": len(common) / len(reference),
            "above": float(np.mean(np.array(differences) > SAME_SCORE)),
        }
    saved("batch", found)
    run = measure(rerank_batch, trained_without_linear(work), True, True)
    run.result.pop("scores")
    found[WITHOUT_LINEAR] = run.result | {"peak": run.peak_megabytes}
    saved("batch", found)


def rerank_batch(folder: Path, is_compiled: bool, has_bulk: bool) -> dict[str, Any]:
    """Documents per CPU-second, everything from the text on, and all scores."""
    if not is_compiled:
        compiled.pays = lambda *arguments: False  # noqa: ARG005
    bulk._LOADING = bulk._INDEXING = 0.0
    documents = list(read_corpus(SHARED / "mesh47k" / "l1000.json.gz").documents())[:BATCH]
    settings = Settings(method="rerank")
    method = settings.implementation
    with Indexer.open(folder) as indexer:
        search = indexer.search()
        assert isinstance(search, TermSearch)
        if not has_bulk:
            search._bulk = None
        best = 0.0
        for _ in range(4):
            # The first run loads and compiles.
            started = time.process_time()
            queries = indexer.queries(documents, RERANK_DEPTH)
            ranking = method.rank(queries, settings)
            method.cut(queries, ranking, settings)
            best = max(best, len(documents) / (time.process_time() - started))
    places = np.repeat(np.arange(len(documents)), np.diff(ranking.starts)).tolist()
    pairs = zip(places, ranking.columns.tolist(), strict=True)
    return {"documents": best, "scores": dict(zip(pairs, ranking.scores.tolist(), strict=True))}


# Quality: the same measures whichever engine finds the neighbours.


def quality(work: Path) -> None:
    folder = trained(work)
    found = {
        engine: measure(measured, folder, engine == "both").result for engine in ("tantivy", "both")
    }
    saved("quality", found)


def measured(folder: Path, has_bulk: bool) -> dict[str, dict[str, dict[str, float]]]:
    """The measures of each method on each split, with the engine for batches or without."""
    measures = list(map(parse_measure, MEASURES))
    found: dict[str, dict[str, dict[str, float]]] = {}
    with Indexer.open(folder) as indexer:
        search = indexer.search()
        assert isinstance(search, TermSearch)
        search.decide(has_bulk)
        chosen = [Settings.from_config(indexer.config, method) for method in QUALITY_METHODS]
        for split in SPLITS:
            documents = list(read_corpus(SHARED / "mesh47k" / f"{split}.json.gz").documents())
            evaluations = indexer.compare(documents, chosen)
            for method, evaluation in zip(QUALITY_METHODS, evaluations, strict=True):
                values = evaluate(evaluation, measures)
                found.setdefault(method, {})[split] = values
    return found


# A single text in a new process.


def cold(work: Path) -> None:
    folder, found = trained(work), {}
    for method in METHODS:
        command = [sys.executable, "-m", "labelkin", "suggest", str(folder)]
        command += ["--title", TITLE, "--method", method]
        found[method] = statistics.median(cpu_of(command) for _ in range(5))
    found["--help"] = statistics.median(
        cpu_of([sys.executable, "-m", "labelkin", "--help"]) for _ in range(5)
    )
    saved("cold", found)


def cpu_of(command: list[str]) -> float:
    # An installed package has its modules compiled; a checkout may not be allowed to.
    variables = {name: one for name, one in os.environ.items() if name != _UNCOMPILED}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env=variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# Memory: a process with all methods, alone and beside others of its kind.


def memory(work: Path) -> None:
    folder = trained(work)
    found = {
        f"{count}{shown}": together(folder, count, is_warm)
        for shown, is_warm in (("", False), (WARM, True))
        for count in (1, WORKERS)
    }
    saved("memory", found)


def together(folder: Path, count: int, is_warm: bool) -> list[dict[str, float]]:
    """Megabytes of processes that have answered requests by all methods and are still there."""
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(count + 1), context.Event()
    given = (folder, is_warm, ready, done)
    workers = [context.Process(target=answer_all, args=given) for _ in range(count)]
    for worker in workers:
        worker.start()
    ready.wait(600)
    found = [megabytes(worker.pid) for worker in workers]
    done.set()
    for worker in workers:
        worker.join()
    return found


def answer_all(folder: Path, is_warm: bool, ready: Any, done: Any) -> None:
    """Suggest by every method, one text at a time as a service does, then wait."""
    documents = list(read_corpus(SHARED / "mesh47k" / "l1000.json.gz").documents())[:REQUESTS]
    with Indexer.open(folder, read_only=True) as indexer:
        if is_warm:
            indexer.warm_up(METHODS)
        for method in METHODS:
            settings = Settings.from_config(indexer.config, method)
            for document in documents:
                indexer.suggest([document], settings=settings)
        ready.wait(600)
        done.wait(600)


def megabytes(pid: int | None) -> dict[str, float]:
    """Resident, proportional and private memory of a process, and its part in no file."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    values = {line.split(":")[0]: line.split()[1] for line in lines if line.endswith("kB")}
    sums = {
        "resident": ("Rss",),
        "proportional": ("Pss",),
        "private": ("Private_Clean", "Private_Dirty"),
        "anonymous": ("Anonymous",),
    }
    return {name: sum(int(values[key]) for key in keys) / 1024 for name, keys in sums.items()}


# Single requests in an open collection.


def requests(work: Path) -> None:
    folder = trained(work)
    found = {
        method: {
            shown: measure(request_seconds, folder, method, is_warm, explained).result
            for shown, is_warm, explained in (
                ("plain", False, False),
                ("warm", True, False),
                ("explained", True, True),
            )
        }
        for method in METHODS
    }
    saved("requests", found)


def request_seconds(folder: Path, method: str, is_warm: bool, explained: bool) -> float:
    """The median of CPU-seconds for one text with the evidence; `explained` adds the signals."""
    documents = list(read_corpus(SHARED / "mesh47k" / "l1000.json.gz").documents())
    times = []
    with Indexer.open(folder, read_only=True) as indexer:
        if is_warm:
            indexer.warm_up(METHODS)
        settings = Settings.from_config(indexer.config, method)
        for document in documents[: 20 + REQUESTS]:
            started = time.process_time()
            indexer.suggest([document], settings=settings, explain=explained)
            times.append(time.process_time() - started)
    return statistics.median(times[20:])


# The report.


def report(_: Path) -> None:
    content = "\n".join(_report()) + "\n"
    (ROOT / "results" / "speed.md").write_text(content)
    print(content)


def _report() -> Iterator[str]:
    yield "# Speed"
    yield ""
    yield (
        f"Made by `python benchmarks/speed.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, no GPU. Figures are per second of "
        "CPU; those of one table come from one run."
    )
    for part, section in (
        ("neighbours", _neighbours),
        ("batch", _batch),
        ("quality", _quality),
        ("requests", _requests),
        ("cold", _cold),
        ("memory", _memory),
    ):
        if (PUBLISHED / f"{part}.json").exists():
            yield from section(json.loads((PUBLISHED / f"{part}.json").read_text()))
    yield from _peers(PEERS)
    yield from million.section(PUBLISHED, ROOT / "results" / "figures")


def _neighbours(found: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## Neighbours in batches"
    yield ""
    yield (
        f"The second engine, `postings`, against tantivy: queries per CPU-second, k = {K}, one "
        "thread, the engine alone and everything from the text to the neighbours. The first line "
        "is mesh47k with the records of l1000 and test as queries, the others are generated "
        "(benchmarks/neighbours.py). Both indexes are built from the same cache of terms; "
        "tantivy's, which is built first, fills it. Overlap is that of the neighbours."
    )
    yield ""
    yield (
        "| documents | tantivy alone | postings alone | ratio | tantivy, all | postings, all "
        "| ratio | overlap |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for one in found:
        first, second = one["tantivy"], one["postings"]
        yield (
            f"| {one['documents']:,} | {first['alone']:.0f} | {second['alone']:.0f} "
            f"| {second['alone'] / first['alone']:.1f} | {first['whole']:.0f} "
            f"| {second['whole']:.0f} | {second['whole'] / first['whole']:.1f} "
            f"| {one['overlap']:.4f} |"
        )
    yield ""
    yield "| documents | engine | build, CPU-seconds | peak memory, MB | on disk, MB |"
    yield "|---|---|---|---|---|"
    for one in found:
        for engine in ("tantivy", "postings"):
            built = one[engine]
            yield (
                f"| {one['documents']:,} | {engine} | {built['build']:.1f} | {built['peak']:.0f} "
                f"| {built['disk']:.1f} |"
            )


def _batch(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield ""
    yield "## The reranker in batches"
    yield ""
    yield (
        f"The records of l1000 with all signals, linear classifiers too{_except(found)}, "
        "everything from the text to the headings, the best of four runs in one process. "
        "Candidates are compared with those of the first line: the share that is the same, the "
        "largest difference of a score, and the share of scores that differ by more than "
        f"{SAME_SCORE:g}."
    )
    yield ""
    yield (
        "| | documents per CPU-second | peak memory, MB | same candidates | difference "
        "| other scores |"
    )
    yield "|---|---|---|---|---|---|"
    for name, one in found.items():
        shown = " |  | "
        if "common" in one:
            shown = f"{one['common']:.5f} | {one['difference']:.1g} | {one['above']:.5f}"
        yield f"| {name} | {one['documents']:.0f} | {one['peak']:.0f} | {shown} |"


def _except(found: dict[str, dict[str, Any]]) -> str:
    if WITHOUT_LINEAR not in found:
        return ""
    return f" except in the last line (as many trees, trained on {ONE_FOLD:,} documents)"


def _quality(found: dict[str, dict[str, dict[str, dict[str, float]]]]) -> Iterator[str]:
    yield ""
    yield "## Quality with both engines"
    yield ""
    yield (
        "MiF, P@5 and nDCG@10 of the same collection and models, with the neighbours of tantivy "
        "alone and with those of the second engine, which `annotate` and `eval` choose by "
        "themselves."
    )
    yield ""
    yield f"| method | neighbours | {' | '.join(SPLITS)} |"
    yield "|---|---|" + "---|" * len(SPLITS)
    for method in QUALITY_METHODS:
        for engine, name in (("tantivy", "tantivy"), ("both", "second engine")):
            cells = (
                " / ".join(f"{found[engine][method][split][one]:.4f}" for one in MEASURES)
                for split in SPLITS
            )
            yield f"| `{method}` | {name} | {' | '.join(cells)} |"


def _cold(found: dict[str, float]) -> Iterator[str]:
    yield ""
    yield "## One text in a new process"
    yield ""
    yield (
        "CPU-seconds of `labelkin suggest --title …` on mesh47k, from start to end, the median of "
        "five. `--help` tells how fast the machine was."
    )
    yield ""
    yield "| | CPU-seconds |"
    yield "|---|---|"
    for name, seconds in found.items():
        yield f"| `{name}` | {seconds:.2f} |"


def _requests(found: dict[str, dict[str, float]]) -> Iterator[str]:
    yield ""
    yield "## One text in an open collection"
    yield ""
    yield (
        f"CPU-milliseconds of `Indexer.suggest` for one record of l1000, the median of {REQUESTS}: "
        "with neighbours, words and names as evidence, in a process without and with numba (a "
        "service that has warmed up has it), and *explained* in the latter, with the share of each "
        "signal of the reranker too."
    )
    yield ""
    yield "| | with evidence | with numba | explained |"
    yield "|---|---|---|---|"
    for name, one in found.items():
        shown = (f"{1000 * one[way]:.1f}" for way in ("plain", "warm", "explained"))
        yield f"| `{name}` | {' | '.join(shown)} |"


def _memory(found: dict[str, list[dict[str, float]]]) -> Iterator[str]:
    yield ""
    yield "## Memory"
    yield ""
    yield (
        f"Megabytes of a process that has answered {REQUESTS} requests by each of "
        f"{', '.join(f'`{method}`' for method in METHODS)} on mesh47k, alone and as one of "
        f"{WORKERS} (means). Proportional: pages that processes share are divided by their number. "
        "Anonymous: what is in no file. Warmed up as a service is, they have loaded numba too."
    )
    yield ""
    yield "| processes | resident | proportional | private | anonymous |"
    yield "|---|---|---|---|---|"
    for count, workers in found.items():
        means = [statistics.mean(one[key] for one in workers) for key in workers[0]]
        yield f"| {count} | {' | '.join(f'{one:.0f}' for one in means)} |"


def _peers(folder: Path) -> Iterator[str]:
    """Throughput of all methods and peers, from the run of benchmarks/peers."""
    path = folder / "mesh47k" / "throughput.json"
    if not path.exists():
        return
    stored = json.loads(path.read_text())
    speeds = {
        name: ways[TEXT]
        for name, ways in of_rounds(stored["rounds"], stored["sizes"]).items()
        if TEXT in ways
    }
    rates = {name: one.records_per_cpu_second for name, one in speeds.items()}
    ours = [name for name in rates if name.startswith("labelkin-")]
    others = [name for name in rates if name not in ours]
    yield ""
    yield "## Methods and peers"
    yield ""
    yield (
        "Records of l1000 through each command line, from the text to the labels, one thread, in "
        f"one run of {len(stored['rounds'])} rounds (`make bench-peers`; results/peers.md says how "
        "the peers are set up). Start: CPU-seconds of a process that labels few records; "
        "loading is in it, and not in the rate, apart from that of numba, which batches need."
    )
    yield ""
    yield "| | records per CPU-second | start | peak memory, MB |"
    yield "|---|---|---|---|"
    for name in (*ours, *others):
        one = speeds[name]
        rate = "–" if one.records_per_cpu_second is None else f"{one.records_per_cpu_second:,.0f}"
        yield f"| {name} | {rate} | {one.start:.1f} | {one.peak_megabytes:,.0f} |"
    yield ""
    yield "How many times as fast each method is as each peer:"
    yield ""
    yield from ratio_table(rates, ours, others)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    for part in given.parts:
        globals()[part](given.work)


if __name__ == "__main__":
    main()
