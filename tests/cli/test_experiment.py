from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin.corpus import write_corpus
from labelkin.demo import demo_documents
from labelkin.experiments.grid import read_grid, shipped_grids

Run = Callable[..., Result]

GRID = """
title = "Two sizes"
ks = [5]
measures = ["MiF"]
choose_on = "dev"
report_on = ["dev"]

[collection]
vocabulary = "vocabulary.tsv"
documents = ["train.jsonl"]
sizes = [30, 60, 0]

[splits]
dev = "dev.jsonl"

[representations.stems]
uses = "stems"

[[tables]]
name = "knn"
title = "Basic k-NN"
method = "knn"
representations = ["stems"]

[scaling]
documents = 1000000
tables.knn = { table = "basic", representation = "stems" }
"""


@pytest.fixture
def grid(run: Run, tmp_path: Path) -> str:
    documents = list(demo_documents(130, 0))
    write_corpus(documents[:120], tmp_path / "train.jsonl")
    write_corpus(documents[120:], tmp_path / "dev.jsonl")
    labels = sorted({label for document in documents for label in document.labels})
    lines = ["ui\tname\ttree_numbers\tentry_terms", *(f"{label}\t{label}\t\t" for label in labels)]
    (tmp_path / "vocabulary.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "two.toml").write_text(GRID)
    return "two.toml"


def test_run_and_report(run: Run, grid: str) -> None:
    done = run("experiment", "run", grid, "--data", ".", "--json")
    assert done.exit_code == 0, done.stderr
    content = json.loads(done.stdout)
    assert len(content["made"]) == 15
    assert "1/15 collection: 30 documents (about" in done.stderr
    assert "15 stages run in" in done.stderr
    folder = Path("experiments/reports/two")
    assert content["report"] == str(folder)
    assert "Growth" in (folder / "report.md").read_text()
    assert (folder / "figures" / "scaling.png").stat().st_size > 10_000

    again = run("experiment", "run", grid, "--data", ".")
    assert "0 stages run" in again.stderr
    assert "15 stages reused" in again.stderr
    assert run("experiment", "report", grid, "--data", ".", "-o", "out").exit_code == 0
    assert Path("out/report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "papers"), "no grid 'papers'"),
        (("report", "two.toml", "--data", "."), "15 of 15 stages"),
        (("run", "two.toml", "--data", ".", "--quick"), "no [quick]"),
    ],
)
def test_errors_are_one_line(run: Run, grid: str, arguments: tuple[str, ...], message: str) -> None:
    done = run("experiment", *arguments)
    assert done.exit_code == 1
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("verb", ["run", "report"])
def test_missing_data_is_listed_with_its_origin(run: Run, verb: str) -> None:
    done = run("experiment", verb, "paper")
    assert done.exit_code == 1
    *files, error = done.stderr.strip().splitlines()
    assert len(files) == 5
    for line in files:
        assert line.startswith("../shared/data/mesh")
    assert "docs/reproduce-medline.md" in files[0]
    assert "PubMed's baseline" in files[1]
    assert error.startswith("error: ../shared/data: 5 of the experiment's files are not there")
    assert "--data" in error
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("name", shipped_grids())
def test_every_file_of_a_shipped_grid_has_an_origin(name: str) -> None:
    grid = read_grid(name)
    files = {grid.collection.vocabulary, *grid.collection.documents, *grid.splits.values()}
    assert files <= {*grid.origins}
