"""JSON Lines: one record per line, in labelkin's or Annif's form."""

from __future__ import annotations

from collections.abc import Iterator

from labelkin.corpus.document import Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.record import lift_title
from labelkin.corpus.source import Source


def read_jsonl(source: Source, intake: Intake) -> Iterator[Document]:
    """Read lines of `{"id", "title", "abstract", "labels": [id|URI|name], "language"?, …}`."""
    for number, line in source.lines():
        if line.strip():
            yield from intake.take_json(line, f"line {number}")


def read_annif_jsonl(source: Source, intake: Intake) -> Iterator[Document]:
    """Read lines of `{"document_id"?, "text", "metadata", "subjects": [{"uri", "label"}]}`."""
    for number, line in source.lines():
        where = f"line {number}"
        for record in intake.parse(line, where) if line.strip() else ():
            if isinstance(record, dict):
                yield from intake.take(lift_title(record), where, needs_id=False)
            else:
                yield from intake.take(record, where)
