from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelkin.corpus import Document, read_corpus, write_corpus
from labelkin.corpus.text import clean_label, clean_text
from labelkin.exceptions import FormatError

TEXT = st.text(max_size=40).map(clean_text)
LABEL = st.text(max_size=15).map(clean_label).filter(lambda label: label.strip("<>| ") == label)
NAMES = LABEL.filter(bool)
WORD = NAMES.filter(lambda label: " " not in label)


@st.composite
def any_document(draw: st.DrawFn, labels: st.SearchStrategy[str] = NAMES) -> Document:
    body = draw(TEXT.filter(bool))
    chosen = tuple(draw(st.lists(labels, unique=True, max_size=4)))
    return Document(
        id=draw(NAMES),
        title=draw(TEXT),
        body=body,
        fields=draw(st.dictionaries(NAMES, TEXT.filter(bool), max_size=2)),
        language=draw(st.sampled_from([None, "en", "de"])),
        metadata=draw(st.dictionaries(NAMES, st.integers() | NAMES | st.lists(NAMES), max_size=2)),
        labels=chosen,
        label_names=dict.fromkeys(chosen[:1], "N"),
        major_labels=tuple(label for label in chosen if draw(st.booleans())),
        revision=draw(st.sampled_from([None, "7", "2024-03-05"])),
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(any_document(), min_size=1, max_size=4))
def test_jsonl_round_trip(documents: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    assert write_corpus(documents, path) == len(documents)
    assert list(read_corpus(path, format="jsonl")) == documents


# Texts that a table or a spreadsheet could take for something else.
ODD_TEXT = st.sampled_from(
    ["=1+1", "-2", "+x", "@SUM(A1)", "'=x", "''-", 'a "b" c', '"', "a\nb\n\nc", "a,b;c", "'", "[1]"]
)
ODD_LABEL = st.sampled_from(["a|b", '["a"]', "[]", "-x", "=y", "'@z", "a;b", "a,b", '"q"', "|"])
ODD_NAME = st.sampled_from(
    ["year", "field.x", "id", "Title", "lang", "a,b", "a;b;c;d;e;f;g;h", "=x", "metadata", "fields"]
)


@st.composite
def odd_document(draw: st.DrawFn) -> Document:
    labels = tuple(draw(st.lists(NAMES | ODD_LABEL, unique=True, max_size=4)))
    text = TEXT.filter(lambda text: text and "\r" not in text) | ODD_TEXT
    value = text | st.integers() | st.booleans() | st.lists(text, min_size=1)
    return Document(
        id=draw(NAMES | ODD_TEXT.map(clean_label)),
        title=draw(text | st.just("")),
        body=draw(text),
        fields=draw(st.dictionaries(NAMES | ODD_NAME, text, max_size=2)),
        language=draw(st.sampled_from([None, "en", "de"])),
        metadata=draw(st.dictionaries(NAMES | ODD_NAME, value, max_size=3)),
        labels=labels,
        label_names=dict.fromkeys(labels[:1], "N"),
    )


@pytest.mark.parametrize("name", ["c.csv", "c.json", "c.jsonl", "c.csv.gz", "c.CSV.GZ"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(documents=st.lists(odd_document(), min_size=1, max_size=4))
def test_complete_formats_round_trip(documents: list[Document], tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert write_corpus(documents, path) == len(documents)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.lower().endswith(".gz")
    assert list(read_corpus(path)) == documents


def test_csv_has_a_column_for_each_field_and_text(tmp_path: Path) -> None:
    documents = [
        Document("1", "One", labels=("a", "b|c"), metadata={"journal": "J", "year": 2020}),
        Document("2", "Two", "=cmd()", fields={"toc": "T"}, language="en", labels=("a", "d")),
    ]
    write_corpus(documents, tmp_path / "c.csv")
    with (tmp_path / "c.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [
        *("id", "title", "abstract", "labels", "language", "journal", "metadata", "field.toc")
    ]
    assert rows == [
        ["1", "One", "", '["a", "b|c"]', "", "J", '{"year": 2020}', ""],
        ["2", "Two", "'=cmd()", "a|d", "en", "", "", "T"],
    ]


def test_csv_of_documents_with_ever_new_metadata(tmp_path: Path) -> None:
    documents = [Document(str(n), "x", metadata={f"key{n}": "v"}) for n in range(300)]
    write_corpus(documents, tmp_path / "c.csv")
    assert (tmp_path / "c.csv").read_text().split("\n")[0].count(",") <= 101
    assert list(read_corpus(tmp_path / "c.csv")) == documents


def test_csv_of_a_text_with_more_lines_than_a_cell_can_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_corpus([Document("1", "x", "line\n" * 20_000 + "end")], tmp_path / "c.csv")
    (document,) = read_corpus(tmp_path / "c.csv").documents()
    assert document.body.split() == [*["line"] * 20_000, "end"]
    assert caplog.messages == ["1 document has more lines than a cell can have and became one line"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(any_document(labels=WORD), min_size=1, max_size=4))
def test_annif_tsv_round_trip_keeps_words_and_labels(
    documents: list[Document], tmp_path: Path
) -> None:
    path = tmp_path / "c.tsv"
    write_corpus(documents, path)
    back = list(read_corpus(path, format="annif-tsv").documents())
    assert [document.labels for document in back] == [document.labels for document in documents]
    for before, after in zip(documents, back, strict=True):
        assert after.text.replace("¤", " ").split() == before.text.replace("¤", " ").split()


def test_gzip_is_written_and_reproducible(tmp_path: Path) -> None:
    document = Document("1", "x", labels=("a",))
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_corpus([document], tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert b'"id": "1"' in gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())
    assert list(read_corpus(tmp_path / "a.jsonl.gz")) == [document]


def test_labels_with_spaces_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_corpus([Document("1", "x", labels=("a b", "c"))], tmp_path / "c.tsv")
    assert (tmp_path / "c.tsv").read_text() == "x\t<c>\n"
    assert caplog.messages[0].startswith(
        "1 label is a name with spaces, which Annif's TSV cannot hold, and was"
    )


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text("old")

    def failing() -> object:
        yield Document("1", "x")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_corpus(failing(), path)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["x", "x.parquet", "x.xlsx", "x.gz", "x.jsonl.zst", "x.csv.zip"])
def test_an_extension_without_a_format_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match=r"\.jsonl, \.json, \.csv, \.tsv"):
        write_corpus([Document("1", "x")], tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_named_format_overrides_the_extension(tmp_path: Path) -> None:
    write_corpus([Document("1", "x", labels=("a",))], tmp_path / "c.txt", "annif-tsv")
    assert (tmp_path / "c.txt").read_text() == "x\t<a>\n"
    with pytest.raises(FormatError, match="'marc'; known: jsonl, json, csv, annif-tsv"):
        write_corpus([], tmp_path / "x", "marc")
