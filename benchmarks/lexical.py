"""Headings that texts name: how many of them are right, and what finding them costs.

python benchmarks/lexical.py [--collection FOLDER]    # writes results/lexical.md

Needs ../shared/data. FOLDER is a collection of mesh47k's training part; without it one is made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from labelkin import Document, Indexer, Vocabulary, __version__, read_corpus, read_vocabulary
from labelkin.evaluate import evaluate, parse_measure
from labelkin.evaluate.gold import gold_matrix
from labelkin.represent.folding import folded
from labelkin.represent.stems import stemmer
from labelkin.scoring.lexical import lexical_scores
from labelkin.scoring.mentions import MentionFinder, Mentions
from labelkin.scoring.name_cache import name_tables
from labelkin.scoring.name_table import NameTable
from labelkin.scoring.settings import ScorerSettings, Settings

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"
SPLITS = ("dev", "test", "l1000")
MEASURES = [parse_measure(name) for name in "MiP MiR MiF P@5 predicted".split()]
MIF = parse_measure("MiF")
TIMED = 10_000

Folding = Callable[[str, str], str]


def corpus(split: str) -> list[Document]:
    return list(read_corpus(SHARED / "mesh47k" / f"{split}.json.gz").documents())


def part(number: int) -> int:
    return int(hashlib.md5(str(number).encode()).hexdigest(), 16) % 10


def tibkat_parts(language: str) -> tuple[list[Document], list[Document]]:
    """The records to test on and those to choose the cut on."""
    test, dev = [], []
    records = read_corpus(SHARED / "tibkat" / f"{language}.tsv.gz").documents()
    for number, document in enumerate(records):
        if part(number) < 2:
            (dev if part(number) else test).append(replace(document, language=language))
    return test, dev


def is_right(mentions: Mentions, gold: Any) -> np.ndarray:
    return np.asarray(gold[mentions.documents, mentions.columns]).ravel() > 0


def shares(chosen: np.ndarray, right: np.ndarray, gold: Any) -> str:
    """How many are chosen a document, the share of them that is right, and of the gold labels."""
    precision = right[chosen].mean() if chosen.any() else 0.0
    recall = right[chosen].sum() / gold.nnz
    return f"{chosen.sum() / gold.shape[0]:.2f} | {precision:.4f} | {recall:.4f}"


def best_cut(mentions: Mentions, right: np.ndarray, gold: Any) -> float:
    """MiF of the formula at the threshold that does best."""
    scores = lexical_scores(mentions)
    order = np.argsort(-scores, kind="stable")
    given = np.arange(1, len(order) + 1)
    values = 2 * np.cumsum(right[order]) / (given + gold.nnz)
    is_last = np.append(np.diff(scores[order]) != 0, True)
    return float(values[is_last].max())


def case_only(word: str, _language: str) -> str:
    return word.casefold()


def snowball(word: str, language: str) -> str:
    stems = stemmer(language)
    assert stems is not None
    return stems.stem(word.casefold())


def foldings(mesh: Vocabulary, gnd: Vocabulary) -> list[str]:
    lines = [
        "## What to take off words",
        "",
        "Development parts; headings named outside longer names, and MiF of the method at its best "
        "threshold. Labelkin takes off the plural in English, and Snowball's endings in other "
        "languages (not measured: no names in another language are at hand).",
        "",
        "| data | words compared | headings a document | precision | recall | MiF |",
        "|---|---|---|---|---|---|",
    ]
    ways: list[tuple[str, Folding]] = [
        ("without regard to case", case_only),
        ("… and plural", folded),
        ("by Snowball stems", snowball),
    ]
    for name, vocabulary, documents in (
        ("mesh47k", mesh, corpus("dev")),
        ("tibkat, English", gnd, tibkat_parts("en")[1]),
    ):
        gold = gold_matrix(documents, vocabulary).tocsr()
        for way, folding in ways:
            with (
                patch("labelkin.scoring.name_table.folded", folding),
                patch("labelkin.scoring.mentions.folded", folding),
            ):
                finder = MentionFinder(NameTable.make(vocabulary, "en"))
                mentions = finder.find(documents)
            right = is_right(mentions, gold)
            outside = mentions.title + mentions.body > 0
            value = best_cut(mentions, right, gold)
            lines.append(f"| {name} | {way} | {shares(outside, right, gold)} | {value:.4f} |")
    return [*lines, ""]


def kinds(mesh: Vocabulary) -> list[str]:
    lines = [
        "## Which names are right",
        "",
        "| mesh47k | headings | a document | precision | recall |",
        "|---|---|---|---|---|",
    ]
    finder = MentionFinder(NameTable.make(mesh, "en"))
    for split in SPLITS:
        documents = corpus(split)
        gold = gold_matrix(documents, mesh).tocsr()
        found = finder.find(documents)
        right = is_right(found, gold)
        outside = found.title + found.body > 0
        for name, chosen in (
            ("named at all", found.columns >= 0),
            ("outside longer names", outside),
            ("… in the title", found.title > 0),
            ("… in the body only", outside & (found.title == 0)),
            ("… in the body, three times or more", found.body >= 3),
            ("… by the preferred name", outside & found.preferred),
            ("… by acronyms only", outside & found.acronym),
            ("… by a name that others share", outside & (found.sharing > 1)),
            ("… by names of three words or more", outside & (found.length > 2)),
            ("only inside longer names", ~outside),
        ):
            lines.append(f"| {split} | {name} | {shares(chosen, right, gold)} |")
    return [*lines, ""]


def values_of(indexer: Indexer, documents: list[Document], settings: Settings) -> str:
    values = evaluate(indexer.evaluate(documents, settings=settings), MEASURES)
    return " | ".join(f"{value:.4f}" for value in values.values())


def method(indexer: Indexer, scratch: Path, gnd: Vocabulary) -> list[str]:
    lines = [
        "## The method `lexical`",
        "",
        "The threshold is chosen on the development part (`labelkin tune --method lexical`). It "
        "needs no documents: tibkat's collection has none. gnd-core-en has English names only, of "
        "which German records hold few.",
        "",
        "| data | threshold | " + " | ".join(measure.name for measure in MEASURES) + " |",
        "|---" * (len(MEASURES) + 2) + "|",
    ]
    best = indexer.tune(corpus("dev"), MIF, method="lexical")[0].settings
    lines += [
        f"| mesh47k {split} | {best.lexical.threshold:g} "
        f"| {values_of(indexer, corpus(split), best)} |"
        for split in SPLITS
    ]
    with Indexer.create(scratch / "gnd", gnd) as empty:
        for language in ("en", "de"):
            test, dev = tibkat_parts(language)
            best = empty.tune(dev, MIF, method="lexical")[0].settings
            lines.append(
                f"| tibkat {language}, test | {best.lexical.threshold:g} "
                f"| {values_of(empty, test, best)} |"
            )
    return [*lines, ""]


def candidates(indexer: Indexer) -> list[str]:
    lines = [
        "## What names add to neighbours",
        "",
        "Share of the gold headings that are among the headings of the nearest documents "
        "(`stems`), among those named, and among both.",
        "",
        "| mesh47k | k | neighbours | named | both |",
        "|---|---|---|---|---|",
    ]
    finder = MentionFinder(name_tables(indexer.snapshot())["en"])
    for split in SPLITS:
        documents = corpus(split)
        gold = gold_matrix(documents, indexer.vocabulary).tocsr()
        found = finder.find(documents)
        named = np.zeros(gold.shape[1] * gold.shape[0], dtype=np.bool_)
        named[found.documents * gold.shape[1] + found.columns] = True
        queries = indexer.queries(documents, 100)
        rows, columns = gold.nonzero()
        wanted = rows.astype(np.int64) * gold.shape[1] + columns
        for k in (20, 100):
            settings = Settings(knn=ScorerSettings(k=k))
            votes = settings.implementation.rank(queries, settings)
            carried = np.zeros_like(named)
            of_label = np.repeat(np.arange(len(votes)), votes.lengths)
            carried[of_label * gold.shape[1] + votes.columns] = True
            recalls = [(mask[wanted]).mean() for mask in (carried, named, carried | named)]
            cells = " | ".join(f"{recall:.4f}" for recall in recalls)
            lines.append(f"| {split} | {k} | {cells} |")
    return [*lines, ""]


def costs(indexer: Indexer, mesh: Vocabulary) -> list[str]:
    folder = indexer.collection.path
    started = time.process_time()
    table = NameTable.make(mesh, "en")
    made = time.process_time() - started
    started = time.process_time()
    automaton = table.automaton
    built = time.process_time() - started
    assert automaton is table.automaton
    finder = MentionFinder(table)
    train = read_corpus(SHARED / "mesh47k" / "train.json.gz").documents()
    documents = list(islice(train, TIMED))
    rates = []
    for _ in range(3):
        started = time.process_time()
        finder.find(documents)
        rates.append(len(documents) / (time.process_time() - started))
    snapshot = indexer.snapshot()
    started = time.process_time()
    name_tables(snapshot)
    loaded = time.process_time() - started
    written = sum(len(concept.names) + sum(map(len, concept.synonyms.values())) for concept in mesh)
    kept = (folder / "cache" / "names.npz").stat().st_size
    return [
        "## Costs",
        "",
        f"| MeSH: {len(mesh):,} headings, {written:,} names and synonyms | |",
        "|---|---|",
        f"| names as they are looked for, each once | {len(table):,} |",
        f"| words in them | {len(table.words):,} |",
        f"| preparing them, once for a vocabulary | {made:.2f} CPU-seconds |",
        f"| kept on disk | {kept / 1e6:.1f} MB |",
        f"| reading them, once in a process | {loaded:.2f} CPU-seconds |",
        f"| building the automaton, once in a process | {built:.2f} CPU-seconds |",
        f"| finding names in {TIMED:,} records, one thread "
        f"| {statistics.median(rates):,.0f} documents per CPU-second |",
        f"| `suggest --method lexical` for one text in a fresh process | {one_text(folder)} |",
        "",
    ]


def one_text(folder: Path, runs: int = 9) -> str:
    command = [sys.executable, "-m", "labelkin", "suggest", str(folder), "--json"]
    command += ["--method", "lexical", "--title", "Heart failure in rats"]
    # With compiled modules, as pip installs them.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    seconds, cpu_seconds = [], []
    for _ in range(runs + 1):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, env=environment)
        seconds.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert json.loads(done.stdout)[0]["suggestions"]
    # The first run compiles and warms the disk cache.
    wall, cpu = statistics.median(seconds[1:]), statistics.median(cpu_seconds[1:])
    return f"{wall:.2f} s, {cpu:.2f} CPU-seconds (medians of {runs})"


def report(parts: Sequence[list[str]]) -> str:
    head = [
        "# Headings that texts name",
        "",
        f"Made by `python benchmarks/lexical.py` with labelkin {__version__} and ahocorasick-rs "
        f"{version('ahocorasick-rs')} on Python {platform.python_version()}, 2 shared cores. "
        "Precision and recall are over all pairs of document and heading; recall is that of all "
        "gold headings, those that the vocabulary lacks included. The cores were busy with other "
        "work: CPU-seconds tell more than seconds.",
        "",
    ]
    return "\n".join([*head, *(line for lines in parts for line in lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collection", type=Path)
    folder: Path | None = parser.parse_args().collection
    mesh = read_vocabulary(SHARED / "mesh" / "descriptors.tsv.gz")
    gnd = read_vocabulary(SHARED / "tibkat" / "gnd-core-en.tsv.gz")
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        if folder is None:
            folder = scratch / "mesh47k"
            with Indexer.create(folder, mesh, language="en") as indexer:
                indexer.add(read_corpus(SHARED / "mesh47k" / "train.json.gz"))
                indexer.build()
        parts: list[list[str]] = []
        with Indexer.open(folder) as indexer:
            for work in (
                lambda: method(indexer, scratch, gnd),
                lambda: kinds(mesh),
                lambda: candidates(indexer),
                lambda: foldings(mesh, gnd),
                lambda: costs(indexer, mesh),
            ):
                parts.append(work())
                (ROOT / "results" / "lexical.md").write_text(report(parts))
                print("\n".join(parts[-1]), flush=True)


if __name__ == "__main__":
    main()
