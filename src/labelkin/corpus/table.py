"""CSV and TSV with a header row, in labelkin's or Annif's form."""

from __future__ import annotations

import csv
import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labelkin.corpus.document import Correction, Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.json_values import parse_json
from labelkin.corpus.record import (
    BODY_KEYS,
    ID_KEYS,
    LABEL_KEYS,
    LANGUAGE_KEYS,
    MAJOR_KEY,
    REVISION_KEYS,
    TITLE_KEYS,
    RecordError,
)
from labelkin.corpus.source import Source
from labelkin.exceptions import FormatError
from labelkin.outputs import is_guarded, unguarded
from labelkin.wording import counted, shortened

# A quoted cell with more lines counts as one whose quote is never closed.
MAX_CELL_LINES = 10_000
_field_limit_lock = threading.Lock()
FIELD_PREFIX = "field."
# Columns whose cells hold a JSON object.
OBJECT_COLUMNS = ("fields", "metadata", "label_names")
_URIS, _NAMES = "subject_uris", "subject_labels"
COLUMNS = {
    name.casefold(): name
    for name in (
        *ID_KEYS,
        *TITLE_KEYS,
        *BODY_KEYS,
        *LABEL_KEYS,
        *LANGUAGE_KEYS,
        *REVISION_KEYS,
        MAJOR_KEY,
        _URIS,
        _NAMES,
    )
}

Row = tuple[int, list[str]]
# Excel's own first line, which names the delimiter.
_EXCEL_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)


def head_lines(head: bytes) -> list[str]:
    """The lines of a file's head, without blank ones and Excel's `sep=;` at its beginning."""
    lines = head.decode("utf-8", "replace").split("\n")
    start = next((n for n, line in enumerate(lines) if not _is_before_header(line)), len(lines))
    return [line.rstrip("\r") for line in lines[start:]]


def header_line(head: bytes) -> str:
    """The line that would be a table's header."""
    return next(iter(head_lines(head)), "")


def delimiter_of(head: bytes) -> str:
    """What separates the cells of a CSV file: what Excel's first line says, else `;` or `,`."""
    first = head.lstrip().split(b"\n", 1)[0].decode("utf-8", "replace")
    # A tab can be the delimiter.
    if (named := _EXCEL_LINE.fullmatch(first.strip("\r "))) is not None:
        return named.group(1)
    header = header_line(head)
    return ";" if header.count(";") > header.count(",") else ","


