"""The corpus formats, and how an open file is recognised as one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from labelkin.corpus.bioasq import OPENING
from labelkin.corpus.compression import without_suffix
from labelkin.corpus.document import CorpusItem
from labelkin.corpus.foreign import (
    VOCABULARY,
    is_vocabulary,
    is_vocabulary_header,
    is_web_page,
)
from labelkin.corpus.intake import Intake
from labelkin.corpus.json_values import spans_lines
from labelkin.corpus.record import BODY_KEYS, TITLE_KEYS
from labelkin.corpus.source import Source
from labelkin.corpus.table import COLUMNS, header_line
from labelkin.exceptions import FormatError, WrongKindError

if TYPE_CHECKING:
    from labelkin.corpus.annif import AnnifFolder


@dataclass(frozen=True, slots=True)
class Format:
    """A corpus format by its short name; its reader is imported on first use."""

    name: str
    description: str
    reader: str

    def read(self, source: Source | AnnifFolder, intake: Intake) -> Iterator[CorpusItem]:
        """The documents of `source`, which is a folder for `annif-folder` only."""
        module, function = self.reader.split(":")
        reader = getattr(import_module(f"labelkin.corpus.{module}"), function)
        return cast("Iterator[CorpusItem]", reader(source, intake))


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

TEXT_KEY = re.compile('"({})"\\s*:'.format("|".join((*TITLE_KEYS, *BODY_KEYS))).encode())
_NEARLY_ALL = 0.9
_JSON_LINES = (".jsonl", ".ndjson")
_ANNIF_KEYS = re.compile(rb'"(document_id|subjects)"\s*:')
LIST_START = re.compile(OPENING.pattern.encode())
_PUBMED_ROOT = re.compile(rb"<(\w+:)?(PubmedArticleSet|MedlineCitationSet|DeleteCitation)\b")


def recognise(source: Source, *, force: bool = False) -> Format:
    """The format of an open file, by its content first and its extension second.

    A vocabulary raises WrongKindError, unless `force` asks for the corpus format that fits best.
    """
    head = source.head.lstrip()
    extension = extension_of(source.name)
    first_line = head.split(b"\n", 1)[0]
    header = header_line(head)
    if not head:
        raise FormatError(f"{source.name}: the file is empty")
    if b"\x00" in head:
        raise FormatError(f"{source.name}: a binary file, not a corpus in text form")
    if head.startswith(b"<") and _PUBMED_ROOT.search(head):
        return FORMATS["pubmed"]
    if not force and is_vocabulary(head, without_suffix(source.name)):
        raise WrongKindError(
            f"{source.name}: looks like a vocabulary, not like a corpus; give it to "
            "`labelkin init --vocab`; --force reads it anyway",
            VOCABULARY,
        )
    if is_web_page(head):
        raise FormatError(
            f"{source.name}: a web page (HTML), not a corpus; was it downloaded completely, or is "
            "a login needed?"
        )
    if _is_list(head):
        return FORMATS["bioasq"]
    if head.startswith(b"{"):
        start = head if spans_lines(head) else first_line
        return FORMATS["annif-jsonl" if _ANNIF_KEYS.search(start) else "jsonl"]
    is_csv = _is_header(header, ",") or _is_header(header, ";")
    if extension == ".csv":
        return FORMATS["tsv" if not is_csv and _is_header(header, "\t") else "csv"]
    if "\t" in header or (extension == ".tsv" and not is_csv):
        if _is_header(header, "\t"):
            return FORMATS["tsv"]
        if not force and is_vocabulary_header(cells := _cells(header, "\t")):
            raise WrongKindError(
                f"{source.name}: looks like a vocabulary, not like a corpus: its columns are "
                f"{', '.join(cells)[:100]}; give it to `labelkin init --vocab`; "
                "--force reads it anyway",
                VOCABULARY,
            )
        return FORMATS["annif-tsv"]
    if is_csv:
        return FORMATS["csv"]
    if extension in _JSON_LINES:
        return FORMATS["jsonl"]
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


def extension_of(name: str) -> str:
    """A file name's extension in lower case, without that of its compression."""
    return Path(without_suffix(name)).suffix.lower()


def has_subjects(head: bytes) -> bool:
    """Whether this is Annif's TSV rather than a text in which there happens to be a tab.

    A line has URIs or names in angle brackets after a tab, or nearly all of several lines have
    a tab.
    """
    if has_uris(head):
        return True
    lines = [line for line in head.splitlines() if line.strip()]
    with_tab = sum(b"\t" in line for line in lines)
    return len(lines) > 1 and with_tab >= _NEARLY_ALL * len(lines)


def has_uris(head: bytes) -> bool:
    """Whether a line has URIs or names in angle brackets after a tab."""
    after_tabs = (line.partition(b"\t")[2] for line in head.splitlines())
    return any(b"<" in rest or b"://" in rest for rest in after_tabs)


def has_text_column(head: bytes, delimiters: str = "\t,;") -> bool:
    """Whether the first line names a column with text."""
    header = header_line(head)
    wanted = {key.casefold() for key in (*TITLE_KEYS, *BODY_KEYS)}
    return any(
        wanted & {cell.casefold() for cell in _cells(header, delimiter)} for delimiter in delimiters
    )


def _is_list(head: bytes) -> bool:
    """Whether a file begins a list of records; a bracket alone may begin a text."""
    opening = LIST_START.match(head)
    if opening is None:
        return False
    first = head[opening.end() : opening.end() + 1]
    return first in (b"{", b"]") or (opening.group("key") is not None and not first)


def _is_header(line: str, separator: str) -> bool:
    """Whether two or more cells are column names; a single one may be a word of a text."""
    return sum(cell.casefold() in COLUMNS for cell in _cells(line, separator)) > 1


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(separator)]
