from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from labelkin.evaluate.files import read_label_file
from labelkin.exceptions import DamagedFileError, FormatError, InputError

Write = Callable[[str, str | bytes], Path]


def test_lines(write: Write) -> None:
    file = read_label_file(write("a.txt", "12 7 3\n5\n\n7 1\n"))
    assert [file.ranked(f"#{number}") for number in (1, 2, 3, 4)] == [
        ["12", "7", "3"],
        ["5"],
        [],
        ["7", "1"],
    ]


def test_tsv_with_and_without_a_header(write: Write) -> None:
    rows = "d1\tRye, Wild\t0.5\nd1\tOats\t2e1\nd2\tOats\t1\nd1\tRye, Wild\t30\n"
    for text in (rows, "pmid\theading\tscore\n" + rows):
        file = read_label_file(write("a.tsv.gz", gzip.compress(text.encode())))
        assert file.ranked("d1") == ["Rye, Wild", "Oats"]
        assert file.ranked("d2") == ["Oats"]
    with pytest.raises(DamagedFileError, match="line 2 is not"):
        read_label_file(write("b.tsv", "d1\tOats\t1\nd1\tOats\n"))


@pytest.mark.parametrize(
    "text", ["\n1 2\n", "a  b\nc\n", "Käse a/b\n", "http://v/1 http://v#2\r\n\r\nD3\r\n"]
)
def test_lines_of_all_kinds(write: Write, text: str) -> None:
    file = read_label_file(write("a.txt", text))
    assert [file.ranked(one) for one in file.labels] == [line.split() for line in text.splitlines()]


def test_numbers_of_all_kinds(write: Write) -> None:
    rows = "d1\tA\t+0.5\textra\nd1\tB\t9.9e+00\textra\nd1\tC\t.7\n"
    assert read_label_file(write("a.tsv", rows)).ranked("d1") == ["B", "C", "A"]
    rows = "d1\tA\t0,5\nd1\tB\t1,25\nd1\tC\t0,700\nd1\tD\t-0,1\n"
    assert read_label_file(write("a.tsv", rows)).ranked("d1") == ["B", "C", "A", "D"]
    for score in ("nan", "inf", "1,000", "0,5,0", ".", "1.2.3", ""):
        with pytest.raises(DamagedFileError, match="line 3 is not"):
            read_label_file(write("b.tsv", f"d1\tA\t1\nd1\tB\t2\nd1\tC\t{score}\n"))


def test_pairs_of_id_and_label(write: Write) -> None:
    file = read_label_file(write("a.tsv", "d2\tRye, Wild\nd1\tB\nd2\tA\n"))
    assert [file.ranked(one) for one in ("d1", "d2")] == [["B"], ["Rye, Wild", "A"]]
    spaced = read_label_file(write("c.tsv", "doc 1\tHeart Failure\ndoc 2\tRye\n"))
    assert spaced.ranked("doc 1") == ["Heart Failure"]
    with pytest.raises(DamagedFileError, match="line 2 is not `id<TAB>label`"):
        read_label_file(write("b.tsv", "d2\tRye\nd1\n"))


def test_annifs_corpora_are_not_pairs(write: Write) -> None:
    for text in ("Alpha\t\nBeta\t<u1>\n", "Alpha\tu1\nBeta gamma\t<u1>\n"):
        assert not read_label_file(write("a.tsv", text)).has_ids
    unbracketed = "A text\thttp://v/1 http://v/2\n"
    file = read_label_file(write("b.tsv", unbracketed))
    assert [file.ranked(one) for one in file.labels] == [["http://v/1", "http://v/2"]]


def test_a_bad_number_is_not_a_header(write: Write) -> None:
    for score in ("nan", "inf", "1e400"):
        with pytest.raises(DamagedFileError, match="line 1 is not"):
            read_label_file(write("a.tsv", f"d1\tA\t{score}\nd1\tB\t1\n"))
    with pytest.raises(DamagedFileError, match="line 2 is not"):
        read_label_file(write("a.tsv", "d1\tA\t1\nd1\tB\t1_0\n"))


