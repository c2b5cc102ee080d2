"""The input texts of a command: a corpus file, plain text, or --title and --text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from labelkin.cli.exits import FAILED
from labelkin.cli.options import ReadingOptions
from labelkin.exceptions import InputError

if TYPE_CHECKING:
    from labelkin.corpus import Corpus, Document

# The id of a text that has none; no stored document has it.
PLAIN_TEXT = ""


@contextmanager
def open_texts(
    file: Path | None,
    title: str | None,
    text: str | None,
    format_name: str | None,
    reading: ReadingOptions | None = None,
) -> Iterator[tuple[Iterator[Document], Corpus | None]]:
    """The input documents, and the corpus that they come from if there is one.

    A file in no known corpus format is one plain text.
    """
    from labelkin.corpus.document import Document

    if title is not None or text is not None:
        if file is not None:
            raise typer.BadParameter("give a file, or --title and --text, not both")
        plain = Document(PLAIN_TEXT, title or "", text or "")
        if not plain.text.strip():
            raise InputError("the text is empty; give one with --title or --text, or a file")
        yield iter([plain]), None
        return
    if file is None:
        raise typer.BadParameter("give a file, - for standard input, or --title and --text")
    from labelkin.corpus import Corpus

    options = (reading or ReadingOptions()).arguments()
    corpus = Corpus([file], format_name, texts=True, text_id=PLAIN_TEXT, **options)
    corpus.check()
    yield corpus.documents(), corpus


def read_labelled(
    files: Sequence[Path],
    purpose: str,
    format: str | None = None,
    label_separator: str = "|",
    reading: ReadingOptions | None = None,
) -> tuple[list[Document], Corpus]:
    """The documents of some files that have labels; InputError if there are none."""
    from labelkin.corpus import read_corpus

    options = (reading or ReadingOptions()).arguments()
    corpus = read_corpus(*files, format=format, label_separator=label_separator, **options)
    documents = [document for document in corpus.documents() if document.labels]
    report = corpus.report
    if not documents and not report.documents and (report.files_refused or report.files_damaged):
        # The reason is in the log already.
        raise typer.Exit(FAILED)
    if not documents:
        raise InputError(
            f"no document with labels to {purpose} on among {report.documents:,} read; labels are "
            "in a column or key such as `labels`, or beside a text in NAME.key or NAME.tsv"
        )
    return documents, corpus
