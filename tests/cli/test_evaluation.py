from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def test_eval(run: Run, demo: str) -> None:
    result = run("eval", demo, "held.jsonl", "--json", "--measures", "MiF,P@5 hF", "-k", 10)
    values = json.loads(result.stdout)
    assert list(values) == ["MiF", "P@5", "hF"]
    assert 0.25 < values["MiF"] < values["hF"] < 1
    assert result.stderr.endswith("Evaluated 100 documents with labels.\n")
    table = run("eval", demo, "held.jsonl", "--per-label", "labels.tsv", "--bands").stdout
    assert "95 % interval" in table
    assert all(band in table for band in ("head", "torso", "tail"))
    assert run("eval", demo, "held.jsonl", "--method", "magic").exit_code == 2
    assert Path("labels.tsv").read_text().startswith("label\tname\tTP\tFP\tFN\tP\tR\tF\ttraining\n")


def test_bands_as_json(run: Run, demo: str) -> None:
    options = ("--measures", "MiF,P@5", "--bands")
    values = json.loads(run("eval", demo, "held.jsonl", *options, "--json").stdout)
    assert list(values) == ["MiF", "P@5", "bands"]
    assert list(values["bands"]) == ["head", "torso", "tail"]
    table = run("eval", demo, "held.jsonl", *options).stdout.split()
    for of_band in values["bands"].values():
        assert list(of_band) == ["MiF", "P@5"]
        assert all(f"{value:.4f}" in table for value in of_band.values())


def test_documents_of_the_collection_are_searched_leave_one_out(run: Run, demo: str) -> None:
    result = run("eval", demo, "all.jsonl", "--measures", "MiF", "--json")
    assert "300 documents in the collection itself, searched leave-one-out." in result.stderr
    assert json.loads(result.stdout)["MiF"] < 0.9


def test_tune(run: Run, demo: str) -> None:
    trials = json.loads(run("tune", demo, "held.jsonl", "--json").stdout)
    assert len(trials) == 396
    result = run("tune", demo, "held.jsonl", "--write", "--measure", "P@5")
    assert "396 settings on 100 documents:" in result.stderr
    assert f"Wrote the best into {demo}/labelkin.toml." in result.stderr
    assert run("eval", demo, "held.jsonl").exit_code == 0


def test_tune_the_reranker(run: Run, reranked: str) -> None:
    done = run("tune", reranked, "held.jsonl", "--method", "rerank", "--write", "--json")
    assert done.exit_code == 0, done.stderr
    trials = json.loads(done.stdout)
    assert len(trials) == 21
    assert [trial["count"] for trial in trials].count("expected-f") == 1
    assert trials == sorted(trials, key=lambda trial: -trial["MiF"])
    value = json.loads(run("eval", reranked, "held.jsonl", "--measures", "MiF", "--json").stdout)
    assert value["MiF"] == pytest.approx(trials[0]["MiF"], abs=1e-4)
