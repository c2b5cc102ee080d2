"""Annif's corpus formats that have no header: the TSV file and the folder of texts."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from labelkin.corpus.compression import without_suffix
from labelkin.corpus.document import Correction, Document
from labelkin.corpus.formats import LIST_START
from labelkin.corpus.intake import Intake
from labelkin.corpus.plausibility import are_sentences, are_uris
from labelkin.corpus.record import ID_KEYS, lift_title
from labelkin.corpus.source import HEAD_BYTES, Source, decode, printable
from labelkin.exceptions import InputError

# Annif's published corpora separate title and abstract with this mark.
TITLE_MARK = " ¤ "
SUBJECT_SUFFIXES = (".tsv", ".key")
_TEXT_KEY = re.compile(rb'"text"\s*:')
# A URI with or without angle brackets, or a name (which may hold spaces) in brackets.
_SUBJECT = re.compile(r"<\S.*?>(?=\s|$)|\S+")

# What stands for a subject before its name: a URI, a name in brackets or an id.
_SUBJECT_ID = re.compile(r"<[^<>]+>|\S*[\d:/#]\S*")
# How many lines show whether a file holds the subjects of a text.
_FIRST_LINES = 20


def read_annif_tsv(source: Source, intake: Intake) -> Iterator[Document | Correction]:
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


@dataclass(frozen=True, slots=True)
class AnnifFolder:
    """Documents that are files of their own, somewhere below the folder `path`."""

    path: Path
    files: tuple[Path, ...]
    # Ids of files that were named one by one.
    ids: Mapping[Path, str] = field(default_factory=dict)

    def identifier(self, file: Path) -> str:
        """The document's id: the file's path below the folder, without its extension."""
        return self.ids.get(file) or text_file_id(file.relative_to(self.path))


def text_file_id(path: Path) -> str:
    """The id of a document that is a file of its own: the path without its extension."""
    whole = Path(without_suffix(_decoded(path)))
    return str(whole.with_suffix("")).replace(os.sep, "/")


def text_file_ids(paths: Iterable[Path]) -> dict[Path, str]:
    """The ids of files that are named one by one: the name, or as much as tells them apart.

    Files of the same name have their paths as ids, with the extension if need be.
    """
    ids: dict[Path, str] = {}
    left = {*paths}
    for level in (lambda path: text_file_id(Path(path.name)), text_file_id, _decoded):
        found = {path: level(path) for path in left}
        ids |= found
        counts = Counter(found.values())
        left = {path for path, identifier in found.items() if counts[identifier] > 1}
    return ids


def _decoded(path: Path) -> str:
    return decode(os.fsencode(path))[0]


def document_suffix(path: Path) -> str:
    """The extension of a file, without that of its compression."""
    return Path(without_suffix(path.name)).suffix


def subject_files(path: Path) -> list[Path]:
    """The files beside `NAME.txt` that hold its subjects: `NAME.tsv`, `NAME.key`, both or none.

    A corpus or a text of the same name does not count.
    """
    text = path.with_name(without_suffix(path.name))
    beside = (text.with_suffix(suffix) for suffix in SUBJECT_SUFFIXES)
    return [file for file in beside if file != path and file.is_file() and _holds_subjects(file)]


def subject_file(path: Path) -> Path | None:
    """The file with the subjects of a text: `NAME.tsv` or else `NAME.key` beside `NAME.txt`."""
    return next(iter(subject_files(path)), None)


def _holds_subjects(path: Path) -> bool:
    """Whether the first lines are subjects; what cannot be read counts, so that it is reported."""
    try:
        with Source(path) as source:
            head = source.head
    except InputError:
        return True
    if len(head) >= HEAD_BYTES:
        return False
    lines = [line for line in decode(head)[0].splitlines() if line.strip()][:_FIRST_LINES]
    if lines and are_sentences([(line,) for line in lines]):
        return False
    return path.suffix == ".key" or all(map(_is_subject, lines))


def _is_subject(line: str) -> bool:
    """Whether a line is a subject with or without its name, not `text<TAB><uri>` or a row."""
    subject, tab, name = line.strip().partition("\t")
    if not tab:
        return True
    is_id = _SUBJECT_ID.fullmatch(subject.strip()) is not None
    return is_id and "\t" not in name and not are_uris(name)


def is_annif_document(head: bytes) -> bool:
    """Whether a file holds one JSON object with a text, and not a list or lines of them."""
    start = head.lstrip()
    if not start.startswith(b"{") or not _TEXT_KEY.search(head) or LIST_START.match(start):
        return False
    first, _, rest = start.partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return True
    return not rest.strip()


def read_annif_folder(folder: AnnifFolder, intake: Intake) -> Iterator[Document | Correction]:
    """Read each `NAME.txt` with its subjects in `NAME.tsv` (URIs) or `NAME.key` (names).

    `NAME.json` (document_id, text, metadata, subjects) is read too. The
    file name is the document's id unless the JSON holds one.
    """
    for path in folder.files:
        name = printable(path)
        is_text = document_suffix(path) != ".json"
        try:
            text = _read(path, intake)
            subjects = _subjects(path, intake) if is_text else []
        except (OSError, InputError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            intake.report.skip(printable(folder.path), name, f"cannot be read ({reason})")
            continue
        records: Iterable[object] = [{"text": text, "subjects": subjects}]
        if not is_text:
            records = intake.parse(text, name)
        for record in records:
            if isinstance(record, dict):
                record = lift_title(record)
                if not any(record.get(key) for key in ID_KEYS):
                    record = {**record, "document_id": folder.identifier(path)}
            yield from intake.take(record, name)


def _read(path: Path, intake: Intake) -> str:
    with Source(path) as source, source.damage_reported("in the middle"):
        text, is_utf8 = decode(source.stream.read())
    if not is_utf8:
        name = printable(path)
        intake.report.note(name, "encoding", "not UTF-8 and read as Windows-1252")
    return text


def _subjects(path: Path, intake: Intake) -> list[dict[str, str]]:
    beside = subject_file(path)
    if beside is None:
        return []
    lines = _read(beside, intake).splitlines()
    if beside.suffix == ".key":
        return [{"label": line} for line in lines]
    return [
        {"uri": uri, "label": name} for uri, _, name in (line.partition("\t") for line in lines)
    ]
