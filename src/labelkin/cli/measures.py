"""The measures that `eval`, `score` and `compare` print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import print_json, print_table
from labelkin.cli.outputs import open_output, table_cell

if TYPE_CHECKING:
    from labelkin.evaluate import Evaluation, Measure

Measures = Annotated[
    str | None,
    typer.Option(help="Names separated by commas or spaces, such as MiF,P@5."),
]
PerLabel = Annotated[
    Path | None, typer.Option(help="Write TP, FP, FN, P, R and F of every label to this TSV file.")
]


def parsed_measures(names: str | None) -> Sequence[Measure]:
    """The measures in a list of names; the default ones for None."""
    from labelkin.evaluate import DEFAULT_MEASURES, parse_measure

    if names is None:
        return DEFAULT_MEASURES
    # Commas between brackets separate parameters.
    listed = [name for name in re.split(r"[,\s]+(?![^()]*\))", names) if name]
    if not listed:
        raise typer.BadParameter("no measure given; for example MiF,P@5")
    return [parse_measure(name) for name in dict.fromkeys(listed)]


def show_measures(
    evaluation: Evaluation,
    measures: Sequence[Measure],
    labels: Sequence[tuple[str, str]],
    per_label: Path | None,
    json: bool,
    *,
    bands: bool = False,
) -> None:
    """Print the measures of one evaluation; `labels` has id and name of every column."""
    from labelkin.evaluate import evaluate as values_of
    from labelkin.evaluate import evaluate_bands

    values = values_of(evaluation, measures)
    if per_label is not None:
        _write_labels(evaluation, labels, per_label)
    by_band = evaluate_bands(evaluation, measures) if bands else {}
    bounds = intervals(evaluation, measures)
    if json:
        print_json({**values, **({"bands": by_band} if bands else {}), "intervals": bounds})
        return
    rows = []
    for measure in measures:
        interval = ""
        if (bound := bounds.get(measure.name)) is not None:
            interval = f"{bound['low']:.4f} – {bound['high']:.4f}"
        rows.append((measure.name, f"{values[measure.name]:.4f}", interval))
    print_table("", [("measure", False), ("value", True), ("95 % interval", False)], rows)
    if bands:
        _show_bands(by_band, measures)


def intervals(evaluation: Evaluation, measures: Sequence[Measure]) -> dict[str, dict[str, float]]:
    """The 95 % interval of each measure that follows from sums over documents, by its name."""
    from labelkin.evaluate.significance import bootstrap_intervals

    additive = [measure for measure in measures if measure.is_additive]
    if not additive or not evaluation.documents:
        return {}
    bounds = bootstrap_intervals(additive, evaluation)
    return {
        measure.name: {"low": one.low, "high": one.high}
        for measure, one in zip(additive, bounds, strict=True)
    }


def _show_bands(by_band: dict[str, dict[str, float]], measures: Sequence[Measure]) -> None:
    rows = [(m.name, *(f"{of_band[m.name]:.4f}" for of_band in by_band.values())) for m in measures]
    print_table("", [("measure", False), *((name, True) for name in by_band)], rows)


def _write_labels(evaluation: Evaluation, labels: Sequence[tuple[str, str]], path: Path) -> None:
    from labelkin.evaluate import per_label_report

    report = per_label_report(evaluation)
    with open_output(path) as file:
        file.write("label\tname\tTP\tFP\tFN\tP\tR\tF\ttraining\n")
        for column, (label, name) in enumerate(labels):
            counts = (
                report.true_positives[column],
                report.false_positives[column],
                report.false_negatives[column],
            )
            if any(counts):
                shares = (report.precision[column], report.recall[column], report.f_score[column])
                names = (table_cell(label), table_cell(name))
                file.write("\t".join([*names, *map(str, counts)]))
                file.write("".join(f"\t{share:.4f}" for share in shares))
                file.write(f"\t{report.training[column]}\n")
