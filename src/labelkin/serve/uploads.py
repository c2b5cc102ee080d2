"""Files that are sent to the service: named safely, read by labelkin's readers, on disk."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from fastapi import Query, Request

from labelkin.corpus.compression import MAGIC_BYTES, CompressedDataError, compression_of
from labelkin.corpus.corpus import Corpus
from labelkin.corpus.document import Document
from labelkin.corpus.formats import extension_of
from labelkin.corpus.intake import id_of_text
from labelkin.corpus.source import Source
from labelkin.exceptions import InputError
from labelkin.messages import SkippedRecord
from labelkin.serve.catalogue import ServedCollection
from labelkin.serve.problems import ProblemError
from labelkin.serve.records import RequestReport
from labelkin.store.folder import folder_errors_explained
from labelkin.vocab.identified import with_ids

FileName = Annotated[
    str,
    Query(max_length=1000, description="The name of the file.", examples=["records.jsonl"]),
]
BODY = {
    "requestBody": {
        "required": True,
        "description": "A text, JSON, JSON Lines, CSV, TSV or PubMed XML, compressed or not.",
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"},
                "example": '{"id": "1", "title": "Pneumonia in children"}\n',
            }
        },
    }
}
# A text that is read as a whole may be this many times as long as a body.
_UNPACKED = 5
_CHUNK = 1 << 20
_LONGEST_NAME = 200
_UNNAMED = "file"
# An option of the command line, of no use here.
_FORCE = "; --force reads it anyway"


class FileReport(RequestReport):
    """Lists what is wrong with the records of a file, and with the file."""

    def __init__(self) -> None:
        super().__init__()
        self.refusal = ""

    def damage(self, source: str, reason: str) -> None:
        """List a file that ends too early."""
        self.files_damaged.append(source)
        self.refusal = reason
        self.left_out.append(SkippedRecord(where="the rest of the file", problem=reason))

    def refuse(self, source: str, reason: str) -> None:
        """Remember why a file cannot be read."""
        self.files_refused.append(source)
        self.refusal = reason


class Upload:
    """A file in a temporary folder, and what was wrong with it."""

    def __init__(self, path: Path, most_unpacked: int) -> None:
        self.name = path.name
        self._path = path
        self._most_unpacked = most_unpacked
        self._corpus: Corpus | None = None

    def is_small(self) -> bool:
        """Whether the file is not too large to be read at once, also unpacked."""
        if self._path.stat().st_size > self._most_unpacked:
            return False
        with self._path.open("rb") as file:
            compression = compression_of(file.read(MAGIC_BYTES))
            if compression is None:
                return True
            file.seek(0)
            size = 0
            try:
                stream = compression.open(file)
                while chunk := stream.read1(_CHUNK):
                    size += len(chunk)
                    if size > self._most_unpacked:
                        return False
            except (CompressedDataError, OSError):
                # The reader says what is wrong.
                return True
        return True

    def _is_markup(self) -> bool:
        """Whether this is XML or a web page, which nobody wants to read as a text."""
        try:
            with Source(self._path) as source:
                is_text = extension_of(source.name) == ".txt"
                return source.head.lstrip().startswith(b"<") and not is_text
        except InputError:
            return False

    def documents(self, longest: int) -> Iterator[Document]:
        """The documents of the file; one with a text of more than `longest` characters is skipped.

        A 422 if nothing can be read.
        """
        # A plain text is read as a whole.
        texts = self.is_small() and not self._is_markup()
        corpus = self._corpus = Corpus([self._path], texts=texts, text_id="", report=FileReport)
        number = 0
        try:
            for number, document in enumerate(corpus.documents(), start=1):
                if len(document.text) > longest:
                    self.report.read -= 1
                    problem = f"{len(document.text)} characters; at most {longest} are possible"
                    self.report.skip(self.name, f"record {number}", problem)
                    continue
                # A plain text gets the id that any text without one gets, not that of its file.
                yield document if document.id else replace(document, id=id_of_text(document.text))
        except InputError as error:
            raise self._problem(str(error)) from None
        if not number and not self.report.skipped:
            raise self._problem(self.report.refusal or "no records in it")

    @property
    def report(self) -> FileReport:
        """What was wrong with the records read so far."""
        report = FileReport() if self._corpus is None else self._corpus.report
        assert isinstance(report, FileReport)  # noqa: S101
        return report

    def _problem(self, message: str) -> ProblemError:
        line = message.replace(f"{self._path.parent}/", "").replace(_FORCE, "")
        prefix = f"{self.name}: "
        return ProblemError(422, line if line.startswith(prefix) else prefix + line)


@asynccontextmanager
async def uploaded(request: Request, name: str, max_body: int) -> AsyncIterator[Upload]:
    """The body of a request as a file on disk, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="labelkin-upload-") as folder:
        path = Path(folder) / safe_name(name)
        with folder_errors_explained(Path(path.name)), path.open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
        yield Upload(path, max_body * _UNPACKED)


def safe_name(name: str) -> str:
    """The last part of a name as that of a file in any folder; its end, if it is too long."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    printed = "".join(mark for mark in last if mark.isprintable()).strip()
    encoded = printed.encode("utf-8", "ignore")[-_LONGEST_NAME:]
    kept = encoded.decode("utf-8", "ignore")
    return _UNNAMED if kept.strip(".") == "" else kept


def identified(served: ServedCollection, documents: list[Document]) -> list[Document]:
    """Documents with the ids and names of the collection's vocabulary for their labels."""
    if not any(document.labels for document in documents):
        return documents
    vocabulary, language = served.snapshot.vocabulary, served.heading_language()
    return [with_ids(document, vocabulary, language) for document in documents]
