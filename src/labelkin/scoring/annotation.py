"""Annotating files of any size; an interrupted run can be resumed.

Results go to a journal next to the output, a batch at a time. A second run with
the same settings reuses the journal up to the first document that differs. After
the last document the journal is converted to the requested format.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from labelkin.corpus.document import Document
from labelkin.exceptions import InputError
from labelkin.scoring.annotation_formats import writer_for
from labelkin.scoring.journal import Journal, Record

_BATCH = 500

Suggest = Callable[[list[Document]], list[Record]]


@dataclass(frozen=True, slots=True)
class AnnotationReport:
    """How many documents the output holds, and how many came from the journal."""

    documents: int
    resumed: int


def annotate(
    documents: Iterable[Document],
    suggest: Suggest,
    output: Path,
    *,
    labels: Sequence[str],
    settings: dict[str, Any],
    format: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> AnnotationReport:
    """Write the suggestions for each document to `output` atomically.

    `suggest` turns documents into records `{"id", "title", "suggestions"}`, with
    `text` if there is no title; suggestions have id, name, column and score.
    `labels` are the ids of the columns. `settings` is what results depend on
    besides the documents: a journal with other settings is discarded. Without
    any document the output does not change.
    """
    writer = writer_for(output, format)
    if not output.exists() or output.is_file():
        # A link and its target share one journal.
        output = output.resolve()
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(_journal_path(output, stack), settings))
        waiting = journal.resume(iter(documents))
        resumed = journal.done
        while batch := list(islice(waiting, _BATCH)):
            journal.append(zip(batch, suggest(batch), strict=True))
            if progress is not None:
                progress(journal.done)
        if not journal.done:
            raise InputError(f"no document to annotate; {output} is not written")
        writer(journal.records(), output, labels)
        journal.remove()
        return AnnotationReport(journal.done, resumed)


def _journal_path(output: Path, stack: ExitStack) -> Path:
    """Next to the output; a temporary file for a pipe or device, which cannot be resumed."""
    if output.is_dir():
        raise InputError(f"{output}: a folder; name a file in it")
    if output.exists() and not output.is_file():
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="labelkin-"))
        return Path(folder) / "journal"
    if not output.parent.is_dir():
        raise InputError(f"{output.parent}: no such folder")
    return output.with_name(f".{output.name}.journal")
