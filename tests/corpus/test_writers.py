from __future__ import annotations

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
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(any_document(), min_size=1, max_size=4))
def test_jsonl_round_trip(documents: list[Document], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    assert write_corpus(documents, path) == len(documents)
    assert list(read_corpus(path, format="jsonl")) == documents


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
    assert caplog.messages[0].startswith("1 labels are names with spaces")


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


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="known: jsonl, annif-tsv"):
        write_corpus([], tmp_path / "x", "marc")
