"""Odd uses of every verb and writer: each has one right outcome, and no collection is harmed.

For every case: no traceback, an error is one line, the exit code is the documented
one, and the documents of the collection stay as they were unless the case says so.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from labelkin import Document, Indexer, LabelkinError, Settings, read_corpus
from labelkin.corpus import write_corpus

VOCABULARY = (
    "id\tname\tbroader\n"
    "D1\tBread\t\nD2\tBread, Rye\tD1\nD3\tOats\t\nD4\t=SUM(A1)\t\nD5\tBarley | Malt\t\n"
)
LABELLED = [
    {"id": "1", "title": "On rye", "labels": ["D2", "Wheat"], "language": "en"},
    {"id": "2", "title": "On oats", "labels": ["Oats"], "language": "en"},
    {"id": "3", "title": "On nothing", "language": "en"},
]
ODD_IDS = ["-1", "--json", "a b", "😀", 'it\'s "q"', "\u202eabc", "=1+1", "a,b", "a|b", "'x", "001"]
ODD_LABELS = ["a, b", "a|b", "a;b", "=cmd", "+x", "'q'", '"dq"', "x" * 300, "#hash", "\\", "D3"]
LONG_NAME = "x" * (255 - len(".jsonl")) + ".jsonl"
COLLECTIONS = ("demo", "c", "empty", "unlabelled")


def lines(records: list[dict[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write(name: str, content: str | bytes) -> Callable[[], None]:
    def prepare() -> None:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)

    return prepare


def write_records(name: str, records: list[dict[str, object]]) -> Callable[[], None]:
    return write(name, lines(records))


def settings(text: str | bytes) -> Callable[[], None]:
    return write("c/labelkin.toml", text)


def ids(collection: str) -> list[str]:
    with Indexer.open(collection) as indexer:
        return [document.id for document in indexer.documents()]


@dataclass(frozen=True)
class Case:
    """A command in the folder of `world`, and its only right outcome."""

    name: str
    command: tuple[object, ...]
    code: int = 0
    says: str = ""  # A line on standard error.
    shows: str = ""  # On standard output.
    once: str = ""  # On standard output, but only once.
    prepare: Callable[[], None] | None = None
    check: Callable[[], None] | None = None
    changes: bool = False  # Whether documents may change.
    stdin: str | None = None
    environment: dict[str, str | None] = field(default_factory=dict)
    shell: str = ""  # The command in a shell, for streams, masks and options of Python.


def odd_ids() -> None:
    documents = [
        {"id": one, "title": f"On rye {number}", "labels": ["Oats"], "language": "en"}
        for number, one in enumerate(ODD_IDS)
    ]
    Path("ids.jsonl").write_text(lines(documents), encoding="utf-8")
    assert CliRunner().invoke(app(), ["add", "c", "ids.jsonl"]).exit_code == 0


def odd_labels() -> None:
    documents = [
        {"id": str(number), "title": f"On rye {number}", "labels": [one, "same"], "language": "en"}
        for number, one in enumerate(ODD_LABELS)
    ]
    Path("labels.jsonl").write_text(lines(documents), encoding="utf-8")
    for command in (["init", "own"], ["add", "own", "labels.jsonl"]):
        assert CliRunner().invoke(app(), command).exit_code == 0


def app() -> object:
    from labelkin.cli.main import app

    return app


def same_labels(output: str) -> Callable[[], None]:
    def check() -> None:
        back = {document.id: document.labels for document in read_corpus(output).documents()}
        assert back == {str(n): (label, "same") for n, label in enumerate(ODD_LABELS)}

    return check


def same_ids(output: str) -> Callable[[], None]:
    def check() -> None:
        back = [document.id for document in read_corpus(output).documents()]
        assert back == ["1", "2", "3", *ODD_IDS]

    return check


def table(path: str, delimiter: str = ",") -> list[list[str]]:
    text = Path(path).read_text(encoding="utf-8")
    return list(csv.reader(io.StringIO(text), delimiter=delimiter))


def no_formula(path: str, delimiter: str) -> Callable[[], None]:
    def check() -> None:
        cells = [cell for row in table(path, delimiter) for cell in row]
        assert any("=SUM" in cell or "=cmd" in cell or "=1+1" in cell for cell in cells)
        assert not [cell for cell in cells if re.match(r"[=+@]", cell)]

    return check


def missing(*paths: str) -> Callable[[], None]:
    def check() -> None:
        assert not [path for path in paths if Path(path).exists()]
        assert not list(Path().glob(".*part"))

    return check


def only_outputs(*names: str) -> Callable[[], None]:
    """The new files are these: no temporary file is left."""

    def check() -> None:
        new = {path.name for path in Path().iterdir()} - WORLD
        assert new == set(names)

    return check


def deep_vocabulary() -> None:
    rows = "".join(f"N{n}\tLevel {n}\tN{n - 1}\n" for n in range(1, 1500))
    Path("deep.tsv").write_text(f"id\tname\tbroader\nN0\tLevel 0\t\n{rows}")


def wide_vocabulary() -> None:
    rows = "".join(f"N{n}\tNarrow {n:04}\tR\n" for n in range(2000))
    Path("wide.tsv").write_text(f"id\tname\tbroader\nR\tRoot\t\n{rows}")


def same_texts() -> None:
    documents: list[dict[str, object]] = [
        {"id": str(n), "title": "The same text", "labels": ["A", "B"], "language": "en"}
        for n in range(160)
    ]
    Path("same.jsonl").write_text(lines(documents))
    for command in (["init", "same"], ["add", "same", "same.jsonl"]):
        assert CliRunner().invoke(app(), command).exit_code == 0


def parts_only() -> None:
    records: list[dict[str, object]] = [
        {"id": "body", "abstract": "Rye in a body", "labels": ["Oats"], "language": "en"},
        {"id": "fields", "fields": {"note": "Rye in a field"}, "labels": ["D2"], "language": "en"},
        {"id": "many", "title": "Rye", "labels": [f"L{n}" for n in range(500)], "language": "en"},
    ]
    Path("parts.jsonl").write_text(lines(records))
    result = CliRunner().invoke(app(), ["add", "c", "parts.jsonl", "--keep-unknown"])
    assert result.exit_code == 0


def parts_are_back() -> None:
    back = {one.id: one for one in read_corpus("parts.csv").documents()}
    assert (back["body"].title, back["body"].body) == ("", "Rye in a body")
    assert back["fields"].fields == {"note": "Rye in a field"}
    assert len(back["many"].labels) == 500


def hidden_index() -> None:
    Path("link").symlink_to("c")
    Path("nowhere").symlink_to("no/such/place")
    Path("loop").symlink_to("loop")


TEXT = ("--title", "Storage of winter wheat in barns")
UNKNOWN = {"id": "x", "title": "Rye", "labels": ["Nope", "Nada"], "language": "en"}
TINY = {"id": "t", "title": "Rye bread", "labels": ["D2"], "language": "en"}
NO_RECORDS = write("none.csv", "id,title\n")

CASES = [
    # Collections without anything to find
    Case("suggest from nothing", ("suggest", "empty", *TEXT), says="no documents yet"),
    Case("neighbours among nothing", ("neighbours", "empty", *TEXT), says="no documents yet"),
    Case("build nothing", ("build", "empty"), says="no documents yet"),
    Case("tree of an empty vocabulary", ("vocab", "tree", "bare"), says="no headings yet",
         prepare=lambda: make("bare")),
    Case("search in an empty vocabulary", ("vocab", "search", "bare", "x"), 1, "no headings yet",
         prepare=lambda: make("bare")),
    Case("train on nothing", ("train", "empty"), 1, "0 documents with labels; training needs"),
    Case("compare representations of nothing", ("compare-representations", "empty", "c.jsonl"), 1,
         "empty: the collection has no documents yet; add"),
    Case("export nothing", ("corpus", "convert", "empty", "-o", "o.csv"), says="Wrote 0 documents",
         check=only_outputs("o.csv")),
    Case("suggest from unlabelled documents", ("suggest", "unlabelled", "--title", "rye"),
         says="None of the 2 documents has headings"),
    Case("tune on unlabelled documents", ("tune", "unlabelled", "c.jsonl"), 1,
         "none of the 2 documents has headings"),
    Case("statistics without labels", ("corpus", "stats", "u.jsonl"), shows="Documents"),
    # Texts
    Case("an empty title", ("suggest", "c", "--title", ""), 1, "the text is empty"),
    Case("a blank text", ("neighbours", "c", "--text", " \n\t "), 1, "the text is empty"),
    Case("stop words only", ("suggest", "demo", "--title", "the of and to"),
         says="no heading can be suggested"),
    Case("emoji only", ("suggest", "demo", "--title", "😀🌾", "--json"), shows='"suggestions": []'),
    Case("a text of 2 MB", ("suggest", "demo", "--text", "winter wheat in barns " * 95_000),
         shows="Barns"),
    Case("a text that looks like an option", ("suggest", "demo", "--title", "--json"),
         says="no heading can be suggested"),
    Case("a table without rows", ("suggest", "c", "none.csv"), prepare=NO_RECORDS),
    Case("annotate a table without rows", ("annotate", "c", "none.csv", "-o", "a.csv"), 1,
         "no document to annotate", prepare=NO_RECORDS, check=missing("a.csv")),
    Case("neighbours of no document", ("neighbours", "c", "none.csv", "-o", "n.npz"),
         says="neighbours of 0 documents", prepare=NO_RECORDS,
         check=only_outputs("none.csv", "n.npz")),
    # Options out of bounds
    Case("more neighbours than documents", ("neighbours", "c", "--title", "rye", "-k", 9999),
         shows="On rye"),
    Case("a limit of 0", ("suggest", "demo", *TEXT, "--limit", 0), 2, "greater than or equal to 1"),
    Case("a limit with an exponent", ("suggest", "demo", *TEXT, "--limit", "1e9"), 2, "integer"),
    Case("a huge limit", ("suggest", "demo", *TEXT, "--limit", 10**20), shows="Barns"),
    Case("a threshold that is no number", ("suggest", "demo", *TEXT, "--threshold", "nan"), 2,
         "less than or equal to 1"),
    Case("accept below review", ("suggest", "demo", *TEXT, "--accept", 0.2, "--review", 0.9), 2,
         "--accept 0.2 is lower than --review 0.9"),
    Case("an empty language", ("suggest", "demo", *TEXT, "--language", ""), 1,
         "'' is not a language code"),
    Case("an empty representation", ("suggest", "demo", *TEXT, "--representation", ""), 1,
         "the name of the representation is empty"),
    Case("a representation twice",
         ("compare-representations", "c", "c.jsonl", *["--representation", "stems"] * 2,
          "--measures", "MiF", "--json"),
         once='"k": 5,'),
    Case("a method twice",
         ("compare", "c", "c.jsonl", "--methods", "knn,knn", "--measures", "MiF"),
         shows="measure       knn\n"),
    Case("a measure twice", ("score", "c.jsonl", "c.jsonl", "--measures", "MiF,MiF"),
         once="MiF"),
    Case("a seed that does not fit", ("train", "demo", "--seed", 10**20), 2, "less than or equal"),
    Case("a negative seed", ("demo", "new", "--seed", -1), 2, "greater than or equal to 0",
         check=missing("new")),
    Case("layers of size 0", ("train", "demo", "--preset", "0"), 1, "a size of 1 to 10,000"),
    Case("layers of the paper", ("train", "demo", "--preset", "large"), 1, "--recipe paper"),
    Case("resume what was never started", ("train", "demo", "--resume"), 1, "nothing to resume"),
    # labelkin.toml
    Case("settings with a byte order mark", ("suggest", "c", "--title", "rye"), shows="Bread, Rye",
         prepare=settings("\ufeff[neighbours]\nk = 5\n")),
    Case("tune --write keeps a byte order mark's settings",
         ("tune", "c", "c.jsonl", "--write", "--json"), shows='"MiF"',
         prepare=settings("\ufeff[suggest]\nlimit = 7\n"),
         check=lambda: contains("c/labelkin.toml", "limit = 7")),
    Case("settings in UTF-16", ("info", "c"), 1, "not valid TOML",
         prepare=settings("[neighbours]".encode("utf-16"))),
    Case("a section twice", ("info", "c"), 1, "Cannot declare",
         prepare=settings("[suggest]\nlimit = 1\n[suggest]\nlimit = 2\n")),
    Case("a section that is a number", ("info", "c"), 1, "write [neighbours] and its keys below",
         prepare=settings("neighbours = 3\n")),
    Case("settings nested 5,000 deep", ("info", "c"), 1, "nested too deeply",
         prepare=settings("a = " + "[" * 5000)),
    Case("a weight that is no number", ("info", "c"), 1, "input should be a finite number",
         prepare=settings("[fusion]\nweights = [nan]\n")),
    Case("review above accept in the settings", ("info", "c"), 1, "larger than accept",
         prepare=settings("[rerank]\naccept = 0.2\nreview = 0.9\n")),
    Case("a folder called labelkin.toml", ("info", "c"), 1, "not a file; remove it",
         prepare=lambda: replaced_by_folder("c/labelkin.toml"),
         check=lambda: Path("c/labelkin.toml").rmdir()),
    # Paths
    Case("an empty name of a collection", ("info", ""), 2, "the name is empty"),
    Case("an empty name of a file", ("add", "c", ""), 2, "the name is empty"),
    Case("a file as collection", ("info", "c.jsonl"), 1, "it is a file: name the folder"),
    Case("another folder as collection", ("info", "."), 1, "or make one elsewhere"),
    Case("a collection through a link with a slash", ("info", "link/"), shows="Documents",
         prepare=hidden_index),
    Case("init at a link to nowhere", ("init", "nowhere"), 1, "a link that leads nowhere",
         prepare=hidden_index),
    Case("init at a link to itself", ("init", "loop"), 1, "a link that leads nowhere",
         prepare=hidden_index),
    Case("init inside a collection", ("init", "c/models/new"), 1, "inside the collection",
         check=missing("c/models/new")),
    Case("init with a name that is not UTF-8", ("init", "caf\udce9"), 1, "not valid UTF-8",
         check=only_outputs()),
    Case("demo into a collection", ("demo", "c", "--documents", 5), 1, "c: already exists"),
    Case("a name with a NUL", ("add", "c", "a\0b"), 2, "NUL"),
    # Ids
    Case("remove ids like options", ("remove", "c", "--", *ODD_IDS), says="Removed 11 documents",
         prepare=odd_ids, changes=True, check=lambda: is_equal(ids("c"), ["1", "2", "3"])),
    Case("remove an id like an option without --", ("remove", "c", "-1"), 2,
         "put -- before ids and names that begin with a dash", prepare=odd_ids),
    Case("remove an empty id", ("remove", "c", ""), 3, "not in the collection: 1 id: ''"),
    Case("remove the ids of an empty file", ("remove", "c", "--from", "none"), 1,
         "none: no ids in it", prepare=write("none", "\n \n")),
    Case("remove an id twice", ("remove", "c", "1", "1", "--json"), shows='"removed": 1',
         changes=True),
    Case("odd ids through .jsonl", ("corpus", "convert", "c", "-o", "o.jsonl"), prepare=odd_ids,
         check=same_ids("o.jsonl")),
    Case("odd ids through .json", ("corpus", "convert", "c", "-o", "o.json"), prepare=odd_ids,
         check=same_ids("o.json")),
    Case("odd ids through .csv.gz", ("corpus", "convert", "c", "-o", "o.csv.gz"), prepare=odd_ids,
         check=same_ids("o.csv.gz")),
    Case("odd ids annotated as .csv", ("annotate", "c", "ids.jsonl", "-o", "a.csv"),
         prepare=odd_ids, check=lambda: scores("ids.jsonl", "a.csv", len(ODD_IDS))),
    Case("odd ids annotated as .npz", ("annotate", "c", "ids.jsonl", "-o", "a.npz"),
         prepare=odd_ids, check=lambda: scores("ids.jsonl", "a.npz", len(ODD_IDS))),
    Case("odd ids annotated for BioASQ", ("annotate", "c", "ids.jsonl", "-o", "a.json"),
         prepare=odd_ids, check=lambda: scores("ids.jsonl", "a.json", len(ODD_IDS))),
    Case("odd ids as neighbours in .tsv", ("neighbours", "c", "ids.jsonl", "-o", "n.tsv"),
         prepare=odd_ids, check=no_formula("n.tsv", "\t")),
    # Labels
    Case("odd labels through .jsonl.gz", ("corpus", "convert", "own", "-o", "o.jsonl.gz"),
         prepare=odd_labels, check=same_labels("o.jsonl.gz")),
    Case("odd labels through .csv", ("corpus", "convert", "own", "-o", "o.csv"),
         prepare=odd_labels, check=same_labels("o.csv")),
    Case("odd labels for Annif", ("corpus", "convert", "own", "-o", "o.tsv"),
         says="1 label is a name with spaces", prepare=odd_labels),
    Case("odd labels annotated for Annif",
         ("annotate", "own", "labels.jsonl", "-o", "a.tsv", "--limit", 20),
         says="ids with spaces: labelkin reads them again", prepare=odd_labels,
         check=lambda: same_suggestions("a.tsv")),
    Case("odd labels per label", ("eval", "own", "labels.jsonl", "--per-label", "p.tsv"),
         shows="MiF", prepare=odd_labels, check=no_formula("p.tsv", "\t")),
    Case("odd unresolved labels",
         ("add", "c", "labels.jsonl", "--force", "--unresolved", "u.tsv"), changes=True,
         prepare=odd_labels, check=no_formula("u.tsv", "\t")),
    Case("documents of one part only", ("corpus", "convert", "c", "-o", "parts.csv"),
         prepare=parts_only, check=parts_are_back),
    Case("a neighbour without title and body", ("neighbours", "c", "--title", "rye"),
         shows="Rye in a field", prepare=parts_only),
    Case("500 labels on one document", ("info", "c"), shows="500 at most", prepare=parts_only),
    # Outputs
    *(
        Case(f"{verb[0]} to a name of 255 bytes", (*verb, "-o", LONG_NAME),
             check=only_outputs(LONG_NAME))
        for verb in (("annotate", "c", "c.jsonl"), ("corpus", "convert", "c"),
                     ("neighbours", "c", "c.jsonl"))
    ),
    Case("a name of 256 bytes", ("annotate", "c", "c.jsonl", "-o", f"x{LONG_NAME}"), 1,
         "the name is too long", check=only_outputs()),
    Case("-o at a link to itself", ("annotate", "c", "c.jsonl", "-o", "loop"), 1, "leads to itself",
         prepare=hidden_index),
    Case("-o with an empty name", ("annotate", "c", "c.jsonl", "-o", ""), 1, "a folder; name"),
    Case("-o to a hidden file", ("annotate", "c", "c.jsonl", "-o", ".a.jsonl"),
         check=only_outputs(".a.jsonl")),
    Case("-o to /dev/null", ("annotate", "c", "c.jsonl", "-o", "/dev/null"), check=only_outputs()),
    Case("gzip by a format's name", ("corpus", "convert", "c", "-o", "-", "--to", "jsonl.gz"), 1,
         "no output format 'jsonl.gz'; known: jsonl"),
    Case("per-label figures in a workbook",
         ("eval", "c", "c.jsonl", "--per-label", "p.xlsx"), 1, "'.xlsx'; use .tsv",
         check=missing("p.xlsx")),
    Case("per-label figures between the results",
         ("eval", "c", "c.jsonl", "--per-label", "-", "--json"), 2, "cannot both go to standard"),
    Case("unresolved labels between the results",
         ("add", "c", "c.jsonl", "--unresolved", "-", "--json"), 2, "cannot both go to standard"),
    Case("unresolved labels to standard output", ("add", "c", "c.jsonl", "--unresolved", "-"),
         shows="1\tunknown\tWheat"),
    # Vocabularies
    Case("2,000 narrower headings", ("vocab", "show", "wide.tsv", "Root"), shows="and 1,980 more",
         prepare=wide_vocabulary),
    Case("a tree of 1,500 levels", ("vocab", "tree", "deep.tsv", "--depth", 200),
         shows="Level 199  (+1)", prepare=deep_vocabulary),
    Case("a tree deeper than allowed", ("vocab", "tree", "v.tsv", "--depth", 10_000), 2,
         "less than or equal to 200"),
    Case("a tree below an empty name", ("vocab", "tree", "c", ""), 1, "'' is unknown"),
    Case("search for nothing", ("vocab", "search", "c", "  "), 2, "give a part of a name"),
    Case("search for a pattern", ("vocab", "search", "c", "(.*"), 1, "No heading contains '(.*'"),
    Case("search for a bar", ("vocab", "search", "c", "|"), shows="Barley | Malt"),
    Case("search for half a character", ("vocab", "search", "c", "\udcff"), 1, "No heading"),
    Case("show a heading that is a formula", ("vocab", "show", "c", "=SUM(A1)"), shows="D4"),
    Case("include and exclude the same",
         ("suggest", "c", "--title", "rye", "--include", "Bread", "--exclude", "Bread"),
         says="no heading can be suggested"),
    # Evaluation and training
    Case("score a file against itself", ("score", "c.jsonl", "./c.jsonl", "--measures", "MiF"),
         shows="1.0000"),
    Case("score documents that are not the same", ("score", "c.jsonl", "x.jsonl"), 1,
         "none of its documents is in c.jsonl", prepare=write_records("x.jsonl", [UNKNOWN])),
    Case("tune on labels that are all unknown", ("tune", "c", "x.jsonl", "--write"), 1,
         "no label of these documents is in the vocabulary",
         prepare=write_records("x.jsonl", [UNKNOWN])),
    Case("compare on labels that are all unknown",
         ("compare", "c", "x.jsonl", "--measures", "MiF"), says="2 labels not in the vocabulary",
         shows="0.0000", prepare=write_records("x.jsonl", [UNKNOWN])),
    Case("tune on one document", ("tune", "c", "t.jsonl", "--json"), shows='"MiF": 1.0',
         prepare=write_records("t.jsonl", [TINY])),
    Case("train on three documents", ("train", "c", "--only", "rerank"), 1, "too few to train"),
    Case("train on one text many times", ("train", "same", "--only", "rerank"), 1,
         "have the same text", prepare=same_texts),
    Case("an unknown grid", ("experiment", "run", ""), 1, "no grid ''; shipped are"),
    Case("an unknown subcommand", ("corpus", "nope"), 2, "No such command 'nope'"),
    # The world around
    Case("a terminal of 10 columns", ("suggest", "demo", *TEXT, "--explain"), shows="Barns",
         environment={"COLUMNS": "10"}),
    Case("a terminal of 1 column", ("vocab", "search", "c", "rye"), shows="Bread, Rye",
         environment={"COLUMNS": "1"}),
    Case("a terminal with a negative width", ("info", "c"), shows="Documents",
         environment={"COLUMNS": "-5"}),
    Case("no home and no terminal", ("suggest", "demo", *TEXT), shows="Barns",
         environment={"HOME": None, "TERM": "dumb", "TZ": "Nowhere/Odd"}),
    Case("no place for temporary files", ("annotate", "c", "c.jsonl", "-o", "-"), shows='"id": "3"',
         environment={"TMPDIR": "/no/such/folder"}),
    Case("a closed standard input", (), 1, "standard input", shell="{labelkin} suggest c - <&-"),
    Case("a closed standard input for add", (), 1, "standard input",
         shell="{labelkin} add c - <&-"),
    Case("a mask of 077", (), shell="umask 077; {labelkin} annotate c c.jsonl -o a.jsonl",
         check=lambda: is_equal(stat.S_IMODE(Path("a.jsonl").stat().st_mode), 0o600)),
    Case("a pipe as output", (),
         shell="mkfifo p; cat p > a & {labelkin} annotate c c.jsonl -o p && wait",
         check=lambda: is_equal(len(Path("a").read_text().splitlines()), 3)),
    Case("a current folder that is gone", (), 1, "the current folder has been removed",
         shell="mkdir gone; cd gone; rmdir ../gone; {labelkin} annotate ../c ../c.jsonl -o a.csv"),
    Case("Python that drops assertions", (), shows="Bread, Rye",
         shell="{python} -O -m labelkin suggest c --title rye"),
    Case("two writers at once", (), changes=True,
         shell="{labelkin} add c more.jsonl & {labelkin} remove c 1 2; {labelkin} add c c.jsonl; "
         "wait; exit 0",
         prepare=write_records("more.jsonl", [{"id": f"m{n}", "title": "Rye"} for n in range(50)]),
         check=lambda: is_equal(len(ids("c")), 53)),
]  # fmt: skip


def make(name: str) -> None:
    with Indexer.create(name):
        pass


def contains(path: str, text: str) -> None:
    assert text in Path(path).read_text(encoding="utf-8")


def is_equal(value: object, expected: object) -> None:
    assert value == expected


def replaced_by_folder(path: str) -> None:
    Path(path).unlink()
    Path(path).mkdir()


def scores(gold: str, output: str, documents: int) -> None:
    """Every document of the output is recognised again."""
    result = CliRunner().invoke(app(), ["score", gold, output, "--vocab", "c", "--json"])
    assert result.exit_code == 0, result.stderr
    assert "without" not in result.stderr
    assert json.loads(result.stdout)["MiR"] == 1.0
    assert len(list(read_corpus(gold).documents())) == documents


def same_suggestions(path: str) -> None:
    """What is read back are labels of the collection, whole."""
    given = [document.labels for document in read_corpus(path, force=True).documents()]
    assert len(given) == len(ODD_LABELS)
    known = {*ODD_LABELS, "same"}
    assert all(known.issuperset(labels) for labels in given)
    assert any("a, b" in labels for labels in given)


WORLD = {"c", "c.jsonl", "demo", "empty", "held.jsonl", "u.jsonl", "unlabelled", "v.tsv"}


@pytest.fixture(scope="session")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from labelkin.vocab import read_vocabulary

    folder = tmp_path_factory.mktemp("odd")
    (folder / "v.tsv").write_text(VOCABULARY)
    (folder / "c.jsonl").write_text(lines(LABELLED))
    (folder / "u.jsonl").write_text(lines([{"id": n, "title": "On rye"} for n in "ab"]))
    vocabulary = read_vocabulary(folder / "v.tsv")
    for name, file in (("c", "c.jsonl"), ("unlabelled", "u.jsonl"), ("empty", None)):
        with Indexer.create(folder / name, vocabulary, language="en") as indexer:
            if file is not None:
                indexer.add(read_corpus(folder / file))
    return folder


@pytest.fixture
def world(_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small collections and files, which is also the current one."""
    shutil.copytree(_world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


def one_line(text: str) -> str:
    """The message of a usage error, without its box."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_right_outcome(
    case: Case, world: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "demo" in case.command[1:2] and case.command[0] != "demo":
        request.getfixturevalue("reranked")
    if case.prepare is not None:
        case.prepare()
    collection = next((str(one) for one in case.command if one in COLLECTIONS), "c")
    before = ids(collection) if not case.changes and readable(collection) else None
    for name, value in case.environment.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    if case.shell:
        python = sys.executable
        command = case.shell.format(python=python, labelkin=f"{python} -m labelkin")
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, timeout=60, check=False
        )
        code, stdout, stderr = done.returncode, done.stdout, done.stderr
    else:
        result = CliRunner().invoke(app(), [str(one) for one in case.command], input=case.stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        code, stdout, stderr = result.exit_code, result.stdout, result.stderr
    assert code == case.code, stderr
    assert "Traceback" not in stdout + stderr
    assert "this should not happen" not in stderr
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) <= 1
    if code == 2:
        assert case.says in one_line(stderr)
    else:
        assert any(case.says in line for line in stderr.splitlines() or [""]), stderr
    assert case.shows in stdout
    assert not case.once or stdout.count(case.once) == 1
    if case.check is not None:
        case.check()
    if before is not None and readable(collection):
        assert ids(collection) == before


def readable(collection: str) -> bool:
    """Whether the settings of a collection can be read; cases that break them do not change it."""
    try:
        ids(collection)
    except LabelkinError:
        return False
    return True


LONG_RUNS = {
    ("add", "c", "long.jsonl"): signal.SIGTERM,
    ("annotate", "c", "long.jsonl", "-o", "a.jsonl"): signal.SIGINT,
    ("corpus", "convert", "long.jsonl", "-o", "o.csv"): signal.SIGTERM,
    ("neighbours", "c", "long.jsonl", "-o", "n.csv"): signal.SIGINT,
}
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.mark.parametrize("verb", LONG_RUNS, ids=lambda verb: verb[0])
def test_interrupted(verb: tuple[str, ...], world: Path) -> None:
    """One line, a documented code, no unfinished output; the same command then ends as usual."""
    # A pipe that is never filled: the command is in the middle of its work for certain.
    os.mkfifo("long.jsonl")
    number = LONG_RUNS[verb]
    command = [sys.executable, "-m", "labelkin", *verb]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    record = {"title": "Rye and oats", "labels": ["Oats"], "language": "en"}
    with Path("long.jsonl").open("w") as pipe:
        pipe.writelines(json.dumps({"id": f"n{n}", **record}) + "\n" for n in range(2000))
        pipe.flush()
        time.sleep(0.3)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    shown = stderr.decode()
    assert process.returncode == CODES[number], shown
    assert "Traceback" not in shown
    assert shown.splitlines()[-1].startswith("error: ")
    assert "Run the same command again" in shown
    left = {path.name for path in world.iterdir()} - WORLD - {"long.jsonl"}
    assert left <= {".a.jsonl.journal"}
    stored = len(ids("c")) - len(LABELLED)
    assert stored % 1000 == 0
    Path("long.jsonl").unlink()
    Path("long.jsonl").write_text(
        "".join(json.dumps({"id": f"n{n}", **record}) + "\n" for n in range(2000))
    )
    again = CliRunner().invoke(app(), list(verb))
    assert again.exit_code == 0, again.stderr
    assert len(ids("c")) == (2003 if verb[0] == "add" else 3)


def test_interrupted_while_starting(world: Path) -> None:
    (world / "typer.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-m", "labelkin", "info", "c"],
        env={**os.environ, "PYTHONPATH": f"{world}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "")


@dataclass(frozen=True)
class Use:
    """A use of the Python API: its result, or the message of its LabelkinError."""

    name: str
    use: Callable[[Indexer], object]
    result: object = None
    error: str = ""


RYE = Document("", "Rye and oats", language="en")


def stored(indexer: Indexer, document: Document) -> Document | None:
    indexer.add([document])
    return indexer.document(document.id)


def deleted(indexer: Indexer) -> object:
    shutil.rmtree("c")
    return indexer.suggest([RYE])


def closed(indexer: Indexer) -> object:
    indexer.close()
    return indexer.suggest([RYE])


def left(indexer: Indexer) -> object:
    documents = indexer.documents()
    next(documents)
    indexer.close()
    return list(documents)


USES = [
    Use("suggest for nothing", lambda i: i.suggest([]), []),
    Use("neighbours of nothing", lambda i: i.neighbours([]), []),
    Use("a generator of documents", lambda i: len(i.suggest(one for one in [RYE, RYE])), 2),
    Use("a generator for neighbours", lambda i: [len(n) for n in i.neighbours(iter([RYE]))], [2]),
    Use("the same document twice", lambda i: (lambda a, b: a == b)(*i.suggest([RYE, RYE])), True),
    Use("one document", lambda i: i.suggest(RYE), error="give a list of documents, not Document"),
    Use("a text", lambda i: i.suggest("Rye"), error="give a list of documents, not str"),
    Use("a list of texts", lambda i: i.suggest(["Rye"]), error="'Rye' is not a Document"),
    Use("a negative k", lambda i: i.neighbours([RYE], -1), error="k is -1"),
    Use("k from numpy", lambda i: len(i.neighbours([RYE], np.int64(1))[0]), 1),
    Use("k of 10**20", lambda i: i.neighbours([RYE], 10**20), error="not between 0 and 10,000"),
    Use("a title that is None", lambda _: Document("n", None), error="title is None"),
    Use("an id that is a number", lambda _: Document(7, "x"), error="id is 7"),
    Use("fields that are None", lambda _: Document("n", "x", fields=None), error="fields is None"),
    Use("labels that are one string", lambda _: Document("n", "x", labels="Oats"),
        error="labels is 'Oats'; give a tuple"),
    Use("labels that are None", lambda _: Document("n", "x", labels=None), error="labels is None"),
    Use("labels that are a list", lambda i: stored(i, Document("n", "x", labels=["D3"])).labels,
        ("D3",)),
    Use("labels twice", lambda i: stored(i, Document("n", "x", labels=("D3", "Oats"))).labels,
        ("D3",)),
    Use("add a dictionary", lambda i: i.add([{"id": "1"}]), error="is not a Document"),
    Use("add the name of a file", lambda i: i.add("c.jsonl"), error="is not a Document"),
    Use("metadata of numpy", lambda i: i.add([Document("n", "x", metadata={"y": np.int64(3)})]),
        error="document 'n': metadata can hold strings"),
    Use("metadata that are no number",
        lambda i: i.add([Document("n", "x", metadata={"y": float("nan")})]),
        error="document 'n': metadata can hold"),
    Use("write metadata of numpy",
        lambda _: write_corpus([Document("n", "x", metadata={"y": np.int64(3)})], "o.jsonl"),
        error="document 'n': metadata can hold"),
    Use("write half a character", lambda _: write_corpus([Document("n", "\ud800")], "o.csv"),
        error="o.csv: not written: half a character"),
    Use("write a generator to a name", lambda i: write_corpus(i.documents(), "o.tsv"), 3),
    Use("read a corpus twice", lambda _: [len(list(c)) for c in [read_corpus("c.jsonl")] * 2],
        [3, 3]),
    Use("one id as a string", lambda i: i.remove("1").removed, 1),
    Use("a negative limit", lambda _: Settings(limit=-1), error="limit is -1"),
    Use("include as a string", lambda _: Settings(include="Oats"), error="include is 'Oats'"),
    Use("explain one heading as a string", lambda i: [
        one.concept.id for one in i.explain(RYE, "Oats")], ["D3"]),
    Use("a file as vocabulary", lambda _: Indexer.create("new", "v.tsv"),
        error="read_vocabulary('v.tsv')"),
    Use("a closed collection", closed, error="the collection is closed"),
    Use("a closed collection while it is read", left, error="the collection is closed"),
    Use("a deleted collection", deleted, error="was removed while the collection was open"),
]  # fmt: skip


@pytest.mark.parametrize("use", USES, ids=lambda use: use.name)
def test_python(use: Use, world: Path) -> None:
    with Indexer.open("c") as indexer:
        if use.error:
            with pytest.raises(LabelkinError) as raised:
                use.use(indexer)
            assert use.error in str(raised.value)
            assert "\n" not in str(raised.value)
        else:
            assert use.use(indexer) == use.result
    if use.error and Path("c").exists():
        assert ids("c") == ["1", "2", "3"]
        assert {path.name for path in world.iterdir()} <= WORLD
