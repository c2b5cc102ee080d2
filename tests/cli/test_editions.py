from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]

# Of the three headings of `collection`: one renamed, one merged, one removed; and a new one.
EDITION = (
    "ui\tname\ttree_numbers\tentry_terms\n"
    "D000001\tBreads\tJ01\tBread, Rye|Loaf\nD000004\tWheat\tB02\tTriticum\n"
)


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    path = tmp_path / "new.tsv"
    path.write_text(EDITION)
    return path


def test_diff(run: Run, collection: Path, edition: Path) -> None:
    for old in (collection, "v.tsv"):
        result = run("vocab", "diff", old, edition)
        assert result.exit_code == 0
        assert "Headings  3, now 2" in result.stdout
        assert "merged:\n  Bread, Rye (D000002): Breads\n" in result.stdout
        assert "renamed:\n  Breads (D000001): Bread → Breads\n" in result.stdout
        assert "removed:\n  Oats (D000003)\n" in result.stdout
    content = json.loads(run("vocab", "diff", "v.tsv", edition, "--json").stdout)
    assert content["counts"]["added"] == 1
    assert content["merged"] == [
        {"id": "D000002", "name": "Bread, Rye", "before": [], "after": ["D000001"]}
    ]
    same = run("vocab", "diff", "v.tsv", collection).stdout
    assert "added:" not in same


def test_diff_into_a_file(run: Run, collection: Path, edition: Path) -> None:
    assert run("vocab", "diff", "v.tsv", edition, "-o", "d.json").exit_code == 0
    printed = json.loads(run("vocab", "diff", "v.tsv", edition, "--json").stdout)
    assert json.loads(Path("d.json").read_text()) == printed
    assert run("vocab", "diff", "v.tsv", edition, "-o", "d.tsv").exit_code == 0
    lines = Path("d.tsv").read_text().splitlines()
    assert lines[0] == "change\tid\tname\tbefore\tafter"
    assert "renamed\tD000001\tBreads\tBread\tBreads" in lines
    alone = run("vocab", "diff", "v.tsv", edition, "-o", "-")
    assert json.loads(alone.stdout) == printed
    for bad, reason in (("d.csv", "no format for the extension"), ("v.tsv", "an input")):
        refused = run("vocab", "diff", "v.tsv", edition, "-o", bad)
        assert refused.exit_code != 0
        assert reason in refused.stderr


def test_examples_are_few(run: Run, write: Callable[[str, str], Path]) -> None:
    write("a.tsv", "id\tname\n" + "".join(f"{n}\tName {n}\n" for n in range(20)))
    write("b.tsv", "id\tname\n" + "".join(f"{n}\tName {n}\n" for n in range(40)))
    assert (
        "and 15 more; -o FILE and --json list all" in run("vocab", "diff", "a.tsv", "b.tsv").stdout
    )


def test_update_and_undo(run: Run, collection: Path, edition: Path) -> None:
    planned = run("vocab", "update", collection, edition, "--dry-run")
    assert "Documents with other headings          1\n" in planned.stdout
    assert "Oats (D000003): 2\n" in planned.stdout
    assert "A dry run: nothing was changed." in planned.stderr
    assert "Oats" in run("vocab", "search", collection, "Oats").stdout
    done = run("vocab", "update", collection, edition)
    assert done.stdout == planned.stdout
    assert "--undo` restores the edition before." in done.stderr
    assert "Breads" in run("vocab", "show", collection, "D000001").stdout
    again = run("vocab", "update", collection, edition)
    assert "has this edition already; nothing was changed" in again.stderr
    undone = json.loads(run("vocab", "update", collection, "--undo", "--json").stdout)
    assert undone["documents"] == 1
    assert undone["dry_run"] is False
    assert "Name (en)      Bread\n" in run("vocab", "show", collection, "D000001").stdout
    nothing = run("vocab", "update", collection, "--undo")
    assert nothing.exit_code == 1
    assert "no former edition to restore" in nothing.stderr


def test_report_as_json(run: Run, collection: Path, edition: Path) -> None:
    report = json.loads(run("vocab", "update", collection, edition, "--json").stdout)
    assert report["followed"] == {"D000002": 1}
    assert report["resolved"] == {"Wheat": 1}
    assert report["withdrawn"] == [
        {"id": "D000003", "name": "Oats", "successors": [], "documents": ["2"], "count": 1}
    ]


def test_bad_commands(run: Run, collection: Path, edition: Path) -> None:
    for arguments in ((), (edition, "--undo")):
        refused = run("vocab", "update", collection, *arguments)
        assert refused.exit_code == 2
        assert "give the file of the new edition, or --undo" in refused.stderr
    missing = run("vocab", "update", collection, "nowhere.tsv")
    assert "nowhere.tsv: no such file" in missing.stderr
    Path("other.tsv").write_text("id\tname\nX1\tShips\nX2\tBoats\n")
    other = run("vocab", "update", collection, "other.tsv")
    assert other.exit_code == 1
    assert "lacks 3 of 3 headings; is it another vocabulary?" in other.stderr
