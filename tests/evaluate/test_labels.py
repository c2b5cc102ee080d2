from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from labelkin.evaluate import (
    DEFAULT_BANDS,
    Band,
    Evaluation,
    evaluate_bands,
    parse_measure,
    per_label_report,
)
from labelkin.exceptions import ConfigError

Make = Callable[..., Evaluation]
FREQUENCIES = np.array([1000, 999, 100, 99, 0, 5000, 7, 7])


def test_the_report_counts_each_label(make: Make) -> None:
    made = make([[0, 1], [0], [2]], [[0], [2], [2]], training_frequencies=FREQUENCIES)
    report = per_label_report(made)
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
    made = make([[0, 1], [5, 4]], [[0, 2], [0, 4]], training_frequencies=FREQUENCIES)
    measures = [parse_measure("MiP"), parse_measure("MiR")]
    assert evaluate_bands(made, measures) == {
        "head": {"MiP": 0.5, "MiR": 0.5},
        "torso": {"MiP": 0, "MiR": 0},
        "tail": {"MiP": 1, "MiR": 1},
    }
    both = [Band("rare", 0, 100), Band("none", 6000)]
    assert evaluate_bands(made, measures, both) == {
        "rare": {"MiP": 0.5, "MiR": 1},
        "none": {"MiP": 0, "MiR": 0},
    }


def test_bands_need_training_frequencies(make: Make) -> None:
    with pytest.raises(ConfigError, match="training frequencies"):
        evaluate_bands(make([[0]], [[0]]), [parse_measure("MiF")])
