"""The sections of a report, built from an outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from labelkin.experiments.document import Cell, Comparison, Heading, Image, Paragraph, Part, Table
from labelkin.experiments.grid import ClaimPart, TablePart
from labelkin.experiments.measurement import PREDICTED
from labelkin.experiments.outcome import Line, Outcome
from labelkin.experiments.published import PREDICTED_LABELS, best_published
from labelkin.experiments.scaling import fit

_DESCRIPTIONS = {
    "representations": "Representations at their best k: bars are ours, hollow diamonds the "
    "paper's",
    "autoencoders": "Label autoencoders at their best k and weighting: bars are ours, hollow "
    "diamonds the paper's",
    "scaling": "MiF against the size of the collection: points are measured, lines are fitted "
    "(dashed and dotted: two extrapolations), hollow marks are the paper's",
}


_SIGNIFICANT = 0.05


def opening(outcome: Outcome, facts: dict[str, Any]) -> Iterator[Part]:
    """Title, provenance, and how to read the report."""
    grid = outcome.grid
    software = f"labelkin {facts['version']}"
    if facts["commit"]:
        software += f" (commit {facts['commit'][:12]})"
    documents = ", ".join(f"{one['documents']:,}" for one in facts["collections"])
    yield Heading(grid.title, 1)
    yield Paragraph(
        f"Made by `{facts['command']}` with {software} on Python {facts['python']}, "
        f"{facts['cores']} cores, seed {grid.seed}. Training documents: {documents}. "
        "Each row of [results.csv](results.csv) names its record, and "
        "[provenance.json](provenance.json) describes how each record was made."
    )
    if grid.name.endswith("-quick"):
        yield Paragraph("A quick run on a small part of the data: do not use its figures.")
    yield Paragraph(
        f"k, weighting and other settings are chosen on {grid.choose_on} by {grid.choose_by}; "
        f"the figures to report are those of {' and '.join(grid.report_on)}. As in the paper, P@k "
        "and nDCG@k are computed on the suggested headings, not on the ranking before the cut."
    )
    stand_ins = {part.stand_in for part in grid.representations.values() if part.stand_in}
    if stand_ins:
        named = ", ".join(
            f"`{name}` ({part.stand_in})"
            for name, part in grid.representations.items()
            if part.stand_in
        )
        yield Paragraph(f"Marked with *, since they differ from the paper's: {named}.")


def figures(names: Sequence[str]) -> Iterator[Part]:
    """The images of the figures with these names."""
    for name in names:
        yield Image(name, _DESCRIPTIONS[name])


def choices(outcome: Outcome) -> Iterator[Part]:
    """The chosen row of each table and representation, with its interval and test."""
    grid = outcome.grid
    measure, samples = grid.choose_by, f"{grid.details.samples:,}"
    yield Heading("The best of each")
    text = (
        f"Chosen on {grid.choose_on}. Brackets hold the 95 % interval of a bootstrap over "
        f"documents ({samples} samples)."
    )
    if grid.details.baseline:
        text += (
            f" The column before p is the difference from the best of `{grid.details.baseline}` "
            f"with the same neighbours; p is that of a paired randomisation test ({samples} "
            "samples). The paper's value is its best for the same table and representation."
        )
    yield Paragraph(text)
    header = ["table", "representation", "chosen", "paper", grid.choose_on]
    for split in grid.report_on:
        header += [split, "against baseline", "p", "headings"]
    rows = []
    for table in grid.tables:
        for line in outcome.choices(table.name):
            details = outcome.details_of(line)["splits"]
            papers = [
                other.paper[measure]
                for other in outcome.of(table.name, representation=line.row.group.representation)
                if measure in other.paper
            ]
            row = [
                _table_name(table, line, outcome),
                outcome.named(line),
                line.settings,
                f"{max(papers):.4f}" if papers else "",
                f"{line.values[grid.choose_on][measure]:.4f}",
            ]
            for split in grid.report_on:
                low, high = details[split]["interval"]
                row += [
                    f"{line.values[split][measure]:.4f} [{low:.4f}, {high:.4f}]",
                    _signed(details[split].get("difference")),
                    f"{details[split]['p']:.3f}" if "p" in details[split] else "",
                    f"{line.values[split][PREDICTED]:.2f}",
                ]
            rows.append(row)
    yield Table(header, rows, numbers=3)


def claims(outcome: Outcome) -> Iterator[Part]:
    """The tests of the paper's conclusions and of ours."""
    grid = outcome.grid
    if not outcome.claims:
        return
    yield Heading("Conclusions")
    yield Paragraph(
        f"{grid.choose_by} of the best row of one kind against the best of another, each chosen on "
        f"{grid.choose_on}; p is that of a paired randomisation test over documents "
        f"({grid.details.samples:,} samples). A conclusion holds if the difference has the right "
        "sign and p < 0.05."
    )
    header = ["conclusion", "paper", *(name for s in grid.report_on for name in (s, "p", "holds"))]
    rows = []
    for claim, record in outcome.claims:
        row = [claim.text, _paper_claim(claim, grid.choose_by)]
        for split in grid.report_on:
            (a, b), p = record["splits"][split]["values"], record["splits"][split]["p"]
            holds = "no difference" if p >= _SIGNIFICANT else "yes" if a > b else "no: reversed"
            row += [f"{a:.4f} − {b:.4f} = {_signed(a - b)}", f"{p:.3f}", holds]
        rows.append(row)
    yield Table(header, rows)


