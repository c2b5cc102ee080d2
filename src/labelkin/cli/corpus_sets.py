"""`labelkin corpus split` and `labelkin corpus dedupe`: data sets for an honest evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import (
    counted,
    data_to_standard_output,
    print_json,
    print_message,
    print_table,
)
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    ReadingOptions,
    Strict,
    takes,
)
from labelkin.cli.outputs import (
    check_output,
    check_table,
    is_standard_output,
    open_output,
    table_cell,
)
from labelkin.cli.progress import Stages

if TYPE_CHECKING:
    from labelkin.corpus.dedupe import DedupeReport, Duplicates
    from labelkin.corpus.passes import StepProgress
    from labelkin.corpus.split import SplitReport, SplitRule

Threshold = Annotated[
    float,
    typer.Option(
        min=0.3,
        max=1,
        help="Near-duplicates share at least this part of their words and pairs of words.",
    ),
]


@takes(ReadingOptions, "reading")
def split(
    files: CorpusFiles,
    reading: ReadingOptions,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write: new, or empty.")
    ],
    by: Annotated[
        str, typer.Option(help="hash (of the id) or year (in the metadata of a document).")
    ] = "hash",
    parts: Annotated[
        str | None,
        typer.Option(
            help="Names with shares, or with years for --by year: train:-2017,dev:2018,test:2019-. "
            "Default: train:0.8,dev:0.1,test:0.1."
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=2, max=1000, help="So many parts of equal size instead.")
    ] = None,
    keep_together: Annotated[
        str | None,
        typer.Option(
            help="near-duplicates or same-text: such documents are never in different parts."
        ),
    ] = None,
    threshold: Threshold = 0.8,
    seed: Annotated[int, typer.Option(help="Another seed gives another split by hash.")] = 0,
    to: Annotated[str, typer.Option(help="jsonl, json, csv or annif-tsv.")] = "jsonl",
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the files.")] = False,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Split documents into parts such as train, dev and test, or into folds."""
    from labelkin.corpus import read_corpus
    from labelkin.corpus.split import check_folder, split_corpus

    rule = _rule(by, parts, folds, seed)
    check_output(output, files, folder=True)
    check_folder(output)
    corpus = read_corpus(
        *files, format=format, label_separator=label_separator, **reading.arguments()
    )
    check_output(output, corpus.paths, folder=True)
    with Stages() as stages:
        report = split_corpus(
            corpus,
            output,
            rule,
            keep_together=keep_together,
            threshold=threshold,
            format=to,
            gzip=gzip,
            progress=_progress(stages),
        )
    if json:
        print_json({**report.to_json(), "output": str(output), "skipped": corpus.report.skipped})
    else:
        _print_split(report, output, corpus.report.skipped)
    exit_after_reading(corpus.report, strict)


