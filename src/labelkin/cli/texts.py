"""The input texts of a command: a corpus file, plain text, or --title and --text."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from labelkin.exceptions import InputError

if TYPE_CHECKING:
    from labelkin.corpus import Corpus, Document

# The id of a text that has none; no stored document has it.
PLAIN_TEXT = ""


@contextmanager
def open_texts(
    file: Path | None, title: str, text: str, format_name: str | None
) -> Iterator[tuple[Iterator[Document], Corpus | None]]:
    """The input documents, and the corpus that they come from if there is one.

    A file in no known corpus format is one plain text.
    """
    from labelkin.corpus import Document

    if title or text:
        if file is not None:
            raise typer.BadParameter("give a file, or --title and --text, not both")
        yield iter([Document(PLAIN_TEXT, title, text)]), None
        return
    if file is None:
        raise typer.BadParameter("give a file, - for standard input, or --title and --text")
    if str(file) != "-":
        yield _from_file(file, format_name)
        return
    # Standard input can be read only once, but detecting the format reads it twice.
    with tempfile.TemporaryDirectory(prefix="labelkin-") as folder:
        copy = Path(folder) / "standard-input"
        with copy.open("wb") as whole:
            shutil.copyfileobj(sys.stdin.buffer, whole)
        try:
            yield _from_file(copy, format_name)
        except InputError as error:
            raise type(error)(str(error).replace(str(copy), "standard input")) from error


def _from_file(path: Path, format_name: str | None) -> tuple[Iterator[Document], Corpus | None]:
    from labelkin.corpus import Document, read_corpus
    from labelkin.corpus.corpus import recognised
    from labelkin.corpus.source import Source
    from labelkin.corpus.text import clean_text
    from labelkin.exceptions import DamagedFileError

    corpus = read_corpus(path, format=format_name)
    if format_name is None and path.is_file():
        with Source(path) as source:
            if source.head.strip() and b"\x00" not in source.head and recognised(source) is None:
                try:
                    lines = [line for _, line in source.lines()]
                except DamagedFileError as error:
                    raise DamagedFileError(f"{source.name}: {error}") from error
                return iter([Document(PLAIN_TEXT, body=clean_text("\n".join(lines)))]), None
    return corpus.documents(), corpus


def read_labelled(
    files: Sequence[Path], purpose: str, format: str | None = None, label_separator: str = "|"
) -> tuple[list[Document], Corpus]:
    """The documents of some files that have labels; InputError if there are none."""
    from labelkin.corpus import read_corpus

    corpus = read_corpus(*files, format=format, label_separator=label_separator)
    documents = [document for document in corpus.documents() if document.labels]
    if not documents:
        raise InputError(f"no document with labels to {purpose} on")
    return documents, corpus
