"""Every kind of bad file: one clear line, the right exit code, and nothing lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin.indexer import Indexer

Run = Callable[..., Result]

LINES = [json.dumps({"id": f"n{n}", "title": f"Number {n * 7919}"}) for n in range(5000)]
ARTICLES = [json.dumps({"pmid": f"9{n}", "title": "T", "meshMajor": ["Oats"]}) for n in range(9)]
XML = "<PubmedArticleSet>" + "".join(
    f"<PubmedArticle><MedlineCitation><PMID>{n}</PMID><Article><ArticleTitle>T</ArticleTitle>"
    "</Article></MedlineCitation></PubmedArticle>"
    for n in range(1000, 1100)
)

CASES: dict[str, tuple[str, bytes, int, str, int]] = {
    # file name, content, exit code, what the line says, how many documents are new
    "truncated gzip": (
        "t.jsonl.gz",
        gzip.compress("\n".join(LINES).encode())[:-4000],
        3,
        "the gzip data is truncated",
        -1,
    ),
    "broken JSON line": (
        "b.jsonl",
        "\n".join([LINES[0], '{"id": "x", "title": "never closed', LINES[1]]).encode(),
        0,
        "line 2: broken JSON",
        2,
    ),
    "broken BioASQ article": (
        "b.json",
        ('{"articles":[\n' + ",\n".join([ARTICLES[0], "{,}", ARTICLES[1]]) + "\n]}").encode(),
        0,
        "line 3: broken JSON",
        2,
    ),
    "XML cut in half": ("x.xml", XML[: len(XML) // 2].encode(), 3, "broken XML after record", 50),
    "binary file": ("b.bin", bytes(range(256)) * 10, 1, "a binary file", 0),
    "empty file": ("e.jsonl", b"", 1, "the file is empty", 0),
    "document without id": ("n.jsonl", b'{"title": "x", "labels": ["Oats"]}', 1, "no id", 0),
    "10 MB abstract": (
        "l.jsonl",
        json.dumps({"id": "long", "title": "x", "abstract": "word " * 2_000_000}).encode(),
        0,
        "1 text was longer than 200,000 characters and was cut: long",
        1,
    ),
    "label with control characters": (
        "c.jsonl",
        json.dumps({"id": "c", "title": "x", "labels": ["Oa\x00ts"]}).encode(),
        0,
        "line 1: control characters in a label: 'Oa\\x00ts' was read as 'Oats'",
        1,
    ),
    "XML of another kind": ("o.xml", b"<feed></feed>", 1, "XML, but not a PubmedArticleSet", 0),
    "an empty folder": ("", b"", 1, "folder: the folder is empty", 0),
}


@pytest.mark.parametrize("case", CASES)
def test_one_clear_line_and_nothing_lost(case: str, run: Run, collection: Path) -> None:
    name, content, exit_code, message, new = CASES[case]
    if name:
        Path(name).write_bytes(content)
    else:
        name = "folder"
        Path(name).mkdir()
    result = run("add", collection, name)
    assert result.exit_code == exit_code, result.stderr
    assert "Traceback" not in result.stderr
    telling = [line for line in result.stderr.splitlines() if message in line]
    assert len(telling) == 1, result.stderr
    documents = json.loads(run("info", collection, "--json").stdout)["documents"]
    if new >= 0:
        assert documents == 3 + new
    else:
        assert 3 + 1000 < documents < 3 + len(LINES)
    assert run("add", collection, "c.jsonl").exit_code == 0


def test_strict(run: Run, collection: Path) -> None:
    Path("b.jsonl").write_text('{"id": "4", "title": "x"}\nbroken\n')
    assert run("add", collection, "b.jsonl").exit_code == 0
    assert run("add", collection, "b.jsonl", "--strict").exit_code == 3


def test_good_files_beside_bad_ones_are_read(run: Run, collection: Path) -> None:
    Path("empty").touch()
    Path("good.jsonl").write_text('{"id": "4", "title": "x"}\n')
    result = run("add", collection, "empty", "good.jsonl")
    assert result.exit_code == 3
    assert "error: empty: the file is empty" in result.stderr
    assert "1 added" in result.stderr


def test_a_missing_file_stops_before_anything_is_added(run: Run, collection: Path) -> None:
    result = run("add", collection, "c.jsonl", "nowhere.jsonl")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: nowhere.jsonl: no such file or folder\n",
    )


def test_output_that_cannot_be_written(run: Run, collection: Path) -> None:
    result = run("corpus", "convert", "c.jsonl", "-o", "no/such/folder/x.jsonl")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def test_convert_leaves_the_old_output_if_nothing_can_be_read(run: Run, collection: Path) -> None:
    Path("empty.jsonl").touch()
    Path("out.jsonl").write_text("old")
    result = run("corpus", "convert", "empty.jsonl", "-o", "out.jsonl")
    assert result.exit_code == 1
    assert "no document could be read; out.jsonl was not changed" in result.stderr
    assert Path("out.jsonl").read_text() == "old"


def test_output_through_a_link_and_to_standard_output(run: Run, collection: Path) -> None:
    Path("link.jsonl").symlink_to("target.jsonl")
    assert run("corpus", "convert", "c.jsonl", "-o", "link.jsonl").exit_code == 0
    assert Path("link.jsonl").is_symlink()
    assert len(Path("target.jsonl").read_text().splitlines()) == 3
    assert len(run("corpus", "convert", "c.jsonl", "-o", "-").stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "c", "c.jsonl", "--format", "annif-folder"], "not a folder"),
        (["add", "c", "c.jsonl", "--label-separator", ""], "the label separator is empty"),
        (["remove", "c", "caf\udce9"], "not in the collection"),
    ],
)
def test_odd_arguments(arguments: list[str], message: str, run: Run, collection: Path) -> None:
    result = run(*arguments)
    assert result.exit_code in (1, 3)
    assert message in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_files_with_names_and_content_that_are_no_unicode(run: Run, collection: Path) -> None:
    folder = Path("texts")
    folder.mkdir()
    (folder / "caf\udce9.txt").write_bytes(b"un caf\xe9")
    (folder / "caf\udce9.key").write_bytes(b"Oats\n")
    result = run("add", collection, folder)
    assert result.exit_code == 0, result.stderr
    assert "not UTF-8 and read as Windows-1252" in result.stderr
    found = json.loads(run("info", collection, "--json").stdout)
    assert found["documents"] == 4
    with Indexer.open(collection) as indexer:
        assert indexer.document("café") is not None


def test_an_unforeseen_error_is_one_line(
    run: Run, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("labelkin.store.collection.Collection.snapshot", fail)
    result = run("info", collection)
    assert result.exit_code == 1
    assert result.stderr.startswith("error: this should not happen (ZeroDivisionError: oops)")
    assert result.stderr.count("\n") == 1
    assert "Traceback" in run("--verbose", "info", collection).stderr