def test_brackets_and_quotes(write: Write) -> None:
    rows = 'id\tlabel\tname\nd1\t<u1>\t"Quoted\nd2\t<u2>\tNot\nd3\tu3\t"End"\n'
    file = read_label_file(write("a.tsv", rows))
    assert [file.ranked(one) for one in ("d1", "d2", "d3")] == [["u1"], ["u2"], ["u3"]]
    assert read_label_file(write("b.tsv", "d1\t<u1>\t0.5\n")).ranked("d1") == ["u1"]
    unclosed = 'id,label\nd1,"V1\n' + "d2,V2\n" * 30_000
    for text, problem in (
        (unclosed, "line 2: a quote that is never closed; correct or delete the line"),
        ("id,label,score\nd1,V1,1\n2,,0.3\n", "line 3: no label; the columns are id, label"),
    ):
        with pytest.raises(DamagedFileError, match=problem):
            read_label_file(write("c.csv", text))


def test_a_file_without_a_record_that_can_be_read(write: Write) -> None:
    with pytest.raises(DamagedFileError, match="none of its records"):
        read_label_file(write("a.jsonl", '{"username": "x"}\n'))


def test_headers_decide_the_format(write: Write) -> None:
    turned = read_label_file(write("a.tsv", "label\tid\tscore\nA\td1\t0.5\n"))
    assert turned.ranked("d1") == ["A"]
    ranked = read_label_file(write("b.tsv", "id\tlabel\trank\nd1\tB\t2\nd1\tA\t1\n"))
    assert ranked.ranked("d1") == ["A", "B"]


def test_repeated_documents_are_counted(write: Write) -> None:
    records = ('{"id": "d1", "title": "x", "labels": ["A"]}\n', '{"id": "d1", "labels": ["B"]}\n')
    file = read_label_file(write("a.jsonl", records[0] + records[0].replace("A", "C")))
    assert (file.repeated, file.ranked("d1")) == (1, ["C"])
    assert read_label_file(write("b.jsonl", records[1] * 3)).repeated == 2


def test_tables(write: Write) -> None:
    ours = (
        'id,rank,label,name,score\nd1,1,V1,"Rye, Wild",0.5\nd1,2,V2,Oats,0.75\n\nd2,1,V2,Oats,1\n'
    )
    file = read_label_file(write("a.csv", ours))
    assert [file.ranked(one) for one in ("d1", "d2")] == [["V2", "V1"], ["V2"]]
    assert file.names == {"V1": "Rye, Wild", "V2": "Oats"}
    unscored = read_label_file(write("b.tsv", "pmid\theading\nd1\tRye\nd1\tOats\n"))
    assert unscored.ranked("d1") == ["Rye", "Oats"]
    semicolons = read_label_file(write("c.csv", "URI;Document_ID\nV1;d1\n"))
    assert semicolons.ranked("d1") == ["V1"]
    for row, problem in (
        ("d1", "no label"),
        ("d1,V1", "the score '' is not a number"),
        ("d1,V1,much", "the score 'much' is not a number"),
        (",V1,1", "no id"),
    ):
        with pytest.raises(DamagedFileError) as raised:
            read_label_file(write("b.csv", f"id,label,score\nd1,V1,1\n{row}\n"))
        columns = "the columns are id, label, score: correct or delete the line"
        assert str(raised.value).endswith(f"b.csv: line 3: {problem}; {columns}")


def test_rows_without_a_label_are_documents_without_predictions(write: Write) -> None:
    rows = "id,rank,label,name,score,band,title\nd1,,,,,,Rye\nd2,1,V1,Oats,0.5,accept,Oats\n"
    file = read_label_file(write("a.csv", rows))
    assert file.labels == {"d1": {}, "d2": {"V1": 0.5}}


def test_cells_of_any_length(write: Write) -> None:
    rows = f"id,label,score,title\nd1,V1,0.5,{'x' * 200_000}\n"
    assert read_label_file(write("a.csv", rows)).labels == {"d1": {"V1": 0.5}}


@pytest.mark.parametrize(
    ("name", "header", "missing"),
    [
        ("a.csv", "doc,heading,score", "id (or document_id, pmid),"),
        ("a.tsv", "id\tterm\tscore", "label (or uri, heading, subject, concept),"),
        ("a.txt", "doc;term;value", "id (or document_id, pmid) and label (or uri, "),
    ],
)
def test_columns_that_are_missing(write: Write, name: str, header: str, missing: str) -> None:
    delimiter = next(mark for mark in ",;\t" if mark in header)
    row = delimiter.join(("d1", "Heart failure", "much"))
    with pytest.raises(FormatError) as raised:
        read_label_file(write(name, f"{header}\n{row}\n"))
    message = str(raised.value)
    assert f"{name}: the columns are {', '.join(header.split(delimiter))}; predict" in message
    assert f"also need {missing}" in message
    assert message.endswith("rename the columns in the header")


