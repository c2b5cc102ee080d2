"""Calibrated scores: of all candidates with the score 0.8, four in five are right.

Calibration is fitted on documents that no other part of the model was trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import MissingExtraError

Values = npt.NDArray[np.floating[Any]]
_STEPS = 101
_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Candidates with scores from `start` to `end`: the mean score, and the share that is right."""

    start: float
    end: float
    score: float
    precision: float
    count: int


@dataclass(frozen=True)
class Calibration:
    """Maps raw scores to the share of right candidates, and thresholds to precision.

    `raw` and `share` are the points of a rising line. `precision` holds, for
    101 scores from 0 to 1, the share of right candidates among those with at
    least that score; `missed` is the mean number of right headings of a document
    that are no candidates; `error` is the expected calibration error, and
    `reliability` what it was measured by. Earlier versions did not record the latter.
    """

    raw: tuple[float, ...]
    share: tuple[float, ...]
    precision: tuple[float, ...]
    missed: float
    error: float
    documents: int
    reliability: tuple[Bin, ...] = ()

    def scores(self, raw: Values) -> npt.NDArray[np.float32]:
        """Calibrated scores."""
        return np.interp(raw, self.raw, self.share).astype(np.float32)

    def threshold(self, precision: float) -> float:
        """The lowest threshold with at least this precision; 1.01 if there is none."""
        reached = np.array(self.precision) >= precision
        # Right above the last score that misses the target.
        misses = np.flatnonzero(~reached)
        first = int(misses[-1]) + 1 if len(misses) else 0
        return first / (_STEPS - 1) if first < _STEPS else 1.01

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "raw": [round(value, 7) for value in self.raw],
            "share": [round(value, 6) for value in self.share],
            "precision": [round(value, 4) for value in self.precision],
            "missed": self.missed,
            "error": self.error,
            "documents": self.documents,
            "reliability": [
                [round(value, 6) for value in astuple(one)] for one in self.reliability
            ],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Calibration:
        """The inverse of `to_json`."""
        return cls(
            raw=tuple(map(float, content["raw"])),
            share=tuple(map(float, content["share"])),
            precision=tuple(map(float, content["precision"])),
            missed=float(content["missed"]),
            error=float(content["error"]),
            documents=int(content["documents"]),
            reliability=tuple(Bin(*one) for one in content.get("reliability", ())),
        )


def calibrate(
    raw: Values, right: npt.NDArray[np.bool_], *, missed: float, documents: int, error: float
) -> Calibration:
    """Isotonic regression of right on raw scores, as a line through the middle of its steps."""
    try:
        from sklearn.isotonic import IsotonicRegression
    except ModuleNotFoundError as exception:
        raise MissingExtraError(
            "calibration needs scikit-learn: pip install 'labelkin[rerank]'"
        ) from exception
    if len(raw) == 0:
        return Calibration((0.0,), (0.0,), _precision(raw, right), missed, error, documents)
    order = np.argsort(raw, kind="stable")
    sorted_raw = raw[order].astype(np.float64)
    shares = IsotonicRegression(y_min=0.0, y_max=1.0).fit_transform(sorted_raw, right[order])
    steps = np.flatnonzero(np.concatenate(([True], np.diff(shares) > 0)))
    sizes = np.diff(np.concatenate((steps, [len(shares)])))
    middles = np.add.reduceat(sorted_raw, steps) / sizes
    scores = np.interp(raw, middles, shares[steps])
    return Calibration(
        raw=tuple(middles.tolist()),
        share=tuple(shares[steps].tolist()),
        precision=_precision(scores, right),
        missed=missed,
        error=error,
        documents=documents,
    )


def _precision(scores: Values, right: npt.NDArray[np.bool_]) -> tuple[float, ...]:
    precision: list[float] = []
    for score in np.linspace(0, 1, _STEPS):
        above = scores >= score
        precision.append(float(right[above].mean()) if above.any() else (precision or [0.0])[-1])
    return tuple(precision)


def reliability(scores: Values, right: npt.NDArray[np.bool_], bins: int = _BINS) -> list[Bin]:
    """The candidates by tenths of the scores; tenths without candidates are left out."""
    places = np.minimum((scores * bins).astype(np.int64), bins - 1)
    return [
        Bin(
            one / bins,
            (one + 1) / bins,
            float(scores[places == one].mean()),
            float(right[places == one].mean()),
            int(count),
        )
        for one, count in enumerate(np.bincount(places, minlength=bins))
        if count
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """The mean distance of score and share that is right, weighted by number."""
    total = sum(one.count for one in bins)
    return sum(one.count * abs(one.score - one.precision) for one in bins) / max(total, 1)


def expected_f_counts(
    scores: npt.NDArray[np.float32], starts: npt.NDArray[np.int64], missed: float
) -> npt.NDArray[np.int64]:
    """How many of each document's candidates, best first, maximise the expected F.

    With p the calibrated scores, the expected F of the first r headings is
    2 Σ p₁…r / (r + Σ p + missed).
    """
    counts = np.zeros(len(starts) - 1, dtype=np.int64)
    for number, (first, last) in enumerate(pairwise(starts.tolist())):
        mine = scores[first:last].astype(np.float64)
        if len(mine):
            right = np.cumsum(mine)
            ranks = np.arange(1, len(mine) + 1)
            counts[number] = int(np.argmax(right / (ranks + right[-1] + missed))) + 1
    return counts
