"""`labelkin add`: documents into a collection."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.console import counted, print_json, print_message, seconds_text
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    Strict,
)
from labelkin.cli.outputs import check_output, open_output
from labelkin.cli.progress import meter
from labelkin.wording import shortened

if TYPE_CHECKING:
    from labelkin.corpus import ReadReport
    from labelkin.store import AddReport

_SHOWN_LABELS = 10


def add(
    collection: CollectionPath,
    files: CorpusFiles,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    keep_unknown: Annotated[
        bool | None,
        typer.Option(
            "--keep-unknown/--report-unknown",
            help="Turn labels that the vocabulary lacks into new concepts, or list and ignore "
            "them. Default: as labelkin.toml says.",
            show_default=False,
        ),
    ] = None,
    unresolved: Annotated[
        Path | None,
        typer.Option(help="Write all unresolved labels with their counts to this TSV file."),
    ] = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Add labelled documents; documents with known ids are replaced."""
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer

    if unresolved is not None:
        check_output(unresolved, [collection, *files])
    corpus = read_corpus(*files, format=format, label_separator=label_separator)
    with (
        Indexer.open(collection) as indexer,
        meter("Adding documents", corpus.bytes_total) as progress,
    ):
        report = indexer.add(
            corpus,
            keep_unknown=keep_unknown,
            progress=lambda so_far: progress.update(
                corpus.bytes_read, counted(so_far.documents, "document")
            ),
        )
        total = indexer.collection.count()
    if unresolved is not None:
        _write_counts(report, unresolved)
    if json:
        print_json(_as_json(report, corpus.report, total))
    else:
        read = corpus.report
        print_message(
            f"Read {counted(read.read, 'record')}, skipped {read.skipped:,}, "
            f"{read.without_labels:,} without labels."
        )
        print_added(report, total, indexer.config.documents.max_characters)
    exit_after_reading(corpus.report, strict)


def print_added(report: AddReport, total: int, max_characters: int) -> None:
    """Print what was added, and which labels were not resolved."""
    counts = [f"{report.added:,} added"]
    for count, what in (
        (report.replaced, "replaced"),
        (report.unchanged, "unchanged"),
        (report.duplicates, "duplicate" if report.duplicates == 1 else "duplicates"),
        (report.removed, "removed"),
    ):
        if count:
            counts.append(f"{count:,} {what}")
    print_message(
        f"{', '.join(counts)} in {seconds_text(report.seconds)}; {total:,} in the collection."
    )
    if report.duplicates:
        ids = ", ".join(report.duplicate_ids[:3]) + (", …" if report.duplicates > 3 else "")
        print_message(f"Where records have the same id, the last one counts: {ids}")
    if report.cut:
        ids = ", ".join(report.cut[:3]) + (", …" if len(report.cut) > 3 else "")
        were = "was" if len(report.cut) == 1 else "were"
        print_message(
            f"{counted(len(report.cut), 'text')} {were} longer than {max_characters:,} characters "
            f"and {were} cut: {ids}"
        )
    if report.new_concepts:
        one = report.new_concepts == 1
        became = "became a new concept" if one else "became new concepts"
        print_message(f"{counted(report.new_concepts, 'label')} {became}.")
    _print_labels("not in the vocabulary", report.unresolved)
    _print_labels("with more than one meaning", report.ambiguous)


def _print_labels(what: str, labels: Counter[str]) -> None:
    if not labels:
        return
    occurrences = counted(labels.total(), "occurrence")
    print_message(f"{counted(len(labels), 'label')} ({occurrences}) {what}:")
    for label, count in labels.most_common(_SHOWN_LABELS):
        print_message(f"  {count:>6,}  {shortened(label)}")
    if len(labels) > _SHOWN_LABELS:
        print_message(
            f"          and {len(labels) - _SHOWN_LABELS:,} more; --unresolved FILE lists all"
        )


def _write_counts(report: AddReport, path: Path) -> None:
    with open_output(path) as file:
        file.write("count\treason\tlabel\n")
        for reason, labels in (("unknown", report.unresolved), ("ambiguous", report.ambiguous)):
            for label, count in labels.most_common():
                file.write(f"{count}\t{reason}\t{label}\n")


def _as_json(report: AddReport, read: ReadReport, total: int) -> dict[str, Any]:
    stored = asdict(report)
    del stored["without_labels"]
    return {**asdict(read), **stored, "documents": total}
