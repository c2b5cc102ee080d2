"""Vocabularies as tables: `uri<TAB>label`, or columns named in a header row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from labelkin.corpus.foreign import ID_COLUMNS, is_vocabulary_header
from labelkin.corpus.intake import Intake
from labelkin.corpus.language import normalise_language
from labelkin.corpus.report import ReadReport
from labelkin.corpus.source import Source
from labelkin.corpus.table import (
    csv_rows,
    delimiter_of,
    head_lines,
    repeated_column,
    tsv_rows,
)
from labelkin.corpus.text import clean_label
from labelkin.exceptions import VocabularyError
from labelkin.vocab.concept import Concept
from labelkin.vocab.mesh import TREE_NUMBER, with_tree_hierarchy
from labelkin.wording import counted

_NAME_COLUMNS = ("name", "label", "preflabel")
_SYNONYM_COLUMNS = ("entry_terms", "synonyms", "altlabel")
_NOTATION_COLUMNS = ("tree_numbers", "notation", "notations")
_SEPARATOR = "|"
# A header may come after a title or comments, but not later than this.
_HEADER_WITHIN = 10


def read_table(source: Source, report: ReadReport, language: str = "en") -> list[Concept]:
    """Read a TSV or CSV vocabulary; rows without id or name are skipped and reported.

    Without a header a row is `uri<TAB>label` with an optional notation, as in
    Annif. With one, the columns are id (`id`, `ui`, `uri`), name (`name`,
    `label`, `prefLabel`), synonyms (`entry_terms`, `synonyms`, `altLabel`),
    `tree_numbers` or `notation`, `broader`, `related`, `deprecated`,
    `replaced_by`; a name or synonym column may end in a language (`label_de`).
    `|` separates several values in a cell.
    """
    concepts: list[Concept] = []
    header: list[str] = []
    incomplete: list[tuple[int, str]] = []
    for place, (number, row) in enumerate(_rows(source, report)):
        names = [cell.strip().casefold() for cell in row]
        if place == 0 and any(name in ID_COLUMNS for name in names):
            header = names
            if (twice := repeated_column(header)) is not None:
                raise VocabularyError(
                    f"{source.name}: the column {twice!r} occurs twice in the header"
                )
            continue
        concept = _from_columns(header, row, language) if header else _from_pair(row, language)
        if concept.id and concept.names:
            concepts.append(concept)
        else:
            incomplete.append((number, "name" if concept.id else "id"))
    rows = len(concepts) + len(incomplete)
    if len(incomplete) > rows / 2:
        raise VocabularyError(
            f"{source.name}: not a table of ids and names: no {incomplete[0][1]} in "
            f"{len(incomplete):,} of {counted(rows, 'row')}; separate id and name by a tab, or "
            "name the columns in a header"
        )
    for number, missing in incomplete:
        report.skip(source.name, f"line {number}", f"no {missing}")
    placed = [concept for concept in concepts if concept.notations]
    if placed and all(TREE_NUMBER.fullmatch(place) for c in placed for place in c.notations):
        return with_tree_hierarchy(concepts)
    return concepts


def _rows(source: Source, report: ReadReport) -> Iterator[tuple[int, list[str]]]:
    lines = head_lines(source.head)
    before = _lines_before_header(lines)
    if before:
        many = counted(before, "line")
        report.note(source.name, "header", f"{many} before it left out, such as {lines[0][:80]!r}")
    first = "\n".join(lines[before : before + 1])
    if "\t" in first:
        rows = tsv_rows(source)
    else:
        delimiter = delimiter_of(first.encode() if before else source.head)
        rows = csv_rows(source, Intake(source.name, report), delimiter)
    filled = ((number, row) for number, row in rows if any(map(str.strip, row)))
    return islice(filled, before, None)


def _lines_before_header(lines: list[str]) -> int:
    """How many lines there are before a header: a title, comments; 0 if there is no header."""
    filled = [line for line in lines if line.strip()]
    for place, line in enumerate(filled[:_HEADER_WITHIN]):
        if any(is_vocabulary_header(line.split(delimiter)) for delimiter in "\t,;"):
            return place
    return 0


def _from_pair(row: list[str], language: str) -> Concept:
    name = clean_label(row[1]) if len(row) > 1 else ""
    notation = clean_label(row[2]) if len(row) > 2 else ""
    return Concept(
        id=_identifier(row[0]),
        names={language: name} if name else {},
        notations=(notation,) if notation else (),
    )


def _from_columns(header: list[str], row: list[str], language: str) -> Concept:
    cells = dict(zip(header, map(clean_label, row), strict=False))
    return Concept(
        id=_identifier(_first(cells, ID_COLUMNS)),
        names={
            tag: cell
            for column, cell in cells.items()
            if cell and (tag := _language_of(column, _NAME_COLUMNS, language))
        },
        synonyms={
            tag: _values(cell)
            for column, cell in cells.items()
            if cell and (tag := _language_of(column, _SYNONYM_COLUMNS, language))
        },
        notations=_values(_first(cells, _NOTATION_COLUMNS)),
        broader=tuple(map(_identifier, _values(cells.get("broader", "")))),
        related=tuple(map(_identifier, _values(cells.get("related", "")))),
        deprecated=cells.get("deprecated", "").casefold() in ("1", "true", "yes"),
        replaced_by=tuple(map(_identifier, _values(cells.get("replaced_by", "")))),
    )


def _language_of(column: str, stems: tuple[str, ...], default: str) -> str | None:
    """The language of a name column: `label` → the default, `label_de` → `de`."""
    if column in stems:
        return default
    stem, _, tag = column.rpartition("_")
    return normalise_language(tag) if stem in stems else None


def _identifier(cell: str) -> str:
    return clean_label(cell).removeprefix("<").removesuffix(">")


def _first(cells: dict[str, str], columns: tuple[str, ...]) -> str:
    return next((cells[column] for column in columns if cells.get(column)), "")


def _values(cell: str) -> tuple[str, ...]:
    values = (clean_label(value) for value in cell.split(_SEPARATOR))
    return tuple(dict.fromkeys(value for value in values if value))
