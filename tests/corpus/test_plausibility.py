from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from labelkin.corpus import Document, read_corpus
from labelkin.corpus.plausibility import are_uris, implausible
from labelkin.exceptions import WrongKindError

Write = Callable[[str, str | bytes], Path]

SENTENCE = (
    "We examined the surface of two hundred carcases and counted colonies per square centimetre, "
    "which gave a distribution that depends on the season."
)


def documents(*pairs: tuple[str, tuple[str, ...]]) -> list[Document]:
    return [Document(str(n), body=text, labels=labels) for n, (text, labels) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ([("<http://e.org/1>", ("oats",)), ("<http://e.org/2>", ("rye", "bread"))], "list of"),
        ([(f"D{n:06}", ("Oats",)) for n in range(9)], "list of"),
        ([(str(n), ("Oats",)) for n in range(9)], "list of"),
        ([("<u:1> <u:2>", tuple(SENTENCE.split()))] * 2, "swapped"),
        ([(f"n{n}", tuple(SENTENCE.split())) for n in range(9)], "swapped"),
        ([("Oats", (SENTENCE,))] * 3, "labels that are texts"),
        ([("Oats Rye", tuple(SENTENCE.split()))] * 3, "labels that are texts"),
    ],
)
def test_implausible(given: list[tuple[str, tuple[str, ...]]], kind: str) -> None:
    strange = implausible(documents(*given), named=False)
    assert strange is not None
    assert strange.kind.startswith(kind)


@pytest.mark.parametrize(
    "given",
    [
        [],
        [("2001", ("Films",))],
        [("x", ()), ("y", ())],
        [("http://e.org/1", ())] + [(SENTENCE, ("Oats",))] * 4,
        [(SENTENCE, ("4-Benzoxazolecarboxylic acid, 5-(methylamino)-2-((3,9,11-trimethyl",))],
        # Lists of labels that were not split.
        [(SENTENCE, ("; ".join(["Bread, Rye", "Flour mills", "Winter wheat"] * 7),))],
        [(SENTENCE, (", ".join(["bread", "flour mills", "winter wheat"] * 9),))],
        [(SENTENCE, tuple(f"http://e.org/{n}" for n in range(30)))],
        [(SENTENCE, ("Convention on the Rights of Persons with Disabilities and its Protocol",))],
    ],
)
def test_plausible(given: list[tuple[str, tuple[str, ...]]]) -> None:
    assert implausible(documents(*given), named=False) is None


def test_texts_that_the_format_names_may_be_short() -> None:
    short = documents(*((f"T{n}", ("Oats",)) for n in range(9)))
    assert implausible(short, named=True) is None
    assert implausible(short, named=False) is not None


def test_a_list_of_subjects_stops_and_can_be_forced(write: Write) -> None:
    rows = "".join(f"<http://e.org/{n}>\tsubject {n}\n" for n in range(300))
    good = write("good.jsonl", '{"id": "1", "title": "x"}')
    path = write("subjects.tsv", rows)
    with pytest.raises(WrongKindError, match=r"only URIs.*list of subjects.*--vocab.*--force") as e:
        next(iter(read_corpus(good, path)))
    assert str(e.value).startswith(f"{path}: ")
    assert len(list(read_corpus(path, force=True))) == 300
    assert len(list(read_corpus(path, format="annif-tsv", force=True))) == 300


def test_standard_input_is_read_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    lines = "".join(f'{{"id": "{n}", "title": "x{n}"}}\n' for n in range(500))
    with write("in", lines).open("rb") as file:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file))
        assert [d.id for d in read_corpus("-").documents()] == [str(n) for n in range(500)]
    with write("in", "<u:1>\tone\n<u:2>\ttwo\n").open("rb") as file:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=file))
        with pytest.raises(WrongKindError, match="standard input: its texts are only URIs"):
            next(iter(read_corpus("-")))


def test_a_pipe_is_looked_at_before_the_files(write: Write, tmp_path: Path) -> None:
    lines = "".join(f'{{"id": "{n}", "title": "x{n}"}}\n' for n in range(500))
    good = write("good.jsonl", lines)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to(pipe)

    def piped(content: str) -> threading.Thread:
        thread = threading.Thread(target=pipe.write_text, args=(content,))
        thread.start()
        return thread

    for path in (pipe, link):
        thread = piped("<u:1>\tone\n<u:2>\ttwo\n")
        with pytest.raises(WrongKindError, match="only URIs"):
            next(iter(read_corpus(good, path)))
        thread.join()
        thread = piped(lines.replace("x", "y"))
        titles = [document.title for document in read_corpus(good, path).documents()]
        assert (len(titles), titles[0], titles[500]) == (1000, "x0", "y0")
        thread.join()
        thread = piped("{broken")
        corpus = read_corpus(path, good)
        assert len(list(corpus)) == 500
        assert (corpus.report.skipped, corpus.report.files) == (1, 2)
        thread.join()


CORPORA = [
    *(f"mesh47k/{split}.json.gz" for split in ("train", "dev", "test", "l1000")),
    "medline/pubmed20n0014.xml.gz",
    *(f"yso/yso-finna-{language}.tsv.gz" for language in ("fi", "en")),
    *(f"tibkat/{language}.tsv.gz" for language in ("orig", "en", "de")),
]
OTHERS = [
    "mesh/descriptors.tsv.gz",
    "mesh/decs2019-es.tsv.gz",
    "yso/yso-fi.tsv.gz",
    "yso/yso-en.tsv.gz",
    "tibkat/gnd-core-en.tsv.gz",
    "mesh47k/l1000-mti.tsv.gz",
    "mesh47k/l1000-cited.tsv",
]


@pytest.mark.shared
@pytest.mark.parametrize("name", CORPORA)
def test_real_corpora(name: str, shared_data: Path) -> None:
    read_corpus(shared_data / name).check()


@pytest.mark.shared
@pytest.mark.parametrize("name", OTHERS)
def test_real_files_that_are_none(name: str, shared_data: Path) -> None:
    with pytest.raises(WrongKindError):
        read_corpus(shared_data / name).check()


@pytest.mark.parametrize(
    "text", ["<" * 50_000, "<a " * 20_000, "a:" * 30_000, "http://" * 10_000 + " x", "<>" * 30_000]
)
def test_a_hostile_text_takes_no_time(text: str) -> None:
    started = time.process_time()
    are_uris(text)
    assert time.process_time() - started < 1
