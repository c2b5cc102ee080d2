from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def demo(run: Run) -> str:
    assert run("demo", "demo", "--documents", 300, "--json").exit_code == 0
    return "demo"


def test_a_table_with_the_reasons(run: Run, demo: str) -> None:
    result = run("suggest", demo, "--title", "Wheat storage after wet summers", "-k", 10)
    assert result.exit_code == 0
    assert "evidence" in result.stdout
    assert "of 10 nearest documents" in result.stdout
    assert "demo-0" not in result.stdout
    explained = run("suggest", demo, "--title", "Wheat storage after wet summers", "--explain")
    assert "demo-0" not in explained.stdout
    assert re.search(r"^  0\.\d\d  (19|20)\d\d  \w", explained.stdout, re.MULTILINE)


def test_json(run: Run, demo: str) -> None:
    Path("q.jsonl").write_text('{"id": "q1", "title": "Wheat storage"}\n')
    found = json.loads(run("suggest", demo, "q.jsonl", "--limit", 3, "--json").stdout)
    assert found[0]["id"] == "q1"
    assert [s["rank"] for s in found[0]["suggestions"]] == [1, 2, 3]
    first = found[0]["suggestions"][0]
    assert first["evidence"]["votes"] == len(first["evidence"]["carriers"])
    assert first["score"] == pytest.approx(
        first["evidence"]["votes"] / first["evidence"]["neighbours"], abs=1e-5
    )


def test_options(run: Run, demo: str) -> None:
    def headings(*options: object) -> list[str]:
        result = run("suggest", demo, "--title", "Wheat storage", "--limit", 5, "--json", *options)
        return [s["name"] for s in json.loads(result.stdout)[0]["suggestions"]]

    everything = headings()
    assert everything[0] not in headings("--exclude", everything[0])
    assert set(headings("--include", "A")) != set(everything)
    assert headings("--threshold", 1.0) == []
    bad = run("suggest", demo, "--title", "x", "--include", "Nonsense")
    assert (bad.exit_code, bad.stderr.count("\n")) == (1, 1)


def test_nothing_to_suggest(run: Run, demo: str) -> None:
    result = run("suggest", demo, "--text", "zzzz")
    assert "The text: no heading can be suggested." in result.stderr


LEXICAL = ("--method", "lexical")
TEXT = ("--title", "Wheat storage", "--text", "Barns for winter wheat; wheat storage in towns.")


@pytest.fixture
def empty(run: Run, demo: str) -> str:
    """A collection with a vocabulary and no documents."""
    names = json.loads(run("vocab", "search", demo, "wheat", "--json").stdout)
    lines = [f"{entry['id']}\t{entry['name']}" for entry in names]
    Path("v.tsv").write_text("\n".join(["id\tname", *lines]) + "\n")
    assert run("init", "empty", "--vocab", "v.tsv").exit_code == 0
    return "empty"


def test_headings_that_the_text_names(run: Run, empty: str) -> None:
    result = run("suggest", empty, *TEXT, *LEXICAL)
    assert result.exit_code == 0
    assert "named in the title: 'Wheat storage'" in result.stdout
    assert not any((Path(empty) / "indexes").iterdir())
    explained = run("suggest", empty, *TEXT, *LEXICAL, "--explain").stdout
    assert "  named in the text: Barns for winter wheat; “wheat storage” in towns." in explained
    (found,) = json.loads(run("suggest", empty, *TEXT, *LEXICAL, "--json").stdout)
    first = found["suggestions"][0]
    assert first["evidence"]["named"][0] == {
        "words": "Wheat storage",
        "place": "title",
        "count": 1,
        "nested": False,
        "before": "",
        "after": "",
        "spans": [[0, 13]],
    }
    assert first["evidence"]["carriers"] == []


def test_annotating_evaluating_and_tuning_without_documents(run: Run, empty: str) -> None:
    label = json.loads(run("suggest", empty, *TEXT, *LEXICAL, "--json").stdout)[0]
    label = label["suggestions"][0]["id"]
    record = {"id": "a", "title": "Wheat storage", "labels": [label], "language": "en"}
    Path("d.jsonl").write_text(json.dumps(record) + "\n")
    assert run("annotate", empty, "d.jsonl", "-o", "out.jsonl", *LEXICAL).exit_code == 0
    assert json.loads(Path("out.jsonl").read_text())["suggestions"][0]["id"] == label
    values = run("eval", empty, "d.jsonl", *LEXICAL, "--measures", "R@1", "--json").stdout
    assert json.loads(values)["R@1"] == 1.0
    assert run("tune", empty, "d.jsonl", *LEXICAL, "--write").exit_code == 0
    trials = json.loads(run("tune", empty, "d.jsonl", *LEXICAL, "--json").stdout)
    written = tomllib.loads((Path(empty) / "labelkin.toml").read_text())["lexical"]
    assert written == {"threshold": trials[0]["threshold"]}
    assert not any((Path(empty) / "indexes").iterdir())


