"""A package outside labelkin adds a method and a signal through entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("lightgbm", reason="needs the extra `rerank`")

MODULE = '''
import numpy as np
from pydantic import Field

from labelkin import Method, Ranking, Section, Signal


class ToySection(Section):
    """How the toy method cuts its list."""

    threshold: float = Field(default=0.1, ge=0.0, le=1.0, description="The lowest score.")


class ToyMethod(Method):
    """Suggests the most frequent headings for every text."""

    name = "toy"
    section = ToySection

    def depth(self, settings):
        return 0

    def rank(self, queries, settings):
        snapshot = queries.snapshot
        width = snapshot.generation().next_column
        counts = snapshot.label_sets().frequencies(width, snapshot.tombstones())
        best = np.argsort(-counts, kind="stable")[:20]
        scores = counts[best] / max(counts.max(), 1)
        return Ranking.from_lists([best.tolist()] * len(queries), [scores.tolist()] * len(queries))


class ToySignal(Signal):
    """The number of words in the title, and a heading's rank among all by mean title length."""

    name = "toy signal"
    features = ("title_words", "mean_title_words")
    reason = "length of the title"

    def fit(self, context):
        rows = context.texts.rows
        texts = context.snapshot.texts_of(rows.tolist())
        words = np.array([len(texts[int(row)].title.split()) for row in rows], dtype=np.float32)
        labels = context.texts.labels
        sums = np.asarray(labels.T @ words).ravel()
        return (sums / np.maximum(np.asarray(labels.sum(0)).ravel(), 1)).astype(np.float32)

    def to_arrays(self, fitted):
        return {"means": fitted}

    def from_arrays(self, arrays):
        return arrays["means"]

    def values(self, evidence, pairs, features):
        words = np.array(
            [len(one.title.split()) for one in evidence.queries.documents], dtype=np.float32
        )
        means = evidence.fitted(self.name)
        return {
            "title_words": words[pairs.documents],
            "mean_title_words": means[pairs.columns],
        }
'''
ENTRY_POINTS = """[labelkin.methods]
toy = labelkin_toy:ToyMethod

[labelkin.signals]
toy signal = labelkin_toy:ToySignal
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed toy package."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "labelkin_toy.py").write_text(MODULE, encoding="utf-8")
    metadata = folder / "labelkin_toy-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: labelkin-toy\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small collection and documents to measure on."""
    from labelkin import Indexer, Vocabulary
    from labelkin.demo import demo_concepts, demo_documents

    folder = tmp_path_factory.mktemp("plugins")
    documents = list(demo_documents(260, 0))
    with Indexer.create(folder / "c", Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(documents[:220])
    with (folder / "new.jsonl").open("w", encoding="utf-8") as file:
        for one in documents[220:]:
            record = {"id": one.id, "title": one.title, "text": one.body, "labels": one.labels}
            file.write(json.dumps(record) + "\n")
    return folder


def run(packages: Path | None, work: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.environ.get("PYTHONPATH", "")
    if packages is not None:
        path = os.pathsep.join(filter(None, (str(packages), path)))
    command = [sys.executable, "-m", "labelkin", *arguments]
    return subprocess.run(
        command,
        cwd=work,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_method_and_the_signal_work_in_every_command(packages: Path, work: Path) -> None:
    trained = run(packages, work, "train", "c", "--only", "rerank", "--no-linear", "--json")
    assert trained.returncode == 0, trained.stderr
    assert "toy signal" in json.loads(trained.stdout)["rerank"]["groups"]

    by_toy = run(packages, work, "suggest", "c", "--title", "Barns", "--method", "toy", "--json")
    assert by_toy.returncode == 0, by_toy.stderr
    (document,) = json.loads(by_toy.stdout)
    scores = [one["score"] for one in document["suggestions"]]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.1
    three = run(
        packages,
        work,
        "suggest",
        "c",
        "--title",
        "Barns",
        "--method",
        "toy",
        "--limit",
        "3",
        "--json",
    )
    assert len(json.loads(three.stdout)[0]["suggestions"]) == 3

    reranked = run(
        packages,
        work,
        "suggest",
        "c",
        "--title",
        "Barns",
        "--method",
        "rerank",
        "--limit",
        "2",
        "--explain",
        "--json",
    )
    assert reranked.returncode == 0, reranked.stderr
    names = {one["name"] for one in json.loads(reranked.stdout)[0]["suggestions"][0]["signals"]}
    assert "length of the title" in names

    tuned = run(packages, work, "tune", "c", "new.jsonl", "--method", "toy", "--write")
    assert tuned.returncode == 0, tuned.stderr
    settings = (work / "c" / "labelkin.toml").read_text(encoding="utf-8")
    assert "[toy]" in settings
    assert "threshold" in settings.split("[toy]")[1]

    compared = run(packages, work, "compare", "c", "new.jsonl", "--json")
    assert compared.returncode == 0, compared.stderr
    values = json.loads(compared.stdout)
    assert {"knn", "toy", "rerank"} <= set(values)
    assert values["toy"]["MiF"] > 0


def test_without_the_package_the_message_says_what_is_missing(packages: Path, work: Path) -> None:
    # Uses the reranker of the test before, if that has run.
    unknown = run(None, work, "suggest", "c", "--title", "Barns", "--method", "toy")
    assert unknown.returncode != 0
    assert "toy" in unknown.stderr
    assert "Traceback" not in unknown.stderr
