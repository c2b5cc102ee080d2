"""Writers for documents: JSON Lines, JSON and CSV (complete), Annif's TSV (text and subjects)."""

from __future__ import annotations

import csv
import json
import logging
import re
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from labelkin.atomic import atomic_text
from labelkin.closing import Closing
from labelkin.corpus.annif import TITLE_MARK
from labelkin.corpus.document import NOT_JSON, Document
from labelkin.corpus.record import MAJOR_KEY
from labelkin.corpus.table import COLUMNS, FIELD_PREFIX, MAX_CELL_LINES, OBJECT_COLUMNS, listed
from labelkin.exceptions import InputError
from labelkin.outputs import CORPUS_COLUMNS, guarded, output_format
from labelkin.wording import counted

logger = logging.getLogger(__name__)

# What the readers separate labels by unless told otherwise.
_SEPARATOR = "|"
# Names that are columns of their own; others, and those beyond the limit, share a column of JSON.
_PLAIN_NAME = re.compile(r"[\w.-]+( [\w.-]+)*")
_MOST_COLUMNS = 100


def to_record(document: Document) -> dict[str, Any]:
    """The JSON record that reads back as `document`."""
    record: dict[str, Any] = {
        "id": document.id,
        "title": document.title,
        "abstract": document.body,
        "labels": list(document.labels),
    }
    optional = {
        "language": document.language,
        "fields": dict(document.fields),
        "metadata": dict(document.metadata),
        "label_names": dict(document.label_names),
        MAJOR_KEY: list(document.major_labels),
        "revision": document.revision,
    }
    return record | {key: value for key, value in optional.items() if value}


def _line(document: Document) -> str:
    try:
        return json.dumps(to_record(document), ensure_ascii=False)
    except TypeError as error:
        raise InputError(f"document {document.id!r}: {NOT_JSON} ({error})") from error


