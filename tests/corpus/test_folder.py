from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from labelkin.corpus import Corpus, read_corpus
from labelkin.exceptions import InputError, WrongKindError

ARTICLE = (
    "<PubmedArticle><MedlineCitation><PMID>{}</PMID><Article><ArticleTitle>T</ArticleTitle>"
    "</Article></MedlineCitation></PubmedArticle>"
)


def fill(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def line(identifier: str) -> str:
    return json.dumps({"id": identifier, "title": "x", "labels": ["Oats"]}) + "\n"


def pubmed(*ids: int) -> bytes:
    articles = "".join(ARTICLE.format(identifier) for identifier in ids)
    return gzip.compress(f"<PubmedArticleSet>{articles}</PubmedArticleSet>".encode(), mtime=0)


def ids(corpus: Corpus) -> list[str]:
    return [document.id for document in corpus.documents()]


def left_out(corpus: Corpus, folder: Path) -> list[str]:
    prefix = f"{folder}{os.sep}"
    return sorted(name.removeprefix(prefix) for name in corpus.report.files_left_out)


def test_a_readme_does_not_hide_the_corpus(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(
        tmp_path,
        {
            "b.xml.gz": pubmed(3),
            "a.xml.gz": pubmed(1, 2),
            "a.xml.gz.md5": "MD5 (a.xml.gz) = 0",
            "README.txt": "The baseline of 2024.",
            "notes.txt": "Some notes.",
        },
    )
    caplog.set_level("INFO")
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["1", "2", "3"]
    assert left_out(corpus, tmp_path) == ["README.txt", "a.xml.gz.md5", "notes.txt"]
    (message,) = caplog.messages
    assert message == (
        f"{tmp_path}: left out 3 of its entries: README.txt (documentation); "
        "a.xml.gz.md5 (checksum); notes.txt (text without subjects)"
    )
    assert corpus.report.files_refused == corpus.report.files_damaged == []


def test_each_file_by_its_own_format_below_the_folder(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "z.jsonl": line("z"),
            "a/deep/x.csv": "id,title\ncsv,One\n",
            "a/c.tsv": "Some text about rye\t<http://e.org/1>\n",
            "a/LICENSE": "Apache",
            "b/one.txt": "Text",
            "b/one.key": "Oats\n",
            "b/blob": b"\x00\x01",
            "b/old.json": '{"version": 3}',
            "b/table.csv": "year,count\n2020,5\n",
            ".git/config": "x",
            ".hidden.jsonl": line("hidden"),
        },
    )
    corpus = read_corpus(tmp_path)
    found = list(corpus.documents())
    assert found[0].id == "z"
    assert [document.body for document in found if "rye" in document.body]
    assert [document.id for document in found][-2:] == ["csv", "b/one"]
    assert found[-1].labels == ("Oats",)
    assert left_out(corpus, tmp_path) == [
        ".git",
        ".hidden.jsonl",
        "a/LICENSE",
        "b/blob",
        "b/old.json",
        "b/table.csv",
    ]
    assert ids(read_corpus(tmp_path)) == [document.id for document in found]


def test_documents_of_the_same_name_in_two_folders_are_two(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        fill(tmp_path / folder, {"1.txt": f"Text in {folder}", "1.key": "Oats"})
    assert ids(read_corpus(tmp_path)) == ["a/1", "b/1"]


def test_texts_with_subjects_beside_documentation(tmp_path: Path) -> None:
    pairs = {f"{n}.txt": f"Text {n}" for n in range(3)} | {f"{n}.key": "Oats" for n in range(3)}
    fill(tmp_path, {**pairs, "README.txt": "Read me", "3.txt": "no subjects", "x.key": "Rye"})
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["0", "1", "2", "3"]
    assert corpus.report.without_labels == 1
    assert left_out(corpus, tmp_path) == ["README.txt", "x.key"]


def test_a_document_may_be_called_readme(tmp_path: Path) -> None:
    fill(tmp_path, {"README.txt": "Text", "README.tsv": "<u:1>\tOats\n"})
    (document,) = read_corpus(tmp_path).documents()
    assert (document.id, document.labels) == ("README", ("u:1",))


def test_texts_without_subjects(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "Text of a", "b.txt": "A title\twith a tab", "c.md": "x"})
    with pytest.raises(InputError, match=r"a\.txt, b\.txt \(text without subjects\).*NAME\.key"):
        read_corpus(tmp_path)
    forced = read_corpus(tmp_path, format="annif-folder")
    assert ids(forced) == ["a", "b"]
    texts = list(read_corpus(tmp_path, texts=True).documents())
    assert [(d.id, d.text) for d in texts] == [("a", "Text of a"), ("b", "A title\twith a tab")]


def test_pretty_printed_documents_of_annif(tmp_path: Path) -> None:
    record = {"text": "Rye", "subjects": [{"uri": "u:1", "label": "Oats"}]}
    fill(
        tmp_path,
        {
            "a.json": json.dumps(record, indent=2),
            "b.json": json.dumps(record),
            "lines.json": f"{json.dumps(record)}\n{json.dumps(record)}\n",
        },
    )
    corpus = read_corpus(tmp_path)
    found = list(corpus.documents())
    assert [document.id for document in found][:2] == ["a", "b"]
    assert len(found) == 4
    assert corpus.report.skipped == 0


def test_glob_and_ignore(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {name: line(name) for name in ("a.jsonl", "b.jsonl", "old/c.jsonl", "new/d.jsonl", "e")},
    )
    assert ids(read_corpus(tmp_path, glob=["*.jsonl"])) == [
        "a.jsonl",
        "b.jsonl",
        "new/d.jsonl",
        "old/c.jsonl",
    ]
    assert ids(read_corpus(tmp_path, glob=["new/*", "a.*"])) == ["a.jsonl", "new/d.jsonl"]
    assert ids(read_corpus(tmp_path, ignore=["old", "b*", "e"])) == ["a.jsonl", "new/d.jsonl"]
    with pytest.raises(InputError, match=r"no file is left by --glob.*holds 4 \.jsonl"):
        read_corpus(tmp_path, glob=["*.xml"])


def test_nothing_readable(tmp_path: Path) -> None:
    fill(tmp_path, {"a.md": "x", "b.bin": b"\x00", "c.bin": b"\x00", "x.md5": "0"})
    with pytest.raises(InputError) as caught:
        read_corpus(tmp_path)
    message = str(caught.value)
    for part in ("a.md (documentation)", "b.bin, c.bin (unknown format)", "x.md5 (checksum)"):
        assert part in message
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="the folder is empty"):
        read_corpus(tmp_path / "empty")


