"""`labelkin annotate`: headings for whole files."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

import typer

from labelkin.cli.build import build_with_progress, expect_with_progress
from labelkin.cli.console import (
    copy_to_standard_output,
    counted,
    print_json,
    print_message,
    seconds_text,
    set_up_logging,
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
from labelkin.exceptions import LabelkinError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from labelkin.corpus import Corpus, Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.annotation import MapBatches, Suggest
    from labelkin.scoring.ranking import Ranking
    from labelkin.scoring.settings import Settings
    from labelkin.scoring.suggestion import Band
    from labelkin.vocab import Vocabulary

# Characters of the text that stand in for a missing title.
_BEGINNING = 200
_MOST_JOBS = 64
# Roughly: to know beforehand whether there are many documents.
_BYTES_A_DOCUMENT = 500


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
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            max=_MOST_JOBS,
            help="Processes that work on batches of documents; the output is the same.",
        ),
    ] = 1,
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
        expected, is_bulk = corpus.bytes_total // _BYTES_A_DOCUMENT, False
        if settings.k:
            build_with_progress(indexer, asked.representation, [settings])
            is_bulk = expect_with_progress(indexer, asked.representation, expected)
        print_unknown_labels(indexer, [settings])
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
        job = _Job(
            indexer.collection.path,
            settings,
            asked.representation,
            asked.fold_broader,
            language,
            is_bulk if jobs > 1 else None,
        )
        map_batches: MapBatches = map
        if jobs > 1:
            map_batches = stack.enter_context(_Workers(job, jobs)).map
        watched = _CountedDocuments(documents)
        with meter("Annotating", corpus.bytes_total) as bar:
            report = annotate_documents(
                foreign.watched(watched),
                _Annotator(indexer, job),
                output,
                labels=[concept.id for concept in indexer.vocabulary],
                settings=depends_on,
                format=to,
                progress=lambda done: bar.update(
                    round(corpus.bytes_read * done / watched.count), counted(done, "document")
                ),
                map_batches=map_batches,
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


class _CountedDocuments:
    """Documents that are counted when they are read."""

    def __init__(self, documents: Iterator[Document]) -> None:
        self._documents = documents
        self.count = 0

    def __iter__(self) -> Iterator[Document]:
        for document in self._documents:
            self.count += 1
            yield document


@dataclass(frozen=True)
class _Job:
    """What a process needs to know to annotate a batch."""

    collection: Path
    settings: Settings
    representation: str | None
    fold_broader: bool
    language: str
    is_bulk: bool | None


class _Annotator:
    """Turns batches of documents into records."""

    def __init__(self, indexer: Indexer, job: _Job) -> None:
        self._indexer = indexer
        self._job = job
        self._band = job.settings.implementation.bands(indexer.queries([]), job.settings)
        if job.settings.k and job.is_bulk is not None:
            # All processes search alike.
            indexer.search(job.representation).decide(job.is_bulk)

    def __call__(self, documents: list[Document]) -> list[dict[str, Any]]:
        """A record per document."""
        job = self._job
        given = self._indexer.labels(
            documents, job.settings, job.representation, fold=job.fold_broader
        )
        return _records(documents, given, self._indexer.vocabulary, job.language, self._band)


class _Workers:
    """Processes that annotate batches, each with the collection opened once.

    A process ends when its connection is closed: by the parent, or because that is gone.
    """

    def __init__(self, job: _Job, count: int) -> None:
        self._job = job
        self._count = count
        self._processes: list[BaseProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def map(
        self,
        suggest: Suggest,  # noqa: ARG002 - each process has its own
        batches: Iterable[list[Document]],
    ) -> Iterator[list[dict[str, Any]]]:
        """The records of each batch, in order; a few batches are read ahead."""
        from multiprocessing.connection import wait

        numbered = enumerate(batches)
        idle = self._start()
        busy: set[Connection] = set()
        finished: dict[int, list[dict[str, Any]]] = {}
        sent = given = 0
        while True:
            # At most a few batches beyond the first that is not finished.
            while idle and sent - given < 3 * self._count:
                batch = next(numbered, None)
                if batch is None:
                    break
                connection = idle.pop()
                with suppress(OSError):
                    # If the process has ended, that shows when it is waited for.
                    connection.send(batch)
                busy.add(connection)
                sent += 1
            if not busy:
                return
            for ready in wait(busy):
                connection = cast("Connection", ready)
                number, records = _received(connection)
                finished[number] = records
                busy.remove(connection)
                idle.append(connection)
            while given in finished:
                yield finished.pop(given)
                given += 1

    def _start(self) -> list[Connection]:
        """Start the processes; Ctrl+C is left to this one."""
        from multiprocessing import get_context

        context = get_context("spawn")
        connections = []
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for _ in range(self._count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, self._job), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                connections.append(ours)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return connections


def _received(connection: Connection) -> tuple[int, list[dict[str, Any]]]:
    """The number of a batch and its records; raises what the process has raised."""
    try:
        number, records = connection.recv()
    except (EOFError, OSError) as error:
        raise LabelkinError(
            "a process that annotates has ended (out of memory?); finished results are kept: run "
            "the same command again, with fewer --jobs"
        ) from error
    if isinstance(records, Exception):
        raise records
    return number, records


def _work(connection: Connection, job: _Job) -> None:
    """Annotate the batches that come, until the connection is closed."""
    from labelkin.indexer import Indexer

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_up_logging(verbose=False)
    number = 0
    with suppress(EOFError, OSError), ExitStack() as stack:
        annotator: _Annotator | None = None
        while True:
            number, batch = connection.recv()
            try:
                if annotator is None:
                    indexer = stack.enter_context(Indexer.open(job.collection))
                    annotator = _Annotator(indexer, job)
                connection.send((number, annotator(batch)))
            except LabelkinError as error:
                connection.send((number, error))
            except Exception as error:
                connection.send((number, RuntimeError(f"{type(error).__name__}: {error}")))


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
