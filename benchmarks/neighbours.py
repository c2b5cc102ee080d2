"""How fast and how exactly neighbours are found.

    python benchmarks/neighbours.py [--sizes 50000 200000 1000000]  # writes results/neighbours.md

mesh47k is measured where ../shared/data is at hand. The generated collections have words that
follow Zipf's law; the one of 200,000 documents is searched by scipy as well, in the same run.
"""

from __future__ import annotations

import argparse
import math
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labelkin import Document, Indexer, __version__, read_corpus, read_vocabulary
from labelkin.neighbours import Neighbours
from labelkin.neighbours.bm25 import K1, B, idf, quantised_length
from labelkin.neighbours.tantivy_engine import TantivySearcher
from labelkin.neighbours.term_search import TermSearch
from labelkin.represent.representation import make_representation
from labelkin.store.config import CONFIG_NAME, update_config
from measure import Measured, measure

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
SCIPY_SIZE = 200_000
TERMS = 300_000
QUERIES = 400
K = 100


def zipf_documents(count: int, seed: int, prefix: str) -> Iterator[Document]:
    """Texts of about 110 words drawn by Zipf's law, each with a few of 5,000 labels."""
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(10, TERMS + 10)
    cumulative = np.cumsum(weights / weights.sum())
    for start in range(0, count, 10_000):
        size = min(10_000, count - start)
        lengths = np.clip(rng.lognormal(4.6, 0.4, size), 20, 600).astype(int)
        words = np.searchsorted(cumulative, rng.random(lengths.sum()))
        labels = rng.zipf(1.3, (size, 4)) % 5000
        for number, part in enumerate(np.split(words, np.cumsum(lengths)[:-1])):
            yield Document(
                f"{prefix}{start + number}",
                body=" ".join(f"w{word}" for word in part),
                language="en",
                labels=tuple(f"L{label}" for label in set(labels[number].tolist())),
            )


def with_threads(folder: Path, threads: int, terms: int = 0) -> Indexer:
    """The collection with these settings, which stay in its labelkin.toml."""
    changes = {"threads": threads, "max_query_terms": terms}
    update_config(folder / CONFIG_NAME, {"neighbours": changes})
    return Indexer.open(folder)


def make_collection(folder: Path, count: int) -> None:
    with Indexer.create(folder, language="en") as indexer:
        indexer.add(zipf_documents(count, 0, "d"))


def build(folder: Path) -> int:
    with Indexer.open(folder) as indexer:
        return indexer.build("stems")


def query_speed(folder: Path, documents: list[Document], threads: int, terms: int) -> Neighbours:
    with with_threads(folder, threads, terms) as indexer:
        search = indexer.search("stems")
        search.search(search.texts(documents[:20]), K)
        started, cpu = time.perf_counter(), time.process_time()
        found = search.search(search.texts(documents), K)
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    speed = {"wall": len(documents) / seconds, "cpu": len(documents) / cpu_seconds}
    return Neighbours(found.ids, found.rows, found.scores, found.own_scores, speed)


def python_share(folder: Path, documents: list[Document]) -> float:
    """The part of the CPU time of a search that is not spent inside the engine."""
    inside = 0.0

    class Timed:
        def __init__(self, engine: Any) -> None:
            self._engine = engine

        def __getattr__(self, name: str) -> Any:
            return getattr(self._engine, name)

        def search(self, *arguments: Any, **options: Any) -> Any:
            nonlocal inside
            started = time.thread_time()
            try:
                return self._engine.search(*arguments, **options)
            finally:
                inside += time.thread_time() - started

    with with_threads(folder, 1) as indexer:
        search = indexer.search("stems")
        assert isinstance(search, TermSearch)
        searcher = search._searcher
        assert isinstance(searcher, TantivySearcher)
        search.search(search.texts(documents[:20]), K)
        searcher._searcher = Timed(searcher._searcher)  # type: ignore[assignment]
        cpu = time.process_time()
        search.search(search.texts(documents), K)
        return 1 - inside / (time.process_time() - cpu)


