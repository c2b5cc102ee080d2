"""Corpus files in any known format, read as one stream of documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from labelkin.corpus.document import Deletion, Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import Source, printable
from labelkin.corpus.table import COLUMNS
from labelkin.exceptions import DamagedFileError, FormatError, InputError
from labelkin.wording import counted


@dataclass(frozen=True, slots=True)
class Format:
    """A corpus format by its short name; its reader is imported on first use."""

    name: str
    description: str
    reader: str

    def read(self, source: Source | Path, intake: Intake) -> Iterator[Document | Deletion]:
        """The documents of `source`, which is a path for a folder format."""
        module, function = self.reader.split(":")
        reader = getattr(import_module(f"labelkin.corpus.{module}"), function)
        return cast("Iterator[Document | Deletion]", reader(source, intake))


FORMATS = {
    known.name: known
    for known in (
        Format("bioasq", 'BioASQ Task A JSON: {"articles": […]}', "bioasq:read_bioasq"),
        Format("pubmed", "PubMed/MEDLINE XML: PubmedArticleSet", "pubmed:read_pubmed"),
        Format("jsonl", "JSON Lines: id, title, abstract, labels", "jsonl:read_jsonl"),
        Format("csv", "CSV with a header row, labelkin's or Annif's", "table:read_csv"),
        Format("tsv", "tab-separated with a header row", "table:read_tsv"),
        Format("annif-tsv", "Annif: text<TAB><uri> <uri>", "annif:read_annif_tsv"),
        Format("annif-jsonl", "Annif: document_id, text, subjects", "jsonl:read_annif_jsonl"),
        Format("annif-folder", "Annif: .txt with .tsv or .key", "annif:read_annif_folder"),
    )
}

_ANNIF_KEYS = re.compile(rb'"(document_id|subjects)"\s*:')
_BIOASQ_START = re.compile(rb'(\{\s*"(articles|documents)"\s*:\s*\[|\[\s*[{\]])')
_PUBMED_ROOT = re.compile(rb"<(PubmedArticleSet|MedlineCitationSet|DeleteCitation)\b")


def recognise(source: Source) -> Format:
    """The format of an open file, by its content first and its extension second."""
    head = source.head.lstrip()
    extension = Path(source.name.removesuffix(".gz")).suffix.lower()
    first_line = head.split(b"\n", 1)[0]
    if not head:
        raise FormatError(f"{source.name}: the file is empty")
    if b"\x00" in head:
        raise FormatError(f"{source.name}: a binary file, not a corpus in text form")
    if head.startswith(b"<") and _PUBMED_ROOT.search(head):
        return FORMATS["pubmed"]
    if _BIOASQ_START.match(head):
        return FORMATS["bioasq"]
    if head.startswith(b"{"):
        return FORMATS["annif-jsonl" if _ANNIF_KEYS.search(first_line) else "jsonl"]
    if extension == ".csv":
        return FORMATS["csv"]
    if b"\t" in first_line or extension == ".tsv":
        return FORMATS["tsv" if _is_header(first_line, "\t") else "annif-tsv"]
    if _is_header(first_line, ",") or _is_header(first_line, ";"):
        return FORMATS["csv"]
    if head.startswith(b"<"):
        raise FormatError(f"{source.name}: XML, but not a PubmedArticleSet")
    raise FormatError(
        f"{source.name}: no known corpus format; set it with --format ({', '.join(FORMATS)})"
    )


def recognised(source: Source) -> str | None:
    """The name of the file's format, or None if it is not a known one."""
    try:
        return recognise(source).name
    except FormatError:
        return None


def _is_header(line: bytes, separator: str) -> bool:
    """Whether two or more cells are column names; a single one may be a word of a text."""
    cells = [cell.strip().strip('"') for cell in line.decode("utf-8", "replace").split(separator)]
    return sum(cell.casefold() in COLUMNS for cell in cells) > 1


