"""Converts the records of all readers to documents or corrections; reports those it cannot."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from labelkin.corpus.checksum_set import ChecksumSet
from labelkin.corpus.document import Correction, Document
from labelkin.corpus.json_values import RepeatedKeys, parse_json, parse_line
from labelkin.corpus.record import (
    RecordError,
    correction_from_record,
    document_from_record,
    has_text,
    lacking,
)
from labelkin.corpus.report import ReadReport
from labelkin.corpus.text import text_checksum

_SHOWN_VALUES = 3
# Deeper records are refused (record.py).
_DEEPEST = 100


def not_finite(value: object) -> list[float]:
    """The NaNs and infinities in a decoded record, which no JSON file can hold again."""
    waiting = [value]
    not_finite_values = []
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, float) and not math.isfinite(item):
            not_finite_values.append(item)
    return not_finite_values


def with_nulls(value: Any, depth: int = 0) -> Any:
    """The record with None for NaN and infinities; what is nested too deeply is None, too."""
    if depth > _DEEPEST or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, dict):
        return {key: with_nulls(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [with_nulls(item, depth + 1) for item in value]
    return value


def id_of_text(text: str) -> str:
    """The id of a document that has none of its own."""
    return f"text-{text_checksum(text) & 0xFFFF_FFFF_FFFF_FFFF:016x}"


@dataclass(frozen=True, slots=True)
class Intake:
    """Turns the records of one source into documents.

    A record that cannot become a document is skipped and reported.
    `label_separator` separates the labels in one cell of a table. A record
    without an id gets one from its text, so that it has the same id in every
    file and on every line; the same text again in one source is numbered. With
    `corrections`, a record without a text is a correction, and documents say
    what they lack.
    """

    source_name: str
    report: ReadReport
    label_separator: str = "|"
    corrections: bool = False
    _texts: ChecksumSet = field(default_factory=ChecksumSet)
    _repeats: Counter[int] = field(default_factory=Counter)

    def take(
        self, record: object, where: str, *, needs_id: bool = True
    ) -> Iterator[Document | Correction]:
        """Yield what `record` describes, or nothing if it is skipped."""
        not_finite_values = not_finite(record)
        if not_finite_values:
            values = ", ".join(map(json.dumps, not_finite_values[:_SHOWN_VALUES]))
            message = f"{values} is not a number that JSON has and was read as null"
            self.report.note(self.source_name, where, message)
            record = with_nulls(record)
        common: dict[str, Any] = {
            "label_separator": self.label_separator,
            "note": lambda message: self.report.note(self.source_name, where, message),
            "where": self.place(where),
        }
        item: Document | Correction
        try:
            if self.corrections and isinstance(record, dict) and not has_text(record):
                item = correction_from_record(record, **common)
            else:
                item = document_from_record(record, needs_id=needs_id, **common)
                if self.corrections and isinstance(record, dict):
                    item = replace(item, lacks=lacking(item, record))
        except RecordError as error:
            self.report.skip(self.source_name, where, str(error))
            return
        if isinstance(item, Document) and not item.id:
            item = replace(item, id=self._text_id(item))
        yield item

    def place(self, where: str) -> str:
        """A place in the source with the name of the source."""
        return f"{self.source_name}, {where}" if self.source_name else where

    def _text_id(self, document: Document) -> str:
        """An id made from the text, with a number if the text has occurred before."""
        checksum = text_checksum(document.text)
        identifier = id_of_text(document.text)
        if self._texts.add(checksum):
            return identifier
        self._repeats[checksum] += 1
        return f"{identifier}-{self._repeats[checksum] + 1}"

    def parse(self, text: str, where: str) -> list[object]:
        """The JSON value in `text`; broken JSON is reported and gives none."""
        try:
            return [self.noted(parse_json(text), where)]
        except RecordError as error:
            self.report.skip(self.source_name, where, str(error))
            return []

    def parse_line(self, line: str, where: str) -> list[object]:
        """The JSON values on one line; broken JSON is reported and gives none."""
        try:
            return [self.noted(value, where) for value in parse_line(line)]
        except RecordError as error:
            self.report.skip(self.source_name, where, str(error))
            return []

    def noted(self, value: object, where: str) -> object:
        """The JSON value itself, after a report if one of its keys is repeated."""
        if isinstance(value, RepeatedKeys):
            message = f'the key "{value.key}" occurs twice; the last one counts'
            self.report.note(self.source_name, where, message)
        return value
