from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from labelkin.neighbours import Neighbours

Run = Callable[..., Result]


@pytest.fixture
def demo(run: Run) -> str:
    assert run("demo", "demo", "--documents", 200, "--json").exit_code == 0
    return "demo"


def test_build(run: Run, demo: str) -> None:
    assert "Indexed 200 new documents by stems in" in run("build", demo).stderr
    again = run("build", demo, "--representation", "stems", "--json")
    assert json.loads(again.stdout)["added"] == 0
    assert json.loads(run("info", demo, "--json").stdout)["indexes"] == ["stems"]
    bad = run("build", demo, "--representation", "stamps")
    assert bad.exit_code == 1
    assert bad.stderr.startswith("error: no representation 'stamps'; known: stems, lemmas, ")
    assert bad.stderr.count("\n") == 1


def test_a_text_on_the_line(run: Run, demo: str) -> None:
    result = run("neighbours", demo, "--title", "Late blight in wheat", "-k", 3)
    assert result.exit_code == 0
    assert "distance" in result.stdout
    assert "blight" in result.stdout
    assert result.stdout.count("demo-0") == 3


def test_files(run: Run, demo: str) -> None:
    Path("q.jsonl").write_text('{"id": "q1", "title": "wheat"}\n{"id": "q2", "title": "zzz"}\n')
    found = json.loads(run("neighbours", demo, "q.jsonl", "-k", 2, "--json").stdout)
    assert [row["id"] for row in found] == ["q1", "q2"]
    # In its text, and in the name of one of its headings.
    assert found[0]["neighbours"][0]["terms"] == ["wheat", "heading:wheat"]
    assert 0 <= found[0]["neighbours"][0]["distance"] <= 1
    assert found[1]["neighbours"] == []
    assert (
        "q2  zzz: no document shares a term with it." in run("neighbours", demo, "q.jsonl").stderr
    )


def test_plain_text_from_a_file_and_from_standard_input(run: Run, demo: str) -> None:
    from labelkin.cli.main import app

    Path("note.txt").write_text("A note on late blight.\nAnd on wheat.\n")
    from_file = json.loads(run("neighbours", demo, "note.txt", "--json").stdout)
    piped = CliRunner().invoke(
        app, ["neighbours", demo, "-", "--json"], input=Path("note.txt").read_bytes()
    )
    assert json.loads(piped.stdout) == from_file
    assert len(from_file) == 1
    assert from_file[0]["neighbours"]


def test_batches_go_to_files(run: Run, demo: str) -> None:
    run("corpus", "convert", demo, "-o", "d.jsonl")
    assert run("neighbours", demo, "d.jsonl", "-k", 5, "-o", "n.npz").exit_code == 0
    found = Neighbours.load(Path("n.npz"))
    assert found.rows.shape == (200, 5)
    assert all(row not in near for row, near in enumerate(found.rows))
    result = run("neighbours", demo, "d.jsonl", "-k", 5, "-o", "n.jsonl")
    assert "Wrote the neighbours of 200 documents to n.jsonl." in result.stderr
    lines = [json.loads(line) for line in Path("n.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == list(found.ids)


def test_nothing_to_look_at(run: Run, demo: str) -> None:
    assert run("neighbours", demo).exit_code == 2
    assert run("neighbours", demo, "x.jsonl", "--text", "y").exit_code == 2
    missing = run("neighbours", demo, "x.jsonl")
    assert (missing.exit_code, missing.stderr) == (1, "error: x.jsonl: no such file or folder\n")
    Path("empty").touch()
    assert run("neighbours", demo, "empty").exit_code == 1


def test_titles_are_shown_as_they_are(run: Run, demo: str) -> None:
    title = "wheat [/foo] in [in vitro] rust"
    Path("q.jsonl").write_text(json.dumps({"id": "q1", "title": title}))
    assert f"q1  {title}" in run("neighbours", demo, "q.jsonl", "-k", 1).stdout


def test_bounds_and_damage(run: Run, demo: str) -> None:
    assert run("neighbours", demo, "--text", "wheat", "-k", 10**12).exit_code == 2
    packed = gzip.compress(("wheat and soil\n" * 9000).encode())
    Path("note.txt.gz").write_bytes(packed[: len(packed) // 2])
    result = run("neighbours", demo, "note.txt.gz")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: note.txt.gz: damaged after line")
