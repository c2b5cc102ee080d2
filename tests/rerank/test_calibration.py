from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.rerank.calibration import (
    Calibration,
    calibrate,
    calibration_error,
    expected_f_counts,
    reliability,
)


def drawn(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Raw scores that are far too sure: right as often as their square says."""
    random = np.random.default_rng(seed)
    raw = random.random(count)
    return raw, random.random(count) < raw**2


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    raw, right = drawn(8000, 0)
    return calibrate(raw, right, missed=0.5, documents=100, error=0.01)


def test_scores_are_calibrated_on_fresh_data(calibration):
    raw, right = drawn(8000, 1)
    assert calibration_error(reliability(raw, right)) > 0.1
    assert calibration_error(reliability(calibration.scores(raw), right)) < 0.02


def test_scores_rise_with_raw_scores(calibration):
    scores = calibration.scores(np.linspace(-0.5, 1.5, 500))
    assert np.all(np.diff(scores) >= 0)
    assert np.all(np.diff(calibration.raw) > 0)
    assert scores.min() >= 0
    assert scores.max() <= 1
    np.testing.assert_allclose(calibration.scores(np.array([0.7])), 0.49, atol=0.06)


@pytest.mark.parametrize("target", [0.3, 0.5, 0.7, 0.9])
def test_above_a_threshold_suggestions_are_as_right_as_promised(calibration, target):
    threshold = calibration.threshold(target)
    raw, right = drawn(20_000, 2)
    above = calibration.scores(raw) >= threshold
    assert above.sum() > 100
    assert right[above].mean() > target - 0.03
    # And it is not much higher than it need be.
    lower = calibration.scores(raw) >= threshold - 0.1
    assert right[lower].mean() < target + 0.05


def test_thresholds_rise_with_the_target(calibration):
    found = [calibration.threshold(target) for target in np.linspace(0, 1, 21)]
    assert found == sorted(found)
    assert found[0] == 0.0


def test_a_target_that_was_never_reached():
    raw, right = np.linspace(0, 1, 100), np.arange(100) % 2 == 0
    assert calibrate(raw, right, missed=0, documents=1, error=0).threshold(0.95) > 1


def test_threshold_holds_for_all_higher_scores():
    """A dip above the first score that reaches the target moves the threshold behind it."""
    shares = [0.2] * 30 + [0.9] * 10 + [0.6] * 10 + [0.95] * 51
    assert Calibration((0.0,), (0.0,), tuple(shares), 0, 0, 1).threshold(0.9) == 0.5


def test_json_round_trip(calibration):
    same = Calibration.from_json(json.loads(json.dumps(calibration.to_json())))
    raw = np.linspace(0, 1, 1000)
    np.testing.assert_allclose(same.scores(raw), calibration.scores(raw), atol=2e-4)
    assert (same.missed, same.error, same.documents) == (0.5, 0.01, 100)
    assert same.threshold(0.8) == calibration.threshold(0.8)


@pytest.mark.parametrize("right", [True, False])
def test_all_alike(right):
    raw = np.array([0.1, 0.5, 0.5, 0.9])
    found = calibrate(raw, np.full(4, right), missed=0, documents=1, error=0)
    assert found.scores(raw).tolist() == [float(right)] * 4


def test_one_candidate_and_none():
    one = calibrate(np.array([0.4]), np.array([True]), missed=0, documents=1, error=0)
    assert one.scores(np.array([0.0, 1.0])).tolist() == [1.0, 1.0]
    none = calibrate(np.zeros(0), np.zeros(0, dtype=np.bool_), missed=0, documents=1, error=0)
    assert none.scores(np.array([0.3])).tolist() == [0.0]
    assert none.threshold(0.5) > 1


def test_reliability_by_tenths():
    scores = np.array([0.05, 0.05, 0.72, 0.78, 1.0])
    right = np.array([False, True, True, False, True])
    table = reliability(scores, right)
    assert [(b.start, b.end, round(b.score, 3), b.precision, b.count) for b in table] == [
        (0.0, 0.1, 0.05, 0.5, 2),
        (0.7, 0.8, 0.75, 0.5, 2),
        (0.9, 1.0, 1.0, 1.0, 1),
    ]
    assert calibration_error(table) == pytest.approx((2 * 0.45 + 2 * 0.25) / 5)
    assert calibration_error([]) == 0


@given(
    st.lists(
        st.lists(st.floats(0.015625, 1, width=32), max_size=8).map(
            lambda s: sorted(s, reverse=True)
        ),
        max_size=5,
    ),
    st.floats(0, 5),
)
def test_expected_f_against_all_counts(lists, missed):
    scores = np.array([score for mine in lists for score in mine], dtype=np.float32)
    starts = np.concatenate(([0], np.cumsum([len(mine) for mine in lists]))).astype(np.int64)
    counts = expected_f_counts(scores, starts, missed)
    for count, mine in zip(counts.tolist(), lists, strict=True):
        values = [2 * sum(mine[:r]) / (r + sum(mine) + missed) for r in range(1, len(mine) + 1)]
        assert count == 0 if not mine else values[count - 1] == pytest.approx(max(values))