def test_damaged_files_are_still_reported(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "a.jsonl": line("a"),
            "b.xml.gz": pubmed(1, 2, 3)[:-30],
            "c.jsonl.gz": b"\x1f\x8bnonsense and more nonsense",
            "d.jsonl": "",
            "e.json": '{"id": "broken", ',
        },
    )
    (tmp_path / "gone.jsonl").symlink_to("nowhere")
    corpus = read_corpus(tmp_path)
    assert ids(corpus)[0] == "a"
    assert [Path(name).name for name in corpus.report.files_damaged] == ["b.xml.gz", "c.jsonl.gz"]
    assert [Path(name).name for name in corpus.report.files_refused] == ["d.jsonl", "gone.jsonl"]
    assert corpus.report.skipped == 1
    assert left_out(corpus, tmp_path) == []


def test_links_in_a_circle_and_special_files(tmp_path: Path) -> None:
    fill(tmp_path, {"a/b/c.jsonl": line("c")})
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path / "a")
    os.mkfifo(tmp_path / "pipe.jsonl")
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["c"]
    assert left_out(corpus, tmp_path) == ["pipe.jsonl"]


def test_a_pointer_in_a_folder_stops(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    fill(tmp_path, {"a.jsonl": line("a"), "b.jsonl": pointer})
    with pytest.raises(WrongKindError, match="git lfs pull"):
        ids(read_corpus(tmp_path))


def test_subjects_and_vocabularies_beside_a_corpus(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "c.tsv": "Some text about rye\t<http://e.org/1>\n",
            "subjects.tsv": "<http://e.org/1>\tOats\n<http://e.org/2>\tRye\n",
            "mesh.tsv": "ui\tname\nD1\tOats\n",
            "v.ttl": "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .",
        },
    )
    corpus = read_corpus(tmp_path)
    assert len(ids(corpus)) == 1
    assert left_out(corpus, tmp_path) == ["mesh.tsv", "subjects.tsv", "v.ttl"]


def test_a_collection_is_not_a_corpus(tmp_path: Path) -> None:
    fill(tmp_path / "c", {"manifest.json": "{}", "documents.sqlite": "x"})
    with pytest.raises(WrongKindError, match="a collection, not a corpus; `labelkin corpus conv"):
        read_corpus(tmp_path / "c")
    fill(tmp_path, {"a.jsonl": line("a")})
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["a"]
    assert left_out(corpus, tmp_path) == ["c"]


