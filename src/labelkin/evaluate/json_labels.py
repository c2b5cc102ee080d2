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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labelkin.corpus.bioasq import OPENING
from labelkin.corpus.corpus import is_recognised, recognise
from labelkin.corpus.record import BODY_KEYS, ID_KEYS, LABEL_KEYS, TITLE_KEYS, labels_of
from labelkin.corpus.source import Source
from labelkin.evaluate.label_file import LabelFile, number_of, place
from labelkin.exceptions import DamagedFileError

_LISTS = ("suggestions", "results")


def json_label_file(path: Path) -> LabelFile | None:
    """The predictions in a JSON file; None if it is none, or holds a corpus."""
    with Source(path) as source:
        form = recognise(source).name if is_recognised(source) else ""
        if form in ("jsonl", "annif-jsonl"):
            return _collected(source.name, _lines(source))
        if form != "bioasq":
            return None
        opening = OPENING.match(source.head.decode("utf-8", "replace"))
        key = opening.group("key") if opening else None
        return _collected(source.name, _stream(source, f"{key}.item" if key else "item"))


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
        for record in ijson.items(source.stream, prefix, use_float=True):
            number += 1
            yield f"record {number}", record
    except ijson.JSONError as error:
        raise DamagedFileError(f"broken JSON after record {number}") from error


def _collected(path: str, records: Iterator[tuple[str, Any]]) -> LabelFile | None:
    """All predictions; None where the first record is that of a corpus."""
    found = LabelFile(path)
    for number, (where, record) in enumerate(records, start=1):
        if number == 1 and not _is_prediction(record):
            return None
        try:
            _take(found, record, number)
        except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
            raise DamagedFileError(f"{where} is no list of suggestions") from error
    return found if found.labels else None


def _is_prediction(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    has_text = any(record.get(key) for key in (*TITLE_KEYS, *BODY_KEYS))
    has_labels = any(key in record for key in LABEL_KEYS)
    return any(key in record for key in _LISTS) or (has_labels and not has_text)


def _take(found: LabelFile, record: Any, number: int) -> None:
    identifier = next((record[key] for key in ID_KEYS if record.get(key) is not None), None)
    if identifier is None:
        found.has_ids = False
    document = place(number) if identifier is None else str(identifier)
    given = next((record[key] for key in _LISTS if key in record), None)
    if given is None:
        labels, names = labels_of(next(record[key] for key in LABEL_KEYS if key in record))
        found.add_ordered(document, labels)
        found.names.update(names)
        return
    found.begin(document)
    for one in given:
        # Ours say id and name, Annif's uri and label.
        label, name = ("uri", "label") if "uri" in one else ("id", "name")
        found.add(document, str(one[label]), number_of(one["score"]), str(one.get(name) or ""))
