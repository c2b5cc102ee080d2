"""Reads predictions in JSON.

| source | content |
|---|---|
| `labelkin annotate` | lines of `{"id", "suggestions": [{"id", "name", "score"}, …]}` |
| `labelkin suggest --json` | a list of these |
| `annif index` | lines of `{"document_id", "results": [{"uri", "label", "score"}, …]}` |
| BioASQ submissions | `{"documents": [{"pmid", "labels": […]}, …]}` |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from labelkin.corpus.bioasq import OPENING
from labelkin.corpus.formats import recognised
from labelkin.corpus.json_values import parse_line, spans_lines, stream_values
from labelkin.corpus.record import (
    BODY_KEYS,
    ID_KEYS,
    LABEL_KEYS,
    TITLE_KEYS,
    RecordError,
    labels_of,
)
from labelkin.corpus.source import Source
from labelkin.evaluate.label_file import LabelFile, number_of, place
from labelkin.exceptions import DamagedFileError

_LISTS = ("suggestions", "results")


def json_label_file(path: Path) -> LabelFile | None:
    """The predictions in a JSON file, or None if it is not JSON or holds a corpus."""
    with Source(path) as source:
        format_name = recognised(source)
        if format_name == "bioasq":
            opening = OPENING.match(source.head.decode("utf-8", "replace"))
            key = opening.group("key") if opening else None
            return _collected(source.name, _stream(source, f"{key}.item" if key else "item"))
        if format_name in ("jsonl", "annif-jsonl"):
            return _collected(source.name, _lines(source))
        return None


def _lines(source: Source) -> Iterator[tuple[str, Any]]:
    """Records with their place; None for a line that is not JSON."""
    if spans_lines(source.head):
        yield from _stream(source, "")
        return
    for number, line in source.lines():
        if line.strip():
            records: list[Any] = [None]
            with suppress(RecordError):
                records = parse_line(line)
            yield from ((f"line {number}", record) for record in records)


def _stream(source: Source, prefix: str) -> Iterator[tuple[str, Any]]:
    for number, record in enumerate(stream_values(source, prefix), start=1):
        yield f"record {number}", record


def _collected(path: str, records: Iterator[tuple[str, Any]]) -> LabelFile | None:
    """All predictions, or None if the first record is not a prediction."""
    file = LabelFile(path, has_ids=False)
    for number, (where, record) in enumerate(records, start=1):
        if number == 1 and not _is_prediction(record):
            return None
        try:
            _add(file, record, number)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"{where} is not a list of suggestions") from error
    return file if file.labels else None


def _is_prediction(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    has_text = any(record.get(key) for key in (*TITLE_KEYS, *BODY_KEYS))
    return _scored(record) is not None or (_unscored(record) is not None and not has_text)


def _scored(record: dict[str, Any]) -> list[Any] | None:
    """The list of labels with scores, if the record has one."""
    lists = (record.get(key) for key in _LISTS)
    return next((labels for labels in lists if isinstance(labels, list)), None)


def _unscored(record: dict[str, Any]) -> object:
    """The labels without scores, if the record has some."""
    return next((record[key] for key in LABEL_KEYS if record.get(key) is not None), None)


def _add(file: LabelFile, record: Any, number: int) -> None:
    identifier = next((record[key] for key in ID_KEYS if record.get(key) not in (None, "")), None)
    file.has_ids |= identifier is not None
    document = place(number) if identifier is None else str(identifier)
    scored = _scored(record)
    if scored is None:
        unscored = _unscored(record)
        if unscored is None:
            raise ValueError("no labels")
        labels, names = labels_of(unscored)
        file.add_ordered(document, labels)
        file.names.update({**names, **(record.get("label_names") or {})})
        return
    file.begin(document)
    for item in scored:
        # labelkin writes id and name, Annif uri and label.
        label, name = ("uri", "label") if "uri" in item else ("id", "name")
        if item[label] in (None, ""):
            raise ValueError(f"no {label}")
        file.add(document, str(item[label]), number_of(item["score"]), str(item.get(name) or ""))
