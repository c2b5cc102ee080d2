"""The items of a corpus: documents, and corrections and deletions of documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labelkin.corpus.revision import parse_revision
from labelkin.exceptions import InputError

# Why the metadata or fields of a document cannot be stored or written.
NOT_JSON = "metadata can hold strings, finite numbers, booleans, lists and mappings only"


@dataclass(frozen=True, slots=True)
class Document:
    """A text and, where known, the headings assigned to it.

    `labels` holds them as the source wrote them (ids, URIs or names); a
    vocabulary resolves them. `label_names` maps a label to the name that the
    source gives beside it, so that an id missing from the vocabulary can still
    be resolved by name. `major_labels` are those of the labels that the source
    marks as the document's main topics. `revision` is a date or a version
    number: a collection leaves out a record that is older than the stored one.
    `lacks` names what a record that is to correct a stored document does not
    say, `body` or `labels`: the collection never loses them by it.
    `where` is the place that it was read from, for messages.
    """

    id: str
    title: str = ""
    body: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    language: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    label_names: Mapping[str, str] = field(default_factory=dict)
    major_labels: tuple[str, ...] = ()
    revision: str | None = None
    lacks: tuple[str, ...] = field(default=(), compare=False, repr=False)
    where: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse values that would be taken for something else, such as letters for labels."""
        for name in ("id", "title", "body"):
            if not isinstance(value := getattr(self, name), str):
                raise InputError(
                    f"document {self.id!r}: {name} is {value!r}, which is not a string"
                )
        _check_labels(self)
        _check_revision(self)
        if not isinstance(self.fields, Mapping):
            raise InputError(
                f"document {self.id!r}: fields is {self.fields!r}; give names and texts"
            )

    @property
    def text(self) -> str:
        """Title, body and further fields, one per line: the text that is indexed."""
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
    """A source's notice that a document is withdrawn (PubMed's `DeleteCitation`)."""

    id: str


@dataclass(frozen=True, slots=True)
class Correction:
    """New headings for a stored document, whose text stays; the fields are those of `Document`."""

    id: str
    labels: tuple[str, ...] = ()
    label_names: Mapping[str, str] = field(default_factory=dict)
    major_labels: tuple[str, ...] = ()
    revision: str | None = None
    where: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse values that would be taken for something else, such as letters for labels."""
        if not isinstance(self.id, str):
            raise InputError(f"correction {self.id!r}: the id is not a string")
        _check_labels(self)
        _check_revision(self)

    @classmethod
    def of(cls, document: Document) -> Correction:
        """The headings of a document alone."""
        return cls(
            document.id,
            document.labels,
            document.label_names,
            document.major_labels,
            document.revision,
            document.where,
        )

    def applied_to(self, document: Document) -> Document:
        """The document with these headings."""
        return replace(
            document,
            labels=self.labels,
            label_names=self.label_names,
            major_labels=self.major_labels,
            revision=self.revision or document.revision,
        )


CorpusItem = Document | Correction | Deletion


def _check_labels(item: Document | Correction) -> None:
    for name in ("labels", "major_labels"):
        value = getattr(item, name)
        if isinstance(value, str) or value is None:
            kind = type(item).__name__.lower()
            raise InputError(f"{kind} {item.id!r}: {name} is {value!r}; give a tuple of strings")


def _check_revision(item: Document | Correction) -> None:
    """Write the revision in the one form that can be compared."""
    if item.revision is None:
        return
    revision = parse_revision(item.revision)
    if revision is None:
        kind = type(item).__name__.lower()
        raise InputError(
            f"{kind} {item.id!r}: revision is {item.revision!r}; give a date such as '2024-03-05' "
            "or a version number"
        )
    object.__setattr__(item, "revision", revision)
