"""Reads gold labels or predictions from files of any tool.

| format | content |
|---|---|
| BioASQ lines | one document per line: its labels, separated by spaces |
| TSV | `id<TAB>label<TAB>score` or `id<TAB>label`, with or without a header |
| CSV or TSV with a header | columns `id` and `label`, optional `score` or `rank`, `name`, others |
| JSON | see `json_labels`: labelkin's and Annif's results, BioASQ submissions |
| scipy .npz | a sparse matrix, one document per row |
| any corpus format | its documents with their labels |
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.corpus.corpus import Corpus
from labelkin.corpus.formats import recognised
from labelkin.corpus.intake import Intake
from labelkin.corpus.record import BODY_KEYS, ID_KEYS, TITLE_KEYS, strip_brackets
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import HEAD_BYTES, Source, printable
from labelkin.corpus.table import csv_rows, head_lines, tsv_rows
from labelkin.evaluate.json_labels import json_label_file
from labelkin.evaluate.label_file import LabelFile, number_of, place, with_point
from labelkin.exceptions import DamagedFileError, FormatError, InputError
from labelkin.outputs import is_guarded, unguarded
from labelkin.tensors import npz_arrays
from labelkin.wording import counted, shortened

logger = logging.getLogger(__name__)

_LABEL_LINES = re.compile(r"[\w.:/#-]+([ \r\n]+[\w.:/#-]+)*\s*")
_LABEL_COLUMNS = ("label", "uri", "heading", "subject", "concept")
_ORDER_COLUMNS = ("score", "rank")
_DELIMITERS = ("\t", ",", ";")


def read_label_file(path: Path) -> LabelFile:
    """Read labels from a file in any known format, recognised by its content."""
    if not path.exists():
        raise InputError(f"{printable(path)}: no such file")
    if path.is_dir():
        return _from_corpus(path)
    if path.suffix == ".npz":
        return _from_npz(path)
    if not path.is_file():
        raise InputError(f"{printable(path)}: not a regular file; write the data to a file first")
    try:
        predictions = json_label_file(path)
        if predictions is not None:
            return predictions
        with Source(path) as source, _encoding_reported(source):
            if not source.head.strip():
                raise FormatError(f"{source.name}: the file is empty")
            format_name, lines = recognised(source), _first_lines(source)
            if (delimiter := _table_delimiter(lines[0])) is not None:
                return _from_table(source, delimiter)
            # A TSV header with text columns is that of a corpus.
            if format_name != "tsv" and (_is_scored(lines[:2]) or _is_pairs(lines)):
                return _from_tsv(source)
            if "\t" not in lines[0] and _LABEL_LINES.fullmatch("\n".join(lines).strip()):
                return _from_lines(source)
            # Annif's corpora have two columns.
            is_table = lines[0].count("\t") > 1 and not re.search("<|://", lines[0])
            is_table |= format_name is None and _is_one_word_of_cells(lines[0])
            if format_name in ("csv", "tsv") or is_table:
                _check_columns(source.name, lines[0])
            if format_name is None:
                raise FormatError(
                    f"{source.name}: neither labels nor a corpus in a known format; give lines of "
                    "`id<TAB>label<TAB>score`, a table with the columns id and label, or what "
                    "`labelkin annotate` writes"
                )
    except DamagedFileError as error:
        raise DamagedFileError(f"{printable(path)}: {error}") from error
    return _from_corpus(path)


@contextmanager
def _encoding_reported(source: Source) -> Iterator[None]:
    """Warn if what was read of a file was not UTF-8."""
    yield
    if source.not_utf8:
        logger.warning("%s: not UTF-8 and read as Windows-1252", source.name)


def _first_lines(source: Source) -> list[str]:
    """The complete lines among the first bytes of the file."""
    lines = head_lines(source.head.rstrip(b"\r\n"))
    return (lines[:-1] if len(source.head) >= HEAD_BYTES else lines) or [""]


def _is_scored(lines: list[str]) -> bool:
    """Whether any line starts with id, label and a number."""
    return any(len(line.split("\t")) > 2 and _is_number(line.split("\t")[2]) for line in lines)


def _is_number(cell: str) -> bool:
    """Whether the cell is a number, even one that is not a valid score."""
    try:
        float(with_point(cell))
    except ValueError:
        return False
    return True


def _is_pairs(lines: list[str]) -> bool:
    """Whether the lines are `id<TAB>label`, and not Annif's `text<TAB>URIs`."""
    pairs = [line.partition("\t") for line in lines]
    if not pairs[0][2].strip() or "\t" in pairs[0][2] or any("<" in pair[2] for pair in pairs):
        return False
    has_texts = any(len(first.split()) > 1 for first, _, _ in pairs)
    return not (has_texts and any("://" in second for _, _, second in pairs))