def table_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The numbered lines of a table, from its header on."""
    lines = source.lines()
    for number, line in lines:
        if not _is_before_header(line):
            yield number, line
            yield from lines


def _is_before_header(line: str) -> bool:
    return not line.strip() or _EXCEL_LINE.fullmatch(line.strip("\r ")) is not None


def tsv_rows(source: Source) -> Iterator[Row]:
    """The rows of a tab-separated table with their line numbers."""
    return ((number, line.split("\t")) for number, line in table_lines(source))


def column_name(cell: str) -> str:
    """The canonical spelling of a header cell; known names match in any case."""
    name = cell.strip()
    return COLUMNS.get(name.casefold(), name)


def read_csv(source: Source, intake: Intake) -> Iterator[Document | Correction]:
    """Read columns named as in JSONL (`id`, `title`, `abstract`, `labels`, `language`, …).

    The intake's separator separates several labels in one cell; Annif's columns
    `subject_uris` (separated by spaces) and `subject_labels` are known too. A
    column `field.NAME` is a further text field, any other column is metadata.
    Without an id column, ids are made from the texts. The delimiter is what
    Excel's line `sep=;` says, or a semicolon if the header has more semicolons
    than commas. In a file that labelkin wrote, an apostrophe that keeps a
    spreadsheet from running a cell is removed.
    """
    rows = csv_rows(source, intake, delimiter_of(source.head))
    yield from _read_rows(source, intake, _without_guards(rows))


def _without_guards(rows: Iterator[Row]) -> Iterator[Row]:
    for number, header in rows:
        yield number, header
        if is_guarded(header):
            rows = ((line, [unguarded(cell) for cell in cells]) for line, cells in rows)
        yield from rows
        return


def read_tsv(source: Source, intake: Intake) -> Iterator[Document | Correction]:
    """Like CSV, but tab-separated; quotes have no special meaning."""
    yield from _read_rows(source, intake, tsv_rows(source))


def csv_rows(source: Source, intake: Intake, delimiter: str) -> Iterator[Row]:
    """Rows with the number of their first line.

    A quote that is never closed costs only its own line: it is reported, and
    reading continues with the next line.
    """
    lines = table_lines(source)
    waiting: deque[tuple[int, str]] = deque()
    while (start := _next(waiting, lines)) is not None:
        taken = [start]
        cells = _parse(taken, delimiter)
        while cells is None and len(taken) < MAX_CELL_LINES:
            line = _next(waiting, lines)
            if line is None:
                break
            taken.append(line)
            # Only a line with a quote in it can close the cell.
            cells = _parse(taken, delimiter) if '"' in line[1] else None
        if cells is None:
            intake.report.skip(source.name, f"line {start[0]}", "a quote that is never closed")
            waiting.extendleft(reversed(taken[1:]))
        else:
            yield start[0], cells


def _next(
    waiting: deque[tuple[int, str]], lines: Iterator[tuple[int, str]]
) -> tuple[int, str] | None:
    return waiting.popleft() if waiting else next(lines, None)


def _parse(lines: list[tuple[int, str]], delimiter: str) -> list[str] | None:
    """The cells of a record, or None if a quote is still open."""
    # The csv module rejects a carriage return within a line, which does not end a record.
    text = [line.replace("\r", " ") + "\n" for _, line in lines]
    with _fields_of_any_size(text):
        try:
            return next(csv.reader(text, delimiter=delimiter, strict=True), [])
        except csv.Error as error:
            if str(error) == "unexpected end of data":
                return None
        # A misplaced quote; the module's lenient mode reads it as spreadsheets do.
        return next(csv.reader(text, delimiter=delimiter), [])


@contextmanager
def _fields_of_any_size(text: list[str]) -> Iterator[None]:
    """Let csv parse `text` however long its cells are.

    The csv module has one limit for the whole process. Only a record above the
    limit raises it, for the time of one parse; the lock keeps readers in other
    threads from restoring it too early.
    """
    size = sum(map(len, text))
    with _field_limit_lock:
        limit = csv.field_size_limit()
        if size <= limit:
            yield
            return
        csv.field_size_limit(size)
        try:
            yield
        finally:
            csv.field_size_limit(limit)


def _read_rows(
    source: Source, intake: Intake, rows: Iterator[Row]
) -> Iterator[Document | Correction]:
    _, first = next(rows, (0, []))
    header = [column_name(cell) for cell in first]
    if (twice := repeated_column(header)) is not None:
        raise FormatError(
            f"{source.name}: a column name occurs twice in the header: {shortened(twice)}"
        )
    needed = {*TITLE_KEYS, *BODY_KEYS}
    if intake.corrections:
        needed |= {*LABEL_KEYS, _URIS, _NAMES}
    if not needed & {*header}:
        what = "text or labels" if intake.corrections else "text"
        wanted = (
            "title, abstract, text or labels" if intake.corrections else "title, abstract or text"
        )
        raise FormatError(
            f"{source.name}: no column with {what}; the header names "
            f"{shortened(', '.join(header), 100)}, but one of {wanted} is needed"
        )
    has_id = any(key in header for key in ID_KEYS)
    for number, cells in rows:
        where = f"line {number}"
        if any(map(str.strip, cells[len(header) :])):
            reason = f"{len(cells)} cells, but the header names {counted(len(header), 'column')}"
            intake.report.skip(source.name, where, reason)
        elif [column_name(cell) for cell in cells] == header:
            intake.report.note(source.name, where, "the header again; left out")
        elif any(map(str.strip, cells)):
            yield from intake.take(_record(header, cells), where, needs_id=has_id)


def repeated_column(header: list[str]) -> str | None:
    """A column name that occurs twice; columns without a name are ignored."""
    names = [name for name in header if name]
    return next((name for place, name in enumerate(names) if name in names[:place]), None)


def _record(header: list[str], cells: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for name, cell in zip(header, cells, strict=False):
        if name == _URIS:
            record["subjects"] = cell.split() or record.get("subjects")
        elif name == _NAMES:
            if not record.get("subjects"):
                record["subjects"] = cell
        elif name.startswith(FIELD_PREFIX):
            fields[name.removeprefix(FIELD_PREFIX)] = cell
        elif name in LABEL_KEYS or name == MAJOR_KEY:
            record[name] = cell if (labels := listed(cell)) is None else labels
        elif name in OBJECT_COLUMNS:
            if cell.strip():
                record[name] = _object(cell)
        elif name:
            record[name] = cell
    if fields and isinstance(others := record.get("fields", {}), dict):
        record["fields"] = {**fields, **others}
    return record


def listed(cell: str) -> list[str] | None:
    """The labels in a cell that is a JSON list of strings; None for any other cell."""
    if not (cell.startswith("[") and cell.endswith("]")):
        return None
    try:
        labels = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return labels if all(isinstance(label, str) for label in labels) else None


def _object(cell: str) -> object:
    """The JSON object in a cell; other content as it is, for the record's own check to refuse."""
    try:
        return parse_json(cell)
    except RecordError:
        return cell