def training(facts: dict[str, Any]) -> Iterator[Part]:
    """How the label autoencoders were trained, and whether their losses still fell."""
    if not facts["models"]:
        return
    yield Heading("Training")
    yield Paragraph(
        "Reconstruction is the MiF at 0.5 of held-out label sets. A loss is still falling if the "
        "last five epochs have lowered it by more than one per cent."
    )
    header = ["model", "documents", "layers", "parameters", "epochs", "best", "minutes",
              "stopped by", "reconstruction", "loss", "validation loss"]  # fmt: skip
    rows = [
        [
            model["name"],
            f"{model['documents'] + model['held_out']:,}",
            model["layers"],
            f"{model['parameters'] / 1e6:.1f} M",
            str(model["epochs"]),
            str(model["best_epoch"]),
            f"{model['seconds'] / 60:.1f}",
            model["stopped_by"],
            f"{model['reconstruction_MiF']:.4f}",
            *(_fall(model, loss) for loss in ("loss", "validation_loss")),
        ]
        for model in facts["models"]
    ]
    yield Table(header, rows)


def labels_given(outcome: Outcome) -> Iterator[Part]:
    """The average number of headings per document, which the paper discusses."""
    grid = outcome.grid
    rows: list[list[Cell]] = []
    for known in PREDICTED_LABELS:
        for table in grid.tables:
            if table.paper != known.table:
                continue
            lines = outcome.of(
                table.name, representation=known.representation, threshold=known.threshold
            )
            if lines:
                best = outcome.best(lines)
                name = f"{table.name}, {known.threshold}" if known.threshold else table.name
                rows.append(
                    [
                        name,
                        outcome.named(best),
                        best.settings,
                        *(
                            Comparison(best.values[split][PREDICTED], known.labels, digits=2)
                            for split in grid.splits
                        ),
                    ]
                )
    if rows:
        yield Heading("Headings per document")
        yield Paragraph(
            "Average number of headings per document: the paper's / ours (difference). The paper "
            f"does not give its k; ours is the best on {grid.choose_on}."
        )
        yield Table(["table", "representation", "chosen", *grid.splits], rows, numbers=3)