def scipy_speed(folder: Path, documents: list[Document]) -> tuple[dict[str, float], np.ndarray]:
    """BM25 by a sparse matrix of weights, searched in two ways.

    `rows` multiplies the whole matrix (documents × terms, CSR) with each query;
    `columns` adds up the columns (CSC) of the query's terms only, which is an
    inverted index by another name.
    """
    from scipy.sparse import csr_matrix

    columns: dict[str, int] = {}
    indices, values, starts, rows = [], [], [0], []
    with Indexer.open(folder) as indexer:
        (kind,) = make_representation("stems", indexer.config.representation).kinds
        end = indexer.collection.generation().next_row
        for page in indexer.collection.labelled_texts(0, end):
            for (row, _), terms in zip(page, kind.extract([d for _, d in page]), strict=True):
                rows.append(row)
                found, counts = np.unique(
                    [columns.setdefault(term, len(columns)) for term in terms], return_counts=True
                )
                indices.append(found)
                values.append(counts)
                starts.append(starts[-1] + len(found))
        queries = [
            sorted({columns[term] for term in terms if term in columns})
            for terms in kind.extract(documents)
        ]
    frequencies = np.concatenate(values).astype(np.float32)
    matrix = csr_matrix((frequencies, np.concatenate(indices), starts))
    lengths = np.asarray(matrix.sum(1)).ravel()
    document_frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
    weights = np.array([idf(len(rows), n) for n in document_frequency], dtype=np.float32)
    quantised = np.array([quantised_length(int(length)) for length in lengths], dtype=np.float32)
    damping = K1 * (1 - B + B * quantised / lengths.mean())
    tf = matrix.data
    per_row = np.repeat(damping, np.diff(matrix.indptr))
    matrix.data = (weights[matrix.indices] * (K1 + 1) * tf / (tf + per_row)).astype(np.float32)
    by_term = matrix.tocsc()
    speed = {}
    nearest = np.empty((len(queries), K), dtype=np.int64)
    for way in ("rows", "columns"):
        cpu = time.process_time()
        for place, query in enumerate(queries):
            if way == "rows":
                asked = np.zeros(matrix.shape[1], dtype=np.float32)
                asked[query] = 1
                scores = matrix @ asked
            else:
                scores = np.asarray(by_term[:, query].sum(1)).ravel()
            best = np.argpartition(-scores, K)[:K]
            nearest[place] = best[np.lexsort((best, -scores[best]))]
        speed[way] = len(queries) / (time.process_time() - cpu)
    return speed, np.array(rows)[nearest]


def index_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "indexes").rglob("*") if path.is_file())


def overlap(ours: np.ndarray, theirs: np.ndarray, k: int) -> float:
    shared = [len(set(a[:k]) & set(b[:k])) / k for a, b in zip(ours, theirs, strict=True)]
    return float(np.mean(shared))


def micro_f(folder: Path, documents: list[Document], found: Neighbours, k: int = 20) -> float:
    """Majority vote of k neighbours, cut at their mean number of labels."""
    with Indexer.open(folder) as indexer:
        sets, vocabulary = indexer.collection.label_sets(), indexer.vocabulary
        right = given = true = 0
        for place, document in enumerate(documents):
            labels = sets.matrix(found.rows[place, :k], len(vocabulary))
            votes = np.asarray(labels.sum(0)).ravel()
            scores = labels.T @ found.scores[place, :k]
            voted = np.flatnonzero(votes)
            ranked = voted[np.lexsort((voted, -scores[voted], -votes[voted]))]
            chosen = ranked[: round(labels.nnz / k)]
            gold = {vocabulary.resolve(label).column for label in document.labels} - {None}
            right += len(gold & set(chosen.tolist()))
            given += len(chosen)
            true += len(document.labels)
    return 2 * right / (given + true)


