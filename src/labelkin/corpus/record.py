"""Converts a decoded record (a JSON object, a table row) to a Document or a Correction.

This module is the one place that knows the key names of the sources: BioASQ
uses `abstractText` and `meshMajor`, Annif `text` and `subjects`, others
`abstract` and `labels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from labelkin.corpus.document import Correction, Document
from labelkin.corpus.language import normalise_language
from labelkin.corpus.revision import parse_revision
from labelkin.corpus.text import (
    clean_label,
    clean_text,
    has_control_characters,
    is_broken,
    is_valid_id,
)

ID_KEYS = ("id", "document_id", "pmid")
TITLE_KEYS = ("title",)
BODY_KEYS = ("abstract", "abstractText", "body", "text")
LABEL_KEYS = ("labels", "subjects", "meshMajor", "headings", "decsCodes")
LANGUAGE_KEYS = ("language", "lang")
REVISION_KEYS = ("revision", "date_revised", "dateRevised")
MAJOR_KEY = "major_labels"
_DEEPEST_METADATA = 50
_LABEL_ID_KEYS = ("id", "uri", "ui")
_LABEL_NAME_KEYS = ("name", "label")
#: Why a correction is refused that lists labels and names none.
BLANK_LABELS = 'the labels are blank; "labels": [] removes all headings'


Note = Callable[[str], None]


def _ignore(message: str) -> None:
    """The default `note` callback, which drops the message."""


class RecordError(ValueError):
    """A record that cannot become a document; the message says why."""


def document_from_record(
    record: object,
    *,
    needs_id: bool = True,
    label_separator: str = "|",
    note: Note = _ignore,
    where: str = "",
) -> Document:
    """The document that `record` describes; RecordError if it has no text or no usable id.

    An id is kept as it is or refused. Without `needs_id`, a record without an
    id gives a document with an empty one. `note` is called with a message for
    each value that had to be repaired. `where` is the place of the record.

    Unknown keys are kept as metadata. The first of several texts (`abstract`,
    `body`, `text`) is the body; the others and the members of `fields` are
    further text fields.
    """
    if not isinstance(record, dict):
        raise RecordError(f"{_kind(record)} where a record was expected")
    rest: dict[str, Any] = dict(record)
    identifier = _identifier(_take(rest, ID_KEYS), needs_id=needs_id)
    title = _text(_take(rest, TITLE_KEYS), "title", note)
    texts = {key: _text(rest.pop(key), key, note) for key in BODY_KEYS if key in rest}
    body_key = next((key for key, text in texts.items() if text), None)
    fields = {key: text for key, text in texts.items() if text and key != body_key}
    fields.update(_text_fields(rest.pop("fields", None), note))
    labels, names, major = _take_headings(rest, label_separator, note)
    revision = _take_revision(rest, note)
    body = texts[body_key] if body_key else ""
    if not (title or body or fields):
        raise RecordError("no text: title and abstract are missing or empty")
    return Document(
        id=identifier,
        title=title,
        body=body,
        fields=fields,
        language=_language(_take(rest, LANGUAGE_KEYS), note),
        metadata=_metadata(rest, note),
        labels=labels,
        label_names=names,
        major_labels=major,
        revision=revision,
        where=where,
    )


def has_text(record: Mapping[str, Any]) -> bool:
    """Whether a record has a text, or something else in its place that has to be reported."""
    further = record.get("fields")
    values = [record.get(key) for key in (*TITLE_KEYS, *BODY_KEYS)]
    values += further.values() if isinstance(further, Mapping) else [further]
    return any(value.strip() if isinstance(value, str) else value is not None for value in values)


def lacking(document: Document, record: Mapping[str, Any]) -> tuple[str, ...]:
    """What a record leaves open of its document: a body, and labels unless they are `[]`."""
    has_labels = document.labels or any(record.get(key) == [] for key in LABEL_KEYS)
    given = {"body": document.body or document.fields, "labels": has_labels}
    return tuple(name for name, value in given.items() if not value)


def correction_from_record(
    record: Mapping[str, Any],
    *,
    label_separator: str = "|",
    note: Note = _ignore,
    where: str = "",
) -> Correction:
    """The correction that a record without a text describes: an id and all headings.

    An empty list of labels removes the headings of the document; RecordError if
    there is no list, or nothing but blanks in it. Other keys are reported.
    """
    rest = {key: value for key, value in record.items() if value not in (None, "")}
    identifier = _identifier(_take(rest, ID_KEYS), needs_id=True)
    given = next((rest[key] for key in LABEL_KEYS if key in rest), None)
    if given is None:
        raise RecordError('neither a text nor labels; "labels": [] removes all headings')
    labels, names, major = _take_headings(rest, label_separator, note)
    if not labels and given != []:
        raise RecordError(BLANK_LABELS)
    revision = _take_revision(rest, note)
    ignored = [key for key in rest if key not in (*TITLE_KEYS, *BODY_KEYS, "fields")]
    if ignored:
        note(f"without a text, only labels are stored; ignored: {', '.join(ignored)}")
    return Correction(identifier, labels, names, major, revision, where)


def _take_headings(
    rest: dict[str, Any], separator: str, note: Note
) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """Remove and return labels, their names, and those of them that are major."""
    given = _take(rest, LABEL_KEYS)
    labels, names = labels_of(given, separator, note)
    major = marked_labels(given) | set(labels_of(rest.pop(MAJOR_KEY, None), separator, note)[0])
    names.update(_label_names(rest.pop("label_names", None)))
    named = {label: names[label] for label in labels if label in names}
    return labels, named, _major(labels, major, note)


def _take_revision(rest: dict[str, Any], note: Note) -> str | None:
    """Remove and return the revision; a value that is none stays in `rest`."""
    for key in REVISION_KEYS:
        value = rest.get(key)
        if value in (None, ""):
            continue
        revision = parse_revision(value)
        if revision is not None:
            del rest[key]
            return revision
        note(f'{value!r} in "{key}" is neither a date nor a version number: not a revision')
    return None


def lift_title(record: dict[str, Any]) -> dict[str, Any]:
    """An Annif record with the title moved from its metadata to the top level."""
    metadata = record.get("metadata")
    if not isinstance(metadata, dict) or "title" in record or "title" not in metadata:
        return record
    rest = {key: value for key, value in metadata.items() if key != "title"}
    return {**record, "title": metadata["title"], "metadata": rest}


def labels_of(
    value: object, separator: str = "|", note: Note = _ignore
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Distinct labels in source order, and the names given beside ids."""
    if value is None:
        return (), {}
    if isinstance(value, str):
        value = value.split(separator)
    if not isinstance(value, list):
        raise RecordError(f"labels are {_kind(value)}, not a list")
    labels: dict[str, None] = {}
    names: dict[str, str] = {}
    for item in value:
        label, name = _label(item, note)
        if label:
            labels.setdefault(label)
            if name:
                names[label] = name
    return tuple(labels), names


