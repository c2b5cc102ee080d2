"""What one new or corrected record costs, and when it counts, at three sizes of a collection.

    python benchmarks/one_record.py --work benchmarks/work/one-record
    python -m tests.reliability report      # the section of results/reliability.md

A process has the collection open and asks for headings all the time. Beside it, `labelkin learn`
stores one record after another: a new one, or other headings for a stored one. It counts as soon as
an answer by votes has its heading. The reranker need not suggest what a single record carries: with
it a record counts as soon as an answer rests on a state that has it. Needs ../shared/data.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from labelkin import Document, Indexer, Settings
from labelkin.atomic import atomic_text
from measure import run

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
RESULTS = ROOT / "results" / "reliability" / "one-record.jsonl"
METHODS = ("knn", "rerank")
ROUNDS, WARM_UP = 9, 5
FEW = 5_000
# Headings far from the first ones of a vocabulary, which are often checked for.
FIRST_HEADING = 500
# An answer has all candidates.
MOST_HEADINGS = 1000
LONGEST_SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / "benchmarks" / "work" / "one-record")
    parser.add_argument("--trained", type=Path, help="mesh47k with its models, for rerank")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    # What is not measured now, such as the reranker without --trained, keeps its rows.
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    rows = {_key(row): row for row in map(json.loads, lines)}
    for name in ("mesh5k", "mesh47k", "yso"):
        trained = given.trained if name == "mesh47k" else None
        with copied(trained or given.work / name, name) as path:
            for row in figures(name, path, given.work):
                print(row, flush=True)
                rows[_key(row)] = row
                with atomic_text(RESULTS) as file:
                    file.writelines(json.dumps(one) + "\n" for one in rows.values())


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return row["collection"], row["method"], row["record"]


@contextmanager
def copied(path: Path, name: str) -> Iterator[Path]:
    """A copy of a collection, which is made if it is not there yet."""
    if not path.exists():
        make(name, path)
    copy = path.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


def make(name: str, path: Path) -> None:
    """The records of mesh47k or the first of them, or the Finnish titles, indexed."""
    made = path.with_name(f"{name}.part")
    shutil.rmtree(made, ignore_errors=True)
    if name == "yso":
        vocabulary, language = SHARED / "yso" / "yso-fi.tsv.gz", "fi"
        records = SHARED / "yso" / "yso-finna-fi.tsv.gz"
    else:
        vocabulary, language = SHARED / "mesh" / "descriptors.tsv.gz", "en"
        records = SHARED / "mesh47k" / "train.json.gz"
    if name == "mesh5k":
        with gzip.open(records, "rt", encoding="utf-8") as file:
            articles = json.load(file)["articles"][:FEW]
        records = path.with_name("first.json")
        records.write_text(json.dumps({"articles": articles}), encoding="utf-8")
    for command in (
        ["init", made, "--vocab", vocabulary, "--language", language],
        ["add", made, records],
        ["build", made],
    ):
        subprocess.run(labelkin(*command), check=True)
    made.rename(path)


def labelkin(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "labelkin", *map(str, arguments)]


def figures(name: str, path: Path, work: Path) -> Iterator[dict[str, Any]]:
    """Costs and delays for each kind of record and each method that is trained."""
    with Indexer.open(path) as indexer:
        documents = indexer.collection.count()
        stored = [one for one in islice(indexer.documents(), 400) if one.body or name == "yso"]
        methods = [one for one in METHODS if one == "knn" or (path / "models" / one).exists()]
        headings = islice(iter(indexer.vocabulary), FIRST_HEADING, None)
        for method in methods:
            settings = Settings.from_config(indexer.config, method).changed(
                limit=MOST_HEADINGS, threshold=0.0
            )
            reader = Reader(indexer, settings)
            for one in stored[:WARM_UP]:
                reader.has(one, "")
            for kind in ("new", "corrected"):
                rounds = [
                    reader.wait(
                        *record(kind, stored.pop(), next(headings).id), path, work / "one.jsonl"
                    )
                    for _ in range(ROUNDS)
                ]
                yield {
                    "collection": name,
                    "documents": documents,
                    "method": method,
                    "record": kind,
                    "rounds": ROUNDS,
                    **{key: statistics.median(one[key] for one in rounds) for key in rounds[0]},
                    "slowest effect": max(one["effect"] for one in rounds),
                }


def record(kind: str, like: Document, heading: str) -> tuple[Document, str, dict[str, Any]]:
    """The text to ask for, the heading to wait for, and the record that brings it."""
    if kind == "corrected":
        return like, heading, {"id": like.id, "labels": [heading]}
    new = {"id": f"new-{time.time_ns()}", "title": like.title, "text": like.body}
    return like, heading, {**new, "labels": [heading]}


class Reader:
    """The process that has the collection open."""

    def __init__(self, indexer: Indexer, settings: Settings) -> None:
        self._indexer, self._settings = indexer, settings
        self._before = 0

    def has(self, document: Document, heading: str) -> bool:
        """Whether an answer has a heading, or one of the reranker a later state than before."""
        text = replace(document, id="", labels=())
        answer = self._indexer.answer([text], settings=self._settings)
        if self._settings.method == "rerank":
            return answer.generation > self._before
        return any(one.concept.id == heading for one in answer.suggestions[0])

    def wait(
        self, document: Document, heading: str, new: dict[str, Any], path: Path, file: Path
    ) -> dict[str, float]:
        """Learn a record in another process and ask until it counts."""
        self._before = self._indexer.collection.generation().number
        assert not self.has(document, heading), f"{heading} is suggested already"
        file.write_text(json.dumps(new) + "\n", encoding="utf-8")
        ended: list[tuple[float, Any]] = []

        def learn() -> None:
            ran = run(labelkin("learn", path, file))
            ended.append((time.perf_counter(), ran))

        started = time.perf_counter()
        writer = threading.Thread(target=learn)
        writer.start()
        used = time.process_time()
        while not self.has(document, heading):
            used = time.process_time()
            if time.perf_counter() - started > LONGEST_SECONDS:
                raise SystemExit(f"{new['id']} does not count after {LONGEST_SECONDS:.0f} s")
        cpu, counted = time.process_time() - used, time.perf_counter()
        writer.join()
        ran = ended[0][1]
        assert ran.code == 0, ran.output
        return {
            "command": ran.costs.seconds,
            "command, CPU": ran.costs.cpu_seconds,
            "effect": counted - started,
            "request, CPU": cpu,
        }


if __name__ == "__main__":
    main()
