"""Where every reader hands its records in: they become documents or are accounted for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from labelkin.corpus.document import Document
from labelkin.corpus.record import RecordError, document_from_record
from labelkin.corpus.report import ReadReport


@dataclass(frozen=True, slots=True)
class Intake:
    """Turns the records of one source into documents.

    A record that cannot become a document is skipped with a word to the report.
    `label_separator` parts the labels in one cell of a table.
    """

    source_name: str
    report: ReadReport
    label_separator: str = "|"

    def take(
        self, record: object, where: str, fallback_id: str | None = None
    ) -> Iterator[Document]:
        """The document that `record` describes, or nothing."""
        try:
            document = document_from_record(
                record,
                fallback_id=fallback_id,
                label_separator=self.label_separator,
                note=lambda message: self.report.note(self.source_name, where, message),
            )
        except RecordError as error:
            self.report.skip(self.source_name, where, str(error))
        else:
            yield document

    def take_json(self, text: str, where: str) -> Iterator[Document]:
        """As `take`, for a record that is still JSON text."""
        record = self.parse(text, where)
        if record is not None:
            yield from self.take(record, where)

    def parse(self, text: str, where: str) -> object | None:
        """The JSON value in `text`; None, with a word to the report, where it is broken."""
        try:
            return json.loads(text)  # type: ignore[no-any-return]
        except RecursionError:
            self.report.skip(self.source_name, where, "JSON nested too deeply")
        except ValueError as error:
            self.report.skip(self.source_name, where, f"broken JSON ({error})")
        return None
