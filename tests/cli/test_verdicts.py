"""`labelkin verdicts`: a file of what indexers have decided."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labelkin import Document, Indexer
from labelkin.cli.main import app
from labelkin.desk import Decision, Verdict
from labelkin.vocab import Vocabulary

runner = CliRunner()


@pytest.fixture
def collection(vocabulary: Vocabulary, tmp_path: Path) -> Path:
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        for verdict in ("rejected", "accepted"):
            decision = Decision(Document("d1", "Bread"), (Verdict("V1", verdict, "Bread", 0.5, 1),))
            indexer.desk.decisions.add(decision)
    return tmp_path / "c"


def test_the_latest_or_all_decisions(collection: Path, tmp_path: Path) -> None:
    result = runner.invoke(app, ["verdicts", str(collection), "-o", str(tmp_path / "v.jsonl.gz")])
    assert result.exit_code == 0, result.output
    assert "Wrote 1 decision to" in result.output
    with gzip.open(tmp_path / "v.jsonl.gz", "rt") as file:
        assert [json.loads(line)["labels"] for line in file] == [["V1"]]
    output = str(tmp_path / "v.csv")
    result = runner.invoke(app, ["verdicts", str(collection), "-o", output, "--all", "--json"])
    assert json.loads(result.stdout) == {"output": output, "decisions": 2}
    rows = (tmp_path / "v.csv").read_text().splitlines()
    assert [row.split(",")[7] for row in rows] == ["verdict", "rejected", "accepted"]


def test_standard_output(collection: Path) -> None:
    result = runner.invoke(app, ["verdicts", str(collection), "-o", "-", "--to", "csv"])
    assert result.exit_code == 0
    assert result.stdout.startswith("document,title,time,")
    result = runner.invoke(app, ["verdicts", str(collection), "-o", "-", "--json"])
    assert result.exit_code == 2


def test_a_collection_without_verdicts_gives_an_empty_file(
    vocabulary: Vocabulary, tmp_path: Path
) -> None:
    Indexer.create(tmp_path / "e", vocabulary).close()
    result = runner.invoke(app, ["verdicts", str(tmp_path / "e"), "-o", str(tmp_path / "v.jsonl")])
    assert result.exit_code == 0 and (tmp_path / "v.jsonl").read_text() == ""
    assert not (tmp_path / "e" / "desk.sqlite").exists()


@pytest.mark.parametrize(
    ("name", "problem"),
    [("v.xml", "no format for the extension"), ("c/v.jsonl", "inside the collection")],
)
def test_bad_outputs_are_one_line(
    collection: Path, tmp_path: Path, name: str, problem: str
) -> None:
    result = runner.invoke(app, ["verdicts", str(collection), "-o", str(tmp_path / name)])
    assert result.exit_code == 1 and problem in result.output
    assert "Traceback" not in result.output


def test_a_damaged_desk_leaves_the_old_file(collection: Path, tmp_path: Path) -> None:
    (tmp_path / "v.jsonl").write_text("old")
    (collection / "desk.sqlite").write_bytes(b"damaged " * 500)
    for log in collection.glob("desk.sqlite-*"):
        log.unlink()
    result = runner.invoke(app, ["verdicts", str(collection), "-o", str(tmp_path / "v.jsonl")])
    assert result.exit_code == 1 and "restore it from a backup" in result.output
    assert (tmp_path / "v.jsonl").read_text() == "old"
    result = runner.invoke(app, ["info", str(collection)])
    assert result.exit_code == 0 and "restore it from a backup" in " ".join(result.output.split())
