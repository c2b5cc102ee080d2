"""`labelkin score`: how good predictions of any tool are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import counted, print_message
from labelkin.cli.languages import opened_vocabulary
from labelkin.cli.measures import Measures, PerLabel, parsed_measures, show_measures
from labelkin.cli.options import Json, named_path
from labelkin.cli.outputs import check_table
from labelkin.cli.side_by_side import RESERVED, show_side_by_side
from labelkin.wording import listed, shortened

if TYPE_CHECKING:
    from labelkin.evaluate.alignment import Aligned
    from labelkin.evaluate.label_file import LabelFile


def score(
    gold: Annotated[
        Path,
        typer.Argument(
            metavar="GOLD",
            parser=named_path,
            help="The right labels: a corpus, lines, TSV or .npz.",
        ),
    ],
    predicted: Annotated[
        list[Path],
        typer.Argument(
            metavar="PREDICTED...",
            parser=named_path,
            help="Predictions of any tool: what `annotate` writes, Annif's results, lines, "
            "`id label score`, .npz. Several files are shown side by side.",
        ),
    ],
    measures: Measures = None,
    vocab: Annotated[
        Path | None,
        typer.Option(
            help="A collection or vocabulary file: matches ids with names and has the hierarchy "
            "for hF and LCA-F; a collection also has the label frequencies for PSP@k."
        ),
    ] = None,
    per_label: PerLabel = None,
    json: Json = False,
) -> None:
    """Evaluate the predictions of any tool; needs no collection."""
    from labelkin.evaluate.alignment import align
    from labelkin.evaluate.files import read_label_file

    asked = parsed_measures(measures)
    if per_label is not None:
        inputs = [gold, *predicted, *([vocab] if vocab else [])]
        check_table(per_label, inputs, option="--per-label", results=json)
    files = list(dict.fromkeys(predicted))
    right, given = read_label_file(gold), [read_label_file(path) for path in files]
    vocabulary = None if vocab is None else opened_vocabulary(vocab)[0]
    aligned, columns = align(right, given, vocabulary)
    if vocab is not None and vocab.is_dir():
        aligned = _with_training(vocab, aligned)
    for file in (right, *given):
        if file.repeated:
            many = counted(file.repeated, "document")
            print_message(f"{file.path}: {many} more than once; the last counts.")
    for file, one in zip(given, aligned, strict=True):
        _print_mismatches(right, file, one, resolved=vocabulary is not None)
    if len(aligned) == 1:
        show_measures(aligned[0].evaluation, asked, columns.described(), per_label, json)
        return
    if per_label is not None:
        print_message("--per-label needs a single file of predictions; ignored.")
    evaluations = (one.evaluation for one in aligned)
    show_side_by_side(dict(zip(_names(files), evaluations, strict=True)), asked, json)


def _with_training(collection: Path, aligned: list[Aligned]) -> list[Aligned]:
    """The evaluations with a collection's label frequencies, which propensities need."""
    from labelkin.indexer import Indexer

    labels = aligned[0].evaluation.labels
    with Indexer.open(collection) as indexer:
        frequencies, documents = indexer.label_frequencies(labels), indexer.collection.count()
    return [
        replace(
            one,
            evaluation=replace(
                one.evaluation, training_frequencies=frequencies, training_documents=documents
            ),
        )
        for one in aligned
    ]


def _names(files: list[Path]) -> list[str]:
    """The names of the files, with their folders if names are not unique."""
    names = [path.name for path in files]
    shown = (str(path) if names.count(path.name) > 1 else path.name for path in files)
    return [f"./{name}" if name in RESERVED else name for name in shown]


def _print_mismatches(
    gold: LabelFile, file: LabelFile, aligned: Aligned, *, resolved: bool
) -> None:
    """Print which documents and labels of a file could not be matched."""
    if aligned.by_place:
        print_message(f"{file.path}: documents have no ids and were matched by position.")
    for what, which in (
        ("without predictions", aligned.missing),
        ("without gold labels", aligned.strangers),
    ):
        if which:
            many = counted(len(which), "document")
            print_message(f"{file.path}: {many} {what}: {listed(which)}")
    theirs = next(file.all_labels(), None)
    if not aligned.shared and theirs is not None:
        hint = "" if resolved else "; --vocab SOURCE matches ids with names"
        mine = next(gold.all_labels())
        print_message(
            f"{file.path}: none of its labels is a gold label "
            f"(such as {shortened(theirs)!r} here, {shortened(mine)!r} there){hint}."
        )
