from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin import compiled

Run = Callable[..., Result]


def test_all_methods_that_can_be_used(run: Run, reranked: str) -> None:
    done = run("compare", reranked, "held.jsonl", "--measures", "MiF,P@5")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["measure", "knn", "lexical", "rerank"]
    assert "+ and − mark what differs from knn with p < 0.05." in done.stdout
    assert "Compared on 60 documents with labels." in done.stderr


def test_each_method_as_alone(run: Run, reranked: str) -> None:
    """Deeper neighbours for one method change nothing for another."""
    content = json.loads(
        run("compare", reranked, "held.jsonl", "--measures", "MiF", "--json").stdout
    )
    assert content["compared_with"] == "knn"
    assert set(content["p"]) == {"lexical", "rerank"}
    for method in ("knn", "lexical", "rerank"):
        options = ("--method", method, "--measures", "MiF", "--json")
        alone = json.loads(run("eval", reranked, "held.jsonl", *options).stdout)
        assert content["intervals"][method] == alone.pop("intervals")
        assert content[method] == alone


def test_methods_by_name(run: Run, reranked: str) -> None:
    options = ("--methods", "rerank,knn", "--measures", "MiF", "--json")
    content = json.loads(run("compare", reranked, "held.jsonl", *options).stdout)
    assert list(content) == ["rerank", "knn", "compared_with", "p", "intervals"]
    assert content["compared_with"] == "rerank"
    wrong = run("compare", reranked, "held.jsonl", "--methods", "magic")
    assert wrong.exit_code == 2
    untrained = run("compare", reranked, "held.jsonl", "--methods", "knn,mix")
    assert (untrained.exit_code, untrained.stderr.count("\n")) == (1, 1)


def test_without_lightgbm(run: Run, reranked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only training needs it, and the weights of signals where numba is not there."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr(compiled, "can_load", lambda: False)
    done = run("compare", reranked, "held.jsonl", "--measures", "MiF")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["measure", "knn", "lexical", "rerank"]
    explained = run("suggest", reranked, "--title", "Winter wheat", "--explain")
    assert explained.exit_code == 0, explained.stderr
    assert "no weights of signals: the reranker needs LightGBM" in explained.stderr
    assert "nearest documents" in explained.stdout


def test_a_note_about_documents_of_the_collection(run: Run, reranked: str) -> None:
    run("corpus", "convert", reranked, "-o", "all.jsonl")
    notes = run("compare", reranked, "all.jsonl", "--methods", "knn", "--measures", "MiF").stderr
    assert "340 documents in the collection itself, searched leave-one-out" in notes


def test_nothing_to_compare_on(run: Run, reranked: str) -> None:
    Path("bare.jsonl").write_text('{"id": "x", "title": "Wheat"}\n')
    failed = run("compare", reranked, "bare.jsonl")
    assert (failed.exit_code, failed.stderr.count("\n")) == (1, 1)
