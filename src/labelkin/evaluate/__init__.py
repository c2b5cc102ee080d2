"""Measures that compare predicted labels with gold labels."""

from __future__ import annotations

from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.evaluate.measure import Measure, parse_measure, registered_families
from labelkin.evaluate.results import (
    DEFAULT_BANDS,
    DEFAULT_MEASURES,
    Band,
    LabelReport,
    evaluate,
    evaluate_bands,
    per_label_report,
)
from labelkin.evaluate.significance import (
    Interval,
    PairedTest,
    bootstrap_interval,
    paired_test,
)

__all__ = [
    "DEFAULT_BANDS",
    "DEFAULT_MEASURES",
    "Band",
    "Evaluation",
    "Hierarchy",
    "Interval",
    "LabelReport",
    "Measure",
    "PairedTest",
    "bootstrap_interval",
    "evaluate",
    "evaluate_bands",
    "paired_test",
    "parse_measure",
    "per_label_report",
    "registered_families",
]
