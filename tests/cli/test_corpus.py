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


@pytest.fixture
def many(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "many.jsonl"
    rows = [
        {
            "id": str(number),
            "title": f"On rye {number % 50} of field {number % 50} and barn {number % 50}",
            "labels": [f"L{number % 7}"],
            "year": 2000 + number % 20,
        }
        for number in range(100)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_split(run: Run, many: Path) -> None:
    result = run("corpus", "split", many, "-o", "out", "--keep-together", "near-duplicates")
    assert result.exit_code == 0, result.stderr
    assert "Kept 100 documents in 50 groups together (near-duplicates)" in result.stderr
    assert "Wrote 100 documents and split.json to out; skipped 0." in result.stderr
    assert sorted(path.name for path in Path("out").iterdir()) == [
        *("dev.jsonl", "split.json", "test.jsonl", "train.jsonl")
    ]
    assert "train.jsonl" in result.stdout
    again = run("corpus", "split", many, "-o", "out")
    assert again.exit_code == 1
    assert "out: not empty" in again.stderr


def test_split_by_year_and_in_folds(run: Run, many: Path) -> None:
    options = ("--by", "year", "--parts", "train:-2014,test:2015-", "--to", "csv", "--gzip")
    content = json.loads(run("corpus", "split", many, "-o", "years", *options, "--json").stdout)
    assert content["parts"]["test"]["documents"] == 25
    assert content["rule"] == {"by": "year", "parts": {"train": [None, 2014], "test": [2015, None]}}
    assert len(list(read_corpus("years/test.csv.gz").documents())) == 25
    content = json.loads(run("corpus", "split", many, "-o", "f", "--folds", "4", "--json").stdout)
    assert list(content["parts"]) == ["fold-1", "fold-2", "fold-3", "fold-4"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--by", "author"), 2, "by hash or by year"),
        (("--by", "year"), 2, "needs --parts"),
        (("--folds", "3", "--parts", "a:0.5,b:0.5"), 2, "leave out --parts"),
        (("--parts", "a:0.5,b:0.6"), 1, "add up to 1, not to 1.1"),
        (("--keep-together", "authors"), 1, "known: near-duplicates, same-text"),
        (("--to", "xml"), 1, "known: jsonl"),
    ],
)
def test_splits_that_cannot_be(
    run: Run, many: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    result = run("corpus", "split", many, "-o", "out", *options)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert not Path("out").exists()


def test_dedupe_says_how_many_records_it_skipped(run: Run, many: Path) -> None:
    with many.open("a") as file:
        file.write('{"id": "x"}\n')
    result = run("corpus", "dedupe", many, "-o", "kept.jsonl")
    assert "with a similar text; skipped 1." in result.stderr
    content = json.loads(run("corpus", "dedupe", many, "-o", "kept.jsonl", "--json").stdout)
    assert (content["read"], content["skipped"]) == (100, 1)


def test_dedupe(run: Run, many: Path) -> None:
    result = run("corpus", "dedupe", many, "-o", "kept.jsonl", "--groups", "groups.tsv")
    assert result.exit_code == 0, result.stderr
    assert "Wrote 50 documents of 100 to kept.jsonl. Removed 50:" in result.stderr
    assert "50 groups, the largest of 2." in result.stderr
    assert len(Path("kept.jsonl").read_text().splitlines()) == 50
    header, first, *_ = Path("groups.tsv").read_text().splitlines()
    assert header.split("\t") == ["group", "reason", "similarity", "file", "id", "title"]
    assert first.split("\t")[:3] == ["1", "kept", "1.000"]
    merged = run("corpus", "dedupe", many, "-o", "-", "--exact", "--merge-labels")
    assert json.loads(merged.stdout.splitlines()[0])["labels"] == ["L0", "L1"]
    assert run("corpus", "dedupe", many, "-o", many).exit_code == 1