@takes(ReadingOptions, "reading")
def dedupe(
    files: CorpusFiles,
    reading: ReadingOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .jsonl, .json, .csv or .tsv, optionally followed by .gz; - is "
            "standard output.",
        ),
    ],
    threshold: Threshold = 0.8,
    exact: Annotated[
        bool, typer.Option("--exact", help="Only the same words in the same order.")
    ] = False,
    keep: Annotated[
        str,
        typer.Option(help="first, or newest: the latest revision or year, else the last one."),
    ] = "first",
    merge_labels: Annotated[
        bool,
        typer.Option("--merge-labels", help="Give the kept document the labels of the removed."),
    ] = False,
    groups: Annotated[
        Path | None, typer.Option(help="Also list all groups in this .tsv file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the hashes by which candidates are found.")] = 0,
    to: Annotated[
        str | None, typer.Option(help="jsonl, json, csv or annif-tsv, whatever the extension.")
    ] = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Write documents without those that are there more than once, or nearly so."""
    from labelkin.corpus import read_corpus
    from labelkin.corpus.dedupe import find_duplicates
    from labelkin.corpus.writers import corpus_format, write_corpus, write_documents

    if json and is_standard_output(output):
        raise typer.BadParameter("--json and the documents cannot both go to standard output")
    check_output(output, files)
    known = corpus_format(output, to)
    corpus = read_corpus(
        *files, format=format, label_separator=label_separator, **reading.arguments()
    )
    check_output(output, corpus.paths)
    if groups is not None:
        check_table(groups, [*corpus.paths, output], option="--groups", results=True)
    with Stages() as stages:
        duplicates = find_duplicates(
            corpus,
            threshold=1.0 if exact else threshold,
            keep=keep,
            seed=seed,
            progress=_progress(stages),
        )
        documents = duplicates.documents(merge_labels=merge_labels)
        if is_standard_output(output):
            with data_to_standard_output() as file:
                write_documents(documents, file, known)
        else:
            write_corpus(documents, output, known)
        if groups is not None:
            _write_groups(duplicates, groups)
    if json:
        report = {**duplicates.report.to_json(), "output": str(output)}
        print_json({**report, "skipped": corpus.report.skipped})
    else:
        _print_deduped(duplicates.report, output, len(corpus.paths), corpus.report.skipped)
    exit_after_reading(corpus.report, strict)


def _rule(by: str, parts: str | None, folds: int | None, seed: int) -> SplitRule:
    from labelkin.corpus.split import DEFAULT_PARTS, HashRule, hash_rule, year_rule

    if by not in ("hash", "year"):
        raise typer.BadParameter(f"--by {by}: split by hash or by year")
    if folds is not None:
        if parts is not None or by == "year":
            raise typer.BadParameter("--folds are parts by hash; leave out --parts and --by year")
        return HashRule.in_folds(folds, seed)
    if by == "hash":
        return hash_rule(parts or DEFAULT_PARTS, seed)
    if parts is None:
        raise typer.BadParameter("--by year needs --parts, such as train:-2017,dev:2018,test:2019-")
    return year_rule(parts)


def _progress(stages: Stages) -> StepProgress:
    def show(step: str, done: int, total: int, note: str) -> None:
        stages.at(step, total).update(done, note)

    return show


def _print_split(report: SplitReport, output: Path, skipped: int) -> None:
    rows = [
        (
            part.file,
            f"{part.documents:,}",
            f"{part.documents / report.documents:.1%}",
            f"{len(part.labels):,}",
            f"{part.unseen_labels:,}" if report.rule.references(name) else "",
            f"{part.unseen_occurrences:,}" if report.rule.references(name) else "",
        )
        for name, part in report.parts.items()
    ]
    columns = [("file", False), ("documents", True), ("share", True), ("labels", True)]
    columns += [("not in training", True), ("their occurrences", True)]
    print_table("", columns, rows)
    if together := report.together:
        print_message(
            f"Kept {counted(together.documents, 'document')} in "
            f"{counted(together.groups, 'group')} together ({together.kind}); the largest has "
            f"{together.largest:,}. {together.divided:,} of the groups would have been divided."
        )
    print_message(
        f"Wrote {counted(report.documents, 'document')} and split.json to {output}; "
        f"skipped {skipped:,}."
    )


def _print_deduped(report: DedupeReport, output: Path, files: int, skipped: int) -> None:
    where = "standard output" if is_standard_output(output) else output
    print_message(
        f"Wrote {counted(report.kept, 'document')} of {report.read:,} to {where}. Removed "
        f"{report.removed:,}: {report.same_id:,} with the same id, {report.same_text:,} with the "
        f"same text, {report.similar:,} with a similar text; "
        f"skipped {skipped:,}."
    )
    if report.groups:
        crossing = f"; {report.across_files:,} extend over several files" if files > 1 else ""
        print_message(
            f"{counted(report.groups, 'group')}, the largest of {report.largest:,}{crossing}."
        )


def _write_groups(duplicates: Duplicates, path: Path) -> None:
    """A line per document of a group: its number, kept or why not, similarity, file, id, title."""
    with open_output(path) as file:
        file.write("group\treason\tsimilarity\tfile\tid\ttitle\n")
        for member in duplicates.members():
            cells = (member.file_name, member.id, member.title)
            start = (str(member.group), member.reason or "kept", f"{member.similarity:.3f}")
            file.write("\t".join((*start, *map(table_cell, cells))) + "\n")
