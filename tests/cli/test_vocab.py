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
    assert found == [{"id": "D000001", "name": "Bread", "matched": "Loaf", "language": "en"}]
    assert "Bread, Rye" in run("vocab", "search", collection, "rye").stdout
    for options in ((), ("--json",)):
        missing = run("vocab", "search", collection, "zzz", *options)
        assert missing.exit_code == 1
        assert "No heading contains 'zzz' in a name or synonym" in missing.stderr
        assert missing.stdout == ("[]\n" if options else "")
    misspelt = run("vocab", "search", collection, "rye braed")
    assert "did you mean 'Rye Bread'?" in misspelt.stderr
    by_id = run("vocab", "search", collection, "d000002")
    assert by_id.stdout.split() == ["id", "heading", "matched", "D000002", "Bread,", "Rye"]


def test_pages_of_a_search(run: Run, collection: Path) -> None:
    whole = json.loads(run("vocab", "search", collection, "r", "--json").stdout)
    assert len(whole) > 1
    pages = []
    for offset in range(len(whole)):
        page = run("vocab", "search", collection, "r", "--json", "--limit", "1", "--offset", offset)
        pages += json.loads(page.stdout)
        assert f"Listed {offset + 1} to {offset + 1} of {len(whole)} headings" in page.stderr
    assert pages == whole
    beyond = run("vocab", "search", collection, "r", "--offset", 99)
    assert (beyond.exit_code, beyond.stdout) == (0, "")
    assert f"Listed none of {len(whole)} headings" in beyond.stderr


def test_an_ambiguous_name_lists_its_candidates(run: Run, tmp_path: Path) -> None:
    rows = "".join(f"j{n}\tJava ({n})\tJava\n" for n in range(1, 8))
    (tmp_path / "v.tsv").write_text(f"id\tname\tsynonyms\n{rows}")
    result = run("vocab", "show", "v.tsv", "java")
    assert result.exit_code == 1
    assert result.stderr == (
        "error: 'java' is ambiguous: Java (1) (j1), Java (2) (j2), Java (3) (j3), Java (4) (j4), "
        "Java (5) (j5) and 2 more; give an id\n"
    )


def test_tree(run: Run, collection: Path) -> None:
    # B01 precedes J01.
    assert run("vocab", "tree", collection).stdout == "Oats\nBread\n  Bread, Rye\n"
    assert run("vocab", "tree", collection, "--depth", 1).stdout == "Oats\nBread  (+1)\n"
    found = json.loads(run("vocab", "tree", collection, "Bread", "--json").stdout)
    assert found[0]["narrower"][0]["id"] == "D000002"


def test_a_tree_is_sorted(run: Run, tmp_path: Path) -> None:
    rows = ["t\tTop\t", "a\tType 10\tt", "b\ttype 2\tt", "c\tÖl\tt", "d\tOma\tt", "e\tZoo\tt"]
    (tmp_path / "v.tsv").write_text("\n".join(["id\tname\tbroader", *rows]))
    expected = ["Top", "  Öl", "  Oma", "  type 2", "  Type 10", "  Zoo"]
    assert run("vocab", "tree", "v.tsv").stdout.splitlines() == expected
    rows = ["1\tTop\tC|D", "2\tLast\tC.10|D.1", "3\tMiddle\tC.9", "4\tFirst\tC.8|A.99"]
    rows = [row.replace("C", "C01").replace("D", "D01").replace("A.", "A01.") for row in rows]
    (tmp_path / "m.tsv").write_text("\n".join(["id\tname\ttree_numbers", *rows]))
    shown = run("vocab", "tree", "m.tsv", "Top").stdout.splitlines()
    assert shown == ["Top", "  First", "  Middle", "  Last"]


def test_cycles_are_shown_from_the_top(run: Run, tmp_path: Path) -> None:
    cycle = "".join(f"c{n}\tN{n:04}\tc{(n + 1) % 2000}\n" for n in range(2000))
    (tmp_path / "v.tsv").write_text(f"id\tname\tbroader\na\tA\tb\nb\tB\ta\ns\tS\ts\n{cycle}")
    result = run("vocab", "tree", "v.tsv", "--depth", 3)
    assert result.stdout == "A\n  B\n    A  (+1)\nN0000\n  N1999\n    N1998  (+1)\nS\n"
    assert result.stderr.count("warning:") == 1
    assert "2,003 concepts are in cycles of broader links" in result.stderr
    assert run("vocab", "tree", "v.tsv", "--depth", 200, "--json").exit_code == 0
    assert run("vocab", "stats", "v.tsv").exit_code == 0


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
