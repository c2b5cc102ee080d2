"""Converts the records of all readers to documents and reports those it cannot convert."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from labelkin.corpus.document import Document
from labelkin.corpus.record import RecordError, document_from_record
from labelkin.corpus.report import ReadReport
from labelkin.corpus.text import text_checksum

_SHOWN_VALUES = 3
# Deeper records are refused (record.py).
_DEEPEST = 100


def parse_json(text: str) -> Any:
    """Parse `text`; RecordError if it is not valid JSON. NaN and infinities are let through."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise RecordError("JSON nested too deeply") from error
    except ValueError as error:
        raise RecordError(f"broken JSON ({error})") from error


def not_finite(value: object) -> list[float]:
    """The NaNs and infinities in a decoded record, which no JSON file can hold again."""
    waiting = [value]
    odd = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, float) and not math.isfinite(item):
            odd.append(item)
    return odd


def with_nulls(value: Any, depth: int = 0) -> Any:
    """The record with None for NaN and infinities; what is nested too deeply is None, too."""
    if depth > _DEEPEST or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, dict):
        return {key: with_nulls(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [with_nulls(item, depth + 1) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Intake:
    """Turns the records of one source into documents.

    A record that cannot become a document is skipped and reported.
    `label_separator` separates the labels in one cell of a table. A record
    without an id gets one from its text, so that it has the same id in every
    file and on every line; the same text again in one source is numbered.
    """

    source_name: str
    report: ReadReport
    label_separator: str = "|"
    _texts: set[int] = field(default_factory=set)
    _repeats: Counter[int] = field(default_factory=Counter)

    def take(self, record: object, where: str, *, needs_id: bool = True) -> Iterator[Document]:
        """Yield the document that `record` describes, or nothing if it is skipped."""
        odd = not_finite(record)
        if odd:
            values = ", ".join(map(json.dumps, odd[:_SHOWN_VALUES]))
            message = f"{values} is not a number that JSON has and was read as null"
            self.report.note(self.source_name, where, message)
        try:
            document = document_from_record(
                with_nulls(record) if odd else record,
                needs_id=needs_id,
                label_separator=self.label_separator,
                note=lambda message: self.report.note(self.source_name, where, message),
            )
        except RecordError as error:
            self.report.skip(self.source_name, where, str(error))
        else:
            yield document if document.id else replace(document, id=self._text_id(document))

    def _text_id(self, document: Document) -> str:
        """An id made from the text, with a number if the text has occurred before."""
        checksum = text_checksum(document.text)
        identifier = f"text-{checksum & 0xFFFF_FFFF_FFFF_FFFF:016x}"
        if checksum not in self._texts:
            self._texts.add(checksum)
            return identifier
        self._repeats[checksum] += 1
        return f"{identifier}-{self._repeats[checksum] + 1}"

    def take_json(self, text: str, where: str) -> Iterator[Document]:
        """Like `take`, for a record that is still JSON text."""
        for record in self.parse(text, where):
            yield from self.take(record, where)

    def parse(self, text: str, where: str) -> Iterator[object]:
        """Yield the JSON value in `text`; broken JSON is reported and yields nothing."""
        try:
            yield parse_json(text)
        except RecordError as error:
            self.report.skip(self.source_name, where, str(error))
