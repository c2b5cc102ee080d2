from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin.cli.demo import MEASURES, TEXTS
from labelkin.evaluate import parse_measure

Run = Callable[..., Result]


def test_suggestions_of_the_default_method_then_all_methods_then_measures(run: Run) -> None:
    pytest.importorskip("torch", reason="needs the extra `train`")
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    result = run("demo", "--documents", 400, "--held-out", 30)
    assert result.exit_code == 0
    method = "rerank" if "method is now rerank" in result.stderr else "knn"
    places = [result.output.index(f"Headings for {text!r}, by {method}:") for text in TEXTS]
    places.append(result.output.index(f"Headings for {TEXTS[-1]!r}, by each method:"))
    places.append(result.output.index("How good the methods are, on 30 documents held out:"))
    places.append(result.output.index("Your turn: labelkin suggest demo --title"))
    assert places == sorted(places)
    assert "nearest documents" in result.output[places[0] : places[1]]
    methods = result.output[places[3] : places[4]]
    for name in ("knn", "label-ae", "mix", "mix-ranked", "lexical", "rerank"):
        assert re.search(rf"^{name} +\S", methods, re.MULTILINE), name
    for name, meaning in MEASURES.items():
        assert re.search(
            rf"^{re.escape(name)} +0\.|^{re.escape(name)} +\d", result.stdout, re.MULTILINE
        )
        assert re.search(rf"^{re.escape(name)} +{re.escape(meaning)}$", result.stdout, re.MULTILINE)


def test_every_measure_exists_and_fits_a_line() -> None:
    for name, meaning in MEASURES.items():
        assert parse_measure(name).name == name
        assert len(meaning) < 69


@pytest.mark.parametrize("documents", [1, 5])
def test_too_few_documents_to_train(run: Run, documents: int) -> None:
    result = run("demo", "--documents", documents, "--held-out", 2)
    assert result.exit_code == 0
    assert "by each method" in result.output
    assert Path("demo").is_dir()


def test_without_the_extras(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from labelkin.exceptions import MissingExtraError
    from labelkin.training import Training

    def missing(*_: object, **__: object) -> None:
        raise MissingExtraError("training needs torch: pip install 'labelkin[train]'")

    monkeypatch.setattr(Training, "run", missing)
    result = run("demo", "--documents", 60, "--held-out", 10)
    assert result.exit_code == 0
    assert "Nothing can be trained: training needs torch: pip install" in result.stderr
    assert f"Headings for {TEXTS[0]!r}, by knn:" in result.output
