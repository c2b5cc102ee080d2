from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus

Write = Callable[[str, str | bytes], Path]

RECORD = '{"id": "1", "title": "x", "year": NaN, "more": {"a": [1.5, -Infinity, 1e999]}}'


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("c.jsonl", RECORD, "line 1"),
        ("c.jsonl", RECORD.replace('"id"', '"document_id"').replace("title", "text"), "line 1"),
        ("c.json", f'{{"articles": [\n{RECORD}\n]}}', "line 2"),
    ],
)
def test_numbers_that_json_does_not_have_are_reported(
    name: str, content: str, where: str, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    (document,) = read_corpus(write(name, content)).documents()
    assert "year" not in document.metadata
    assert document.metadata["more"] == {"a": [1.5, None, None]}
    json.dumps(document.metadata, allow_nan=False)
    (message,) = caplog.messages
    assert f"{where}: " in message
    for value in ("NaN", "-Infinity", "Infinity"):
        assert value in message


def test_a_number_too_large_in_other_layouts(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    text = '[\n{\n"id": "1", "title": "x",\n"year": 1e999}]'
    corpus = read_corpus(write("c.json", text))
    assert [(one.id, one.metadata) for one in corpus.documents()] == [("1", {})]
    assert "article 1: Infinity is not a number that JSON has" in caplog.messages[0]


def test_finite_numbers_and_deep_records_are_left_alone(write: Write) -> None:
    nested = "[" * 300 + "NaN" + "]" * 300
    text = f'{{"id": "1", "title": "x", "n": 2.5}}\n{{"id": "2", "title": "x", "n": {nested}}}\n'
    corpus = read_corpus(write("c.jsonl", text))
    assert [(d.id, d.metadata) for d in corpus.documents()] == [("1", {"n": 2.5})]
    assert corpus.report.skipped == 1
