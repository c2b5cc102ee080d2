"""Annotating files of any size, in order, so that an interruption costs next to nothing.

Results go to a journal beside the output, a batch at a time. Run again with the
same settings, the journal is taken up as far as the documents are the same;
when the last document is done it becomes the output in the format that was
asked for.
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
    """How many documents the output holds, and how many of them were done before."""

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
    """Write what `suggest` says of each document to `output`, whole or not at all.

    `suggest` turns documents into records `{"id", "title", "suggestions"}`, with
    `text` where there is no title; suggestions name id, name, column and score.
    `labels` are the ids of the columns. `settings` is what results depend on
    beside the documents: a journal made with others is not taken up. Without
    any document the output is left as it was.
    """
    writer = writer_for(output, format)
    if not output.exists() or output.is_file():
        # Whoever writes through a link writes the same file.
        output = output.resolve()
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(_journal_path(output, stack), settings))
        waiting = journal.taken_up(iter(documents))
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
    """Beside the output; for a pipe or a device, which cannot be taken up, anywhere."""
    if output.is_dir():
        raise InputError(f"{output}: a folder; name a file in it")
    if output.exists() and not output.is_file():
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="labelkin-"))
        return Path(folder) / "journal"
    if not output.parent.is_dir():
        raise InputError(f"{output.parent}: no such folder")
    return output.with_name(f".{output.name}.journal")
