from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import Result

from labelkin import Indexer, read_corpus
from labelkin.corpus import Document
from labelkin.demo import demo_documents
from labelkin.represent import KINDS, TermKind
from labelkin.store.config import read_config

Run = Callable[..., Result]


@pytest.fixture
def demo(run: Run, reranked: str) -> str:
    pytest.importorskip("faiss")
    assert run("corpus", "convert", reranked, "-o", "d.jsonl").exit_code == 0
    return reranked


@pytest.mark.parametrize("representation", ["lsa", "wordllama", "stems,lsa"])
def test_every_verb_takes_a_representation(run: Run, demo: str, representation: str) -> None:
    asked = ("--representation", representation)
    # The reranker was trained with stems.
    knn = ("--method", "knn")
    assert run("build", demo, *asked).exit_code == 0
    words = next(iter(demo_documents(1))).text
    result = run("neighbours", demo, "--text", words, "-k", 3, *asked, "--json")
    (found,) = json.loads(result.stdout)
    assert len(found["neighbours"]) == 3
    assert json.loads(run("suggest", demo, "--text", words, *asked, *knn, "--json").stdout)
    options = ("--measures", "MiF", *asked, *knn, "--json")
    values = json.loads(run("eval", demo, "d.jsonl", *options).stdout)
    assert "MiF" in str(values)


def test_build_lists_the_indexes_and_fits_again(run: Run, demo: str) -> None:
    run("build", demo, "--representation", "lsa")
    assert set(json.loads(run("info", demo, "--json").stdout)["indexes"]) >= {"lsa", "stems"}
    again = run("build", demo, "--representation", "lsa", "--relearn")
    assert again.exit_code == 0


def test_compare_representations(run: Run, demo: str) -> None:
    asked = ("--representation", "stems", "--representation", "lsa", "--measures", "MiF,P@5")
    result = run("compare-representations", demo, "d.jsonl", *asked, "--json")
    rows = json.loads(result.stdout)
    assert [(row["representation"], row["k"]) for row in rows] == [
        (name, k) for name in ("stems", "lsa") for k in (5, 10, 20, 30, 50, 100)
    ]
    assert all(0 < row["MiF"] < 1 and 0 < row["P@5"] < 1 for row in rows)
    table = run("compare-representations", demo, "d.jsonl", *asked).stdout
    assert "stems" in table
    assert "P@5" in table


def test_comparing_analyses_each_text_once(
    run: Run, demo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    class Words:
        def analyse(
            self, documents: Sequence[Document], kinds: Sequence[str]
        ) -> Iterator[list[list[str]]]:
            asked.extend((document.text, tuple(kinds)) for document in documents)
            return ([document.text.split() for _ in kinds] for document in documents)

    words = Words()
    for name in ("lemmas", "nps"):
        monkeypatch.setitem(KINDS, name, lambda name, _: TermKind(name, "1", words))
    names = ("stems", "lemmas", "nps", "lemmas+nps")
    options = [option for name in names for option in ("--representation", name)]
    result = run("compare-representations", demo, "d.jsonl", *options, "--json")
    assert {row["representation"] for row in json.loads(result.stdout)} == {*names}
    with Indexer.open(demo) as indexer:
        texts = {document.text for document in indexer.documents()}
    assert [kinds for text, kinds in asked if text in texts] == [("lemmas", "nps")] * 340
    # Besides them the names of headings, once, and the titles of the texts to search with.
    titles = {document.title for document in read_corpus("d.jsonl").documents()}
    names_of_headings = [text for text, _ in asked if text not in texts | titles]
    assert len(names_of_headings) == len({*names_of_headings}) > 0
    # The one for all, and that of the settings.
    assert len(list((Path(demo) / "indexes").glob("terms-*"))) <= 2


def test_tune_writes_how_to_fuse(run: Run, demo: str) -> None:
    knn = ("--method", "knn")
    result = run("tune", demo, "d.jsonl", "--representation", "stems,lsa", *knn, "--write")
    assert "Fused by" in result.stderr
    config = read_config(Path(demo) / "labelkin.toml")
    assert config.representation.name == "stems,lsa"
    assert sum(config.fusion.weights) == pytest.approx(1)
    assert run("suggest", demo, "--text", "wheat", *knn).exit_code == 0


def test_what_is_not_there_is_one_line(run: Run, demo: str) -> None:
    unknown = run("neighbours", demo, "--text", "x", "--representation", "stamps")
    assert (unknown.exit_code, unknown.stderr.count("\n")) == (1, 1)
    config = Path(demo) / "labelkin.toml"
    text = config.read_text().replace('"en_core_web_sm"', '"xx_no_such_model"', 1)
    config.write_text(text.replace('spacy_model = "en_core_web_sm"', 'spacy_model = "xx_none_sm"'))
    missing = run("build", demo, "--representation", "lemmas")
    assert missing.exit_code == 1
    assert "python -m spacy download xx_none_sm" in missing.stderr


@pytest.mark.parametrize(
    "asked",
    [
        ("suggest", "--title", "wheat"),
        ("annotate", "d.jsonl", "-o", "out.jsonl"),
        ("eval", "d.jsonl", "--method", "rerank"),
        ("compare", "d.jsonl", "--methods", "knn,rerank"),
        ("tune", "d.jsonl", "--method", "rerank"),
    ],
)
def test_a_representation_that_does_not_fit_is_refused_before_it_is_indexed(
    run: Run, demo: str, asked: tuple[str, ...]
) -> None:
    before = sorted(Path(demo, "indexes").iterdir())
    verb, *rest = asked
    refused = run(verb, demo, *rest, "--representation", "lsa")
    assert refused.exit_code == 1
    assert "trained with neighbours by stems, not by lsa" in refused.stderr
    assert sorted(Path(demo, "indexes").iterdir()) == before
