"""What batches, single texts and searches cost, before and after compiled code.

python benchmarks/speed.py --work FOLDER             # all parts, one after another
python benchmarks/speed.py --work FOLDER PARTS...    # neighbours batch cold report

Writes results/speed.md; needs ../shared/data. `batch` and `cold` use FOLDER/mesh47k, the collection
that `labelkin train` was run on, and train it if it is not there. Results of a part stay in the
folder; the report is made from those that are there. Times are seconds of CPU: ratios of one run
can be compared, figures of different runs hardly.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labelkin import Indexer, __version__, compiled, read_corpus, read_vocabulary
from labelkin.neighbours import bulk
from labelkin.neighbours.term_search import TermSearch
from labelkin.scoring.settings import RERANK_DEPTH, Settings
from measure import measure
from neighbours import SHARED, zipf_documents

ROOT = Path(__file__).parents[1]
PARTS = ("neighbours", "batch", "cold", "report")
SIZES = (200_000, 1_000_000)
K = 100
BATCH = 1000
TITLE = "Rheumatoid arthritis in pregnant women: a randomised trial of low-dose prednisolone"
METHODS = ("knn", "lexical", "label-ae", "rerank")


def saved(work: Path, part: str, content: Any) -> None:
    (work / f"{part}.json").write_text(json.dumps(content, indent=1))
    print(part, json.dumps(content), flush=True)


# Neighbours: tantivy against postings.


def neighbours(work: Path) -> None:
    found = []
    for size in (0, *SIZES):
        folder = work / f"neighbours-{size or 'mesh47k'}"
        measure(make_collection, folder, size)
        built = {engine: measure(build, folder, engine) for engine in ("tantivy", "postings")}
        compared = measure(compare_engines, folder, size).result
        for engine, one in built.items():
            compared[engine] |= {
                "build": one.cpu_seconds,
                "peak": one.peak_megabytes,
                "disk": one.result / 1e6,
            }
        found.append(compared)
        saved(work, "neighbours", found)


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


def batch(work: Path) -> None:
    folder, found = trained(work), {}
    for name, is_compiled, has_bulk in (
        ("NumPy, SciPy and LightGBM", False, False),
        ("compiled", True, False),
        ("compiled, second engine", True, True),
    ):
        run = measure(rerank_batch, folder, is_compiled, has_bulk)
        found[name] = run.result | {"peak": run.peak_megabytes}
    reference = np.array(found["NumPy, SciPy and LightGBM"].pop("scores"))
    for one in found.values():
        if "scores" in one:
            scores = np.array(one.pop("scores"))
            same = scores.shape == reference.shape
            one["difference"] = float(np.abs(scores - reference).max()) if same else None
    saved(work, "batch", found)


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
        best, scores = 0.0, np.zeros(0)
        for _ in range(4):
            # The first run loads and compiles.
            started = time.process_time()
            queries = indexer.queries(documents, RERANK_DEPTH)
            ranking = method.rank(queries, settings)
            method.cut(queries, ranking, settings)
            best = max(best, len(documents) / (time.process_time() - started))
            scores = ranking.scores
    return {"documents": best, "scores": scores.tolist()}


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
    saved(work, "cold", found)


def cpu_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# The report.


def report(work: Path) -> None:
    content = "\n".join(_report(work))
    (ROOT / "results" / "speed.md").write_text(content)
    print(content)


def _report(work: Path) -> Iterator[str]:
    yield "# Speed"
    yield ""
    yield (
        f"Made by `python benchmarks/speed.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, {os.cpu_count()} cores, no GPU. Figures are per second of "
        "CPU; those of one table come from one run. What is not here yet: methods against Omikuji, "
        "PECOS and Annif, memory, a million real records."
    )
    if (work / "neighbours.json").exists():
        yield from _neighbours(json.loads((work / "neighbours.json").read_text()))
    if (work / "batch.json").exists():
        yield from _batch(json.loads((work / "batch.json").read_text()))
    if (work / "cold.json").exists():
        yield from _cold(json.loads((work / "cold.json").read_text()))


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
        "The records of l1000 with all signals, linear classifiers too, everything from the text "
        "to the headings, the best of four runs in one process. Difference: the largest of any "
        "candidate's score from that of the first line."
    )
    yield ""
    yield "| | documents per CPU-second | peak memory, MB | difference |"
    yield "|---|---|---|---|"
    for name, one in found.items():
        difference = one.get("difference")
        shown = "" if name == next(iter(found)) else "other candidates"
        if difference is not None:
            shown = f"{difference:.1g}"
        yield f"| {name} | {one['documents']:.0f} | {one['peak']:.0f} | {shown} |"


def _cold(found: dict[str, float]) -> Iterator[str]:
    yield ""
    yield "## One text in a new process"
    yield ""
    yield (
        "CPU-seconds of `labelkin suggest --title …` on mesh47k, from start to end, the median of "
        "five."
    )
    yield ""
    yield "| | CPU-seconds |"
    yield "|---|---|"
    for name, seconds in found.items():
        yield f"| `{name}` | {seconds:.2f} |"


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
