"""Reads gold labels or predictions from files of any tool.

| format | content |
|---|---|
| BioASQ lines | one document per line: its labels, separated by spaces |
| TSV | `id<TAB>label<TAB>score` or `id<TAB>label`, with or without a header |
| CSV or TSV with a header | columns `id` and `label`, optional `score` or `rank`, and `name` |
| JSON | see `json_labels`: labelkin's and Annif's results, BioASQ submissions |
| scipy .npz | a sparse matrix, one document per row |
| any corpus format | its documents with their labels |
"""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from labelkin.corpus.corpus import Corpus
from labelkin.corpus.formats import recognised
from labelkin.corpus.record import BODY_KEYS, ID_KEYS, TITLE_KEYS, strip_brackets
from labelkin.corpus.source import HEAD_BYTES, Source, printable
from labelkin.evaluate.json_labels import json_label_file
from labelkin.evaluate.label_file import LabelFile, number_of, place
from labelkin.exceptions import DamagedFileError, FormatError, InputError

_LABEL_LINES = re.compile(r"[\w.:/#-]+([ \r\n]+[\w.:/#-]+)*\s*")
_LABEL_COLUMNS = ("label", "uri", "heading", "subject", "concept")


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
        with Source(path) as source:
            format_name, lines = recognised(source), _first_lines(source)
            if (delimiter := _table_delimiter(lines[0])) is not None:
                return _from_table(source, delimiter)
            # A TSV header with text columns is that of a corpus.
            if format_name != "tsv" and (_is_scored(lines[:2]) or _is_pairs(lines)):
                return _from_tsv(source)
            if "\t" not in lines[0] and _LABEL_LINES.fullmatch("\n".join(lines).strip()):
                return _from_lines(source)
            if format_name is None:
                raise FormatError(f"{source.name}: neither labels nor a corpus in a known format")
    except DamagedFileError as error:
        raise DamagedFileError(f"{printable(path)}: {error}") from error
    return _from_corpus(path)


def _first_lines(source: Source) -> list[str]:
    """The complete lines among the first bytes of the file."""
    lines = source.head.decode("utf-8", "replace").splitlines()
    return (lines[:-1] if len(source.head) >= HEAD_BYTES else lines) or [""]


def _is_scored(lines: list[str]) -> bool:
    """Whether any line starts with id, label and a number."""
    return any(len(line.split("\t")) > 2 and _is_number(line.split("\t")[2]) for line in lines)


def _is_number(cell: str) -> bool:
    """Whether the cell is a number, even one that is not a valid score."""
    try:
        float(cell)
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
            raise DamagedFileError(f"line {number} is not `id<TAB>label<TAB>score`") from error
        if len(cells) < 2 or not all(cells[:2]):
            raise DamagedFileError(f"line {number} is not `id<TAB>label`")
        file.add(cells[0], strip_brackets(cells[1]), score)
    return file


def _table_delimiter(first_line: str) -> str | None:
    """The delimiter of a table of predictions, or None if the line is not its header."""
    for delimiter in ("\t", ",", ";"):
        header = {cell.strip().strip('"').casefold() for cell in first_line.split(delimiter)}
        texts = header & {key.casefold() for key in (*TITLE_KEYS, *BODY_KEYS)}
        if header & {*ID_KEYS} and header & {*_LABEL_COLUMNS} and not texts:
            return delimiter
    return None


def _from_table(source: Source, delimiter: str) -> LabelFile:
    """Read one prediction per row; without score or rank, labels rank in file order."""
    file = LabelFile(source.name)
    lines = (line + "\n" for _, line in source.lines())
    table = csv.reader(lines, delimiter=delimiter, strict=True)
    if delimiter == "\t":
        # Quotes have no special meaning in TSV, as in a corpus.
        table = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    header = [cell.strip().casefold() for cell in next(table)]
    document, label = (
        next(header.index(key) for key in keys if key in header)
        for keys in (ID_KEYS, _LABEL_COLUMNS)
    )
    score, rank, name = (
        header.index(key) if key in header else None for key in ("score", "rank", "name")
    )
    try:
        for row in table:
            if not any(row):
                continue
            if score is not None:
                value = number_of(row[score])
            else:
                value = -number_of(table.line_num if rank is None else row[rank])
            label_name = "" if name is None else row[name].strip()
            if not row[document].strip() or not row[label].strip():
                raise ValueError("an empty cell")
            file.add(row[document].strip(), strip_brackets(row[label].strip()), value, label_name)
    except (IndexError, ValueError, csv.Error) as error:
        expected = ", ".join(header)
        raise DamagedFileError(f"line {table.line_num} does not hold {expected}") from error
    return file


def _from_npz(path: Path) -> LabelFile:
    from scipy.sparse import csr_matrix, load_npz

    try:
        with path.open("rb") as stream:
            matrix = csr_matrix(load_npz(stream))
            stream.seek(0)
            arrays = np.load(stream)
            # Ids that `annotate` stores beside scipy's own arrays.
            documents, labels = (_texts(arrays, key) for key in ("documents", "labels"))
    except (ValueError, KeyError, TypeError, OSError, EOFError, BadZipFile, zlib.error) as error:
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
    if report.skipped and not report.read:
        raise DamagedFileError(f"{printable(path)}: none of its records could be read")
    if report.files_refused or report.files_damaged:
        raise DamagedFileError(f"{printable(path)}: could not be read completely")