def _label(item: object, note: Note) -> tuple[str, str]:
    if isinstance(item, Mapping):
        label = _one_label(_first(item, _LABEL_ID_KEYS), note)
        name = _one_label(_first(item, _LABEL_NAME_KEYS), note)
        return (label, name) if label else (name, "")
    return _one_label(item, note), ""


def marked_labels(value: object) -> set[str]:
    """The labels that are objects with `"major": true`."""
    if not isinstance(value, list):
        return set()
    marked = (item for item in value if isinstance(item, Mapping) and item.get("major") is True)
    return {_label(item, _ignore)[0] for item in marked}


def _major(labels: tuple[str, ...], major: set[str], note: Note) -> tuple[str, ...]:
    """The major labels in the order of all labels."""
    unknown = sorted(major.difference(labels))
    if unknown:
        note(f"the major label {unknown[0]!r} is not among the labels and was ignored")
    return tuple(label for label in labels if label in major)


def _one_label(value: object, note: Note) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise RecordError(f"a label is {_kind(value)}, not a string")
    label = strip_brackets(clean_label(value))
    if has_control_characters(value):
        note(f"control characters in a label: {value!r} was read as {label!r}")
    return label


def strip_brackets(uri: str) -> str:
    """Remove the angle brackets that Annif puts around URIs: `<uri>` → `uri`."""
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def _take(record: dict[str, Any], keys: Sequence[str]) -> object:
    """Remove and return the first of `keys` with a value; the other keys stay in `record`.

    If none has a value, all of them are removed.
    """
    for key in keys:
        if record.get(key) not in (None, ""):
            return record.pop(key)
    for key in keys:
        record.pop(key, None)
    return None


def _first(mapping: Mapping[str, Any], keys: Sequence[str]) -> object:
    return next((mapping[key] for key in keys if mapping.get(key)), None)


def _identifier(value: object, *, needs_id: bool) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise RecordError(f"the id is {_kind(value)}, not a string or an integer")
    identifier = value or ""
    if not identifier.strip():
        if needs_id:
            raise RecordError("no id")
        return ""
    return checked_id(identifier)


def checked_id(identifier: str) -> str:
    """`identifier` itself; RecordError if no document can have it."""
    if not is_valid_id(identifier):
        raise RecordError(f"the id {identifier!r} has a line break, tab or other control character")
    return identifier


def _text(value: object, key: str, note: Note = _ignore) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        if is_broken(value):
            note(f'NUL characters or lone surrogates in "{key}" were replaced by spaces')
        return clean_text(value)
    raise RecordError(f'"{key}" is {_kind(value)}, not a string')


def _text_fields(value: object, note: Note) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise RecordError(f'"fields" is {_kind(value)}, not an object')
    texts = {clean_label(str(key)): _text(text, str(key), note) for key, text in value.items()}
    return {key: text for key, text in texts.items() if key and text}


def _label_names(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise RecordError(f'"label_names" is {_kind(value)}, not an object')
    return {clean_label(str(key)): clean_label(_text(name, "name")) for key, name in value.items()}


def _language(value: object, note: Note) -> str | None:
    if value is None:
        return None
    language = normalise_language(value) if isinstance(value, str) else None
    if language is None:
        note(f"{value!r} is not a language code and was ignored")
    return language


def _metadata(rest: dict[str, Any], note: Note) -> dict[str, Any]:
    nested = rest.pop("metadata", None)
    if nested is not None and not isinstance(nested, Mapping):
        raise RecordError(f'"metadata" is {_kind(nested)}, not an object')
    merged = {**rest, **(nested or {})}
    if _deeper_than(_DEEPEST_METADATA, merged):
        raise RecordError("metadata nested too deeply")
    return {
        clean_label(str(key)): _text(value, str(key), note) if isinstance(value, str) else value
        for key, value in merged.items()
        if value not in (None, "")
    }


def _deeper_than(limit: int, value: object) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            item
            for inner in level
            if isinstance(inner, dict | list)
            for item in (inner.values() if isinstance(inner, dict) else inner)
        ]
        if not level:
            return False
    return True


_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a number" if isinstance(value, int | float) else "a value")
