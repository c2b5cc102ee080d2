from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus

Write = Callable[[str, str | bytes], Path]


def test_records(write: Write) -> None:
    path = write(
        "c.jsonl",
        '{"id": "a", "title": "T", "abstract": "B", "labels": ["x"], "language": "eng", "n": 1}\n'
        "\n"
        '{"id": 2, "title": "U"}\n',
    )
    corpus = read_corpus(path)
    first, second = corpus.documents()
    assert (first.id, first.language, first.metadata) == ("a", "en", {"n": 1})
    assert (second.id, second.labels) == ("2", ())
    assert corpus.report.without_labels == 1


def test_bad_lines_are_named(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("c.jsonl", '{"id": "a", "title": "T"}\n{"id": \n{"title": "no id"}\n[1]\nnull\n')
    corpus = read_corpus(path, format="jsonl")
    assert len(list(corpus)) == 1
    assert corpus.report.skipped == 4
    where = [message.split(": ", 1)[0] for message in caplog.messages]
    assert where == [f"{path}, line {number}" for number in (2, 3, 4, 5)]


def test_deep_nesting_does_not_crash(write: Write) -> None:
    path = write(
        "c.jsonl", '{"id": "a", "title": ' + "[" * 200_000 + "\n" + '{"id":"b","title":"x"}'
    )
    corpus = read_corpus(path)
    assert [document.id for document in corpus.documents()] == ["b"]


def test_annif(write: Write) -> None:
    record = {
        "document_id": "77",
        "text": "Long text",
        "metadata": {"title": "Title", "year": 2001},
        "subjects": [{"uri": "http://e.org/1", "label": "One"}],
    }
    without_id = {"text": "Other text", "subjects": []}
    path = write("c.jsonl", json.dumps(record) + "\n" + json.dumps(without_id) + "\n7\n")
    corpus = read_corpus(path)
    first, second = corpus.documents()
    assert (first.id, first.title, first.body) == ("77", "Title", "Long text")
    assert first.metadata == {"year": 2001}
    assert first.labels == ("http://e.org/1",)
    assert second.id.startswith("text-")
    assert corpus.report.skipped == 1