def _from_lines(source: Source) -> LabelFile:
    file = LabelFile(source.name, has_ids=False)
    for number, line in source.lines():
        file.add_ordered(place(number), line.split())
    return file


def _from_tsv(source: Source) -> LabelFile:
    """Read one prediction per line; without scores, a document's labels rank in file order."""
    file = LabelFile(source.name)
    width = 0
    for number, line in source.lines():
        cells = [cell.strip() for cell in line.split("\t")]
        if not any(cells):
            continue
        if number == 1 and len(cells) > 2 and not _is_number(cells[2]):
            continue  # the header
        width = width or min(len(cells), 3)
        try:
            score = -float(number) if width < 3 else number_of(cells[2])
        except (IndexError, ValueError) as error:
            raise DamagedFileError(
                f"line {number} is not `id<TAB>label<TAB>score`: {_shown(cells)}"
            ) from error
        if len(cells) < 2 or not all(cells[:2]):
            raise DamagedFileError(f"line {number} is not `id<TAB>label`: {_shown(cells)}")
        file.add(cells[0], strip_brackets(cells[1]), score)
    return file


def _shown(cells: list[str]) -> str:
    """How many columns a line has, and what is in them."""
    return f"it has {counted(len(cells), 'column')}, {shortened(' | '.join(cells))!r}"


def _table_delimiter(first_line: str) -> str | None:
    """The delimiter of a table of predictions, or None if the line is not its header.

    A table with texts is a corpus, unless its labels have scores or ranks.
    """
    for delimiter in _DELIMITERS:
        header = {*_header(first_line, delimiter)}
        texts = header & {key.casefold() for key in (*TITLE_KEYS, *BODY_KEYS)}
        if header & {*ID_KEYS} and header & {*_LABEL_COLUMNS}:
            return delimiter if not texts or header & {*_ORDER_COLUMNS} else None
    return None


def _header(line: str, delimiter: str) -> list[str]:
    return [cell.strip().strip('"').casefold() for cell in line.split(delimiter)]


def _check_columns(name: str, first_line: str) -> None:
    """Raise a FormatError for a table that has neither predictions nor texts."""
    delimiter = max(_DELIMITERS, key=first_line.count)
    header = _header(first_line, delimiter)
    texts = {key.casefold() for key in (*TITLE_KEYS, *BODY_KEYS)}
    if len(header) < 2 or {*header} & texts:
        return
    missing = " and ".join(
        f"{keys[0]} (or {', '.join(keys[1:])})"
        for keys in (ID_KEYS, _LABEL_COLUMNS)
        if not {*header} & {*keys}
    )
    raise FormatError(
        f"{name}: the columns are {shortened(', '.join(header), 200)}; predictions also need "
        f"{missing}, a corpus needs title or text: rename the columns in the header"
    )


class _Refusing(ReadReport):
    """Predictions are read whole or not at all: a row that would be skipped is an error."""

    def skip(self, source: str, where: str, reason: str) -> None:  # noqa: ARG002
        """Refuse the file."""
        raise DamagedFileError(f"{where}: {reason}; correct or delete the line")


