"""`labelkin corpus`: files of documents, without a collection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import (
    counted,
    data_to_standard_output,
    print_facts,
    print_json,
    print_line,
    print_message,
    print_table,
)
from labelkin.cli.corpus_sets import dedupe, split
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.languages import opened_vocabulary
from labelkin.cli.options import (
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    ReadingOptions,
    Strict,
    named_path,
    takes,
)
from labelkin.cli.outputs import check_output, is_standard_output
from labelkin.cli.progress import Meter, meter
from labelkin.exceptions import InputError
from labelkin.wording import shortened

if TYPE_CHECKING:
    from labelkin.corpus import Corpus, Document
    from labelkin.vocab import Vocabulary

app = typer.Typer(no_args_is_help=True, help="Convert, count, split and deduplicate corpus files.")

app.command()(split)
app.command()(dedupe)

_SHOWN_LABELS = 10


@app.command()
@takes(ReadingOptions, "reading")
def convert(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...", parser=named_path, help="Corpus files, or one collection folder."
        ),
    ],
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
    to: Annotated[
        str | None,
        typer.Option(
            help="jsonl, json, csv or annif-tsv, whatever the extension. Default: by the "
            "extension; jsonl for standard output."
        ),
    ] = None,
    vocab: Annotated[
        Path | None,
        typer.Option(help="Write labels as ids of this vocabulary (a file or a collection)."),
    ] = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Write documents in another format; also exports the documents of a collection."""
    from labelkin.corpus import read_corpus
    from labelkin.corpus.writers import corpus_format
    from labelkin.indexer import Indexer
    from labelkin.layout import is_collection

    if json and is_standard_output(output):
        raise typer.BadParameter("--json and the documents cannot both go to standard output")
    check_output(output, [*files, *([vocab] if vocab else [])])
    corpus_format(output, to)
    vocabulary = opened_vocabulary(vocab)[0] if vocab else None
    if len(files) == 1 and is_collection(files[0]):
        with Indexer.open(files[0]) as indexer, meter("Writing", indexer.collection.count()) as bar:
            documents = _with_ids(_metered(indexer.documents(), bar), vocabulary)
            written = _write(documents, output, to)
        _print_written(written, output, 0, json)
        return
    corpus = read_corpus(
        *files, format=format, label_separator=label_separator, **reading.arguments()
    )
    check_output(output, corpus.paths)
    with meter("Converting", corpus.bytes_total) as bar:
        documents = _with_ids(_metered(_readable(corpus, output), bar, corpus), vocabulary)
        written = _write(documents, output, to)
    _print_written(written, output, corpus.report.skipped, json)
    exit_after_reading(corpus.report, strict)


@app.command()
@takes(ReadingOptions, "reading")
def stats(
    files: CorpusFiles,
    reading: ReadingOptions,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Count documents, words, labels and languages."""
    from labelkin.corpus import read_corpus
    from labelkin.corpus.statistics import corpus_statistics

    corpus = read_corpus(
        *files, format=format, label_separator=label_separator, **reading.arguments()
    )
    with meter("Reading", corpus.bytes_total) as bar:
        statistics = corpus_statistics(_metered(corpus.documents(), bar, corpus))
    counts = {
        "documents": statistics.documents,
        "skipped": corpus.report.skipped,
        "with_labels": statistics.with_labels,
        "without_body": statistics.without_body,
        "words_per_document": statistics.words / max(statistics.documents, 1),
        "longest_characters": statistics.longest_characters,
        "distinct_labels": len(statistics.labels),
        "label_occurrences": statistics.label_occurrences,
        "labels_per_document": statistics.label_occurrences / max(statistics.documents, 1),
        "languages": dict(statistics.languages.most_common()),
    }
    if json:
        print_json({**counts, "most_frequent_labels": dict(statistics.labels.most_common(100))})
    else:
        languages = ", ".join(f"{name} {n:,}" for name, n in statistics.languages.most_common())
        print_facts(
            [
                ("Documents", f"{statistics.documents:,}"),
                ("  skipped", f"{corpus.report.skipped:,}"),
                ("  with labels", f"{statistics.with_labels:,}"),
                ("  with a title only", f"{statistics.without_body:,}"),
                ("Words per document", f"{counts['words_per_document']:.1f}"),
                ("Longest text", counted(statistics.longest_characters, "character")),
                ("Distinct labels", f"{len(statistics.labels):,}"),
                ("Labels per document", f"{counts['labels_per_document']:.2f}"),
                ("Languages", languages),
            ]
        )
        if frequent := statistics.labels.most_common(_SHOWN_LABELS):
            print_line()
            print_table(
                "",
                [("documents", True), ("label", False)],
                [(f"{n:,}", shortened(label)) for label, n in frequent],
            )
    exit_after_reading(corpus.report, strict)


def _readable(corpus: Corpus, output: Path) -> Iterator[Document]:
    """The documents of a corpus; raises if none could be read, so that no output is replaced."""
    yield from corpus.documents()
    report = corpus.report
    if not report.documents and (report.files_refused or report.files_damaged or report.skipped):
        raise InputError(f"no document could be read; {output} was not changed")


def _write(documents: Iterator[Document], output: Path, to: str | None) -> int:
    from labelkin.corpus.writers import corpus_format, write_corpus, write_documents

    if not is_standard_output(output):
        return write_corpus(documents, output, to)
    with data_to_standard_output() as file:
        return write_documents(documents, file, corpus_format(output, to))


def _print_written(written: int, output: Path, skipped: int, json: bool) -> None:
    if json:
        print_json({"output": str(output), "documents": written, "skipped": skipped})
    else:
        where = "standard output" if is_standard_output(output) else output
        print_message(f"Wrote {counted(written, 'document')} to {where}; skipped {skipped:,}.")


def _metered(
    documents: Iterator[Document], bar: Meter, corpus: Corpus | None = None
) -> Iterator[Document]:
    for count, document in enumerate(documents, start=1):
        yield document
        if count % 1000 == 0:
            bar.update(corpus.bytes_read if corpus else count, counted(count, "document"))


def _with_ids(documents: Iterator[Document], vocabulary: Vocabulary | None) -> Iterator[Document]:
    from labelkin.vocab.identified import with_ids

    if vocabulary is None:
        return documents
    return (with_ids(document, vocabulary) for document in documents)
