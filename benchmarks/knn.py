"""Basic k-NN on real collections: every k and weighting, other systems, costs.

python benchmarks/knn.py      # writes results/knn.md; needs ../shared/data
"""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from labelkin import Document, Indexer, __version__, read_corpus, read_vocabulary
from labelkin.corpus import write_corpus
from labelkin.evaluate import Evaluation, evaluate, parse_measure
from labelkin.evaluate.alignment import align
from labelkin.evaluate.files import read_label_file
from labelkin.evaluate.gold import gold_matrix, hierarchy_of
from labelkin.evaluate.sweep import KS
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.scoring.votes import WEIGHTINGS
from measure import measure

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
MEASURES = [parse_measure(n) for n in "MiF MiP MiR P@5 P@10 nDCG@5 nDCG@10 MaF EBF hF".split()]
TITLE = "| " + " | ".join(m.name for m in MEASURES) + " |"
SPLITS = ("dev", "test", "l1000")


def cells(values: dict[str, float]) -> str:
    return " | ".join(f"{value:.4f}" for value in values.values())


def mesh47k(folder: Path) -> list[str]:
    data = SHARED / "mesh47k"
    lines = ["## mesh47k, `stems`", ""]
    with Indexer.open(folder) as indexer:
        seconds = 0.0
        for split in SPLITS:
            documents = list(read_corpus(data / f"{split}.json.gz").documents())
            queries = indexer.queries(documents, 100)
            gold = gold_matrix(documents, indexer.vocabulary)
            hierarchy = hierarchy_of(indexer.vocabulary, gold.shape[1])
            lines += [f"### {split}", "", "| k | weighting " + TITLE, "|---" * 12 + "|"]
            started = time.perf_counter()
            for k in KS:
                for weighting in WEIGHTINGS:
                    settings = Settings(knn=ScorerSettings(k=k, weighting=weighting))
                    ranked = settings.implementation.rank(queries, settings)
                    given = settings.implementation.cut(queries, ranked, settings)
                    values = evaluate(
                        Evaluation(gold, given, ranked, hierarchy=hierarchy), MEASURES
                    )
                    lines.append(f"| {k} | {weighting} | {cells(values)} |")
            seconds += time.perf_counter() - started
            lines.append("")
            if split == "l1000":
                aligned, _ = align(
                    read_label_file(data / "l1000.json.gz"),
                    [read_label_file(data / "l1000-mti.tsv.gz")],
                )
                flat = [m for m in MEASURES if m.name != "hF"]
                mti = evaluate(aligned[0].evaluation, flat)
                lines += [
                    "NLM's Medical Text Indexer on l1000, its whole list, scored by "
                    f"`labelkin score`: MiF {mti['MiF']:.4f}, P@5 {mti['P@5']:.4f}.",
                    "",
                ]
        dev = list(read_corpus(data / "dev.json.gz").documents())
        started = time.perf_counter()
        trials = indexer.tune(dev, parse_measure("MiF"))
        swept = time.perf_counter() - started
    best, value = trials[0].settings.knn, trials[0].value
    lines += [
        f"All {len(KS) * 3 * 3} rows above, from cached neighbours, took {seconds:.1f} s.",
        "",
        f"`labelkin tune` on dev: {len(trials)} settings in {swept:.1f} s, neighbours included; "
        f"best k = {best.k}, {best.weighting}, "
        f"count {best.count or 'none'}, "
        f"threshold {best.threshold}: MiF {value:.4f}.",
        "",
    ]
    return lines


def part(number: int) -> int:
    return int(hashlib.md5(str(number).encode()).hexdigest(), 16) % 10