def mesh47k(scratch: Path) -> list[str]:
    folder = scratch / "mesh47k"
    data = SHARED / "mesh47k"
    with Indexer.create(
        folder, read_vocabulary(SHARED / "mesh" / "descriptors.tsv.gz"), language="en"
    ) as indexer:
        stored = indexer.add(read_corpus(data / "train.json.gz")).documents
    built = measure(build, folder)
    splits = {
        name: list(read_corpus(data / f"{name}.json.gz").documents())
        for name in ("dev", "test", "l1000")
    }
    everything = [document for documents in splits.values() for document in documents]
    lines = [
        "## mesh47k",
        "",
        f"Built from {stored:,} stored records in {built.seconds:.1f} s "
        f"({built.cpu_seconds:.1f} CPU-seconds), peak memory {built.peak_megabytes:.0f} MB, "
        f"{index_bytes(folder) / 1e6:.1f} MB on disk.",
        "",
        f"| terms in a query | threads | queries per CPU-second (k = {K}) | queries per second "
        "| same among the first 20 | MiF dev | test | l1000 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    reference = None
    for terms, threads in ((0, 1), (0, 2), (60, 1), (40, 1), (30, 1), (20, 1)):
        run: Measured = measure(query_speed, folder, everything, threads, terms)
        found: Neighbours = run.result
        reference = found if reference is None else reference
        scores, start = [], 0
        for documents in splits.values():
            part = slice(start, start + len(documents))
            start += len(documents)
            of_split = Neighbours(
                found.ids[part], found.rows[part], found.scores[part], found.own_scores[part]
            )
            scores.append(f"{micro_f(folder, documents, of_split):.4f}")
        lines.append(
            f"| {terms or 'all'} | {threads} | {found.fingerprint['cpu']:.0f} "
            f"| {found.fingerprint['wall']:.0f} | {overlap(found.rows, reference.rows, 20):.3f} "
            f"| {' | '.join(scores)} |"
        )
    share = measure(python_share, folder, everything).result
    lines += [
        "",
        f"Of the CPU time of a search with one thread, {share:.0%} is spent in Python (stemming, "
        "building the query, collecting the hits), the rest inside the engine, which releases the "
        "interpreter lock.",
        "",
    ]
    return lines


def generated(scratch: Path, sizes: list[int]) -> list[str]:
    queries = list(zipf_documents(QUERIES, 1, "q"))
    lines = [
        "## Generated collections",
        "",
        f"Zipf-distributed words, {QUERIES} new texts of the same kind as queries, k = {K}.",
        "",
        "| documents | engine | build, s | peak MB | on disk, MB "
        "| queries per CPU-second, 1 thread | 2 threads | queries per second, 2 threads |",
        "|---|---|---|---|---|---|---|---|",
    ]
    notes, points = [], []
    for size in sizes:
        folder = scratch / str(size)
        make_collection(folder, size)
        built = measure(build, folder)
        one = measure(query_speed, folder, queries, 1, 0).result
        two = measure(query_speed, folder, queries, 2, 0).result
        disk = index_bytes(folder) / 1e6
        cpu = one.fingerprint["cpu"]
        points.append((size, 1 / cpu, built.seconds, disk, 1 / two.fingerprint["wall"]))
        lines.append(
            f"| {size:,} | labelkin | {built.seconds:.0f} | {built.peak_megabytes:.0f} "
            f"| {disk:.0f} | {cpu:.0f} | {two.fingerprint['cpu']:.0f} "
            f"| {two.fingerprint['wall']:.0f} |"
        )
        if size == SCIPY_SIZE:
            speed, nearest = measure(scipy_speed, folder, queries).result
            lines.append(f"| {size:,} | scipy, CSR rows | | | | {speed['rows']:.0f} | | |")
            lines.append(f"| {size:,} | scipy, CSC columns | | | | {speed['columns']:.0f} | | |")
            notes.append(
                f"At {size:,} documents labelkin answers {cpu / speed['rows']:.2f} times as many "
                "queries per CPU-second as brute force over CSR rows in the same run, and "
                f"{cpu / speed['columns']:.2f} times as many as the sum of the query's CSC columns "
                "(in memory, all terms, no updates). Of the first 20 neighbours "
                f"{overlap(one.rows, nearest, 20):.4f} are the same as by the formula, of the "
                f"first {K} {overlap(one.rows, nearest, K):.4f}."
            )
        print("\n".join(lines[-2:]), flush=True)
    return [*lines, "", *notes, "", *extrapolation(points)]


def extrapolation(
    points: list[tuple[int, float, float, float, float]], target: int = 7_000_000
) -> list[str]:
    """Power laws through the measured sizes, drawn out to `target` documents."""
    if len(points) < 2:
        return []
    sizes = np.log([point[0] for point in points])
    estimates = []
    for column in range(1, 5):
        slope, offset = np.polyfit(sizes, np.log([point[column] for point in points]), 1)
        estimates.append((math.exp(offset + slope * math.log(target)), slope))
    (cpu, cpu_slope), (seconds, build_slope), (disk, disk_slope), (wall, _) = estimates
    return [
        f"## {target / 1e6:.0f} million documents: an extrapolation",
        "",
        "A power law through the sizes above, not a measurement: "
        f"{1 / cpu:.1f} queries per CPU-second (time per query grows as N^{cpu_slope:.2f}) and "
        f"{1 / wall:.1f} queries per second on two cores; {seconds / 3600:.1f} hours to build "
        f"(N^{build_slope:.2f}) and {disk / 1000:.1f} GB on disk (N^{disk_slope:.2f}). The "
        "generated texts may be a hard case: compare mesh47k with the collection of 50,000 above.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[50_000, 200_000, 1_000_000])
    sizes = parser.parse_args().sizes
    with tempfile.TemporaryDirectory() as scratch_name:
        scratch = Path(scratch_name)
        report = [
            "# Finding neighbours",
            "",
            f"Made by `python benchmarks/neighbours.py` with labelkin {__version__} on Python "
            f"{platform.python_version()}, 2 shared cores; representation `stems`, true BM25. "
            "Queries per CPU-second count everything from the text to the neighbours.",
            "",
        ]
        if SHARED.is_dir():
            report += mesh47k(scratch)
            print("\n".join(report), flush=True)
        report += generated(scratch, sizes)
    (ROOT / "results").mkdir(exist_ok=True)
    (ROOT / "results" / "neighbours.md").write_text("\n".join(report))
    print("\n".join(report))


if __name__ == "__main__":
    main()