def test_a_corpus_with_a_header_is_not_a_list_of_predictions(write: Write) -> None:
    two = read_label_file(write("a.tsv", "title\tlabels\nRye\tV1|V2\n"))
    assert [two.ranked(one) for one in two.labels] == [["V1", "V2"]]
    three = read_label_file(write("b.tsv", "id\ttitle\tlabels\nd1\tRye\t17\n"))
    assert three.ranked("d1") == ["17"]


def test_corpora(write: Write, tmp_path: Path) -> None:
    corpus = write("c.jsonl", '{"id": "d1", "title": "x", "labels": ["V3", "V1"]}\n')
    file = read_label_file(corpus)
    assert file.ranked("d1") == ["V3", "V1"]
    assert file.has_ids
    annif = read_label_file(write("c.tsv", "Rye and oats\t<V3> <V1>\nOats\t<V1>\n"))
    assert not annif.has_ids
    assert [annif.ranked(one) for one in annif.labels] == [["V3", "V1"], ["V1"]]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "d7.txt").write_text("Rye")
    (folder / "d7.tsv").write_text("<V3>\tRye\n")
    assert read_label_file(folder).ranked("d7") == ["V3"]
    assert read_label_file(folder).names == {"V3": "Rye"}


def test_npz(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix, save_npz

    save_npz(tmp_path / "m.npz", csr_matrix(np.array([[0, 0.5, 0.9], [0, 0, 0]])))
    file = read_label_file(tmp_path / "m.npz")
    assert (file.ranked("#1"), file.ranked("#2")) == (["2", "1"], [])
    assert (file.has_ids, file.width) == (False, 3)


def test_npz_with_ids(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(np.array([[0, 0.5, 0.9], [0, 0, 0]]))
    arrays = {
        "format": np.array(b"csr"),
        "shape": np.array(matrix.shape),
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "documents": np.array(["d1", "d2"]),
    }
    np.savez(tmp_path / "m.npz", **arrays, labels=np.array(["V1", "V2", "V3"]))
    file = read_label_file(tmp_path / "m.npz")
    assert (file.ranked("d1"), file.ranked("d2")) == (["V3", "V2"], [])
    assert (file.has_ids, file.width) == (True, None)
    np.savez(tmp_path / "m.npz", **arrays, labels=np.array(["V1"]))
    with pytest.raises(DamagedFileError, match=r"number of columns \(3\) differs .* names \(1\)"):
        read_label_file(tmp_path / "m.npz")


def test_unreadable_files(write: Write, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_label_file(tmp_path / "nothing")
    with pytest.raises(FormatError, match="neither labels nor a corpus"):
        read_label_file(write("a.txt", "What is this? (nothing)"))
    with pytest.raises(DamagedFileError, match="not a sparse matrix"):
        read_label_file(write("a.npz", "nonsense"))
    with pytest.raises(DamagedFileError, match="not a sparse matrix"):
        read_label_file(write("b.npz", ""))
    np.savez(tmp_path / "c.npz", data=np.arange(4))
    cut = (tmp_path / "c.npz").read_bytes()[:-30]
    with pytest.raises(DamagedFileError, match="not a sparse matrix"):
        read_label_file(write("d.npz", cut))
    np.savez(
        tmp_path / "n.npz",
        format=np.array(b"csr"),
        shape=np.array((1, 1)),
        data=np.array([np.nan]),
        indices=np.array([0]),
        indptr=np.array([0, 1]),
    )
    with pytest.raises(DamagedFileError, match="not a finite number"):
        read_label_file(tmp_path / "n.npz")
    np.save(tmp_path / "e.npy", np.arange(4))
    with pytest.raises(DamagedFileError, match="not a sparse matrix"):
        read_label_file((tmp_path / "e.npy").rename(tmp_path / "e.npz"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        read_label_file(tmp_path / "pipe")


def test_apostrophes_are_removed_only_where_labelkin_wrote_them(write: Write) -> None:
    other = read_label_file(write("p.csv", "id,label,score\n'-12,'@V,0.5\n"))
    assert other.labels == {"'-12": {"'@V": 0.5}}
    header = "id,rank,label,name,score,band,title"
    own = read_label_file(write("q.csv", f"{header}\n'-12,1,'@V,'+v,0.5,,\n"))
    assert own.labels == {"-12": {"@V": 0.5}}
    assert own.names == {"@V": "+v"}
