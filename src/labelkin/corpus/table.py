"""CSV and TSV with a header row, ours or Annif's."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from labelkin.corpus.document import Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.record import ID_KEYS, generated_id
from labelkin.corpus.source import Source
from labelkin.exceptions import DamagedFileError, FormatError

# The longest cell; a quote that is never closed would otherwise swallow the file.
MAX_CELL = 1 << 26
_FIELD_PREFIX = "field."


def read_csv(source: Source, intake: Intake) -> Iterator[Document]:
    """Columns named as in JSONL (`id`, `title`, `abstract`, `labels`, `language`, …).

    Several labels in one cell are parted by the intake's separator; Annif's
    columns `subject_uris` (parted by spaces) and `subject_labels` are known
    too. A column `field.NAME` is a further text field, any other column is
    metadata. Without an id column, ids are made from file name, line and text.
    """
    yield from _read_rows(source, intake, csv.excel())


def read_tsv(source: Source, intake: Intake) -> Iterator[Document]:
    """As CSV, parted by tabs."""
    yield from _read_rows(source, intake, csv.excel_tab())


def _read_rows(source: Source, intake: Intake, dialect: csv.Dialect) -> Iterator[Document]:
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader((line + "\n" for _, line in source.lines()), dialect)
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(set(header)) != len(header):
            raise FormatError(f"{source.name}: a column name occurs twice in the header")
        has_id = any(key in header for key in ID_KEYS)
        end = reader.line_num
        for cells in reader:
            start, end = end + 1, reader.line_num
            where = f"line {start}"
            if len(cells) > len(header):
                reason = f"{len(cells)} cells, but the header names {len(header)} columns"
                intake.report.skip(source.name, where, reason)
            elif any(cells):
                fallback = None if has_id else generated_id(source.stem, start, "\t".join(cells))
                yield from intake.take(_record(header, cells), where, fallback)
    except csv.Error as error:
        raise DamagedFileError(
            f"broken table at line {reader.line_num}: {error} (a quote that is never closed?)"
        ) from error


def _record(header: list[str], cells: list[str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for name, cell in zip(header, cells, strict=False):
        if name == "subject_uris":
            record["subjects"] = cell.split() or record.get("subjects")
        elif name == "subject_labels":
            if not record.get("subjects"):
                record["subjects"] = cell
        elif name.startswith(_FIELD_PREFIX):
            fields[name.removeprefix(_FIELD_PREFIX)] = cell
        elif name:
            record[name] = cell
    return {**record, "fields": fields} if fields else record
