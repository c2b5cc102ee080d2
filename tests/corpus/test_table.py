from __future__ import annotations

import csv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labelkin.corpus import read_corpus

Write = Callable[[str, str | bytes], Path]


def test_csv(write: Write) -> None:
    path = write(
        "c.csv",
        "id,title,abstract,labels,language,journal,field.toc\n"
        '1,"Bread, rye","two\nlines",Rye|Oats,de,J,chapters\n'
        ",no id,x,,,,\n"
        "3,Oats,,,,,\n",
    )
    corpus = read_corpus(path)
    first, second = corpus.documents()
    assert (first.title, first.body) == ("Bread, rye", "two\nlines")
    assert (first.labels, first.language) == (("Rye", "Oats"), "de")
    assert (first.metadata, first.fields) == ({"journal": "J"}, {"toc": "chapters"})
    assert second.id == "3"
    assert corpus.report.skipped == 1


def test_line_numbers_count_lines_not_records(
    write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("c.csv", 'id,title\n1,"a\nb\nc"\n,x\n2,y,too,many\n')
    assert len(list(read_corpus(path))) == 1
    assert "line 5: no id" in caplog.messages[0]
    assert "line 6: 4 cells" in caplog.messages[1]


def test_other_separator_and_tsv(write: Write) -> None:
    path = write("c.tsv", "id\ttitle\tlabels\n1\tx\tRye; Oats\n")
    (document,) = read_corpus(path, label_separator=";").documents()
    assert document.labels == ("Rye", "Oats")


def test_annif_csv(write: Write) -> None:
    path = write(
        "c.csv",
        "text,subject_uris,subject_labels,title\n"
        'body,<http://e.org/1> <http://e.org/2>,"One|Two",T\n'
        "other,,One|Two,\n",
    )
    first, second = read_corpus(path).documents()
    assert first.labels == ("http://e.org/1", "http://e.org/2")
    assert (first.title, first.body) == ("T", "body")
    assert second.labels == ("One", "Two")
    assert first.id.startswith("text-")


def test_quote_that_is_never_closed(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    rows = "".join(f"{number},z\n" for number in range(3, 1003))
    corpus = read_corpus(write("c.csv", 'id,title\n1,x\n2,"y\n' + rows))
    assert [document.id for document in corpus.documents()] == ["1", *map(str, range(3, 1003))]
    assert corpus.report.skipped == 1
    assert "line 3: a quote that is never closed" in caplog.messages[0]


def test_a_quote_closed_far_away_keeps_the_rows_in_between(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.corpus.table.MAX_CELL_LINES", 50)
    rows = "".join(f"{number},z\n" for number in range(100))
    corpus = read_corpus(write("c.csv", f'id,title\nx,"open\n{rows}y,"quoted, well"\n'))
    assert [document.id for document in corpus.documents()] == [*map(str, range(100)), "y"]


def test_quotes_in_odd_places(write: Write) -> None:
    corpus = read_corpus(write("c.csv", 'id,title\n1,5" pipes\n2,"Big" data\n3,"a ""b"" c"\n'))
    assert [d.title for d in corpus.documents()] == ['5" pipes', "Big data", 'a "b" c']
    tabs = read_corpus(write("c.tsv", 'id\ttitle\n1\t"Big" data\n2\t"open\n3\tz\n'))
    assert [d.title for d in tabs.documents()] == ['"Big" data', '"open', "z"]


@pytest.mark.parametrize(
    "header", ["PMID,Title,Labels", "ID;TITLE;labels", '"Id","title","Subjects"']
)
def test_headers_in_any_case_and_with_semicolons(header: str, write: Write) -> None:
    separator = ";" if ";" in header else ","
    path = write("c.csv", header + "\n" + separator.join(["7", "Rye", "A|B"]) + "\n")
    (document,) = read_corpus(path).documents()
    assert (document.id, document.title, document.labels) == ("7", "Rye", ("A", "B"))


def test_a_table_without_text_is_refused(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    corpus = read_corpus(write("c.csv", "id,name\n1,x\n"))
    assert list(corpus) == []
    assert "no column with text; the header names id, name" in caplog.messages[0]


def test_repeated_column_is_refused(write: Write) -> None:
    corpus = read_corpus(write("c.csv", "id,title,title\n1,x,y\n"))
    assert list(corpus) == []
    assert len(corpus.report.files_refused) == 1


def test_a_carriage_return_within_a_line(write: Write) -> None:
    corpus = read_corpus(write("c.csv", 'id,title\r\n1,one\rline\r\n2,"two\rlines"\r\n'))
    assert [document.title for document in corpus.documents()] == ["one line", "two lines"]
    empty = read_corpus(write("d.csv", b"\r\x00"), format="csv")
    assert list(empty) == []


def test_long_cells_leave_the_limit_of_the_csv_module_alone(write: Write) -> None:
    limit = csv.field_size_limit()
    long = "word " * limit
    path = write("c.csv", f'id,title\n1,short\n2,"{long}"\n3,{long}\n')
    for document in read_corpus(path).documents():
        assert csv.field_size_limit() == limit
        assert document.title == ("short" if document.id == "1" else long.strip())


def test_interleaved_and_concurrent_readers_of_long_cells(write: Write) -> None:
    limit = csv.field_size_limit()
    rows = "".join(f"{number},{'x' * limit * 2}\n" for number in range(20))
    path = write("c.csv", "id,title\n" + rows)
    pairs = zip(read_corpus(path).documents(), read_corpus(path).documents(), strict=True)
    assert all(len(one.title) == len(other.title) == limit * 2 for one, other in pairs)
    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: len(list(read_corpus(path))), range(8)))
    assert counts == [20] * 8
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("header", ["id,title,labels", "id;title;labels", "ID,title,abstract"])
def test_apostrophes_of_other_programs_are_kept(header: str, write: Write) -> None:
    separator = ";" if ";" in header else ","
    path = write("c.csv", header + "\n" + separator.join(["'-12", "'@home' computing", "'=x"]))
    (document,) = read_corpus(path).documents()
    assert (document.id, document.title) == ("'-12", "'@home' computing")


def test_apostrophes_that_labelkin_wrote_are_removed(write: Write) -> None:
    path = write("c.csv", "id,title,abstract,labels,language,note\n'-12,'@home,x,'=y,en,'+1\n")
    (document,) = read_corpus(path).documents()
    assert (document.id, document.title, document.labels) == ("-12", "@home", ("=y",))
    assert document.metadata == {"note": "+1"}
