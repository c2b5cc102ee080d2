from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def test_init(run: Run, tmp_path: Path) -> None:
    result = run("init", "new", "--language", "de", "--name", "Neu", "--json")
    assert json.loads(result.stdout) == {"collection": "new", "concepts": 0}
    assert 'language = "de"' in (tmp_path / "new" / "labelkin.toml").read_text()
    again = run("init", "new")
    assert again.exit_code == 1
    assert again.stderr == "error: new: already exists; choose another name or remove it\n"


def test_init_with_a_recipe(run: Run, tmp_path: Path) -> None:
    assert run("init", "usual").exit_code == 0
    assert run("init", "papers", "--recipe", "paper").exit_code == 0
    usual, papers = (
        set((tmp_path / name / "labelkin.toml").read_text().splitlines())
        for name in ("usual", "papers")
    )
    # [representation] has a title_weight of 1 in both.
    assert papers - usual == {
        'term_frequency = "once"',
        "heading_weight = 0.0",
        'recipe = "paper"',
    }
    assert 'recipe = "joint"' in usual
    assert "title_weight = 3" in usual - papers
    wrong = run("init", "new", "--recipe", "papers")
    assert wrong.exit_code == 1
    assert wrong.stderr == "error: no recipe 'papers'; known: paper\n"
    assert not (tmp_path / "new").exists()


def test_init_with_a_bad_vocabulary_leaves_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.ttl").write_text("@prefix broken")
    result = run("init", "new", "--vocab", "v.ttl")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: v.ttl: not readable as RDF")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_add_says_what_it_did(run: Run, collection: Path) -> None:
    result = run("add", collection, "c.jsonl", "--unresolved", "u.tsv")
    assert result.exit_code == 0
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == "Read 3 records, skipped 0, 1 without labels."
    assert lines[1].startswith("0 added, 3 unchanged in")
    assert lines[2] == "1 label (1 occurrence) not in the vocabulary:"
    assert lines[3].split() == ["1", "Wheat"]
    assert Path("u.tsv").read_text() == "count\treason\tlabel\n1\tunknown\tWheat\n"


def test_add_as_json(run: Run, collection: Path) -> None:
    Path("more.jsonl").write_text('{"id": "4", "title": "x"}\nbroken\n')
    found = json.loads(run("add", collection, "more.jsonl", "--json").stdout)
    assert found["added"] == 1
    assert found["skipped"] == 1
    assert found["without_labels"] == 1
    assert found["documents"] == 4


def test_keep_unknown(run: Run, collection: Path) -> None:
    result = run("add", collection, "c.jsonl", "--keep-unknown")
    assert "1 label became a new concept." in result.stderr
    assert run("vocab", "show", collection, "wheat").exit_code == 0


def test_remove(run: Run, collection: Path) -> None:
    Path("ids.txt").write_text("2\n\n")
    result = run("remove", collection, "1", "--from", "ids.txt")
    assert (result.exit_code, result.stderr) == (
        0,
        "Removed 2 documents; 1 document in the collection.\n",
    )
    again = run("remove", collection, "1", "3", "--json")
    assert again.exit_code == 3
    assert json.loads(again.stdout) == {"removed": 1, "missing": ["1"], "documents": 0}
    assert run("remove", collection).exit_code == 2


def test_info(run: Run, collection: Path) -> None:
    found = json.loads(run("info", collection, "--json").stdout)
    assert found["documents"] == 3
    assert found["labels_used"] == 2
    text = run("info", collection).stdout
    assert "Documents                 3\n" in text
    assert "none trained yet" in text


def test_a_missing_collection(run: Run) -> None:
    for verb in (
        ["info", "no"],
        ["add", "no", __file__],
        ["learn", "no", __file__],
        ["remove", "no", "1"],
        ["show", "no", "1"],
        ["vocab", "stats", "no"],
    ):
        result = run(*verb)
        assert result.exit_code == 1, verb
        assert result.stderr.startswith("error: no: ")
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [["info"], ["nonsense"], ["info", "--nonsense"]])
def test_wrong_usage(run: Run, verb: list[str]) -> None:
    assert run(*verb).exit_code == 2


def test_an_unknown_key_in_the_settings(run: Run, collection: Path) -> None:
    settings = collection / "labelkin.toml"
    settings.write_text(settings.read_text().replace("[joint]\n", "[joint]\nfoo = 1\n"))
    result = run("info", collection)
    assert result.exit_code == 1
    assert "unknown key 'joint.foo'" in result.stderr


def test_every_record_is_accounted_for(run: Run, collection: Path) -> None:
    Path("more.jsonl").write_text(
        '{"id": "1", "title": "On rye again", "language": "en"}\n'
        '{"id": "2", "title": "On oats", "labels": ["Oats"], "language": "en"}\n'
        '{"id": "a\\nb", "title": "x", "language": "en"}\n'
        '{"id": "a", "title": "y", "language": "en"}\n'
        '{"id": "a", "title": "z", "language": "en"}\n'
    )
    run("add", collection, "c.jsonl")
    counts = json.loads(run("add", collection, "more.jsonl", "--json").stdout)
    outcomes = ("added", "replaced", "unchanged", "duplicates", "skipped")
    assert [counts[outcome] for outcome in outcomes] == [1, 1, 1, 1, 1]
    assert counts["read"] == 5


def test_info_leaves_out_empty_rows(run: Run, collection: Path) -> None:
    shown = run("info", collection).stdout
    assert "Documents" in shown
    assert "used as labels" in shown
    assert not [line for line in shown.splitlines() if line.split()[-1] == "0"]
    assert "in at least" not in shown
    assert run("init", "empty").exit_code == 0
    shown = run("info", "empty").stdout
    assert "used as labels" not in shown
    assert "Labels per document" not in shown
    assert "Languages" not in shown
