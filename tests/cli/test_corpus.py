from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin.corpus import read_corpus

Run = Callable[..., Result]


def test_convert(run: Run, collection: Path) -> None:
    result = run("corpus", "convert", "c.jsonl", "-o", "c.tsv", "--vocab", "v.tsv")
    assert result.exit_code == 0
    assert "Wrote 3 documents to c.tsv; skipped 0." in result.stderr
    assert (
        Path("c.tsv").read_text() == "On rye\t<D000002> <Wheat>\nOn oats\t<D000003>\nOn nothing\t\n"
    )


def test_a_collection_can_leave(run: Run, collection: Path) -> None:
    assert run("corpus", "convert", collection, "-o", "out.jsonl.gz").exit_code == 0
    assert run("init", "copy", "--vocab", "v.tsv").exit_code == 0
    assert run("add", "copy", "out.jsonl.gz").exit_code == 0
    before, after = (
        json.loads(run("info", name, "--json").stdout) for name in (collection, "copy")
    )
    for key in ("documents", "label_occurrences", "documents_with_unresolved_labels"):
        assert before[key] == after[key]


def test_stats(run: Run, collection: Path) -> None:
    found = json.loads(run("corpus", "stats", "c.jsonl", "--json").stdout)
    assert (found["documents"], found["with_labels"], found["distinct_labels"]) == (3, 2, 3)
    assert found["languages"] == {"en": 3}
    assert "Documents            3\n" in run("corpus", "stats", "c.jsonl").stdout
    assert run("corpus", "stats", "nothing.jsonl").exit_code == 1


@pytest.mark.parametrize("name", ["out.jsonl", "out.json", "out.csv"])
@pytest.mark.parametrize("step", ["file", "collection"])
def test_order_and_major_topics_survive_every_export(
    run: Run, collection: Path, name: str, step: str
) -> None:
    record = {"id": "9", "title": "x", "labels": ["Oats", "Hay", "Loaf"], "language": "en"}
    record["major_labels"] = ["Loaf", "Hay"]
    Path("major.jsonl").write_text(json.dumps(record) + "\n")
    source: Path | str = "major.jsonl"
    if step == "collection":
        run("add", collection, "major.jsonl")
        source = collection
    result = run("corpus", "convert", source, "-o", name, "--vocab", collection)
    assert result.exit_code == 0, result.stderr
    *_, document = read_corpus(name).documents()
    assert document.labels == ("D000003", "Hay", "D000001")
    assert document.major_labels == ("Hay", "D000001")