def bands(outcome: Outcome) -> Iterator[Part]:
    """The chosen rows, measured by bands of heading frequency."""
    grid = outcome.grid
    # Collections of several sizes have different frequencies, so bands would not compare.
    if not grid.details.bands or len(grid.collection.sizes) > 1:
        return
    names = [band.name for band in grid.details.bands]
    yield Heading("Frequent and rare headings")
    yield Paragraph(
        f"{grid.choose_by} of the chosen rows, by the number of training documents of a heading."
    )
    for split in grid.report_on:
        rows = []
        for table in grid.tables:
            for line in outcome.choices(table.name):
                values = outcome.details_of(line)["splits"][split]["bands"]
                rows.append(
                    [
                        _table_name(table, line, outcome),
                        outcome.named(line),
                        *(f"{values[name]:.4f}" for name in names),
                    ]
                )
        yield Heading(f"By frequency, {split}", 3)
        yield Table(["table", "representation", *names], rows, numbers=2)


def fusions(facts: dict[str, Any]) -> Iterator[Part]:
    """The fusion method and weights of each fused representation."""
    for fusion in facts["fusions"]:
        weights = ", ".join(f"{weight:g}" for weight in fusion["weights"])
        yield Paragraph(
            f"`{fusion['representation']}` is fused by {fusion['method']} with the weights "
            f"{weights}."
        )


def scaling(outcome: Outcome, papers: dict[str, float], sizes: dict[int, int]) -> Iterator[Part]:
    """The measure by collection size, with two fitted curves and their extrapolations."""
    part = outcome.grid.scaling
    if part is None:
        return
    measure = outcome.grid.choose_by
    yield Heading("Growth")
    yield Paragraph(
        f"{measure} of the row chosen for each size. Two curves are fitted; the first one listed "
        "predicts the largest collection better from the smaller ones. Their values at "
        f"{part.documents:,} documents are extrapolated over two orders of magnitude and more, "
        "not measured."
    )
    for split in outcome.grid.report_on:
        yield Heading(f"Growth, {split}", 3)
        counts = [f"{sizes[size]:,}" for size in outcome.grid.collection.sizes]
        header = ["table", *counts, "curve", "error at the largest", f"at {part.documents:,}",
                  "paper"]  # fmt: skip
        rows: list[list[Cell]] = []
        for table in part.tables:
            points = growth(outcome, table, split, sizes)
            values = [f"{value:.4f}" for _, value in points]
            for number, fitted in enumerate(fit(*zip(*points, strict=True))):
                rows.append(
                    [
                        table if number == 0 else "",
                        *(values if number == 0 else [""] * len(values)),
                        f"{fitted.curve.name}: {fitted.curve.formula}",
                        _signed(fitted.held_out_error),
                        f"{fitted.curve.at([part.documents])[0]:.3f}",
                        f"{papers[table]:.4f}" if number == 0 else "",
                    ]
                )
        yield Table(header, rows)


def growth(
    outcome: Outcome, table: str, split: str, sizes: dict[int, int]
) -> list[tuple[int, float]]:
    """The number of documents and the measure of the chosen row, for each collection size."""
    measure = outcome.grid.choose_by
    return [
        (sizes[line.row.group.size], line.values[split][measure]) for line in outcome.choices(table)
    ]


def _paper_claim(claim: ClaimPart, measure: str) -> str:
    """The paper's best values of both kinds; empty for a conclusion of ours."""
    if not claim.paper:
        return ""
    a, b = (best_published(measure, **side)[measure] for side in (claim.better, claim.worse))
    return f"{a:.4f} − {b:.4f} = {_signed(a - b)}"


def _table_name(table: TablePart, line: Line, outcome: Outcome) -> str:
    if len(outcome.grid.collection.sizes) == 1:
        return table.name
    size = line.row.group.size
    return f"{table.name}, {f'{size:,}' if size else 'all'} documents"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.4f}".replace("-", "−")


def _fall(model: dict[str, Any], loss: str) -> str:
    losses = model[f"{loss}_by_epoch"]
    if not losses:
        return ""
    state = "still falling" if model[f"{loss}_still_falling"] else "no longer falling"
    return f"{losses[-1]:.2f}, {state}"
