from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus

Write = Callable[[str, str | bytes], Path]


def test_tsv(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    path = write("c.tsv", "Title ¤ Body\t<http://e.org/1> <http://e.org/2>\nno tab\nPlain\t<u:3>\n")
    corpus = read_corpus(path)
    first, second = corpus.documents()
    assert (first.title, first.body) == ("Title", "Body")
    assert first.labels == ("http://e.org/1", "http://e.org/2")
    assert first.metadata == {}
    assert (second.title, second.body, second.labels) == ("", "Plain", ("u:3",))
    assert corpus.report.skipped == 1
    assert "line 2: no tab" in caplog.messages[0]


def test_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, content in {
        "a.txt": "Text of a",
        "a.tsv": "<http://e.org/1>\tOne\n<http://e.org/2>\tTwo\n",
        "b.txt": "Text of b",
        "b.key": "One\nTwo, inverted\n",
        "c.txt": "Text of c",
        "d.json": '{"document_id": "D", "text": "d", "subjects": [{"uri": "u:1", "label": "L"}]}',
        "e.json": "{broken",
        "f.txt": "",
        "notes.md": "not a document",
    }.items():
        (tmp_path / name).write_text(content)
    corpus = read_corpus(tmp_path)
    by_id = {document.id: document for document in corpus.documents()}
    assert sorted(by_id) == ["D", "a", "b", "c"]
    assert by_id["a"].labels == ("http://e.org/1", "http://e.org/2")
    assert by_id["a"].label_names["http://e.org/1"] == "One"
    assert by_id["b"].labels == ("One", "Two, inverted")
    assert by_id["c"].labels == ()
    assert corpus.report.skipped == 2
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert all("e.json" in message or "f.txt" in message for message in warnings)


@pytest.mark.shared
def test_real_file(shared_data: Path) -> None:
    corpus = read_corpus(shared_data / "tibkat" / "en.tsv.gz")
    documents = list(corpus.documents())
    assert len(documents) == len({document.id for document in documents}) == 6_980
    assert all(label.startswith("https://d-nb.info/") for d in documents for label in d.labels)


def test_names_with_spaces_in_brackets(write: Callable[[str, str], Path]) -> None:
    path = write("c.tsv", "On rye\t<Bread, Rye> <V1> http://v/2 <odd<one>\n")
    (document,) = read_corpus(path, format="annif-tsv").documents()
    assert document.labels == ("Bread, Rye", "V1", "http://v/2", "odd<one")
