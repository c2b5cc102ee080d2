"""`labelkin score`: how good predictions of any tool are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import counted, tell
from labelkin.cli.measures import Measures, PerLabel, parsed_measures, show_measures
from labelkin.cli.options import Json
from labelkin.cli.side_by_side import RESERVED, show_side_by_side
from labelkin.cli.vocab import open_vocabulary

if TYPE_CHECKING:
    from labelkin.evaluate.alignment import Aligned
    from labelkin.evaluate.label_file import LabelFile


def score(
    gold: Annotated[
        Path,
        typer.Argument(metavar="GOLD", help="The right labels: a corpus, lines, TSV or .npz."),
    ],
    predicted: Annotated[
        list[Path],
        typer.Argument(
            metavar="PREDICTED...",
            help="Predictions of any tool: what `annotate` writes, Annif's results, lines, "
            "`id label score`, .npz. Several files are shown side by side.",
        ),
    ],
    measures: Measures = None,
    vocab: Annotated[
        Path | None,
        typer.Option(
            help="A collection or vocabulary file: matches ids with names, and is the hierarchy "
            "for hF and LCA-F; a collection also tells how frequent labels are, for PSP@k."
        ),
    ] = None,
    per_label: PerLabel = None,
    json: Json = False,
) -> None:
    """Measure predictions that any tool made, without a collection."""
    from labelkin.evaluate.alignment import align
    from labelkin.evaluate.files import read_label_file

    asked = parsed_measures(measures)
    files = list(dict.fromkeys(predicted))
    right, given = read_label_file(gold), [read_label_file(path) for path in files]
    vocabulary = None if vocab is None else open_vocabulary(vocab)
    aligned, columns = align(right, given, vocabulary)
    if vocab is not None and vocab.is_dir():
        aligned = _with_training(vocab, aligned)
    for file in (right, *given):
        if file.repeated:
            many = counted(file.repeated, "document")
            tell(f"{file.path}: {many} more than once; the last counts.")
    for file, found in zip(given, aligned, strict=True):
        _tell_of(right, file, found, resolved=vocabulary is not None)
    if len(aligned) == 1:
        show_measures(aligned[0].evaluation, asked, columns.described(), per_label, json)
        return
    if per_label is not None:
        tell("--per-label is for one file of predictions; left out.")
    evaluations = (found.evaluation for found in aligned)
    show_side_by_side(dict(zip(_names(files), evaluations, strict=True)), asked, json)


def _with_training(collection: Path, aligned: list[Aligned]) -> list[Aligned]:
    """With the frequencies of labels in a collection, which propensities follow from."""
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
    """The names of the files, with their folders where that is not enough."""
    names = [path.name for path in files]
    shown = (str(path) if names.count(path.name) > 1 else path.name for path in files)
    return [f"./{name}" if name in RESERVED else name for name in shown]


def _tell_of(gold: LabelFile, file: LabelFile, found: Aligned, *, resolved: bool) -> None:
    """What of a file could not be matched, and what was matched with a grain of salt."""
    if found.by_place:
        tell(f"{file.path}: documents were matched by their place, for want of ids.")
    for what, which in (
        ("without predictions", found.missing),
        ("without gold labels", found.strangers),
    ):
        if which:
            shown = ", ".join(which[:3]) + (", …" if len(which) > 3 else "")
            tell(f"{file.path}: {counted(len(which), 'document')} {what}: {shown}")
    theirs = next(file.all_labels(), None)
    if not found.shared and theirs is not None:
        hint = "" if resolved else "; --vocab SOURCE matches ids with names"
        mine = next(gold.all_labels())
        tell(
            f"{file.path}: none of its labels is a gold label "
            f"(such as {theirs!r} here, {mine!r} there){hint}."
        )