def _from_table(source: Source, delimiter: str) -> LabelFile:
    """Read one prediction per row; without score or rank, labels rank in file order.

    A row with an id and neither label nor score is a document without predictions.
    """
    file = LabelFile(source.name)
    # Quotes have no special meaning in TSV, as in a corpus.
    table = (
        tsv_rows(source)
        if delimiter == "\t"
        else csv_rows(source, Intake(source.name, _Refusing()), delimiter)
    )
    number, first = next(table)
    header = [cell.strip().casefold() for cell in first]
    guards = delimiter != "\t" and is_guarded(first)
    document_key, label_key = (
        next(key for key in keys if key in header) for keys in (ID_KEYS, _LABEL_COLUMNS)
    )
    order_key = next((key for key in _ORDER_COLUMNS if key in header), None)
    try:
        for number, row in table:
            if not any(row):
                continue
            cells = {
                name: unguarded(cell.strip()) if guards else cell.strip()
                for name, cell in zip(header, row, strict=False)
            }
            document, label = cells.get(document_key, ""), cells.get(label_key, "")
            is_empty = cells.get(label_key) == "" and not any(map(cells.get, _ORDER_COLUMNS))
            if document and is_empty:
                file.labels.setdefault(document, {})
                continue
            for key, value in ((document_key, document), (label_key, label)):
                if not value:
                    raise ValueError(f"no {key}")
            better = _order(cells, order_key, number)
            file.add(document, strip_brackets(label), better, cells.get("name", ""))
    except ValueError as error:
        columns = shortened(", ".join(header), 200)
        raise DamagedFileError(
            f"line {number}: {error}; the columns are {columns}: correct or delete the line"
        ) from error
    return file


def _order(cells: dict[str, str], key: str | None, line: int) -> float:
    """A number that is larger for better labels: the score, minus the rank or minus the line."""
    if key is None:
        return -float(line)
    try:
        value = number_of(cells.get(key, ""))
    except ValueError:
        raise ValueError(f"the {key} {shortened(cells.get(key, ''))!r} is not a number") from None
    return value if key == "score" else -value


def _is_one_word_of_cells(line: str) -> bool:
    """Whether a line has commas or semicolons between its cells, and no spaces."""
    return len(line.split()) == 1 and {",", ";"} & {*line.strip()[1:-1]} != set()


def _from_npz(path: Path) -> LabelFile:
    from scipy.sparse import csr_matrix, load_npz

    try:
        arrays = npz_arrays(path)
        matrix = csr_matrix(load_npz(path))
        matrix.check_format(full_check=True)
        # Ids that `annotate` stores beside scipy's own arrays.
        documents, labels = (_texts(arrays, key) for key in ("documents", "labels"))
    except (
        *(AttributeError, IndexError, KeyError, MemoryError, NotImplementedError, OSError),
        *(OverflowError, TypeError, ValueError),
    ) as error:
        raise DamagedFileError(f"{printable(path)}: not a sparse matrix ({error})") from error
    if not np.isfinite(matrix.data).all():
        raise DamagedFileError(f"{printable(path)}: a score is not a finite number")
    rows, columns = matrix.shape
    for names, size, kind in ((documents, rows, "rows"), (labels, columns, "columns")):
        if names is not None and len(names) != size:
            raise DamagedFileError(
                f"{printable(path)}: the number of {kind} ({size:,}) differs from the number of "
                f"their names ({len(names):,})"
            )
    file = LabelFile(
        printable(path), has_ids=documents is not None, width=columns if labels is None else None
    )
    for row in range(rows):
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        pairs = zip(matrix.indices[span].tolist(), matrix.data[span].tolist(), strict=True)
        document = place(row + 1) if documents is None else documents[row]
        file.begin(document)
        for column, score in pairs:
            if score:
                file.add(document, str(column) if labels is None else labels[column], score)
    return file


def _texts(arrays: Any, key: str) -> list[str] | None:
    return [str(text) for text in arrays[key]] if key in arrays else None


def _from_corpus(path: Path) -> LabelFile:
    file = LabelFile(printable(path), has_ids=_has_ids(path))
    for document in _documents(path):
        file.add_ordered(document.id, document.labels)
        file.names.update(document.label_names)
    return file


def _has_ids(path: Path) -> bool:
    """Whether the format has ids; those of Annif's TSV are generated."""
    if path.is_dir():
        return True
    with Source(path) as source:
        return recognised(source) != "annif-tsv"


def _documents(path: Path) -> Iterator[Any]:
    corpus = Corpus([path], force=True)
    yield from corpus.documents()
    report = corpus.report
    if report.skipped and not report.documents:
        raise DamagedFileError(f"{printable(path)}: none of its records could be read")
    if report.files_refused or report.files_damaged:
        raise DamagedFileError(f"{printable(path)}: could not be read completely")
