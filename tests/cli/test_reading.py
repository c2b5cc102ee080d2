"""What the verbs take for a text or a corpus, and what they refuse."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

Run = Callable[..., Result]

LEXICAL = ("--method", "lexical")


def documents(run: Run, collection: Path) -> int:
    found: int = json.loads(run("info", collection, "--json").stdout)["documents"]
    return found


def error_of(result: Result) -> str:
    """The one line that says why nothing was done."""
    assert result.exit_code == 1, result.stderr
    assert result.stdout == ""
    lines: list[str] = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def test_a_folder(run: Run, collection: Path) -> None:
    folder = Path("corpus")
    (folder / "more").mkdir(parents=True)
    (folder / "README.txt").write_text("Read me")
    (folder / "a.jsonl.md5").write_text("0")
    (folder / "a.jsonl").write_text('{"id": "a", "title": "x", "labels": ["Oats"]}\n')
    (folder / "more" / "b.jsonl.bz2").write_bytes(bz2.compress(b'{"id": "b", "title": "x"}\n'))
    (folder / "more" / "c.jsonl.xz").write_bytes(lzma.compress(b'{"id": "c", "title": "x"}\n'))
    result = run("add", collection, folder, "--ignore", "c.*")
    assert result.exit_code == 0, result.stderr
    assert documents(run, collection) == 3 + 2
    assert result.stderr.splitlines()[0] == (
        "note: corpus: left out 2 of its entries: README.txt (documentation); "
        "a.jsonl.md5 (checksum)"
    )
    stats = run("corpus", "stats", folder, "--glob", "*.xz", "--json")
    assert json.loads(stats.stdout)["documents"] == 1
    result = run("add", collection, folder, "--json")
    assert json.loads(result.stdout)["files_left_out"] == [
        "corpus/README.txt",
        "corpus/a.jsonl.md5",
    ]


SUBJECTS = "".join(f"<http://e.org/{n}>\tsubject {n}\n" for n in range(30))
FOREIGN = "".join(
    json.dumps({"id": f"f{n}", "title": f"On {n}", "labels": [f"foreign {n}"]}) + "\n"
    for n in range(30)
)
WRONG = {
    "subjects": ("s.tsv", SUBJECTS, "only URIs, such as <http://e.org/0>: it looks like a list"),
    "vocabulary": ("w.tsv", "ui\tname\nD1\tOats\n", "looks like a vocabulary"),
    "RDF": ("w.ttl", "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .", "a vocabulary"),
    "pointer": ("p.jsonl", "version https://git-lfs.github.com/spec/v1\noid x\n", "git lfs pull"),
    "swapped": ("x.tsv", "<u:1> <u:2>\tOn the growth of rye in wet summers, again\n", "swapped"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("verb", ["add", "eval", "annotate", "suggest", "tune"])
def test_files_of_the_wrong_kind(run: Run, collection: Path, verb: str, case: str) -> None:
    name, content, reason = WRONG[case]
    Path(name).write_text(content)
    Path("good.jsonl").write_text('{"id": "good", "title": "x", "labels": ["Oats"]}\n')
    files = [name] if verb == "suggest" else ["good.jsonl", name]
    before = (collection / "documents.sqlite").read_bytes()
    options = ("-o", "o.jsonl") if verb == "annotate" else ()
    line = error_of(run(verb, collection, *files, *options))
    assert line.startswith(f"error: {name}: ")
    assert reason in line
    assert (collection / "documents.sqlite").read_bytes() == before
    assert documents(run, collection) == 3
    assert not Path("o.jsonl").exists()


def test_force_goes_on(run: Run, collection: Path) -> None:
    Path("s.tsv").write_text(SUBJECTS)
    assert run("add", collection, "s.tsv", "--force").exit_code == 0
    assert documents(run, collection) == 3 + 30


def test_labels_of_another_vocabulary(run: Run, collection: Path) -> None:
    Path("f.jsonl").write_text(FOREIGN)
    line = error_of(run("add", collection, "f.jsonl"))
    assert "none of the first 30 labels is in the vocabulary, such as 'foreign 0'" in line
    assert documents(run, collection) == 3
    assert run("add", collection, "f.jsonl", "--keep-unknown").exit_code == 0
    assert documents(run, collection) == 3 + 30
    assert run("init", "free").exit_code == 0
    assert run("add", "free", "f.jsonl").exit_code == 0


def test_labels_of_another_vocabulary_can_be_forced(run: Run, collection: Path) -> None:
    Path("f.jsonl").write_text(FOREIGN)
    result = run("add", collection, "f.jsonl", "--force")
    assert result.exit_code == 0
    assert "30 labels (30 occurrences) not in the vocabulary" in result.stderr


def test_a_corpus_is_not_a_vocabulary(run: Run, collection: Path) -> None:
    Path("t.tsv").write_text("On rye\t<u:1>\nOn oats\t<u:2>\n")
    for name in ("c.jsonl", "t.tsv"):
        line = error_of(run("init", "new", "--vocab", name))
        assert line.startswith(f"error: {name}: looks like a corpus")
        assert not Path("new").exists()
    assert run("init", "new", "--vocab", "t.tsv", "--force").exit_code == 0


def test_the_hint_at_another_separator(run: Run, collection: Path) -> None:
    Path("l.csv").write_text("id,title,labels\na,On oats,Oats; Bread\nb,On rye,Oats\n")
    hint = "--label-separator ';'"
    assert hint in run("add", collection, "l.csv").stderr
    result = run("add", collection, "l.csv", "--label-separator", ";")
    assert "separator" not in result.stderr
    assert "not in the vocabulary" not in result.stderr
    rows = "".join(f"r{n},On oats,Oats;Bread;extra {n}\n" for n in range(20))
    Path("all.csv").write_text("id,title,labels\n" + rows)
    assert hint in error_of(run("add", collection, "all.csv"))


def test_an_archive(run: Run, collection: Path) -> None:
    Path("a.zip").write_bytes(b"PK\x03\x04" + bytes(30))
    Path("a.pdf").write_bytes(b"%PDF-1.4\n")
    for verb in ("add", "suggest"):
        for name, advice in (("a.zip", "unpack it"), ("a.pdf", "extract the text first")):
            result = run(verb, collection, name)
            assert result.exit_code == 1
            assert f"error: {name}: " in result.stderr
            assert advice in result.stderr


def test_annotate_takes_plain_texts(run: Run, collection: Path) -> None:
    folder = Path("texts")
    folder.mkdir()
    (folder / "one.txt").write_text("Oats at dawn.\nAnd more oats.")
    (folder / "two.txt.gz").write_bytes(gzip.compress(b"Rye bread"))
    (folder / "README.txt").write_text("Oats")
    (folder / "one.pdf").write_bytes(b"%PDF-1.4\n")
    files = [folder / "one.txt", folder / "two.txt.gz"]
    result = run("annotate", collection, *files, "-o", "files.jsonl", *LEXICAL)
    assert result.exit_code == 0, result.stderr
    result = run("annotate", collection, folder, "-o", "folder.jsonl", *LEXICAL)
    assert result.exit_code == 0, result.stderr
    assert "README.txt, one.pdf (documentation)" in result.stderr
    written = Path("files.jsonl").read_text()
    assert written == Path("folder.jsonl").read_text()
    records = [json.loads(line) for line in written.splitlines()]
    assert [record["id"] for record in records] == ["one", "two"]
    (suggested,) = json.loads(run("suggest", collection, files[0], *LEXICAL, "--json").stdout)
    assert suggested["id"] is None
    assert [one["id"] for one in suggested["suggestions"]] == [
        one["id"] for one in records[0]["suggestions"]
    ]
    assert records[0]["suggestions"]


def test_annotate_takes_a_text_from_standard_input(
    collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labelkin.cli.main import app

    command = ["annotate", str(collection), "-", "-o", "o.jsonl", *LEXICAL]
    result = CliRunner().invoke(app, command, input="Oats at dawn.")
    assert result.exit_code == 0, result.stderr
    record = json.loads(Path("o.jsonl").read_text())
    assert (record["id"], record["text"]) == ("standard-input", "Oats at dawn.")


def test_eval_says_what_a_plain_text_lacks(run: Run, collection: Path) -> None:
    Path("t.txt").write_text("Oats at dawn.")
    line = error_of(run("eval", collection, "t.txt"))
    assert line.startswith("error: t.txt: a plain text without labels; put them beside it as t.key")
    Path("t.key").write_text("Oats\n")
    values = run("eval", collection, "t.txt", *LEXICAL, "--measures", "R@1", "--json")
    assert json.loads(values.stdout)["R@1"] == 1.0


def test_eval_of_documents_without_labels(run: Run, collection: Path) -> None:
    Path("n.jsonl").write_text('{"id": "1", "title": "x"}\n')
    assert "no document with labels" in error_of(run("eval", collection, "n.jsonl"))


@pytest.mark.parametrize(
    "command",
    [
        "add c -",
        "annotate c - -o o.jsonl",
        "compare c -",
        "corpus convert - -o o.jsonl",
        "corpus stats -",
        "eval c -",
        "neighbours c -",
        "suggest c -",
        "tune c -",
    ],
)
@pytest.mark.parametrize("content", ["", " \n\n"])
def test_nothing_on_standard_input(command: str, content: str, collection: Path) -> None:
    from labelkin.cli.main import app

    result = CliRunner().invoke(app, command.split(), input=content)
    assert "standard input is empty" in error_of(result)
    assert not Path("o.jsonl").exists()
    assert not Path(".o.jsonl.journal").exists()


def test_a_collection_given_as_a_corpus(run: Run, collection: Path) -> None:
    assert run("init", "other", "--vocab", "v.tsv").exit_code == 0
    line = error_of(run("add", "other", collection))
    assert "a collection, not a corpus; `labelkin corpus convert" in line


def test_annotate_leaves_the_old_output_if_nothing_can_be_read(run: Run, collection: Path) -> None:
    Path("o.jsonl").write_text("old")
    Path("b.bin").write_bytes(b"\x00\x01")
    assert "a binary file" in error_of(run("annotate", collection, "b.bin", "-o", "o.jsonl"))
    assert Path("o.jsonl").read_text() == "old"
