"""Annotating files of any size; an interrupted run can be resumed.

Results go to a journal next to the output, a batch at a time. A second run with
the same settings reuses the journal up to the first document that differs. After
the last document the journal is converted to the requested format.
"""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from labelkin.atomic import hidden_beside
from labelkin.corpus.document import Document
from labelkin.exceptions import InputError
from labelkin.scoring.annotation_formats import writer_for
from labelkin.scoring.journal import FAILED, Journal, Record
from labelkin.wording import counted

_BATCH = 500

Suggest = Callable[[list[Document]], list[Record]]
# Applies `Suggest` to batches, as `map` does.
MapBatches = Callable[[Suggest, Iterable[list[Document]]], Iterable[list[Record]]]


@dataclass(frozen=True, slots=True)
class AnnotationReport:
    """How many documents the output holds, and how many came from the journal.

    `failed` lists those that are not in the output, with their places and the reasons.
    """

    documents: int
    resumed: int
    failed: tuple[str, ...] = ()


def annotate(
    documents: Iterable[Document],
    suggest: Suggest,
    output: Path,
    *,
    labels: Sequence[str],
    settings: dict[str, Any],
    format: str | None = None,
    progress: Callable[[int], None] | None = None,
    map_batches: MapBatches = map,
) -> AnnotationReport:
    """Write the suggestions for each document to `output` atomically.

    `suggest` turns documents into records `{"id", "title", "suggestions"}`, with
    `text` if there is no title; suggestions have id, name, column and score.
    `labels` are the ids of the columns. A record with the key `failed` is left out of the
    output and reported. `settings` is what results depend on
    besides the documents: a journal with other settings is discarded. `map_batches` may
    work on several batches at once; it yields their results in order. `progress` is called with
    the documents whose results are in the journal, first with those of an earlier run. Without
    any document the output does not change.
    """
    writer = writer_for(output, format)
    if can_resume(output):
        # A link and its target share one journal.
        output = output.resolve()
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(_journal_path(output, stack), settings))
        waiting = journal.resume(iter(documents))
        resumed = journal.done
        if progress is not None:
            progress(resumed)
        under_way: deque[list[Document]] = deque()

        def batches() -> Iterator[list[Document]]:
            while batch := list(islice(waiting, _BATCH)):
                under_way.append(batch)
                yield batch

        for records in map_batches(suggest, batches()):
            results = zip(under_way.popleft(), records, strict=True)
            with _kept_results(output, journal):
                journal.append(results)
            if progress is not None:
                progress(journal.done)
        if not journal.done:
            raise InputError(f"no document to annotate; {output} is not written")
        with _kept_results(output, journal):
            failed = tuple(journal.failures())
            if len(failed) == journal.done:
                # The cause may be mended until the next run, which shall try again.
                journal.remove()
                raise InputError(f"{failed[0]}; no document could be annotated")
            writer(journal.records(), output, labels)
        journal.remove()
        return AnnotationReport(journal.done - len(failed), resumed, failed)


def failed_record(document: Document, error: Exception) -> Record:
    """The record of a document that could not be annotated: where it is, and why."""
    place = document.where or f"document {document.id!r}"
    return {FAILED: f"{place}: {document.id}: {type(error).__name__}: {error}"}


@contextmanager
def _kept_results(output: Path, journal: Journal) -> Iterator[None]:
    """Raise an OSError of writing (no space left) as an InputError that says what is kept."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        kept = "nothing is kept"
        if journal.path.parent == output.parent:
            many = counted(journal.done, "document")
            kept = f"the results of {many} are kept in {journal.path.name}"
        raise InputError(
            f"{output}: {reason}; {kept}. Make room or repair the cause, then run the same command "
            "again to continue"
        ) from error


def can_resume(output: Path) -> bool:
    """Whether the journal of an output stays after an interruption: not of a pipe or device."""
    return output.is_file() or not output.exists()


def _journal_path(output: Path, stack: ExitStack) -> Path:
    """Next to the output; a temporary file for a pipe or device, which cannot be resumed."""
    if not can_resume(output):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="labelkin-"))
        return Path(folder) / "journal"
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}; create it first")
    return hidden_beside(output, "journal")
