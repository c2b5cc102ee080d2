"""Annif's corpus formats that have no header: the TSV file and the folder of texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from labelkin.corpus.document import Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.record import ID_KEYS, lift_title
from labelkin.corpus.source import Source, decode, printable

# Annif's published corpora separate title and abstract with this mark.
TITLE_MARK = " ¤ "
# A URI with or without angle brackets, or a name (which may hold spaces) in brackets.
_SUBJECT = re.compile(r"<\S.*?>(?=\s|$)|\S+")


def read_annif_tsv(source: Source, intake: Intake) -> Iterator[Document]:
    """Read lines of `text<TAB><uri> <uri> …`; what precedes ` ¤ ` is the title."""
    for number, line in source.lines():
        where = f"line {number}"
        text, tab, uris = line.partition("\t")
        if not line.strip():
            continue
        if not tab:
            intake.report.skip(source.name, where, "no tab between text and subjects")
            continue
        title, mark, body = text.partition(TITLE_MARK)
        record = {
            "title": title if mark else "",
            "text": body if mark else text,
            "subjects": _SUBJECT.findall(uris),
        }
        yield from intake.take(record, where, needs_id=False)


def read_annif_folder(folder: Path, intake: Intake) -> Iterator[Document]:
    """Read each `NAME.txt` with its subjects in `NAME.tsv` (URIs) or `NAME.key` (names).

    `NAME.json` (document_id, text, metadata, subjects) is read too. The
    file name is the document's id unless the JSON holds one.
    """
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".txt", ".json"):
            continue
        name = printable(path)
        try:
            text = _read(path, intake)
            subjects = _subjects(path, intake) if path.suffix == ".txt" else []
        except OSError as error:
            intake.report.skip(printable(folder), name, f"cannot be read ({error.strerror})")
            continue
        records: Iterable[object] = [{"text": text, "subjects": subjects}]
        if path.suffix == ".json":
            records = intake.parse(text, name)
        for record in records:
            if isinstance(record, dict):
                record = lift_title(record)
                if not any(record.get(key) for key in ID_KEYS):
                    record = {**record, "document_id": decode(os.fsencode(path.stem))[0]}
            yield from intake.take(record, name)


def _read(path: Path, intake: Intake) -> str:
    text, is_utf8 = decode(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    if not is_utf8:
        name = printable(path)
        intake.report.note(name, "encoding", "not UTF-8 and read as Windows-1252")
    return text


def _subjects(path: Path, intake: Intake) -> list[dict[str, str]]:
    uris, names = path.with_suffix(".tsv"), path.with_suffix(".key")
    if uris.exists():
        rows = [line.partition("\t") for line in _read(uris, intake).splitlines()]
        return [{"uri": uri, "label": name} for uri, _, name in rows]
    if names.exists():
        return [{"label": line} for line in _read(names, intake).splitlines()]
    return []
