"""Several evaluations of the same documents in one table, with significance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labelkin.cli.console import print_json, print_line, print_table
from labelkin.cli.measures import intervals

if TYPE_CHECKING:
    from labelkin.evaluate import Evaluation, Measure


# Keys of the JSON that are not evaluations.
RESERVED = ("compared_with", "p", "intervals")


def show_side_by_side(
    evaluations: Mapping[str, Evaluation], measures: Sequence[Measure], json: bool
) -> None:
    """Print a column per evaluation; the others are compared with the first.

    `+` and `−` mark significant differences from the first (paired randomisation
    test, p < 0.05).
    """
    values, tests = _compared(evaluations, measures)
    first, *others = evaluations
    if json:
        bounds = {name: intervals(one, measures) for name, one in evaluations.items()}
        print_json({**values, "compared_with": first, "p": tests, "intervals": bounds})
        return
    rows = []
    for measure in measures:
        row = [measure.name, f"{values[first][measure.name]:.4f}  "]
        for name in others:
            difference = values[name][measure.name] - values[first][measure.name]
            p = tests[name].get(measure.name, 1.0)
            sign = " " if p >= 0.05 else "+" if difference > 0 else "−"
            row.append(f"{values[name][measure.name]:.4f} {sign}")
        rows.append(row)
    print_table("", [("measure", False), *((f"{name}  ", True) for name in evaluations)], rows)
    if others:
        print_line(f"+ and − mark what differs from {first} with p < 0.05.")


def _compared(
    evaluations: Mapping[str, Evaluation], measures: Sequence[Measure]
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    from labelkin.evaluate import evaluate, paired_test

    values = {name: evaluate(one, measures) for name, one in evaluations.items()}
    first, *others = evaluations
    tests: dict[str, dict[str, float]] = {
        name: {
            measure.name: paired_test(measure, evaluations[name], evaluations[first]).p_value
            for measure in measures
            if measure.is_additive and evaluations[first].documents
        }
        for name in others
    }
    return values, tests
