"""JSON Lines: one record per line, in labelkin's or Annif's form."""

from __future__ import annotations

from collections.abc import Iterator

from labelkin.corpus.document import Correction, Document
from labelkin.corpus.intake import Intake
from labelkin.corpus.json_values import spans_lines, stream_values
from labelkin.corpus.record import lift_title
from labelkin.corpus.source import Source


def read_jsonl(source: Source, intake: Intake) -> Iterator[Document | Correction]:
    """Read lines of `{"id", "title", "abstract", "labels": [id|URI|name], "language"?, …}`."""
    for record, where in _records(source, intake):
        yield from intake.take(record, where)


def read_annif_jsonl(source: Source, intake: Intake) -> Iterator[Document | Correction]:
    """Read lines of `{"document_id"?, "text", "metadata", "subjects": [{"uri", "label"}]}`."""
    for record, where in _records(source, intake):
        if isinstance(record, dict):
            yield from intake.take(lift_title(record), where, needs_id=False)
        else:
            yield from intake.take(record, where)


def _records(source: Source, intake: Intake) -> Iterator[tuple[object, str]]:
    """The records with their place; each may also be spread over several lines."""
    if spans_lines(source.head):
        for number, record in enumerate(stream_values(source), start=1):
            yield record, f"record {number}"
        return
    for number, line in source.lines():
        if line.strip():
            where = f"line {number}"
            for record in intake.parse_line(line, where):
                yield record, where
