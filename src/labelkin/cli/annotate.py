"""`labelkin annotate`: headings for whole files."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, cast

import typer

from labelkin.cli.build import build_with_progress, expect_with_progress
from labelkin.cli.cluster import OnMaster, opened_cluster, warm_up_here
from labelkin.cli.console import (
    copy_to_standard_output,
    counted,
    print_json,
    print_message,
    seconds_text,
    set_up_logging,
)
from labelkin.cli.exits import PARTLY_DONE, exit_after_reading
from labelkin.cli.languages import ForeignTexts, heading_language
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
from labelkin.cli.progress import Meter, meter
from labelkin.cli.settings import print_unknown_labels, suggestion_settings
from labelkin.exceptions import LabelkinError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from labelkin.annotator import AnnotationJob
    from labelkin.corpus import Corpus, Document
    from labelkin.scoring.annotation import AnnotationReport, MapBatches, Suggest

_MOST_JOBS = 64
_SHOWN_FAILURES = 20
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
    on: OnMaster = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Suggest headings for every document in files; an interrupted run can be repeated."""
    from labelkin.annotator import AnnotationJob, Annotator
    from labelkin.cluster.sizes import text_alone
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer
    from labelkin.scoring.annotation import annotate as annotate_documents
    from labelkin.scoring.annotation import can_resume
    from labelkin.scoring.annotation_formats import writer_for

    started = time.monotonic()
    to_stdout = is_standard_output(output)
    if to_stdout and json:
        raise typer.BadParameter("--json and the annotations cannot both go to standard output")
    if on is not None and jobs > 1:
        raise typer.BadParameter("--jobs is for this machine, --on for a cluster; give one of them")
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
        # Starting Spark takes a while; the state that everything below is of comes after it.
        cluster = None if on is None else stack.enter_context(opened_cluster(indexer, on))
        generation = indexer.collection.generation()
        language = heading_language(indexer, asked.language)
        foreign = ForeignTexts(indexer)
        expected, is_bulk = corpus.bytes_total // _BYTES_A_DOCUMENT, False
        if settings.k:
            build_with_progress(indexer, asked.representation, [settings])
            is_bulk = expect_with_progress(indexer, asked.representation, expected)
        print_unknown_labels(indexer, [settings])

        def state() -> dict[str, Any]:
            """What results depend on besides the documents, as it is now."""
            search = indexer.search(asked.representation) if settings.k else None
            return {
                "neighbours": search.fingerprint() if search else {},
                "vocabulary": indexer.collection.vocabulary_state.key,
                "method": asdict(settings),
                "model": indexer.models_checksum(settings.method),
                "config": indexer.config.model_dump(exclude={"cluster"}),
                "fold_broader": asked.fold_broader,
                "language": language,
            }

        depends_on = state()
        job = AnnotationJob(
            indexer.collection.path,
            settings,
            asked.representation,
            asked.fold_broader,
            language,
            is_bulk if jobs > 1 or on is not None else None,
        )
        map_batches: MapBatches = map
        watched = _CountedDocuments(documents if on is None else map(text_alone, documents))
        if jobs > 1:
            map_batches = stack.enter_context(_Workers(job, jobs)).map
        annotator = Annotator(indexer, job)
        replica = None
        if cluster is not None:
            warm_up_here(annotator)
            replica = cluster.replica(indexer, generation, depends_on, state)
        with meter("Annotating", corpus.bytes_total) as bar:
            shown = _ShownDocuments(bar, corpus, watched)
            if cluster is not None and replica is not None:
                from labelkin.cluster.annotation import ClusterAnnotation

                map_batches = ClusterAnnotation(
                    cluster.session,
                    cluster.workspace,
                    replica,
                    job,
                    depends_on,
                    shown.ahead,
                    keep=to_stdout or not can_resume(output),
                ).map
            report = annotate_documents(
                foreign.watched(watched),
                annotator,
                output,
                labels=[concept.id for concept in indexer.vocabulary],
                settings=depends_on,
                format=to,
                progress=shown.kept,
                map_batches=map_batches,
            )
        foreign.report()
        if to_stdout:
            copy_to_standard_output(output)
        if cluster is not None:
            cluster.workspace.sweep("annotations")
    _print_failed(report)
    if json:
        print_json({**asdict(report), "skipped": corpus.report.skipped, "output": str(output)})
    else:
        before = f" ({report.resumed:,} in an earlier run)" if report.resumed else ""
        took = seconds_text(time.monotonic() - started)
        where = "standard output" if to_stdout else output
        print_message(
            f"Annotated {counted(report.documents, 'document')}{before} in {took}: {where}."
        )
    if report.failed:
        raise typer.Exit(PARTLY_DONE)
    exit_after_reading(corpus.report, strict)


def _print_failed(report: AnnotationReport) -> None:
    """List the records that could not be annotated, by file and line."""
    for line in report.failed[:_SHOWN_FAILURES]:
        print_message(f"Not annotated: {line}")
    if report.failed:
        more = len(report.failed) - _SHOWN_FAILURES
        rest = f" ({more:,} more than shown)" if more > 0 else ""
        print_message(f"{counted(len(report.failed), 'record')} left out of the output{rest}.")


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


class _ShownDocuments:
    """Shows how many documents are finished, by the part of the files that has been read."""

    def __init__(self, bar: Meter, corpus: Corpus, documents: _CountedDocuments) -> None:
        self._bar = bar
        self._corpus = corpus
        self._documents = documents
        self._kept = self._shown = 0

    def kept(self, done: int) -> None:
        """`done` documents are in the journal, those of an earlier run included."""
        self._kept = done
        self.ahead(0)

    def ahead(self, done: int) -> None:
        """`done` documents more are finished on a cluster."""
        self._shown = max(self._shown, self._kept + done)
        read = round(self._corpus.bytes_read * self._shown / max(self._documents.count, 1))
        self._bar.update(read, counted(self._shown, "document"))


class _Workers:
    """Processes that annotate batches, each with the collection opened once.

    A process ends when its connection is closed: by the parent, or because that is gone.
    """

    def __init__(self, job: AnnotationJob, count: int) -> None:
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


def _work(connection: Connection, job: AnnotationJob) -> None:
    """Annotate the batches that come, until the connection is closed."""
    from labelkin.annotator import Annotator
    from labelkin.indexer import Indexer

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    set_up_logging(verbose=False)
    number = 0
    with suppress(EOFError, OSError), ExitStack() as stack:
        annotator: Annotator | None = None
        while True:
            number, batch = connection.recv()
            try:
                if annotator is None:
                    indexer = stack.enter_context(Indexer.open(job.collection))
                    annotator = Annotator(indexer, job)
                connection.send((number, annotator(batch)))
            except LabelkinError as error:
                connection.send((number, error))
            except Exception as error:
                connection.send((number, RuntimeError(f"{type(error).__name__}: {error}")))
