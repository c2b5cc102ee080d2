"""The documents in requests: those to suggest headings for, and those to store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import Request

from labelkin.corpus.document import Correction, Document
from labelkin.corpus.intake import Intake, with_nulls
from labelkin.corpus.record import RecordError, document_from_record, lift_title
from labelkin.corpus.report import ReadReport
from labelkin.messages import Record, SkippedRecord
from labelkin.serve.problems import ProblemError

# More of them are only counted: an answer must not grow with the number of bad records.
_LISTED = 1000


def media_type(request: Request) -> str:
    """The type of a request's body without parameters; empty if it has none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def query(record: Record) -> Document:
    """A record as a document to suggest headings for; a 422 if it cannot be one.

    One without a text is an empty document, for which nothing is suggested.
    """
    return query_of(record.model_dump(exclude_unset=True))


def query_of(record: dict[str, Any]) -> Document:
    """As `query`, of the JSON object itself."""
    try:
        return document_from_record(with_nulls(record), needs_id=False)
    except RecordError as error:
        if str(error).startswith("no text"):
            return Document(str(record.get("id") or ""))
        raise ProblemError(422, str(error)) from None


class RequestReport(ReadReport):
    """Lists the records that were skipped or repaired; logs nothing, for texts are private."""

    def __init__(self) -> None:
        super().__init__()
        self.left_out: list[SkippedRecord] = []
        self.repaired: list[SkippedRecord] = []

    def skip(self, source: str, where: str, reason: str) -> None:  # noqa: ARG002
        """List a record that cannot be used."""
        self.read += 1
        self.skipped += 1
        if len(self.left_out) < _LISTED:
            self.left_out.append(SkippedRecord(where=where, problem=reason))

    def note(self, source: str, where: str, message: str) -> None:  # noqa: ARG002
        """List a problem that did not cost a record."""
        self.problems += 1
        if len(self.repaired) < _LISTED:
            self.repaired.append(SkippedRecord(where=where, problem=message))


class Records:
    """Turns the records of one request into documents to be stored; reports the others.

    With `corrections`, records without a text are corrections.
    """

    def __init__(self, *, corrections: bool = False) -> None:
        self.report = RequestReport()
        self.ids: list[str] = []
        self._intake = Intake("", self.report, corrections=corrections)

    def items(self, records: Iterable[tuple[str, object]]) -> list[Document | Correction]:
        """The documents and corrections of records, which come with their places."""
        items = [
            item
            for where, record in records
            for item in self._intake.take(
                lift_title(record) if isinstance(record, dict) else record, where, needs_id=False
            )
        ]
        self.ids += [item.id for item in items[: max(_LISTED - len(self.ids), 0)]]
        return items

    def documents(self, records: Iterable[tuple[str, object]]) -> list[Document]:
        """The documents of records, which come with their places."""
        return [item for item in self.items(records) if isinstance(item, Document)]

    def on_line(self, line: str, where: str) -> list[tuple[str, object]]:
        """The records on one line of JSON Lines with their place."""
        return [(where, record) for record in self._intake.parse_line(line, where)]
