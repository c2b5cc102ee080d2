"""Reliability: whether as many headings are right as their scores say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.rerank.calibration import Bin, Calibration, calibration_error, reliability
from labelkin.rerank.method import scored_candidates
from labelkin.rerank.model import RerankInfo
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import RerankSettings, Settings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, slots=True)
class Reliability:
    """The reranker's scores in tenths, beside the shares of headings that are right.

    `error` is the expected calibration error. `accept` and `review` are the
    scores at which the bands begin; None for a band that no score reaches.
    """

    bins: tuple[Bin, ...]
    error: float
    accept: float | None
    review: float | None
    documents: int


def trained_reliability(info: RerankInfo, settings: RerankSettings) -> Reliability | None:
    """Of the documents that training held out; None if an earlier version trained the model."""
    calibration = info.calibration
    if not calibration.reliability:
        return None
    bins, error = calibration.reliability, calibration.error
    return _with_bands(bins, error, calibration, settings, calibration.documents)


def measured_reliability(
    queries: Queries, gold: csr_matrix[Any], info: RerankInfo, settings: Settings
) -> Reliability:
    """Of documents that have labels; `gold` has a row for each of them."""
    scores, right, start = [], [], 0
    for pairs, _, calibrated in scored_candidates(queries, settings):
        rows = gold[start : start + pairs.count, : pairs.width].tocsr()
        scores.append(calibrated)
        right.append(pairs.entries(rows.astype(np.float32)) > 0)
        start += pairs.count
    bins = reliability(np.concatenate(scores), np.concatenate(right)) if scores else []
    error = calibration_error(bins)
    return _with_bands(bins, error, info.calibration, settings.rerank, len(queries))


def _with_bands(
    bins: Sequence[Bin],
    error: float,
    calibration: Calibration,
    settings: RerankSettings,
    documents: int,
) -> Reliability:
    bars = [calibration.threshold(one) for one in (settings.accept, settings.review)]
    accept, review = (bar if bar <= 1 else None for bar in bars)
    return Reliability(tuple(bins), error, accept, review, documents)
