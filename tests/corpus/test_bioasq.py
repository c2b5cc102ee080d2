from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus

Write = Callable[[str, str | bytes], Path]

ARTICLES = [
    {"pmid": str(number), "title": f"T{number} [x]", "abstractText": "A {}[]", "meshMajor": ["L"]}
    for number in range(4)
]
ON_LINES = '{"articles":[\n' + ",\n".join(json.dumps(article) for article in ARTICLES) + "\n]}\n"
LAYOUTS = {
    "one article a line": ON_LINES,
    "first article beside the opening": ON_LINES.replace("[\n", "[", 1),
    "list closed beside the last article": ON_LINES.replace("\n]}", "]}"),
    "pretty-printed": json.dumps({"articles": ARTICLES}, indent=2),
    "all on one line": json.dumps({"articles": ARTICLES}),
    "a plain list": json.dumps(ARTICLES),
    "a plain list, one a line": "[\n" + ",\n".join(map(json.dumps, ARTICLES)) + "\n]",
    "a test set": json.dumps({"documents": ARTICLES}),
    "comma first": '{"articles": [\n' + "\n,".join(map(json.dumps, ARTICLES)) + "\n]}",
    "two on a line": ON_LINES.replace("},\n", "}, ", 1),
    "with a byte order mark": "\ufeff" + json.dumps({"articles": ARTICLES}, indent=2),
    "opening on lines of its own": ON_LINES.replace('{"articles":[', '{\n"articles":\n['),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, write: Write) -> None:
    corpus = read_corpus(write("c.json", LAYOUTS[layout]))
    documents = list(corpus.documents())
    assert [document.id for document in documents] == ["0", "1", "2", "3"]
    assert documents[2].title == "T2 [x]"
    assert documents[2].labels == ("L",)
    assert documents[2].language == "en"
    assert corpus.report.skipped == 0
    assert not corpus.report.files_damaged


def test_objects_at_the_end_of_an_article(write: Write) -> None:
    article = '{"id": "1", "title": "x", "subjects": [{"uri": "u:2"}]}'
    corpus = read_corpus(write("c.json", f"[\n{article},\n{article}\n]"))
    assert [document.labels for document in corpus.documents()] == [("u:2",), ("u:2",)]
    assert corpus.report.skipped == 0


def test_language_is_assumed_for_pubmed_records_only(write: Write) -> None:
    records = [
        {"id": "1", "title": "x", "lang": "de"},
        {"id": "2", "title": "x"},
        {"pmid": "3", "title": "x", "language": "spa"},
        {"id": "4", "title": "x", "decsCodes": ["31"]},
    ]
    documents = list(read_corpus(write("c.json", json.dumps(records))).documents())
    assert [document.language for document in documents] == ["de", None, "es", None]
    assert documents[3].labels == ("31",)


def test_empty_list(write: Write) -> None:
    corpus = read_corpus(write("c.json", '{"articles":[\n]}'))
    assert list(corpus) == []
    assert not corpus.report.files_damaged


def test_broken_article_costs_that_article_only(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    broken = ON_LINES.replace('"T1 [x]"', '"T1 [x]').replace('"pmid": "2", ', "")
    corpus = read_corpus(write("c.json", broken))
    assert [document.id for document in corpus.documents()] == ["0", "3"]
    assert corpus.report.skipped == 2
    assert "line 3: broken JSON" in caplog.messages[0]
    assert "line 4: no id" in caplog.messages[1]


@pytest.mark.parametrize("text", [ON_LINES[:-30], json.dumps({"articles": ARTICLES})[:-30]])
def test_cut_off(text: str, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    corpus = read_corpus(write("c.json", text))
    assert [document.id for document in corpus.documents()] == ["0", "1", "2"]
    assert len(corpus.report.files_damaged) == 1
    assert len([m for m in caplog.messages if "truncated" in m or "broken JSON after" in m]) == 1


@pytest.mark.shared
def test_real_file(shared_data: Path) -> None:
    corpus = read_corpus(shared_data / "mesh47k" / "l1000.json.gz")
    assert sum(1 for _ in corpus.documents()) == 1000
    assert corpus.report.without_labels == 0
    assert corpus.bytes_read == corpus.bytes_total
