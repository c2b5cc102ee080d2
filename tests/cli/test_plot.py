from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from ..plots.plot_data import save_autoencoder  # noqa: TID252

pytest.importorskip("matplotlib", reason="needs the extra `train`")

Run = Callable[..., Result]


def test_frequencies(run: Run, collection: Path) -> None:
    result = run("plot", "frequencies", collection, "-o", "tail.png")
    assert (result.exit_code, result.stderr) == (0, "Wrote tail.png.\n")
    assert Path("tail.png").read_bytes().startswith(b"\x89PNG")


def test_latent(run: Run, collection: Path) -> None:
    missing = run("plot", "latent", collection, "-o", "map.svg")
    assert missing.exit_code == 1
    assert missing.stderr.count("\n") == 1
    assert "labelkin train" in missing.stderr
    save_autoencoder(collection, ["D000001", "D000002", "D000003"])
    assert run("plot", "latent", collection, "-o", "map.svg").exit_code == 0
    drawn = Path("map.svg").read_text(encoding="utf-8")
    assert "Bread, Rye" in drawn
    assert "Map of the headings: c" in drawn
    assert run("plot", "latent", collection, "-o", "m.svg", "--language", "xx").exit_code == 1


def test_reliability(run: Run, reranked: str) -> None:
    assert run("plot", "reliability", reranked, "-o", "trained.svg").exit_code == 0
    assert "expected calibration error" in Path("trained.svg").read_text()
    given = run("plot", "reliability", reranked, "held.jsonl", "-o", "held.svg")
    assert given.exit_code == 0, given.stderr
    assert ", 60 documents" in Path("held.svg").read_text()
    lines = Path("held.jsonl").read_text().splitlines()
    odd = json.loads(lines[0]) | {"labels": ["No such heading"]}
    Path("odd.jsonl").write_text(json.dumps(odd) + "\n")
    unresolved = run("plot", "reliability", reranked, "odd.jsonl", "-o", "odd.svg")
    assert unresolved.exit_code == 0
    assert "1 label not in the vocabulary" in unresolved.stderr


def test_reliability_of_an_earlier_version(run: Run, reranked: str) -> None:
    description = Path(reranked, "models", "rerank", "model.json")
    content = json.loads(description.read_text())
    del content["checksum"], content["calibration"]["reliability"]
    description.write_text(json.dumps(content))
    result = run("plot", "reliability", reranked, "-o", "r.png")
    assert result.exit_code == 1
    assert "give a file of documents with labels" in result.stderr
    assert result.stderr.count("\n") == 1
    assert run("plot", "reliability", reranked, "held.jsonl", "-o", "r.png").exit_code == 0


def test_reliability_without_a_reranker(run: Run, collection: Path) -> None:
    result = run("plot", "reliability", collection, "-o", "r.png")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "labelkin train" in result.stderr


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("p.gif", "no format for the extension '.gif'; use .png, .svg, .pdf"),
        ("p", "no extension; use .png"),
        ("-", "no extension; use .png"),
        ("p.png.gz", "no format for the extension '.gz'"),
        ("c/p.png", "inside the collection"),
        ("nowhere/p.png", "there is no folder"),
    ],
)
def test_outputs_that_are_refused(run: Run, collection: Path, output: str, problem: str) -> None:
    result = run("plot", "frequencies", collection, "-o", output)
    assert result.exit_code == 1
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1
    assert not Path(output).exists()


def test_without_matplotlib(run: Run, collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("plot", "frequencies", collection, "-o", "p.png")
    assert result.exit_code == 1
    assert "pip install 'labelkin[train]'" in result.stderr


def test_without_documents(run: Run) -> None:
    assert run("init", "empty").exit_code == 0
    result = run("plot", "frequencies", "empty", "-o", "p.png")
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "labelkin add" in result.stderr


def test_eval_stores_what_it_has_measured(run: Run, demo: str) -> None:
    asked = ("eval", demo, "held.jsonl", "--measures", "MiF,P@5", "--json")
    assert run(*asked).exit_code == 0
    assert not Path(demo, "evaluation.json").exists()
    values = json.loads(run(*asked, "--method", "knn", "--save").stdout)
    stored = json.loads(Path(demo, "evaluation.json").read_text())
    assert stored["documents"] == 100
    assert stored["methods"]["knn"]["MiF"] == pytest.approx(values["MiF"], abs=1e-6)
    assert list(stored["methods"]["knn"]) == ["MiF", "P@5"]
    both = run(*asked, "--method", "lexical", "--method", "knn", "--save")
    assert both.exit_code == 0
    assert list(json.loads(Path(demo, "evaluation.json").read_text())["methods"]) == [
        "lexical",
        "knn",
    ]
