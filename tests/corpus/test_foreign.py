from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus
from labelkin.corpus.foreign import is_vocabulary, is_vocabulary_header
from labelkin.exceptions import WrongKindError

Write = Callable[[str, str | bytes], Path]

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def zipped(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "x")
    return stream.getvalue()


def tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(__file__, "a.py")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zipped("c.jsonl"), "a zip archive; unpack it first"),
        (zipped("word/document.xml"), "an office document; save it as text or CSV first"),
        (tarred(), "a tar archive; unpack it first"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF; extract the text first"),
    ],
)
def test_containers_say_what_to_do_and_the_next_file_is_read(
    content: bytes, reason: str, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    good = write("good.jsonl", '{"id": "1", "title": "x"}')
    corpus = read_corpus(write("c.jsonl", content), good)
    assert [document.id for document in corpus.documents()] == ["1"]
    assert len(corpus.report.files_refused) == 1
    assert len(caplog.messages) == 1
    assert reason in caplog.messages[0]


def test_a_pointer_stops_before_anything_is_read(write: Write) -> None:
    good = write("good.jsonl", '{"id": "1", "title": "x"}')
    pointer = write("c.jsonl", POINTER)
    with pytest.raises(WrongKindError, match=r"c\.jsonl: a Git LFS pointer.*`git lfs pull`"):
        next(iter(read_corpus(good, pointer)))
    forced = read_corpus(good, pointer, force=True)
    assert len(list(forced)) == 1
    assert forced.report.files_refused == [str(pointer)]


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("v.xml", b'<?xml version="1.0"?><DescriptorRecordSet LanguageCode="eng">'),
        ("v.xml", b'<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22">'),
        ("v", b"# YSO\n@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."),
        ("v", b"PREFIX skos:\t<http://www.w3.org/2004/02/skos/core#>"),
        ("v", b'{"@context": {"skos": "http://www.w3.org/2004/02/skos/core#"}'),
        ("v.nt", b"<http://e.org/1> <http://e.org/2> <http://e.org/3> ."),
    ],
)
def test_vocabularies(name: str, head: bytes, write: Write) -> None:
    assert is_vocabulary(head, name)
    with pytest.raises(WrongKindError, match=r"looks like a vocabulary.*init --vocab"):
        next(iter(read_corpus(write(name, head))))


@pytest.mark.parametrize(
    "head",
    [
        b'{"id": "1", "title": "On http://www.w3.org/2004/02/skos/core#"}',
        b"On @prefix in Turtle\t<http://e.org/1>",
        b"<PubmedArticleSet>",
        b"Prefix codes and suffix codes\t<u:1>",
    ],
)
def test_corpora_about_vocabularies_are_none(head: bytes) -> None:
    assert not is_vocabulary(head, "c.jsonl")


def test_headers() -> None:
    assert is_vocabulary_header(["ui", "name", "tree_numbers"])
    assert is_vocabulary_header(["URI", "label_de"])
    assert not is_vocabulary_header(["id", "title"])
    assert not is_vocabulary_header(["Some text", "label"])
