"""How the desk writes its values: documents and other JSON as text, times in UTC."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from labelkin.corpus.document import Document
from labelkin.corpus.intake import with_nulls
from labelkin.corpus.record import document_from_record
from labelkin.corpus.writers import to_record
from labelkin.store.rows import storable


def as_text(value: Any) -> str:
    """A value as JSON; what JSON or UTF-8 cannot hold (NaN, half a character) is replaced."""
    return storable(json.dumps(with_nulls(value), ensure_ascii=False))


def document_text(document: Document) -> str:
    """A document as the JSON that `document_of` reads."""
    return as_text(to_record(document))


def document_of(text: str) -> Document:
    """The document that `document_text` wrote."""
    return document_from_record(json.loads(text), needs_id=False)


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
