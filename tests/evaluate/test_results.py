from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import labelkin.evaluate
from labelkin.evaluate import (
    DEFAULT_BANDS,
    DEFAULT_MEASURES,
    Band,
    Evaluation,
    evaluate,
    evaluate_bands,
    parse_measure,
    per_label_report,
)
from labelkin.exceptions import ConfigError
from labelkin.scoring.ranking import Ranking

Make = Callable[..., Evaluation]
FREQUENCIES = np.array([1000, 999, 100, 99, 0, 5000, 7, 7])


def test_values_come_in_the_order_asked(random_evaluation: Callable[..., Evaluation]) -> None:
    evaluation = random_evaluation()
    names = ["P@5", "MiF", "Acc"]
    values = evaluate(evaluation, [parse_measure(name) for name in names])
    assert list(values) == names
    assert values["MiF"] == parse_measure("MiF").value(evaluation)
    assert list(evaluate(evaluation)) == [measure.name for measure in DEFAULT_MEASURES]


def test_a_large_evaluation_stays_sparse_and_fast() -> None:
    rng = np.random.default_rng(0)
    documents, labels = 3546, 30_000
    gold = [rng.choice(labels, 13, replace=False).tolist() for _ in range(documents)]
    ranked = [rng.choice(labels, 50, replace=False).tolist() for _ in range(documents)]
    matrix = Ranking.from_lists(gold).matrix(labels)
    longer = Ranking.from_lists(ranked)
    cut = longer.kept(longer.ranks < 12)
    frequencies = rng.integers(0, 5000, labels)
    psp = [parse_measure("PSP@5"), parse_measure("PSnDCG@5"), parse_measure("coverage@5")]
    start = time.process_time()
    values = evaluate(
        Evaluation(matrix, cut, longer, frequencies, 100_000), [*DEFAULT_MEASURES, *psp]
    )
    assert time.process_time() - start < 1
    assert values["predicted"] == 12


def test_public_names_are_sorted_and_exist() -> None:
    names = labelkin.evaluate.__all__
    upper_first = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert names == upper_first
    assert all(hasattr(labelkin.evaluate, name) for name in names)


def test_the_report_counts_each_label(make: Make) -> None:
    evaluation = make([[0, 1], [0], [2]], [[0], [2], [2]], training_frequencies=FREQUENCIES)
    report = per_label_report(evaluation)
    assert report.columns.tolist() == [0, 1, 2]
    assert report.true_positives[:3].tolist() == [1, 0, 1]
    assert report.false_positives[:3].tolist() == [0, 0, 1]
    assert report.false_negatives[:3].tolist() == [1, 1, 0]
    assert report.precision[:3].tolist() == [1, 0, 0.5]
    assert report.recall[:3].tolist() == [0.5, 0, 1]
    assert report.f_score[:3] == pytest.approx([2 / 3, 0, 2 / 3])
    assert report.training.tolist() == FREQUENCIES.tolist()


def test_unknown_training_frequencies_are_minus_one(make: Make) -> None:
    assert set(per_label_report(make([[0]], [[0]])).training.tolist()) == {-1}


def test_default_bands_hold_every_label_once() -> None:
    masks = [band.mask(FREQUENCIES) for band in DEFAULT_BANDS]
    assert np.flatnonzero(masks[0]).tolist() == [0, 5]
    assert np.flatnonzero(masks[1]).tolist() == [1, 2]
    assert np.sum(masks, axis=0).tolist() == [1] * 8


def test_bands_restrict_gold_and_predictions(make: Make) -> None:
    evaluation = make([[0, 1], [5, 4]], [[0, 2], [0, 4]], training_frequencies=FREQUENCIES)
    measures = [parse_measure("MiP"), parse_measure("MiR")]
    assert evaluate_bands(evaluation, measures) == {
        "head": {"MiP": 0.5, "MiR": 0.5},
        "torso": {"MiP": 0, "MiR": 0},
        "tail": {"MiP": 1, "MiR": 1},
    }
    both = [Band("rare", 0, 100), Band("none", 6000)]
    assert evaluate_bands(evaluation, measures, both) == {
        "rare": {"MiP": 0.5, "MiR": 1},
        "none": {"MiP": 0, "MiR": 0},
    }


def test_bands_need_training_frequencies(make: Make) -> None:
    with pytest.raises(ConfigError, match="training frequencies"):
        evaluate_bands(make([[0]], [[0]]), [parse_measure("MiF")])
