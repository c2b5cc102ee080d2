"""`labelkin eval` and `labelkin score`: how good suggestions are."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, print_json, print_table, tell
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    Method,
    MethodNames,
    RepresentationName,
)
from labelkin.cli.settings import asked_settings, tell_unknown_labels
from labelkin.cli.side_by_side import show_side_by_side
from labelkin.cli.vocab import open_vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labelkin.evaluate import Evaluation, Measure

Measures = Annotated[
    str | None,
    typer.Option(help="Names parted by commas or spaces, such as MiF,P@5. Default: the usual."),
]
PerLabel = Annotated[
    Path | None, typer.Option(help="Write TP, FP, FN, P, R and F of every label to this TSV file.")
]


def evaluate(
    collection: CollectionPath,
    files: CorpusFiles,
    k: Annotated[
        int | None, typer.Option("-k", min=1, max=10_000, help="How many neighbours vote.")
    ] = None,
    weighting: Annotated[str | None, typer.Option(help="majority, difference or square.")] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Give no heading with a lower score.")
    ] = None,
    measures: Measures = None,
    per_label: PerLabel = None,
    bands: Annotated[
        bool,
        typer.Option("--bands", help="Also by how often labels occur: head, torso and tail."),
    ] = False,
    method: MethodNames = None,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Suggest headings for documents that have them, and measure how many are right."""
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer

    asked = parsed_measures(measures)
    corpus = read_corpus(*files, format=format)
    documents = [document for document in corpus.documents() if document.labels]
    with Indexer.open(collection) as indexer:
        methods: Sequence[Method | None] = list(dict.fromkeys(method)) if method else [None]
        settings = [
            asked_settings(indexer.config, one, k=k, weighting=weighting, threshold=threshold)
            for one in methods
        ]
        if any(one.k for one in settings):
            build_with_progress(indexer, representation)
        known = len(indexer.collection.rows_of([document.id for document in documents]))
        evaluations = indexer.compare(documents, settings, representation=representation)
        names = [concept.id for concept in indexer.vocabulary]
        tell(f"Evaluated {counted(len(documents), 'document')} with labels.")
        if known:
            tell(f"{counted(known, 'document')} in the collection itself, searched leave-one-out.")
            if any(one.learned for one in settings):
                tell("What was trained on them knows their headings: expect less of new documents.")
        tell_unknown_labels(indexer, settings)
    if len(evaluations) == 1:
        _show(evaluations[0], asked, names, per_label, json, bands=bands)
    else:
        if per_label is not None or bands:
            tell("--per-label and --bands are for one method; left out.")
        by_method: dict[str, Evaluation] = {
            s.method: e for s, e in zip(settings, evaluations, strict=True)
        }
        show_side_by_side(by_method, asked, json)
    exit_after_reading(corpus.report, strict=False)


def score(
    gold: Annotated[Path, typer.Argument(help="The right labels: a corpus, lines, TSV or .npz.")],
    predicted: Annotated[
        Path,
        typer.Argument(help="Predictions of any tool: lines, `id label score`, JSON Lines, .npz."),
    ],
    measures: Measures = None,
    vocab: Annotated[
        Path | None,
        typer.Option(help="A collection or vocabulary file: the hierarchy for hF and LCA-F."),
    ] = None,
    per_label: PerLabel = None,
    json: Json = False,
) -> None:
    """Measure predictions that any tool made, without a collection."""
    from labelkin.evaluate import Evaluation
    from labelkin.evaluate.files import align, read_label_file
    from labelkin.evaluate.gold import hierarchy_of_names, names_by_column

    asked = parsed_measures(measures)
    right, given = read_label_file(gold), read_label_file(predicted)
    missing = [document for document in right.labels if document not in given.labels]
    strangers = [document for document in given.labels if document not in right.labels]
    for what, which in (("without predictions", missing), ("without gold labels", strangers)):
        if which:
            shown = ", ".join(which[:3]) + (", …" if len(which) > 3 else "")
            tell(f"{counted(len(which), 'document')} {what}: {shown}")
    if vocab is None:
        hierarchy = None
        matrix, ranking, names = align(right, given)
    else:
        vocabulary = open_vocabulary(vocab)
        known = names_by_column(chain(right.names(), given.names()), vocabulary)
        matrix, ranking, names = align(right, given, known)
        hierarchy = hierarchy_of_names(names, vocabulary)
    _show(Evaluation(matrix, ranking, hierarchy=hierarchy), asked, names, per_label, json)


def parsed_measures(names: str | None) -> Sequence[Measure]:
    """The measures that a list names; the usual ones without a list."""
    from labelkin.evaluate import DEFAULT_MEASURES, parse_measure

    if names is None:
        return DEFAULT_MEASURES
    return [parse_measure(name) for name in names.replace(",", " ").split()]


def _show(
    evaluation: Evaluation,
    measures: Sequence[Measure],
    names: list[str],
    per_label: Path | None,
    json: bool,
    *,
    bands: bool = False,
) -> None:
    from labelkin.evaluate import bootstrap_interval, evaluate_bands
    from labelkin.evaluate import evaluate as values_of

    values = values_of(evaluation, measures)
    if per_label is not None:
        _write_labels(evaluation, names, per_label)
    by_band = evaluate_bands(evaluation, measures) if bands else {}
    if json:
        print_json({**values, "bands": by_band} if bands else values)
        return
    rows = []
    for measure in measures:
        interval = ""
        if measure.is_additive and evaluation.documents:
            found = bootstrap_interval(measure, evaluation)
            interval = f"{found.low:.4f} – {found.high:.4f}"
        rows.append((measure.name, f"{values[measure.name]:.4f}", interval))
    print_table("", [("measure", False), ("value", True), ("95 % interval", False)], rows)
    if bands:
        _show_bands(by_band, measures)


def _show_bands(by_band: dict[str, dict[str, float]], measures: Sequence[Measure]) -> None:
    rows = [(m.name, *(f"{of_band[m.name]:.4f}" for of_band in by_band.values())) for m in measures]
    print_table("", [("measure", False), *((name, True) for name in by_band)], rows)


def _write_labels(evaluation: Evaluation, names: list[str], path: Path) -> None:
    from labelkin.atomic import atomic_text
    from labelkin.evaluate import per_label_report

    report = per_label_report(evaluation)
    with atomic_text(path) as file:
        file.write("label\tTP\tFP\tFN\tP\tR\tF\ttraining\n")
        for column, name in enumerate(names):
            counts = (
                report.true_positives[column],
                report.false_positives[column],
                report.false_negatives[column],
            )
            if any(counts):
                shares = (report.precision[column], report.recall[column], report.f_score[column])
                file.write("\t".join([name, *map(str, counts)]))
                file.write("".join(f"\t{share:.4f}" for share in shares))
                file.write(f"\t{report.training[column]}\n")
