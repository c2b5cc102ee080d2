"""Representations beside each other: which finds the best neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import ScorerSettings, Settings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True, slots=True)
class Comparison:
    """How basic k-NN does with one representation and one k."""

    representation: str
    k: int
    values: dict[str, float]


def compare_ks(
    representation: str,
    queries: Queries,
    gold: csr_matrix[Any],
    measures: Sequence[Measure],
    ks: Sequence[int],
) -> Iterator[Comparison]:
    """The measures for each k, from neighbours that were found once."""
    for k in ks:
        settings = Settings(knn=ScorerSettings(k=k))
        ranked = settings.implementation.rank(queries, settings)
        predicted = settings.implementation.cut(queries, ranked, settings)
        evaluation = Evaluation(gold, predicted, ranked)
        values = {measure.name: measure.value(evaluation) for measure in measures}
        yield Comparison(representation, k, values)
