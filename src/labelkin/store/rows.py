"""How documents and concepts are written in the database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from labelkin.corpus.document import NOT_JSON, Document
from labelkin.corpus.revision import year_in
from labelkin.corpus.text import text_checksum
from labelkin.exceptions import InputError
from labelkin.store.label_sets import COLUMN_TYPE
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

LABEL_COLUMNS = "labels, unresolved, heading_order"
DOCUMENT_COLUMNS = f"id, title, body, fields, language, metadata, {LABEL_COLUMNS}, revision"
# The indexes of labels in their own order.
_PLACE_TYPE = np.dtype("<i4")
# Characters of the text that stand in for a missing title.
_BEGINNING = 200
HEADLINE_COLUMNS = (
    f"id, title, CASE WHEN trim(title) = '' THEN substr(body, 1, {_BEGINNING}) END, "
    "CASE WHEN trim(title) = '' AND body = '' THEN fields END, metadata"
)
_TUPLES = ("notations", "broader", "related", "schemes", "replaced_by")

Values = tuple[Any, ...]


class Headline(NamedTuple):
    """What stands for a document in a list: the beginning of its text if it has no title."""

    id: str
    title: str
    year: int | None


@dataclass(slots=True)
class ResolvedLabels:
    """The labels of a document in its source's order: columns of the vocabulary, or strings.

    `unresolved` maps those that the vocabulary lacks to their names.
    """

    order: dict[int | str, None] = field(default_factory=dict)
    major: set[int | str] = field(default_factory=set)
    unresolved: dict[str, str] = field(default_factory=dict)

    @classmethod
    def stored(cls, labels: bytes, unresolved: str | None, order: bytes | None) -> ResolvedLabels:
        """The labels in the values of LABEL_COLUMNS."""
        names: dict[str, str] = json.loads(unresolved) if unresolved else {}
        listed = (*np.frombuffer(labels, dtype=COLUMN_TYPE).tolist(), *names)
        places = range(len(listed)) if order is None else np.frombuffer(order, _PLACE_TYPE).tolist()
        resolved = cls()
        for place in places:
            label = listed[place if place >= 0 else ~place]
            resolved.add(label, names.get(label, ""), is_major=place < 0)
        return resolved

    def add(self, label: int | str, name: str = "", *, is_major: bool = False) -> None:
        """Append a label; one that is there already keeps its place."""
        self.order.setdefault(label)
        if is_major:
            self.major.add(label)
        if isinstance(label, str):
            self.unresolved[label] = name

    @property
    def columns(self) -> list[int]:
        """The columns, ascending."""
        return sorted(label for label in self.order if isinstance(label, int))

    def places(self, columns: list[int]) -> bytes | None:
        """For each label in order its index in (*columns, *unresolved), or ~index if major.

        None if the labels are in that order and none is major.
        """
        listed = (*columns, *self.unresolved)
        if not self.major and listed == tuple(self.order):
            return None
        known = {label: place for place, label in enumerate(listed)}
        places = [~known[label] if label in self.major else known[label] for label in self.order]
        return np.array(places, dtype=_PLACE_TYPE).tobytes()


def document_values(document: Document, labels: ResolvedLabels) -> Values:
    """The values of DOCUMENT_COLUMNS, their checksum, and the checksum of the text."""
    values = (
        document.id,
        storable(document.title),
        storable(document.body),
        _dump(document.fields, document.id),
        document.language,
        _dump(document.metadata, document.id),
        *_label_values(labels, document.id),
        document.revision,
    )
    return (*values, document_checksum(values), text_checksum(document.text))


def corrected_values(values: Values, labels: ResolvedLabels, revision: str | None) -> Values:
    """What a correction changes of DOCUMENT_COLUMNS, its last, and the checksum of all."""
    identifier, *_ = values
    return checked_values(values, (*_label_values(labels, identifier), revision))


def checked_values(values: Values, changed: Values) -> Values:
    """LABEL_COLUMNS and the revision, and the checksum of all with these in place of their own."""
    return (*changed, document_checksum((*values[: -len(changed)], *changed)))


def _label_values(labels: ResolvedLabels, identifier: str) -> Values:
    columns = labels.columns
    return (
        np.array(columns, dtype=COLUMN_TYPE).tobytes(),
        _dump(labels.unresolved, identifier),
        labels.places(columns),
    )


def document_checksum(values: Values) -> bytes:
    """The checksum that belongs to the values of DOCUMENT_COLUMNS."""
    # The order counts where there is one to keep: other checksums are as in version 0.1. The
    # revision does not count: a record that is revised but the same changes no row.
    *others, order, _revision = values
    checksum = hashlib.blake2b(digest_size=16)
    for value in others if order is None else (*others, order):
        content = value if isinstance(value, bytes) else (value or "").encode("utf-8")
        checksum.update(len(content).to_bytes(8, "little") + content)
    return checksum.digest()


def document_from_values(values: Values, vocabulary: Vocabulary) -> Document:
    """The document in DOCUMENT_COLUMNS, with its labels as ids and their names."""
    identifier, title, body, fields, language, metadata, *stored, revision = values
    labels = ResolvedLabels.stored(*stored)
    concepts = {column: vocabulary[column] for column in labels.columns}
    ids = {label: concepts[label].id if isinstance(label, int) else label for label in labels.order}
    names = {concept.id: concept.name() for concept in concepts.values() if concept.names}
    return Document(
        id=identifier,
        title=title,
        body=body,
        fields=json.loads(fields) if fields else {},
        language=language,
        metadata=json.loads(metadata) if metadata else {},
        labels=tuple(ids.values()),
        label_names={
            label: name
            for label, name in {**names, **labels.unresolved}.items()
            if name and name != label
        },
        major_labels=tuple(ids[label] for label in labels.order if label in labels.major),
        revision=revision,
    )


def text_from_values(values: Values) -> Document:
    """The document in (id, title, body, fields, language), without labels and metadata."""
    identifier, title, body, fields, language = values
    return Document(
        id=identifier,
        title=title,
        body=body,
        fields=json.loads(fields) if fields else {},
        language=language,
    )


def headline_from_values(values: Values) -> Headline:
    """The headline in the values of `HEADLINE_COLUMNS`."""
    identifier, title, body, fields, metadata = values
    if not title.strip() and not (title := body or ""):
        title = next(iter(json.loads(fields).values()), "")[:_BEGINNING] if fields else ""
    year = json.loads(metadata).get("year") if metadata and '"year"' in metadata else None
    return Headline(identifier, " ".join(title.split()), year_in(year))


def concept_to_json(concept: Concept) -> str:
    """A concept as JSON, without empty fields."""
    filled = {key: value for key, value in asdict(concept).items() if value}
    return json.dumps(filled, ensure_ascii=False)


def concept_from_json(text: str) -> Concept:
    """The concept that `concept_to_json` wrote."""
    content = json.loads(text)
    for key in _TUPLES:
        content[key] = tuple(content.get(key, ()))
    content["synonyms"] = {
        language: tuple(names) for language, names in content.get("synonyms", {}).items()
    }
    content.setdefault("names", {})
    content["groups"] = _shared_groups(
        tuple((group, tuple(names)) for group, names in content.get("groups", {}).items())
    )
    return Concept(**content)


@lru_cache(maxsize=10_000)
def _shared_groups(groups: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, tuple[str, ...]]:
    """The groups of a concept as one object for all concepts that have the same."""
    return dict(groups)


def _dump(value: Mapping[str, Any], identifier: str) -> str | None:
    if not value:
        return None
    try:
        return storable(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"document {identifier!r}: {NOT_JSON} ({error})") from error


def storable(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
