"""Fits two curves to a measure by collection size, for extrapolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# The exponents to try for a saturating curve.
_EXPONENTS = np.geomspace(0.01, 2.0, 400)


@dataclass(frozen=True, slots=True)
class Curve:
    """`logarithmic`: a + b · ln N. `saturating`: a − b · N^−c, which tends to a."""

    name: str
    a: float
    b: float
    c: float = 0.0

    def at(self, sizes: Sequence[float] | Floats) -> Floats:
        """The values at these sizes."""
        n = np.asarray(sizes, dtype=np.float64)
        if self.name == "logarithmic":
            return np.asarray(self.a + self.b * np.log(n))
        return np.asarray(self.a - self.b * n**-self.c)

    @property
    def formula(self) -> str:
        """The fitted formula as text."""
        if self.name == "logarithmic":
            return f"{self.a:.4f} + {self.b:.4f} · ln N".replace("-", "−")
        return f"{self.a:.4f} − {self.b:.4f} · N^−{self.c:.3f}"


@dataclass(frozen=True, slots=True)
class Fit:
    """A curve fitted to all sizes, and its error at the largest when fitted without that."""

    curve: Curve
    held_out_error: float


def fit(sizes: Sequence[int], values: Sequence[float]) -> list[Fit]:
    """Both curves; the one that predicts the largest size better comes first."""
    order = np.argsort(sizes)
    n, y = np.asarray(sizes, dtype=np.float64)[order], np.asarray(values)[order]
    fits = []
    for fit_curve in (_logarithmic, _saturating):
        predicted = fit_curve(n[:-1], y[:-1]).at(n[-1:])[0]
        fits.append(Fit(fit_curve(n, y), float(predicted - y[-1])))
    return sorted(fits, key=lambda fitted: abs(fitted.held_out_error))


def _logarithmic(n: Floats, y: Floats) -> Curve:
    b, a = np.polyfit(np.log(n), y, 1)
    return Curve("logarithmic", float(a), float(b))


def _saturating(n: Floats, y: Floats) -> Curve:
    """Least squares over a and b for each exponent, with a limit a of at most 1."""
    best: tuple[float, Curve] | None = None
    for c in _EXPONENTS:
        columns = np.stack([np.ones_like(n), -(n**-c)], axis=1)
        (a, b), *_ = np.linalg.lstsq(columns, y, rcond=None)
        if a > 1:
            # With a fixed at 1, only b is fitted.
            a, b = 1.0, float(np.sum((1 - y) * n**-c) / np.sum(n ** (-2 * c)))
        curve = Curve("saturating", float(a), float(b), float(c))
        error = float(np.sum((curve.at(n) - y) ** 2))
        if best is None or error < best[0]:
            best = (error, curve)
    if best is None:
        raise ValueError("there is no exponent to try")
    return best[1]
