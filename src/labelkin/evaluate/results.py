"""Values of several measures at once."""

from __future__ import annotations

from collections.abc import Iterable

import labelkin.evaluate.flat
import labelkin.evaluate.hierarchical
import labelkin.evaluate.ranked  # noqa: F401
from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.measure import Measure, parse_measure

DEFAULT_MEASURES = tuple(
    parse_measure(name)
    for name in (
        "MiP MiR MiF MaP MaR MaF EBP EBR EBF Acc P@1 P@5 R@10 nDCG@5 nDCG@10 "
        "predicted gold count-error"
    ).split()
)


def evaluate(
    evaluation: Evaluation, measures: Iterable[Measure] = DEFAULT_MEASURES
) -> dict[str, float]:
    """The values by measure name, in the order asked."""
    return {measure.name: measure.value(evaluation) for measure in measures}
