from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from labelkin.evaluate import Evaluation
from labelkin.scoring.ranking import Ranking

Make = Callable[..., Evaluation]


@pytest.fixture
def make() -> Make:
    """An evaluation from lists of columns."""

    def build(
        gold: list[list[int]], predicted: list[list[int]], width: int = 8, **rest: Any
    ) -> Evaluation:
        matrix = Ranking.from_lists(gold).matrix(width)
        return Evaluation(matrix, Ranking.from_lists(predicted), **rest)

    return build


@pytest.fixture
def random_evaluation() -> Callable[..., Evaluation]:
    """Many documents with random labels; gold and a third of the predictions agree."""

    def build(seed: int = 0, documents: int = 200, width: int = 50, **rest: Any) -> Evaluation:
        rng = np.random.default_rng(seed)
        gold: npt.NDArray[np.bool_] = rng.random((documents, width)) < 0.1
        scores = rng.random((documents, width)) + gold * 0.5
        predicted = [
            [int(label) for label in np.argsort(-row) if row[label] > 0.9] for row in scores
        ]
        matrix = Ranking.from_lists([np.flatnonzero(row).tolist() for row in gold]).matrix(width)
        return Evaluation(matrix, Ranking.from_lists(predicted), **rest)

    return build
