from __future__ import annotations

import json
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
    assert "demo-0" in explained.stdout


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