def tibkat(scratch: Path) -> list[str]:
    lines = [
        "## tibkat (GND subjects)",
        "",
        "Test: lines whose number has md5 % 10 = 0; settings chosen on md5 % 10 = 1; the other "
        "lines are indexed.",
        "",
        "| language | settings | MiF | P@5 |",
        "|---|---|---|---|",
    ]
    for language in ("en", "de"):
        documents: list[list[Document]] = [[], [], []]
        corpus = read_corpus(SHARED / "tibkat" / f"{language}.tsv.gz")
        for number, document in enumerate(corpus.documents()):
            documents[min(part(number), 2)].append(replace(document, language=language))
        test, dev, train = documents
        with Indexer.create(scratch / language) as indexer:
            indexer.add(train)
            settings = indexer.tune(dev, parse_measure("MiF"))[0].settings
            evaluation = indexer.evaluate(test, settings=settings)
        best = settings.knn
        values = evaluate(evaluation, [parse_measure("MiF"), parse_measure("P@5")])
        lines.append(
            f"| {language} ({len(test)} records) | k = {best.k}, {best.weighting}, "
            f"count {best.count or 'none'}, threshold {best.threshold} | {cells(values)} |"
        )
    return [*lines, ""]


def annotate(folder: Path, corpus: Path, output: Path) -> int:
    from labelkin.cli.main import app

    app(["annotate", str(folder), str(corpus), "-o", str(output)], standalone_mode=False)
    with output.open() as file:
        return sum(1 for _ in file)


def score_many(folder: Path, corpus: Path) -> int:
    with Indexer.open(folder) as indexer:
        documents = list(islice(read_corpus(corpus).documents(), 10_000))
        return len(indexer.labels(documents))


def costs(folder: Path, scratch: Path) -> list[str]:
    lines = [
        "## Costs",
        "",
        "| step | documents | seconds | peak MB |",
        "|---|---|---|---|",
    ]
    train = SHARED / "mesh47k" / "train.json.gz"
    for count in (10_000, 40_000):
        corpus = scratch / f"{count}.jsonl"
        write_corpus(islice(read_corpus(train).documents(), count), corpus)
        run = measure(annotate, folder, corpus, scratch / f"{count}.out.jsonl")
        lines.append(
            f"| `annotate` (k = 20) | {run.result:,} | {run.seconds:.0f} "
            f"| {run.peak_megabytes:.0f} |"
        )
    run = measure(score_many, folder, train)
    lines.append(
        f"| scoring in one batch, 30,764 labels | {run.result:,} | {run.seconds:.0f} "
        f"| {run.peak_megabytes:.0f} |"
    )
    return [*lines, "", one_text(folder), ""]


def one_text(folder: Path, runs: int = 15) -> str:
    command = [sys.executable, "-m", "labelkin", "suggest", str(folder), "--method", "knn"]
    # With compiled modules, as pip installs them.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    seconds, cpu_seconds = [], []
    for _ in range(runs + 1):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [*command, "--title", "Heart failure in rats"],
            check=True,
            capture_output=True,
            env=environment,
        )
        seconds.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert b"20 nearest documents" in done.stdout
    # The first run compiles and warms the disk cache.
    wall, cpu = statistics.median(seconds[1:]), statistics.median(cpu_seconds[1:])
    return (
        f"`suggest` for one text in a fresh process: {wall:.2f} s, {cpu:.2f} CPU-seconds "
        f"(medians of {runs}; best {min(seconds[1:]):.2f} and {min(cpu_seconds[1:]):.2f})."
    )


def report(parts: Sequence[list[str]]) -> str:
    head = [
        "# Basic k-NN",
        "",
        f"Made by `python benchmarks/knn.py` with labelkin {__version__} on Python "
        f"{platform.python_version()}, 2 shared cores. The number of headings is the rounded mean "
        "of the neighbours' (the paper's rule) unless stated; distances are `self`.",
        "",
    ]
    return "\n".join([*head, *(line for lines in parts for line in lines)])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        folder = scratch / "mesh47k"
        vocabulary = read_vocabulary(SHARED / "mesh" / "descriptors.tsv.gz")
        with Indexer.create(folder, vocabulary, language="en") as indexer:
            indexer.add(read_corpus(SHARED / "mesh47k" / "train.json.gz"))
            indexer.build()
        parts = []
        for work in (
            lambda: mesh47k(folder),
            lambda: tibkat(scratch),
            lambda: costs(folder, scratch),
        ):
            parts.append(work())
            (ROOT / "results" / "knn.md").write_text(report(parts))
            print("\n".join(parts[-1]), flush=True)


if __name__ == "__main__":
    main()