class DocumentWriter(Closing):
    """Writes documents to a file one by one; `finish` writes what is left after the last one."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.count = 0

    def write(self, document: Document) -> None:
        """Write a document, or keep it for `finish`."""
        self._write(document)
        self.count += 1

    @abstractmethod
    def _write(self, document: Document) -> None: ...

    def finish(self) -> None:
        """Write the end of the file; warn about what the format cannot hold."""

    def close(self) -> None:
        """Free what waits for `finish`; the file stays open."""


class JsonLinesWriter(DocumentWriter):
    """One complete record per line."""

    def _write(self, document: Document) -> None:
        self.file.write(_line(document) + "\n")


class JsonWriter(DocumentWriter):
    """One JSON list of complete records."""

    def _write(self, document: Document) -> None:
        self.file.write(",\n" if self.count else "[\n")
        self.file.write(_line(document))

    def finish(self) -> None:
        """Close the list."""
        self.file.write("\n]\n" if self.count else "[\n]\n")


class CsvWriter(DocumentWriter):
    """A row per document that reads back as the same document.

    Metadata that are text have a column each, further texts a column
    `field.NAME`. Whatever a cell cannot hold (numbers, lists, odd names, names
    beside labels) is a JSON object in the column `metadata`, `fields` or
    `label_names`. Line breaks are those of Unix.
    """

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self._header = dict.fromkeys(CORPUS_COLUMNS)
        self._flattened = 0
        # The columns are known after the last document; until then rows wait in a file.
        self._waiting = tempfile.TemporaryFile(  # noqa: SIM115
            "w+", encoding="utf-8", errors="surrogatepass"
        )

    def _write(self, document: Document) -> None:
        row = _row(document, self._header)
        if sum(cell.count("\n") for cell in row.values()) >= MAX_CELL_LINES:
            row = {name: " ".join(cell.split()) for name, cell in row.items()}
            self._flattened += 1
        self._header.update(dict.fromkeys(row))
        self._waiting.write(json.dumps(row) + "\n")

    def finish(self) -> None:
        """Write header and rows."""
        self._waiting.seek(0)
        table = csv.writer(self.file, lineterminator="\n")
        table.writerow(self._header)
        for line in self._waiting:
            row = json.loads(line)
            table.writerow([guarded(row.get(name, "")) for name in self._header])
        if self._flattened:
            logger.warning(
                "%s more lines than a cell can have and became one line",
                counted(self._flattened, "document has", "documents have"),
            )

    def close(self) -> None:
        """Remove the rows that waited."""
        self._waiting.close()


def _row(document: Document, header: dict[str, None]) -> dict[str, str]:
    """The cells of a document by column; new columns are added to `header`."""
    row = {
        "id": document.id,
        "title": document.title,
        "abstract": document.body,
        "labels": _labels_cell(document.labels),
        "language": document.language or "",
    }
    if document.major_labels:
        row[MAJOR_KEY] = _labels_cell(document.major_labels)
    if document.revision:
        row["revision"] = document.revision
    objects: dict[str, dict[str, Any]] = {
        "fields": {},
        "metadata": {},
        "label_names": dict(document.label_names),
    }
    for name, text in document.fields.items():
        column = f"{FIELD_PREFIX}{name}"
        if _fits(column, header):
            header[column] = None
            row[column] = text
        else:
            objects["fields"][name] = text
    for name, value in document.metadata.items():
        is_free = name not in row and not name.startswith(FIELD_PREFIX)
        if is_free and isinstance(value, str) and value and _fits(name, header):
            header[name] = None
            row[name] = value
        else:
            objects["metadata"][name] = value
    row = {name: "\n".join(_lines(cell)) for name, cell in row.items()}
    return row | {
        name: json.dumps(content, ensure_ascii=False)
        for name, content in objects.items()
        if content
    }


def _fits(name: str, header: dict[str, None]) -> bool:
    """Whether `name` can be a column of its own that is read back under the same name."""
    if name in OBJECT_COLUMNS:
        return False
    if name in header:
        return True
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and guarded(name) == name
    return is_plain and name.casefold() not in COLUMNS and len(header) < _MOST_COLUMNS


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _labels_cell(labels: tuple[str, ...]) -> str:
    """Labels between separators; a JSON list if one of them holds a separator."""
    cell = _SEPARATOR.join(labels)
    if any(_SEPARATOR in label for label in labels) or listed(cell) is not None:
        return json.dumps(labels, ensure_ascii=False)
    return cell


class AnnifTsvWriter(DocumentWriter):
    """Lines of `title ¤ text<TAB><uri> <uri>`.

    The format has no place for ids, metadata, label names or major topics, and
    separates subjects by spaces: labels with spaces are skipped. Skipped labels
    and lost marks of major topics are counted in a warning.
    """

    def __init__(self, file: IO[str]) -> None:
        super().__init__(file)
        self._skipped = self._major = 0

    def _write(self, document: Document) -> None:
        text = "\n".join(part for part in (document.body, *document.fields.values()) if part)
        parts = [" ".join(part.split()) for part in (document.title, text)]
        uris = [f"<{label}>" for label in document.labels if len(label.split()) == 1]
        self._skipped += len(document.labels) - len(uris)
        self._major += len(document.major_labels)
        self.file.write(f"{TITLE_MARK.join(filter(None, parts))}\t{' '.join(uris)}\n")

    def finish(self) -> None:
        """Warn about what is lost."""
        if self._major:
            lost = counted(self._major, "mark of a major topic is", "marks of major topics are")
            logger.warning("%s not written: Annif's TSV cannot hold them", lost)
        if self._skipped:
            logger.warning(
                "%s with spaces, which Annif's TSV cannot hold, and %s skipped; "
                "pass a vocabulary to write their ids",
                counted(self._skipped, "label is a name", "labels are names"),
                "was" if self._skipped == 1 else "were",
            )


WRITERS: dict[str, type[DocumentWriter]] = {
    "jsonl": JsonLinesWriter,
    "json": JsonWriter,
    "csv": CsvWriter,
    "annif-tsv": AnnifTsvWriter,
}
_BY_EXTENSION = {".jsonl": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "annif-tsv"}


def corpus_format(path: Path, asked: str | None = None) -> str:
    """The format that `write_corpus` writes `path` in; FormatError if there is none."""
    return output_format(path, asked, _BY_EXTENSION, WRITERS)


def extension_for(format: str) -> str:
    """The extension of files in a format that `WRITERS` has."""
    return next(extension for extension, name in _BY_EXTENSION.items() if name == format)


def write_documents(documents: Iterable[Document], file: IO[str], format: str) -> int:
    """Write `documents` to an open file; returns their number."""
    with WRITERS[format](file) as writer:
        for document in documents:
            writer.write(document)
        writer.finish()
    return writer.count


@contextmanager
def open_writer(path: Path, format: str) -> Iterator[DocumentWriter]:
    """A writer whose file appears when the block ends, gzipped if its name ends in .gz."""
    try:
        with atomic_text(path) as file, WRITERS[format](file) as writer:
            yield writer
            writer.finish()
    except UnicodeEncodeError as error:
        around = error.object[max(error.start - 40, 0) : error.end]
        raise InputError(
            f"{path}: not written: half a character (a lone surrogate) cannot be written: "
            f"{around!r}"
        ) from error


def write_corpus(documents: Iterable[Document], path: str | Path, format: str | None = None) -> int:
    """Write `documents` to `path` atomically, gzipped if it ends in .gz; returns their number.

    Without `format`, the extension decides: .jsonl, .json, .csv or .tsv. `-` is
    standard output, JSON Lines unless `format` says otherwise.
    """
    path = Path(path)
    known = corpus_format(path, format)
    if str(path) == "-":
        return write_documents(documents, sys.stdout, known)
    with open_writer(path, known) as writer:
        for document in documents:
            writer.write(document)
    return writer.count
