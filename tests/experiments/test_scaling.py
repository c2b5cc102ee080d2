from __future__ import annotations

import numpy as np
import pytest

from labelkin.experiments.scaling import fit

SIZES = [2_500, 5_000, 10_000, 20_000, 43_000]


def test_a_logarithmic_curve_is_recovered() -> None:
    best = fit(SIZES, [0.1 + 0.03 * np.log(n) for n in SIZES])[0]
    assert best.curve.name == "logarithmic"
    assert best.curve.at([1e6])[0] == pytest.approx(0.1 + 0.03 * np.log(1e6))
    assert best.held_out_error == pytest.approx(0, abs=1e-9)


def test_a_saturating_curve_is_recovered() -> None:
    best, other = fit(SIZES, [0.6 - 4 * n**-0.4 for n in SIZES])
    assert best.curve.name == "saturating"
    assert best.curve.at([7e6])[0] == pytest.approx(0.6 - 4 * 7e6**-0.4, abs=0.002)
    assert abs(best.held_out_error) < abs(other.held_out_error)


def test_a_saturating_curve_never_exceeds_one() -> None:
    fits = fit(SIZES, [0.1, 0.2, 0.35, 0.6, 0.99])
    saturating = next(fitted.curve for fitted in fits if fitted.curve.name == "saturating")
    assert saturating.at([1e12])[0] <= 1
