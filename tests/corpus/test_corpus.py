from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelkin.corpus import FORMATS, Correction, Document, read_corpus
from labelkin.corpus.formats import recognise
from labelkin.corpus.report import SHOWN_PROBLEMS
from labelkin.corpus.source import Source
from labelkin.exceptions import FormatError, InputError, WrongKindError

Write = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("x", '{"articles": [', "bioasq"),
        ("x", '{"documents":\n[{"pmid": 1}]}', "bioasq"),
        ("x", '[{"id": 1}]', "bioasq"),
        ("x.xml", '<?xml version="1.0"?><PubmedArticleSet>', "pubmed"),
        ("x", '{"id": "1", "title": "x"}', "jsonl"),
        ("x", '{"text": "x", "subjects": []}', "annif-jsonl"),
        ("x.csv", "whatever;here", "csv"),
        ("x.txt", "id,title\n1,x", "csv"),
        ("x", '"id","title"\n1,x', "csv"),
        ("x.tsv", "pmid\ttitle\n1\tx", "tsv"),
        ("x.tsv", "Some text, with commas\t<http://e.org/1>", "annif-tsv"),
        ("x.tsv", "[A translated title].\t<http://e.org/1>", "annif-tsv"),
        ("x.tsv", "<i>Rye</i> grows\t<http://e.org/1>", "annif-tsv"),
        ("x.tsv", "word " * 20_000 + "\t<http://e.org/1>", "annif-tsv"),
        ("x.tsv.gz", gzip.compress(b"Some text\t<http://e.org/1>", mtime=0), "annif-tsv"),
        ("x", '\ufeff{"id": "1", "title": "x"}', "jsonl"),
    ],
)
def test_recognise(name: str, content: str | bytes, expected: str, write: Write) -> None:
    with Source(write(name, content)) as source:
        assert recognise(source).name == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00", "a binary file"),
        (b"<?xml version='1.0'?><html>", "not a PubmedArticleSet"),
        (b"just words", "no known corpus format"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
    ],
)
def test_refused_files(
    content: bytes, reason: str, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("c", content)
    good = write("good.jsonl", '{"id": "1", "title": "x"}')
    corpus = read_corpus(path, good)
    assert [document.id for document in corpus.documents()] == ["1"]
    assert corpus.report.files_refused == [str(path)]
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(f"{path}: ")
    assert reason in caplog.messages[0]


def test_a_gzip_that_is_none(write: Write) -> None:
    corpus = read_corpus(write("c.gz", b"\x1f\x8bnonsense and more nonsense"))
    assert list(corpus) == []
    assert len(corpus.report.files_damaged) == 1


def test_missing_file_and_unknown_format_fail_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_corpus(tmp_path / "nothing.jsonl")
    with pytest.raises(FormatError, match="known: bioasq"):
        read_corpus(tmp_path, format="marc")


def test_problems_do_not_flood(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    corpus = read_corpus(write("c.jsonl", "{broken\n" * 500))
    assert list(corpus) == []
    assert corpus.report.skipped == 500
    assert len(caplog.messages) == SHOWN_PROBLEMS + 1


def test_a_folder_of_corpus_files(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl"):
        (tmp_path / name).write_text(json.dumps({"id": name, "title": "x"}))
    (tmp_path / ".hidden").write_text("x")
    assert [document.id for document in read_corpus(tmp_path).documents()] == ["a.jsonl", "b.jsonl"]


def test_deeply_nested_metadata_are_refused(write: Write) -> None:
    nested = "[" * 500 + "]" * 500
    text = f'[\n{{\n"id": "1", "title": "x", "m": {nested}}},\n{{"id": "2", "title": "y"}}]'
    corpus = read_corpus(write("c.json", text))
    assert [document.id for document in corpus.documents()] == ["2"]
    assert corpus.report.skipped == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gzip.compress(b'{"id": "1", "title": "x"}\n')
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    corpus = read_corpus("-")
    assert corpus.bytes_total == 0
    assert [document.id for document in corpus.documents()] == ["1"]


def test_a_corpus_can_be_read_twice(write: Write) -> None:
    corpus = read_corpus(write("c.jsonl", '{"id": "1", "title": "x"}\n'))
    assert list(corpus) == list(corpus)
    assert corpus.report.read == 1


def test_every_format_has_a_reader(tmp_path: Path) -> None:
    from importlib import import_module

    for known in FORMATS.values():
        module, function = known.reader.split(":")
        assert callable(getattr(import_module(f"labelkin.corpus.{module}"), function))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(
    content=st.binary(max_size=300)
    | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))
    | st.builds(
        lambda start, rest: start + rest,
        st.sampled_from(
            [b'{"articles":[\n', b"<PubmedArticleSet>", b'{"id":"1"', b"id,title\n", b"x\t<u>\n"]
        ),
        st.binary(max_size=200),
    ),
    named=st.sampled_from([None, *(name for name in FORMATS if name != "annif-folder")]),
    force=st.booleans(),
)
def test_no_content_makes_a_reader_crash(
    content: bytes, named: str | None, force: bool, tmp_path: Path
) -> None:
    path = tmp_path / "fuzz"
    path.write_bytes(content)
    corpus = read_corpus(path, format=named, force=force)
    try:
        for document in corpus.documents():
            assert document.id
            json.dumps(document.metadata)
    except WrongKindError:
        assert not force
    else:
        assert corpus.report.files == 1


def test_texts_of_the_same_name_are_several_documents(tmp_path: Path) -> None:
    names = ("p1/a.txt", "p2/a.txt", "p2/a.md", "p2/b.txt", "p3/k.txt", "p4/k.txt")
    for name in (*names, "p3/k.key", "p4/k.key", "p1/b.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Oats")
    (tmp_path / "p1/b.jsonl").write_text('{"id": "1", "title": "Rye"}\n')
    paths = [tmp_path / name for name in (*names, "p1/b.jsonl")]
    ids = [one.id for one in read_corpus(*paths, texts=True).documents()]
    below = ("p1/a", "p2/a.txt", "p2/a.md", "b", "p3/k", "p4/k", "1")
    assert ids == [f"{tmp_path}/{name}" if "/" in name else name for name in below]


def test_an_undecodable_name_gives_the_same_id_alone_and_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("Oats")
    for place in (path, tmp_path):
        assert [one.id for one in read_corpus(place, texts=True).documents()] == ["café"]


CORRECTIONS = {
    "c.jsonl": '{"id": "1", "labels": ["V1"]}\n{"id": "2", "labels": [], "revision": 2}\n'
    '{"id": "3", "title": "T", "labels": ["V2"]}\n{"id": "4"}\n',
    "c.json": '[{"pmid": "1", "meshMajor": ["V1"]},\n{"pmid": "2", "meshMajor": [], '
    '"revision": 2},\n{"pmid": "3", "title": "T", "meshMajor": ["V2"]},\n{"pmid": "4"}]\n',
    "c.csv": "id,title,labels,revision\n1,,V1,\n2,,[],2\n3,T,V2,\n4,,,\n",
    "c.tsv": "id\ttitle\tlabels\trevision\n1\t\tV1\t\n2\t\t[]\t2\n3\tT\tV2\t\n4\t\t\t\n",
    "a.jsonl": '{"document_id": "1", "subjects": [{"uri": "V1"}]}\n'
    '{"document_id": "2", "subjects": [], "revision": 2}\n'
    '{"document_id": "3", "text": "T", "subjects": [{"uri": "V2"}]}\n{"document_id": "4"}\n',
}


@pytest.mark.parametrize("in_folder", [False, True])
@pytest.mark.parametrize("name", CORRECTIONS)
def test_records_without_a_text_are_corrections_if_asked_for(
    write: Write, tmp_path: Path, name: str, in_folder: bool
) -> None:
    path = write(name, CORRECTIONS[name])
    corpus = read_corpus(tmp_path if in_folder else path, corrections=True)
    first, second, third = corpus
    assert first == Correction("1", ("V1",))
    assert second == Correction("2", (), revision="2")
    assert isinstance(third, Document)
    assert first.where.startswith(f"{path}, ")
    report = corpus.report
    assert (report.read, report.skipped, report.corrections, report.without_labels) == (4, 1, 2, 0)
    assert [one.id for one in read_corpus(path, corrections=True).documents()] == ["3"]
    assert [one.id for one in read_corpus(path)] == ["3"]


def test_a_table_of_corrections_needs_no_column_with_text(write: Write) -> None:
    path = write("c.csv", "id,labels\n1,V1|V2\n")
    assert list(read_corpus(path, corrections=True)) == [Correction("1", ("V1", "V2"))]
    assert list(read_corpus(path.parent, corrections=True)) == [Correction("1", ("V1", "V2"))]
    corpus = read_corpus(path)
    assert (list(corpus), corpus.report.files_refused) == ([], [str(path)])
    other = read_corpus(write("d.csv", "id,year\n1,1999\n"), corrections=True, format="csv")
    assert (list(other), len(other.report.files_refused)) == ([], 1)