def test_named_beside_voted(run: Run, demo: str) -> None:
    run("corpus", "convert", demo, "-o", "d.jsonl")
    methods = ("--method", "knn", *LEXICAL)
    compared = run("eval", demo, "d.jsonl", *methods, "--measures", "MiF", "--json").stdout
    assert list(json.loads(compared))[:2] == ["knn", "lexical"]


TITLE = ("--title", "Storage of winter wheat in village barns")


def test_bands(run: Run, reranked: str) -> None:
    def bands(*options: object) -> list[str]:
        (found,) = json.loads(run("suggest", reranked, *TITLE, *options, "--json").stdout)
        return [one["band"] for one in found["suggestions"]]

    asked = ("--limit", 20, "--accept", 0.9)
    by_target = {target: bands(*asked, "--review", target) for target in (0.3, 0.5, 0.7, 0.9)}
    hidden = {target: given.count("hidden") for target, given in by_target.items()}
    assert list(hidden.values()) == sorted(hidden.values())
    for given in by_target.values():
        assert sorted(given, key=["accept", "review", "hidden"].index) == given
    target = next(target for target, count in hidden.items() if 1 < count < len(given))

    usual = run("suggest", reranked, *TITLE, *asked, "--review", target)
    assert usual.stdout.split("\n", 1)[0].split() == ["heading", "score", "band", "evidence"]
    assert "hidden" not in usual.stdout
    assert usual.stderr == (
        f"{hidden[target]} more headings below the review bar; --all shows them.\n"
    )
    everything = run("suggest", reranked, *TITLE, *asked, "--review", target, "--all")
    assert everything.stdout.count("hidden") == hidden[target]
    assert "--all" not in everything.stderr


def test_signals(run: Run, reranked: str) -> None:
    asked = ("suggest", reranked, *TITLE, "--limit", 5, "--json")
    (plain,) = json.loads(run(*asked).stdout)
    assert all("signals" not in one for one in plain["suggestions"])
    (found,) = json.loads(run(*asked, "--explain").stdout)
    assert len(found["suggestions"]) == 5
    for one, unexplained in zip(found["suggestions"], plain["suggestions"], strict=True):
        assert {**unexplained, "signals": one["signals"]} == one
        weights = [signal["weight"] for signal in one["signals"]]
        assert weights == sorted(weights, reverse=True)
        assert {"similar documents", "named in the text"} <= {s["name"] for s in one["signals"]}


def test_a_lower_review_bar_shows_more(run: Run, reranked: str) -> None:
    def scores(*options: object) -> list[float]:
        (found,) = json.loads(run("suggest", reranked, *TITLE, *options, "--json").stdout)
        assert "hidden" not in [one["band"] for one in found["suggestions"]]
        return [one["score"] for one in found["suggestions"]]

    usual, more = scores("--review", 0.5), scores("--review", 0.15)
    assert len(more) > len(usual)
    assert more[: len(usual)] == usual


def test_evidence_of_the_reranker(run: Run, reranked: str) -> None:
    table = run("suggest", reranked, *TITLE, "--limit", 8).stdout
    assert re.search(r"\d of \d+ nearest documents; named in the title: 'barns'", table)
    assert "demo-0" not in table
    explained = run("suggest", reranked, *TITLE, "--limit", 8, "--explain").stdout
    assert "demo-0" not in explained
    assert "similar documents +" in explained
    assert re.search(r"named in the title: Storage of winter wheat in village “barns”\n", explained)


def test_bands_belong_to_the_reranker(run: Run, reranked: str) -> None:
    for option in ("--accept", "--review"):
        failed = run("suggest", reranked, *TITLE, "--method", "knn", option, 0.8)
        assert failed.exit_code == 2
        assert "are for the method rerank" in failed.stderr
    (found,) = json.loads(run("suggest", reranked, *TITLE, "--method", "knn", "--json").stdout)
    assert "band" not in found["suggestions"][0]
