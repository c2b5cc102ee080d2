"""`labelkin annotate`: headings for whole files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import (
    copy_to_standard_output,
    counted,
    print_json,
    print_message,
    seconds_text,
)
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.languages import ForeignTexts, heading_language, names_as_json
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    ReadingOptions,
    Strict,
    SuggestionOptions,
    takes,
)
from labelkin.cli.outputs import check_output, is_standard_output
from labelkin.cli.progress import meter
from labelkin.cli.settings import print_unknown_labels, suggestion_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from labelkin.corpus import Corpus, Document
    from labelkin.scoring.ranking import Ranking
    from labelkin.scoring.suggestion import Band
    from labelkin.vocab import Vocabulary

# Characters of the text that stand in for a missing title.
_BEGINNING = 200


@takes(ReadingOptions, "reading")
@takes(SuggestionOptions, "asked")
def annotate(
    collection: CollectionPath,
    files: CorpusFiles,
    asked: SuggestionOptions,
    reading: ReadingOptions,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .jsonl, .csv, .tsv, .json or .npz; - is standard output.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="jsonl, csv, annif-tsv, bioasq or npz. Default: by the extension."),
    ] = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Suggest headings for every document in files; an interrupted run can be repeated."""
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer
    from labelkin.scoring.annotation import annotate as annotate_documents
    from labelkin.scoring.annotation_formats import writer_for

    started = time.monotonic()
    to_stdout = is_standard_output(output)
    if to_stdout and json:
        raise typer.BadParameter("--json and the annotations cannot both go to standard output")
    check_output(output, [collection, *files])
    writer_for(output, to)
    corpus = read_corpus(
        *files, format=format, label_separator=label_separator, texts=True, **reading.arguments()
    )
    check_output(output, corpus.paths)
    documents = _readable(corpus, strict)
    with ExitStack() as stack:
        indexer = stack.enter_context(Indexer.open(collection))
        if to_stdout:
            folder = tempfile.TemporaryDirectory(prefix="labelkin-")
            output = Path(stack.enter_context(folder)) / "annotations.jsonl"
        settings = suggestion_settings(indexer, asked)
        language = heading_language(indexer, asked.language)
        foreign = ForeignTexts(indexer)
        if settings.k:
            build_with_progress(indexer, asked.representation, [settings])
        print_unknown_labels(indexer, [settings])
        method = settings.implementation
        search = indexer.search(asked.representation) if settings.k else None
        depends_on = {
            "neighbours": search.fingerprint() if search else {},
            "vocabulary": indexer.collection.vocabulary_state.key,
            "method": asdict(settings),
            "model": indexer.models_checksum(settings.method),
            "config": indexer.config.model_dump(),
            "fold_broader": asked.fold_broader,
            "language": language,
        }
        band = method.bands(indexer.queries([]), settings)
        with meter("Annotating", corpus.bytes_total) as bar:
            report = annotate_documents(
                foreign.watched(documents),
                lambda batch: _records(
                    batch,
                    indexer.labels(batch, settings, asked.representation, fold=asked.fold_broader),
                    indexer.vocabulary,
                    language,
                    band,
                ),
                output,
                labels=[concept.id for concept in indexer.vocabulary],
                settings=depends_on,
                format=to,
                progress=lambda done: bar.update(corpus.bytes_read, counted(done, "document")),
            )
        foreign.report()
        if to_stdout:
            copy_to_standard_output(output)
    if json:
        print_json({**asdict(report), "skipped": corpus.report.skipped, "output": str(output)})
    else:
        before = f" ({report.resumed:,} in an earlier run)" if report.resumed else ""
        took = seconds_text(time.monotonic() - started)
        where = "standard output" if to_stdout else output
        print_message(
            f"Annotated {counted(report.documents, 'document')}{before} in {took}: {where}."
        )
    exit_after_reading(corpus.report, strict)


def _readable(corpus: Corpus, strict: bool) -> Iterator[Document]:
    """The documents of a corpus; exits if none can be read, so that no output is replaced."""
    documents = corpus.documents()
    first = next(documents, None)
    if first is None:
        exit_after_reading(corpus.report, strict)
        return documents
    return chain([first], documents)


def _records(
    documents: list[Document],
    given: Ranking,
    vocabulary: Vocabulary,
    language: str,
    band: Callable[[float], Band] | None,
) -> list[dict[str, Any]]:
    return [
        {
            "id": document.id,
            "title": document.title,
            **({} if document.title else {"text": document.text[:_BEGINNING]}),
            "suggestions": [
                {
                    "id": vocabulary[column].id,
                    **names_as_json(vocabulary[column], language),
                    "score": round(score, 6),
                    **({} if band is None else {"band": band(score)}),
                    "column": column,
                }
                for column, score in zip(columns.tolist(), scores.tolist(), strict=True)
            ],
        }
        for document, (columns, scores) in zip(documents, given, strict=True)
    ]
