from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def test_show(run: Run, collection: Path) -> None:
    text = run("vocab", "show", collection, "rye bread").stdout
    assert "Id             D000002\n" in text
    assert "Broader        Bread\n" in text
    found = json.loads(run("vocab", "show", "v.tsv", "Bread", "--json").stdout)
    assert found["narrower"] == ["D000002"]
    missing = run("vocab", "show", collection, "Wheat")
    assert missing.exit_code == 1
    assert "'Wheat' is unknown in this vocabulary" in missing.stderr


def test_search(run: Run, collection: Path) -> None:
    found = json.loads(run("vocab", "search", collection, "loa", "--json").stdout)
    assert found == [{"id": "D000001", "name": "Bread", "matched": "Loaf"}]
    assert "Bread, Rye" in run("vocab", "search", collection, "rye").stdout
    assert run("vocab", "search", collection, "zzz").exit_code == 1


def test_tree(run: Run, collection: Path) -> None:
    assert run("vocab", "tree", collection).stdout == "Bread\n  Bread, Rye\nOats\n"
    assert run("vocab", "tree", collection, "--depth", 1).stdout == "Bread  (+1)\nOats\n"
    found = json.loads(run("vocab", "tree", collection, "Bread", "--json").stdout)
    assert found[0]["narrower"][0]["id"] == "D000002"


def test_a_circle_ends(run: Run, tmp_path: Path) -> None:
    (tmp_path / "v.tsv").write_text("id\tname\tbroader\na\tA\tb\nb\tB\ta\n")
    assert run("vocab", "tree", "v.tsv", "A", "--depth", 99).stdout == "A\n  B\n    A  (+1)\n"


def test_stats(run: Run, collection: Path) -> None:
    found = json.loads(run("vocab", "stats", collection, "--json").stdout)
    assert (found["concepts"], found["synonyms"]) == (3, 2)
    assert [(c["code"], c["concepts"]) for c in found["categories"]] == [("B", 1), ("J", 2)]
    text = run("vocab", "stats", collection).stdout
    assert "(J) Technology, Industry, and Agriculture" in text


@pytest.mark.shared
def test_stats_of_real_mesh(run: Run, shared_data: Path) -> None:
    path = shared_data / "mesh" / "descriptors.tsv.gz"
    found = json.loads(run("vocab", "stats", path, "--json").stdout)
    places = {category["code"]: category["places"] for category in found["categories"]}
    assert len(places) == 16
    # The paper's table of the 2021 edition counts places: 2,927 for A, 20,992 for D.
    assert 2_927 < places["A"] < 3_500
    assert 20_992 < places["D"] < 26_000
