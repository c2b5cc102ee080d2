from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin.evaluate import evaluate, parse_measure
from labelkin.rerank.fitting import as_evaluation, best_threshold
from labelkin.rerank.labelled_candidates import LabelledCandidates
from labelkin.rerank.model import reranker_info
from labelkin.rerank.pairs import Pairs


def test_candidates_as_an_evaluation():
    """Two documents; the first has two headings more than are among its candidates."""
    keys = np.array([1, 4, 7, 10 + 2, 10 + 3])
    right = np.array([True, False, True, False, True])
    candidates = LabelledCandidates(
        Pairs(keys, 2, 10), np.zeros((5, 1), dtype=np.float32), right, np.array([4, 1])
    )
    scores = np.array([0.3, 0.9, 0.8, 0.0, 0.6], dtype=np.float32)
    evaluation = as_evaluation(candidates, scores, 0.5)
    assert np.diff(evaluation.gold.indptr).tolist() == [4, 1]
    assert [columns.tolist() for columns, _ in evaluation.ordered] == [[4, 7, 1], [3]]
    values = evaluate(evaluation, map(parse_measure, ("MiP", "MiR", "P@1", "R@10")))
    assert values["MiP"] == pytest.approx(2 / 3)
    assert values["MiR"] == pytest.approx(2 / 5)
    assert values["P@1"] == pytest.approx(1 / 2)
    assert values["R@10"] == pytest.approx((2 / 4 + 1) / 2)


def test_mif_is_that_of_the_best_threshold():
    random = np.random.default_rng(0)
    keys = np.sort(random.choice(4000, 600, replace=False))
    right = random.random(600) < 0.3
    pairs = Pairs(keys, 40, 100)
    gold = np.bincount(pairs.documents[right], minlength=40) + 2
    scores = np.clip(right * 0.3 + random.random(600) * 0.7, 0, 1).round(3).astype(np.float32)
    candidates = LabelledCandidates(pairs, np.zeros((600, 1), dtype=np.float32), right, gold)
    value, threshold = best_threshold(candidates, scores)
    evaluation = as_evaluation(candidates, scores, threshold)
    assert parse_measure("MiF").value(evaluation) == pytest.approx(value, abs=1e-3)


def test_training_stores_its_evaluation(trained: Path):
    info = reranker_info(trained / "models" / "rerank")
    evaluation = info.evaluation
    assert evaluation is not None
    assert list(evaluation.methods) == ["rerank", "votes"]
    assert evaluation.documents == info.calibration.documents > 0
    mine, votes = evaluation.methods["rerank"], evaluation.methods["votes"]
    assert list(mine) == list(votes) == "MiP MiR MiF P@1 P@5 R@10 nDCG@5 nDCG@10".split()
    assert 0.3 < votes["MiF"] < mine["MiF"] < 1
    counts = [one.count for one in info.calibration.reliability]
    assert sum(counts) > 10 * evaluation.documents