def test_a_tab_in_a_text_does_not_make_it_a_table(tmp_path: Path) -> None:
    prose = "A title\twith a tab\n" + "And a line without.\n" * 5
    table = "On oats\tOats\nOn rye\tRye\n"
    fill(tmp_path, {"prose.txt": prose, "table.txt": table})
    assert len(ids(read_corpus(tmp_path / "table.txt"))) == 2
    assert ids(read_corpus(tmp_path / "prose.txt", texts=True)) == ["prose"]
    assert len(ids(read_corpus(tmp_path))) == 2


def test_a_text_file_with_its_subjects(tmp_path: Path) -> None:
    fill(tmp_path, {"a.txt": "Text", "a.key": "Oats", "b.txt": "Text"})
    (document,) = read_corpus(tmp_path / "a.txt").documents()
    assert (document.id, document.labels) == ("a", ("Oats",))
    corpus = read_corpus(tmp_path / "b.txt")
    assert ids(corpus) == []
    assert corpus.report.files_refused == [str(tmp_path / "b.txt")]
    assert ids(read_corpus(tmp_path / "b.txt", texts=True)) == ["b"]


def test_a_corpus_beside_its_description_is_not_its_subjects(tmp_path: Path) -> None:
    corpus_lines = "".join(f"Text number {n}.\t<http://x.org/{n}>\n" for n in range(50))
    fill(tmp_path, {"yso.tsv": corpus_lines, "yso.txt": "The corpus of the YSO project."})
    corpus = read_corpus(tmp_path)
    documents = list(corpus.documents())
    assert [len(document.labels) for document in documents] == [1] * 50
    assert left_out(corpus, tmp_path) == ["yso.txt"]
    with_texts = list(read_corpus(tmp_path, texts=True).documents())
    assert len(with_texts) == 51
    assert [document.labels for document in with_texts if document.id == "yso"] == [()]
    assert [one.labels for one in read_corpus(tmp_path / "yso.txt", texts=True).documents()] == [()]


def test_a_table_or_a_text_beside_a_text_is_not_its_subjects(tmp_path: Path) -> None:
    sentences = "This is a very long sentence about oats and how they are grown in the north of "
    fill(
        tmp_path,
        {
            "a.txt": "About oats.",
            "a.tsv": "id\ttitle\tlabels\n1\tRye\tRye\n",
            "a.key": "Oats\n",
            "b.txt": "About keys.",
            "b.key": (sentences + "Finland today.\n") * 3,
        },
    )
    corpus = read_corpus(tmp_path)
    assert {one.id: one.labels for one in corpus.documents()} == {
        "a": ("Oats",),
        "b": (),
        "1": ("Rye",),
    }
    assert left_out(corpus, tmp_path) == ["b.key"]


@pytest.mark.parametrize(
    "subjects",
    ["<http://x.org/1>\tOats\n", "http://x.org/1\n", "<http://x.org/1>\n\n", "D018554\tOats\n"],
)
def test_subjects_of_a_text_in_a_tsv_file(tmp_path: Path, subjects: str) -> None:
    fill(tmp_path, {"a.txt": "About oats.", "a.tsv": subjects})
    assert [len(one.labels) for one in read_corpus(tmp_path).documents()] == [1]


def test_names_of_documentation_do_not_hide_a_corpus(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {
            "authors.tsv": "Oats.\t<http://x.org/1>\nRye.\t<http://x.org/2>\n",
            "citation.csv": "id,title,labels\nc,Oats,Oats\n",
            "notice.jsonl": line("n"),
            "readme-corpus.jsonl.gz": gzip.compress(line("r").encode()),
            "changelog.json": json.dumps([{"id": "l", "title": "x", "labels": ["Oats"]}]),
            "licence.xml.gz": pubmed(7),
        },
    )
    corpus = read_corpus(tmp_path)
    assert len(ids(corpus)) == 7
    assert {"c", "n", "r", "l", "7"} < {*ids(corpus)}
    assert left_out(corpus, tmp_path) == []


def test_documentation_in_the_form_of_a_table(tmp_path: Path) -> None:
    files = {
        "AUTHORS.tsv": "Jane Doe\tUniversity of Oulu\nJohn Doe\tUniversity of Turku\n",
        "citation.json": json.dumps([{"id": "labelkin", "title": "The corpus", "type": "dataset"}]),
        "LICENSE.xml": "<licence>Free.</licence>",
    }
    fill(tmp_path, {**files, "a.jsonl": line("a")})
    corpus = read_corpus(tmp_path)
    assert ids(corpus) == ["a"]
    assert left_out(corpus, tmp_path) == sorted(files)
