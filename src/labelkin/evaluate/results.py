"""Values of several measures: overall, by band of label frequency, and per label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# These register their measures.
import labelkin.evaluate.flat
import labelkin.evaluate.hierarchical
import labelkin.evaluate.ranked  # noqa: F401
from labelkin.evaluate.evaluation import Evaluation, Floats, Integers
from labelkin.evaluate.flat import f_score, precision, recall
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
    """The values by measure name, in the order of `measures`."""
    return {measure.name: measure.value(evaluation) for measure in measures}


@dataclass(frozen=True, eq=False)
class LabelReport:
    """Arrays with one entry per label column; `training` is -1 where it is unknown."""

    true_positives: Integers
    false_positives: Integers
    false_negatives: Integers
    precision: Floats
    recall: Floats
    f_score: Floats
    training: Integers

    @property
    def columns(self) -> Integers:
        """The labels that are gold or predicted anywhere."""
        seen = self.true_positives + self.false_positives + self.false_negatives
        return np.flatnonzero(seen)


@dataclass(frozen=True, slots=True)
class Band:
    """Labels with `minimum` to `maximum` training documents, both included."""

    name: str
    minimum: int
    maximum: int | None = None

    def mask(self, frequencies: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """A mask of the labels in the band."""
        inside = frequencies >= self.minimum
        return inside if self.maximum is None else inside & (frequencies <= self.maximum)


DEFAULT_BANDS = (Band("head", 1000), Band("torso", 100, 999), Band("tail", 0, 99))


def per_label_report(evaluation: Evaluation) -> LabelReport:
    """Counts and scores of every label; undefined quotients are 0."""
    counts = evaluation.label_counts
    training = evaluation.training_frequencies
    return LabelReport(
        true_positives=counts.correct,
        false_positives=counts.predicted - counts.correct,
        false_negatives=counts.gold - counts.correct,
        precision=precision(counts),
        recall=recall(counts),
        f_score=f_score(counts),
        training=(
            np.full(evaluation.labels, -1, dtype=np.int64)
            if training is None
            else training.astype(np.int64)
        ),
    )


def evaluate_bands(
    evaluation: Evaluation, measures: Sequence[Measure], bands: Sequence[Band] = DEFAULT_BANDS
) -> dict[str, dict[str, float]]:
    """Every measure for every band: band name → measure name → value.

    Gold and predicted labels are restricted to the band's; see
    `Evaluation.restricted` for the documents that are dropped.
    """
    frequencies = evaluation.frequencies
    return {
        band.name: evaluate(evaluation.restricted(band.mask(frequencies)), measures)
        for band in bands
    }
