"""Annif's corpus formats that have no header: the TSV file and the folder of texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labelkin.corpus.document import Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.record import generated_id, lift_title
from labelkin.corpus.source import Source

# How Annif's published corpora part the title from the abstract in one text.
TITLE_MARK = " ¤ "


def read_annif_tsv(source: Source, intake: Intake) -> Iterator[Document]:
    """`text<TAB><uri> <uri> …` a line; a title before ` ¤ ` is told from the text."""
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
            "subjects": uris.split(),
            "metadata": {"line": number},
        }
        yield from intake.take(record, where, generated_id(source.stem, number, text))


def read_annif_folder(folder: Path, intake: Intake) -> Iterator[Document]:
    """Each `NAME.txt` with its subjects in `NAME.tsv` (URIs) or `NAME.key` (names).

    `NAME.json` (document_id, text, metadata, subjects) is read as well. The
    file's name is the document's id unless the JSON states one.
    """
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".txt", ".json"):
            continue
        try:
            text = path.read_text(encoding="utf-8-sig", errors="replace")
            subjects = _subjects(path) if path.suffix == ".txt" else []
        except OSError as error:
            intake.report.skip(str(folder), path.name, f"cannot be read ({error.strerror})")
            continue
        record: object = {"text": text, "subjects": subjects}
        if path.suffix == ".json":
            record = intake.parse(text, path.name)
            record = lift_title(record) if isinstance(record, dict) else record
        if record is not None:
            yield from intake.take(record, path.name, path.stem)


def _subjects(path: Path) -> list[dict[str, str]]:
    uris, names = path.with_suffix(".tsv"), path.with_suffix(".key")
    if uris.exists():
        rows = [line.partition("\t") for line in uris.read_text("utf-8-sig").splitlines()]
        return [{"uri": uri, "label": name} for uri, _, name in rows]
    if names.exists():
        return [{"label": line} for line in names.read_text("utf-8-sig").splitlines()]
    return []