def files_of(folder: Path) -> list[Path]:
    """The corpus files in a folder, or the folder itself if it is an Annif corpus."""
    files = sorted(
        path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")
    )
    if not files:
        raise InputError(f"{printable(folder)}: the folder is empty")
    if any(path.suffix == ".txt" for path in files) or _is_annif_json(files):
        return [folder]
    return files


def _is_annif_json(files: list[Path]) -> bool:
    """Whether a folder holds one JSON object per document, as Annif writes them."""
    if any(path.suffix != ".json" for path in files):
        return False
    with Source(files[0]) as source:
        return not _BIOASQ_START.match(source.head.lstrip()) and b'"text"' in source.head


class Corpus:
    """A stream of documents from files, with a report of what was read.

    It can be iterated repeatedly; `report` describes the latest pass. A file
    that is unreadable or truncated is reported, and reading continues with the
    next one.
    """

    def __init__(
        self, paths: Iterable[Path], format_name: str | None = None, label_separator: str = "|"
    ) -> None:
        self.report = ReadReport()
        self._label_separator = label_separator
        self._source: Source | None = None
        self._finished_bytes = 0
        if format_name is not None and format_name not in FORMATS:
            raise FormatError(f"unknown corpus format {format_name!r}; known: {', '.join(FORMATS)}")
        self._format = FORMATS[format_name] if format_name else None
        if not label_separator:
            raise FormatError("the label separator is empty; give a character such as | or ;")
        self.paths: list[Path] = []
        for path in paths:
            if str(path) != "-" and not path.exists():
                raise InputError(f"{printable(path)}: no such file or folder")
            named_folder = format_name == "annif-folder"
            if named_folder and not path.is_dir():
                raise FormatError(f"{printable(path)}: not a folder, as annif-folder requires")
            self.paths += files_of(path) if path.is_dir() and not named_folder else [path]

    def __iter__(self) -> Iterator[Document | Deletion]:
        self.report = ReadReport()
        self._finished_bytes = 0
        for path in self.paths:
            self.report.files += 1
            try:
                yield from self._counted(self._read(path))
            except DamagedFileError as error:
                self.report.damage(printable(path), str(error))
            except InputError as error:
                name = printable(path)
                self.report.refuse(name, str(error).removeprefix(f"{name}: "))
            self._finished_bytes += path.stat().st_size if path.is_file() else 0

    def documents(self) -> Iterator[Document]:
        """The documents without the deletions, which only matter to a collection."""
        return (item for item in self if isinstance(item, Document))

    @property
    def bytes_read(self) -> int:
        """Bytes read of the (compressed) files, for progress bars."""
        return self._finished_bytes + (self._source.position if self._source else 0)

    @property
    def bytes_total(self) -> int:
        """Size of all files in bytes; 0 if standard input is among them."""
        if any(str(path) == "-" for path in self.paths):
            return 0
        return sum(path.stat().st_size for path in self.paths if path.is_file())

    def _counted(self, items: Iterator[Document | Deletion]) -> Iterator[Document | Deletion]:
        for item in items:
            if isinstance(item, Deletion):
                self.report.deletions += 1
            else:
                self.report.read += 1
                self.report.without_labels += not item.labels
            yield item

    def _read(self, path: Path) -> Iterator[Document | Deletion]:
        intake = Intake(printable(path), self.report, self._label_separator)
        if path.is_dir():
            yield from FORMATS["annif-folder"].read(path, intake)
            return
        with Source(path) as source:
            self._source = source
            try:
                yield from (self._format or recognise(source)).read(source, intake)
            finally:
                self._source = None
                if source.not_utf8:
                    many = counted(source.not_utf8, "line is", "lines are")
                    message = f"{many} not UTF-8 and read as Windows-1252"
                    self.report.note(source.name, "encoding", message)


def read_corpus(
    *paths: str | Path, format: str | None = None, label_separator: str = "|"
) -> Corpus:
    """Open corpus files in any known format, gzipped or not.

    The format is recognised by content and extension unless `format` is given.
    A folder stands for the files in it, or is one corpus if it is Annif's.
    """
    return Corpus([Path(path) for path in paths], format, label_separator)
