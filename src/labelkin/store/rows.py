"""How documents and concepts are written in the database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.store.label_sets import COLUMN_TYPE, Columns
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary

DOCUMENT_COLUMNS = "id, title, body, fields, language, metadata, labels, unresolved"
_TUPLES = ("notations", "broader", "related", "schemes", "replaced_by")

Values = tuple[Any, ...]


def document_values(document: Document, columns: Columns, unresolved: dict[str, str]) -> Values:
    """The values of DOCUMENT_COLUMNS and, last, their checksum."""
    values = (
        storable(document.id),
        storable(document.title),
        storable(document.body),
        _dump(document.fields),
        document.language,
        _dump(document.metadata),
        columns.astype(COLUMN_TYPE, copy=False).tobytes(),
        _dump(unresolved),
    )
    return (*values, _checksum(values))


def document_checksum(values: Values) -> bytes:
    """The checksum that belongs to the values of DOCUMENT_COLUMNS."""
    return _checksum(values)


def document_from_values(values: Values, vocabulary: Vocabulary) -> Document:
    """The document in DOCUMENT_COLUMNS, with its labels as ids and their names."""
    identifier, title, body, fields, language, metadata, labels, unresolved = values
    concepts = [vocabulary[column] for column in np.frombuffer(labels, dtype=COLUMN_TYPE)]
    others: dict[str, str] = json.loads(unresolved) if unresolved else {}
    names = {concept.id: concept.name() for concept in concepts if concept.names}
    return Document(
        id=identifier,
        title=title,
        body=body,
        fields=json.loads(fields) if fields else {},
        language=language,
        metadata=json.loads(metadata) if metadata else {},
        labels=(*(concept.id for concept in concepts), *others),
        label_names={
            label: name for label, name in {**names, **others}.items() if name and name != label
        },
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
    return Concept(**content)


def _checksum(values: Values) -> bytes:
    checksum = hashlib.blake2b(digest_size=16)
    for value in values:
        content = value if isinstance(value, bytes) else (value or "").encode("utf-8")
        checksum.update(len(content).to_bytes(8, "little") + content)
    return checksum.digest()


def _dump(value: Mapping[str, Any]) -> str | None:
    return storable(json.dumps(value, ensure_ascii=False)) if value else None


def storable(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
