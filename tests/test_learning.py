"""Corrected headings count at once: in votes and names, for trained models, in other processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Correction, Document, Indexer, Settings
from labelkin.represent.stems import Stems

from .runtime_data import fresh_documents
from .served import copied, eventually

NEW = "Zeppelin Mooring"
# How many headings are looked at: the small autoencoder, of few epochs, ranks new ones low.
DEPTHS = {"knn": 5, "lexical": 5, "label-ae": 200, "mix-ranked": 5, "rerank": 20}


@pytest.fixture
def indexer(trained: Path, tmp_path: Path) -> Iterator[Indexer]:
    with Indexer.open(copied(trained, tmp_path)) as opened:
        yield opened


def rank_of(indexer: Indexer, method: str, text: Document, label: str) -> int | None:
    """The rank at which a method suggests a heading, None if it does not."""
    settings = Settings.from_config(indexer.config, method).changed(limit=DEPTHS[method])
    (suggestions,) = indexer.suggest([text], settings=settings)
    return next((one.rank for one in suggestions if one.concept.id == label), None)


@pytest.mark.parametrize("method", ["knn", "label-ae", "mix-ranked", "rerank"])
def test_a_new_heading_is_suggested_through_votes(indexer: Indexer, method: str) -> None:
    """No model knows the heading; the documents that were corrected carry it."""
    if method not in indexer.usable_methods():
        pytest.skip("needs the extras `train` and `rerank`")
    text = fresh_documents(1)[0]
    near = indexer.neighbours([text], k=10)[0]
    corrections = [
        Correction(one.id, (*(heading.id for heading in one.headings), NEW)) for one in near
    ]
    report = indexer.correct(corrections, keep_unknown=True)
    assert (report.corrected, report.new_concepts) == (10, 1)
    assert rank_of(indexer, method, text, NEW) is not None


@pytest.mark.parametrize("method", ["lexical", "label-ae", "rerank"])
def test_a_new_heading_is_suggested_through_its_name(indexer: Indexer, method: str) -> None:
    """One document elsewhere was given the heading, and the text names it."""
    if method not in indexer.usable_methods():
        pytest.skip("needs the extras `train` and `rerank`")
    text = Document("", f"{NEW} in coastal towns", language="en")
    assert rank_of(indexer, method, text, NEW) is None
    some = next(indexer.documents())
    indexer.correct([Correction(some.id, (*some.labels, NEW))], keep_unknown=True)
    assert rank_of(indexer, method, text, NEW) is not None


def test_a_correction_analyses_no_text_again(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer.build()
    analysed: list[str] = []
    analyse = Stems.analyse

    def noted(self: Stems, documents: list[Document], kinds: list[str]) -> object:
        analysed.extend(document.text for document in documents)
        return analyse(self, documents, kinds)

    monkeypatch.setattr(Stems, "analyse", noted)
    some = next(indexer.documents())
    indexer.correct([Correction(some.id, some.labels[:1])])
    assert indexer.build() == 1
    assert some.text not in analysed


@pytest.mark.parametrize("follow", [False, True])
def test_what_another_process_learns_counts_within_a_second(
    small: Path, tmp_path: Path, follow: bool
) -> None:
    """Three times, of which the fastest counts: other tests may keep the machine busy."""
    path = copied(small, tmp_path)
    command = [sys.executable, "-m", "labelkin", "learn", str(path), "-"]
    seconds = []
    with Indexer.open(path, follow=follow) as indexer:
        stored = next(indexer.documents())
        text = Document("", stored.title, stored.body, language="en")
        labels = [one.id for one in indexer.vocabulary if one.id not in stored.labels][:3]
        settings = Settings().changed(k=1, limit=20)

        def suggested() -> set[str]:
            return {one.concept.id for one in indexer.suggest([text], settings=settings)[0]}

        for label in labels:
            assert label not in suggested()
            record = json.dumps({"id": stored.id, "labels": [label]})
            done = subprocess.run(command, input=record, capture_output=True, text=True)
            acknowledged = time.monotonic()
            assert done.returncode == 0, done.stderr
            eventually(lambda label=label: suggested() == {label}, 20.0)
            seconds.append(time.monotonic() - acknowledged)
    assert min(seconds) < 1.0


def test_a_revision_alone_changes_no_answer(indexer: Indexer) -> None:
    text = fresh_documents(1)[0]
    methods = indexer.usable_methods()
    settings = [Settings.from_config(indexer.config, method) for method in methods]
    before = indexer.answers([text], settings)
    some = next(indexer.documents())
    assert indexer.add([replace(some, revision="2024-03-05")]).unchanged == 1
    after = indexer.answers([text], settings)
    assert [one.suggestions for one in after] == [one.suggestions for one in before]
    assert after[0].generation == before[0].generation + 1
