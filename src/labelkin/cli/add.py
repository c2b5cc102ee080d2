"""`labelkin add` and `labelkin learn`: documents and corrections into a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labelkin.cli.console import counted, print_json, print_message, seconds_text
from labelkin.cli.exits import PARTLY_DONE, exit_after_reading
from labelkin.cli.options import CollectionPath, CorpusFiles, StoringOptions, takes
from labelkin.cli.outputs import check_table, open_output, table_cell
from labelkin.cli.progress import meter
from labelkin.wording import shortened

if TYPE_CHECKING:
    from labelkin.corpus import Corpus, ReadReport
    from labelkin.corpus.document import CorpusItem
    from labelkin.store import AddReport
    from labelkin.vocab import Vocabulary

_SHOWN_LABELS = 10
_SHOWN_RECORDS = 20
# Fewer than this share of all labels are not worth a hint.
_MANY_UNRESOLVED = 0.1


@takes(StoringOptions, "options")
def add(collection: CollectionPath, files: CorpusFiles, options: StoringOptions) -> None:
    """Add labelled documents; documents with known ids are replaced."""
    _store(collection, files, options)


@takes(StoringOptions, "options")
def learn(collection: CollectionPath, files: CorpusFiles, options: StoringOptions) -> None:
    """Correct the headings of stored documents by records with an id and labels.

    Records that have a text are stored as by `add`; a title alone replaces no longer text.
    """
    report = _store(collection, files, options, corrections=True)
    if report.missing:
        raise typer.Exit(PARTLY_DONE)


def _store(
    collection: Path, files: list[Path], options: StoringOptions, *, corrections: bool = False
) -> AddReport:
    """Store the records of files, print what became of them, and exit if not all could be read."""
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer

    unresolved, separator = options.unresolved, options.label_separator
    if unresolved is not None:
        inputs = [collection, *files]
        check_table(unresolved, inputs, option="--unresolved", results=options.json)
    corpus = read_corpus(
        *files,
        format=options.format,
        label_separator=separator,
        corrections=corrections,
        **options.arguments(),
    )
    with (
        Indexer.open(collection) as indexer,
        meter("Adding documents", corpus.bytes_total) as progress,
    ):
        keeps = options.keep_unknown
        if keeps is None:
            keeps = indexer.config.labels.unknown == "keep"
        items: Iterable[CorpusItem] = corpus
        if not keeps and not options.force:
            items = _with_known_labels(corpus, indexer.vocabulary, separator)
        report = indexer.add(
            items,
            keep_unknown=options.keep_unknown,
            take_older=options.take_older,
            progress=lambda so_far: progress.update(
                corpus.bytes_read, counted(so_far.documents, "document")
            ),
        )
        total = indexer.collection.count()
        joined_by = _label_separator(report, indexer.vocabulary, separator)
    if unresolved is not None:
        _write_counts(report, unresolved)
    if options.json:
        print_json(_as_json(report, corpus.report, total))
    else:
        read = corpus.report
        print_message(
            f"Read {counted(read.read, 'record')}, skipped {read.skipped:,}, "
            f"{read.without_labels:,} without labels."
        )
        print_added(report, total, indexer.config.documents.max_characters)
    if joined_by is not None:
        print_message(
            "Some of these labels look like several in one: split them with "
            f"--label-separator '{joined_by}' (in JSON, write them as a list)."
        )
    exit_after_reading(corpus.report, options.strict)
    if options.strict and (report.stale or report.unlabelled):
        raise typer.Exit(PARTLY_DONE)
    return report


def _with_known_labels(
    corpus: Corpus, vocabulary: Vocabulary, label_separator: str
) -> Iterator[CorpusItem]:
    """The items of a corpus; raises before the first if the vocabulary knows none of their labels.

    The first items are looked at before anything is stored.
    """
    from labelkin.corpus import Deletion
    from labelkin.vocab.agreement import FIRST_DOCUMENTS, check_labels

    items = iter(corpus)
    first = list(islice(items, FIRST_DOCUMENTS))
    labelled = [item for item in first if not isinstance(item, Deletion)]
    check_labels(labelled, vocabulary, label_separator)
    return chain(first, items)


def _label_separator(report: AddReport, vocabulary: Vocabulary, label_separator: str) -> str | None:
    """What seems to join several labels to one, if many labels were not resolved."""
    from labelkin.vocab.agreement import label_separator_of

    missing = report.unresolved.total()
    if missing < _MANY_UNRESOLVED * (missing + report.labels_resolved):
        return None
    labels = [label for label, _ in report.unresolved.most_common()]
    return label_separator_of(labels, vocabulary, label_separator) if labels else None


def print_added(report: AddReport, total: int, max_characters: int) -> None:
    """Print what was added, and which labels were not resolved."""
    counts = [f"{report.added:,} added"]
    for count, what in (
        (report.replaced, "replaced"),
        (report.unchanged, "unchanged"),
        (report.duplicates, "duplicate" if report.duplicates == 1 else "duplicates"),
        (report.corrected, "corrected"),
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
    if report.cleared:
        ids = ", ".join(report.cleared_ids[:3]) + (", …" if report.cleared > 3 else "")
        have = "has" if report.cleared == 1 else "have"
        print_message(f"{counted(report.cleared, 'document')} {have} no headings any more: {ids}")
    if report.texts_kept:
        have = "record has" if report.texts_kept == 1 else "records have"
        print_message(
            f"{report.texts_kept:,} {have} a title only: headings were taken, and texts left as "
            "they are stored."
        )
    _print_left_out(report)
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


def _print_left_out(report: AddReport) -> None:
    count = report.stale + report.missing + report.unlabelled
    if not count:
        return
    print_message(f"{counted(count, 'record was', 'records were')} left out:")
    for one in report.left_out[:_SHOWN_RECORDS]:
        print_message(f"  {one.where}: {shortened(one.id)}: {one.problem}")
    if count > _SHOWN_RECORDS:
        more = count - _SHOWN_RECORDS
        print_message(f"  and {more:,} more; --json lists the first thousand")
    if report.stale:
        print_message("--take-older stores older records all the same.")


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
                file.write(f"{count}\t{reason}\t{table_cell(label)}\n")


def _as_json(report: AddReport, read: ReadReport, total: int) -> dict[str, Any]:
    # Before Python 3.12, asdict breaks counters.
    counters = {"unresolved": dict(report.unresolved), "ambiguous": dict(report.ambiguous)}
    stored = {**asdict(replace(report, unresolved=Counter(), ambiguous=Counter())), **counters}
    del stored["without_labels"]
    return {**asdict(read), **stored, "documents": total}
