"""Predictions in JSON.

| whose | looks like |
|---|---|
| `labelkin annotate` | `{"id", "suggestions": [{"id", "name", "score"}, …]}` a line |
| `labelkin suggest --json` | a list of these |
| `annif index` | `{"document_id", "results": [{"uri", "label", "score"}, …]}` a line |
| BioASQ's submissions | `{"documents": [{"pmid", "labels": […]}, …]}` |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelkin.corpus.bioasq import OPENING
from labelkin.corpus.corpus import recognised
from labelkin.corpus.record import BODY_KEYS, ID_KEYS, LABEL_KEYS, TITLE_KEYS, labels_of
from labelkin.corpus.source import Source
from labelkin.evaluate.label_file import LabelFile, number_of, place
from labelkin.exceptions import DamagedFileError

_LISTS = ("suggestions", "results")
# What is sent to BioASQ says first who sends it.
_SUBMISSION = re.compile(rb'\s*\{(\s*"\w+"\s*:\s*"[^"]*"\s*,)+\s*"documents"\s*:\s*\[')


def json_label_file(path: Path) -> LabelFile | None:
    """The predictions in a JSON file; None if it is none, or holds a corpus."""
    with Source(path) as source:
        form = recognised(source)
        if form == "bioasq" or (form == "jsonl" and _SUBMISSION.match(source.head)):
            opening = OPENING.match(source.head.decode("utf-8", "replace"))
            key = opening.group("key") if opening else "documents"
            return _collected(source.name, _stream(source, f"{key}.item" if key else "item"))
        if form in ("jsonl", "annif-jsonl"):
            return _collected(source.name, _lines(source))
        return None


def _lines(source: Source) -> Iterator[tuple[str, Any]]:
    """Records by line; None stands for what is no JSON."""
    for number, line in source.lines():
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            yield f"line {number}", record


def _stream(source: Source, prefix: str) -> Iterator[tuple[str, Any]]:
    import ijson

    number = 0
    try:
        with source.damage_reported(lambda: f"after record {number}"):
            for record in ijson.items(source.stream, prefix, use_float=True):
                number += 1
                yield f"record {number}", record
    except ijson.JSONError as error:
        raise DamagedFileError(f"broken JSON after record {number}") from error


def _collected(path: str, records: Iterator[tuple[str, Any]]) -> LabelFile | None:
    """All predictions; None where the first record is that of a corpus."""
    found = LabelFile(path, has_ids=False)
    for number, (where, record) in enumerate(records, start=1):
        if number == 1 and not _is_prediction(record):
            return None
        try:
            _take(found, record, number)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"{where} is no list of suggestions") from error
    return found if found.labels else None


def _is_prediction(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    has_text = any(record.get(key) for key in (*TITLE_KEYS, *BODY_KEYS))
    return _given(record) is not None or (_labels(record) is not None and not has_text)


def _given(record: dict[str, Any]) -> list[Any] | None:
    """Labels with scores."""
    lists = (record.get(key) for key in _LISTS)
    return next((found for found in lists if isinstance(found, list)), None)


def _labels(record: dict[str, Any]) -> object:
    """Labels without scores."""
    return next((record[key] for key in LABEL_KEYS if record.get(key) is not None), None)


def _take(found: LabelFile, record: Any, number: int) -> None:
    identifier = next((record[key] for key in ID_KEYS if record.get(key) not in (None, "")), None)
    found.has_ids |= identifier is not None
    document = place(number) if identifier is None else str(identifier)
    given = _given(record)
    if given is None:
        if _labels(record) is None:
            raise ValueError("no labels")
        labels, names = labels_of(_labels(record))
        found.add_ordered(document, labels)
        found.names.update({**names, **(record.get("label_names") or {})})
        return
    found.begin(document)
    for one in given:
        # Ours say id and name, Annif's uri and label.
        label, name = ("uri", "label") if "uri" in one else ("id", "name")
        found.add(document, str(one[label]), number_of(one["score"]), str(one.get(name) or ""))
