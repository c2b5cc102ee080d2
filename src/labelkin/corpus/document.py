"""What a corpus is made of: documents, and notices that a document is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A text and, where known, the headings that people gave it.

    `labels` holds them as the source wrote them (ids, URIs or names); a
    vocabulary resolves them. `label_names` keeps the name that a source gives
    beside an id, so that an id the vocabulary lacks still has a chance by name.
    """

    id: str
    title: str = ""
    body: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    label_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Title, body and further fields, a line each: what represents the document."""
        return "\n".join(part for part in (self.title, self.body, *self.fields.values()) if part)

    def cut(self, limit: int) -> Document:
        """This document with no text part longer than `limit` characters."""
        parts = (self.title, self.body, *self.fields.values())
        if all(len(part) <= limit for part in parts):
            return self
        return replace(
            self,
            title=self.title[:limit],
            body=self.body[:limit],
            fields={name: text[:limit] for name, text in self.fields.items()},
        )


@dataclass(frozen=True, slots=True)
class Deletion:
    """A source's word that a document is withdrawn (PubMed's `DeleteCitation`)."""

    id: str
