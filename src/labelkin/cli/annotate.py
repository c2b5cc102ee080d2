"""`labelkin annotate`: headings for whole files."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, print_json, seconds_text, tell
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    Accept,
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Exclude,
    FoldBroader,
    Include,
    Json,
    LabelSeparator,
    Language,
    Limit,
    MethodName,
    RepresentationName,
    Review,
    Strict,
    Threshold,
    Voters,
)
from labelkin.cli.progress import meter
from labelkin.cli.settings import asked_settings, down_to_review, tell_unknown_labels

if TYPE_CHECKING:
    from collections.abc import Callable

    from labelkin.corpus import Document
    from labelkin.scoring.methods import Method
    from labelkin.scoring.ranking import Ranking
    from labelkin.scoring.suggestion import Band
    from labelkin.vocab import Vocabulary

# How much of a text without a title stands for it in the output.
_BEGINNING = 200


def annotate(
    collection: CollectionPath,
    files: CorpusFiles,
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
    k: Voters = None,
    limit: Limit = None,
    threshold: Threshold = None,
    accept: Accept = None,
    review: Review = None,
    include: Include = None,
    exclude: Exclude = None,
    fold_broader: FoldBroader = False,
    method: MethodName = None,
    representation: RepresentationName = None,
    language: Language = "en",
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Suggest headings for every document of some files; an interrupted run is taken up again."""
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer
    from labelkin.scoring.annotation import annotate as annotate_documents

    started = time.monotonic()
    to_stdout = str(output) in ("-", "/dev/stdout")
    if to_stdout and json:
        raise typer.BadParameter("--json and the annotations cannot both go to standard output")
    corpus = read_corpus(*files, format=format, label_separator=label_separator)
    _check_not_read(output, [*files, *corpus.paths])
    with ExitStack() as stack:
        indexer = stack.enter_context(Indexer.open(collection))
        if to_stdout:
            folder = tempfile.TemporaryDirectory(prefix="labelkin-")
            output = Path(stack.enter_context(folder)) / "annotations"
        settings = asked_settings(
            indexer.config,
            method,
            k=k,
            limit=limit,
            threshold=threshold,
            accept=accept,
            review=review,
            include=include,
            exclude=exclude,
        )
        if review is not None and threshold is None and limit is None:
            settings = down_to_review(indexer, settings)
        if settings.k:
            build_with_progress(indexer, representation)
        tell_unknown_labels(indexer, [settings])
        depends_on = {
            "neighbours": indexer.search(representation).fingerprint() if settings.k else {},
            "vocabulary": indexer.collection.vocabulary_state(),
            "method": asdict(settings),
            "model": indexer.model_digest(settings.method) if settings.learned else "",
            "config": indexer.config.model_dump(),
            "fold_broader": fold_broader,
            "language": language,
        }
        with meter("Annotating", corpus.bytes_total) as bar:
            report = annotate_documents(
                corpus.documents(),
                lambda batch: _records(
                    batch,
                    indexer.labels(batch, settings, representation, fold=fold_broader),
                    indexer.vocabulary,
                    language,
                    _bands(indexer.method(settings)),
                ),
                output,
                labels=[concept.id for concept in indexer.vocabulary],
                settings=depends_on,
                format=to,
                progress=lambda done: bar.update(corpus.bytes_read, counted(done, "document")),
            )
        if to_stdout:
            with output.open("rb") as whole:
                shutil.copyfileobj(whole, typer.get_binary_stream("stdout"))
    if json:
        print_json({**asdict(report), "skipped": corpus.report.skipped, "output": str(output)})
    else:
        before = f" ({report.resumed:,} of them before)" if report.resumed else ""
        took = seconds_text(time.monotonic() - started)
        where = "standard output" if to_stdout else output
        tell(f"Annotated {counted(report.documents, 'document')}{before} in {took}: {where}.")
    exit_after_reading(corpus.report, strict)


def _check_not_read(output: Path, inputs: Iterable[Path]) -> None:
    """The output must be none of the input files, nor lie among them."""
    place = output.resolve()
    for path in inputs:
        if str(path) != "-" and (place == path.resolve() or path.resolve() in place.parents):
            raise typer.BadParameter(f"{output} is read from, or will be; write to another place")


def _bands(method: Method) -> Callable[[float], Band] | None:
    """Tells the band of a score, for a method that has bands."""
    found: Callable[[float], Band] | None = getattr(method, "band", None)
    return found


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
                    "name": vocabulary[column].name(language),
                    "score": round(score, 6),
                    **({} if band is None else {"band": band(score)}),
                    "column": column,
                }
                for column, score in zip(columns.tolist(), scores.tolist(), strict=True)
            ],
        }
        for document, (columns, scores) in zip(documents, given, strict=True)
    ]
