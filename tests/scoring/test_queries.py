"""What is computed for a batch of queries is computed once, however many steps need it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from labelkin import Document, Indexer
from labelkin.corpus import write_corpus
from labelkin.exceptions import ConfigError, ModelMismatchError
from labelkin.neighbours.tantivy_engine import TantivySearcher
from labelkin.represent.stems import Stems
from labelkin.rerank import method as rerank_method
from labelkin.rerank.ranker import Ranker
from labelkin.scoring.mentions import MentionFinder
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import Settings
from labelkin.store import reader


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many texts each expensive step has worked on since the last look."""
    counts: Counter[str] = Counter()

    def counting(name: str, usual: Callable[..., Any], size: Callable[..., int]) -> Any:
        def counted(*given: Any, **more: Any) -> Any:
            counts[name] += size(*given)
            return usual(*given, **more)

        return counted

    def of_batch(_: object, batch: Any, *__: object) -> int:
        return len(batch)

    steps = (
        ("stems", Stems, "analyse", of_batch),
        ("mentions", MentionFinder, "matches", of_batch),
        ("neighbours", TantivySearcher, "nearest", of_batch),
        ("contributions", Ranker, "contributions", of_batch),
        ("languages", reader, "detect_language", lambda *_: 1),
    )
    for name, owner, attribute, size in steps:
        usual = getattr(owner, attribute)
        monkeypatch.setattr(owner, attribute, counting(name, usual, size))
    return counts


@pytest.fixture
def texts(new_documents: list[Document]) -> list[Document]:
    """Texts whose language has to be detected."""
    return [replace(document, language=None) for document in new_documents if document.text]


def usable(indexer: Indexer, name: str) -> Settings:
    if name not in indexer.usable_methods():
        pytest.skip(f"{name} has no model here")
    return Settings.from_config(indexer.config, name).changed(limit=5)


METHODS_WITH_NAMES = ("label-ae", "mix", "mix-ranked", "lexical", "rerank")


@pytest.fixture(params=["knn", "label-ae", "mix", "mix-ranked", "lexical", "rerank"])
def settings(request: pytest.FixtureRequest, trained_indexer: Indexer) -> Settings:
    return usable(trained_indexer, request.param)


def titles(texts: list[Document]) -> int:
    """How many texts have more than a title, which is then analysed by itself."""
    return sum(text.text != text.title for text in texts)


def expected_calls(settings: Settings, texts: list[Document]) -> dict[str, int]:
    expected = {"languages": len(texts)}
    if settings.k:
        expected |= {"stems": len(texts) + titles(texts), "neighbours": len(texts)}
    if settings.method in METHODS_WITH_NAMES:
        expected["mentions"] = len(texts)
    return expected


def test_each_step_is_done_once_for_a_batch(
    trained_indexer: Indexer, settings: Settings, texts: list[Document], calls: Counter[str]
) -> None:
    trained_indexer.warm_up([settings.method])
    calls.clear()
    queries = trained_indexer.queries(texts, settings.k)
    method = settings.implementation
    given = method.cut(queries, method.rank(queries, settings), settings)
    explained = method.explain(queries, given, settings)
    assert all(len(suggestions) for suggestions in explained)
    assert dict(calls) == expected_calls(settings, texts)
    method.explain(queries, method.cut(queries, method.rank(queries, settings), settings), settings)
    assert dict(calls) == expected_calls(settings, texts)


def test_a_request_does_each_step_once(
    trained_indexer: Indexer, settings: Settings, texts: list[Document], calls: Counter[str]
) -> None:
    trained_indexer.warm_up([settings.method])
    calls.clear()
    trained_indexer.suggest(texts, settings=settings)
    assert dict(calls) == expected_calls(settings, texts)


def test_parts_of_a_large_batch_share_what_was_computed(
    trained_indexer: Indexer,
    texts: list[Document],
    calls: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = usable(trained_indexer, "rerank")
    monkeypatch.setattr(rerank_method, "_BATCH", 3)
    trained_indexer.warm_up(["rerank"])
    calls.clear()
    trained_indexer.suggest(texts, settings=settings)
    assert dict(calls) == expected_calls(settings, texts)


def test_several_methods_share_what_was_computed(
    trained_indexer: Indexer, new_documents: list[Document], calls: Counter[str]
) -> None:
    names = trained_indexer.usable_methods()
    settings = [Settings.from_config(trained_indexer.config, name) for name in names]
    trained_indexer.warm_up(names)
    calls.clear()
    trained_indexer.compare(new_documents, settings)
    count = len(new_documents)
    stems = count + titles(new_documents)
    assert dict(calls) == {"stems": stems, "neighbours": count, "mentions": count}


def test_weights_of_signals_are_computed_only_if_asked_for(
    trained_indexer: Indexer,
    new_documents: list[Document],
    calls: Counter[str],
    tmp_path: Path,
) -> None:
    settings = usable(trained_indexer, "rerank")
    trained_indexer.suggest(new_documents, settings=settings)
    trained_indexer.answer(new_documents, settings=settings)
    trained_indexer.labels(new_documents, settings)
    trained_indexer.evaluate(new_documents, settings=settings)
    _annotate(trained_indexer, new_documents, tmp_path)
    assert calls["contributions"] == 0
    suggestions = trained_indexer.suggest(new_documents, settings=settings, explain=True)
    assert calls["contributions"] == sum(map(len, suggestions)) > 0


def _annotate(indexer: Indexer, documents: list[Document], folder: Path) -> None:
    from labelkin.cli.main import app

    write_corpus(documents, folder / "d.jsonl")
    options = ["--method", "rerank", "-o", folder / "o.jsonl"]
    arguments = ["annotate", indexer.collection.path, folder / "d.jsonl", *options]
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in (folder / "o.jsonl").read_text().splitlines()]
    assert any(line["suggestions"] for line in lines)


@pytest.fixture
def near(trained_indexer: Indexer, new_documents: list[Document]) -> Iterator[Any]:
    return trained_indexer.queries(new_documents, 10)


def test_fewer_neighbours_are_the_nearest_of_those_found(
    near: Any, calls: Counter[str], new_documents: list[Document]
) -> None:
    ten = near.neighbours(10)
    np.testing.assert_array_equal(near.neighbours(4).rows, ten.rows[:, :4])
    assert near.neighbours(0).rows.shape == (len(new_documents), 0)
    assert calls["neighbours"] == 0
    np.testing.assert_array_equal(near.neighbours(15).rows[:, :10], ten.rows)
    assert calls["neighbours"] == len(new_documents)


def test_a_part_has_the_neighbours_of_the_whole(
    near: Any, calls: Counter[str], new_documents: list[Document]
) -> None:
    part = near.part(slice(2, 5))
    assert part.documents == new_documents[2:5]
    np.testing.assert_array_equal(part.neighbours(10).rows, near.neighbours(10).rows[2:5])
    assert part.prepared == near.prepared[2:5]
    assert calls["neighbours"] == 0


def test_queries_without_a_search_have_only_the_given_neighbours(
    trained_indexer: Indexer, near: Any, new_documents: list[Document]
) -> None:
    found = near.neighbours(10)
    again = trained_indexer.queries(new_documents, 10, neighbours=found)
    assert again.within_depth([5, 10, 20]) == [5, 10]
    assert again.within_depth([20]) == [10]
    assert again.neighbours(20).rows.shape == found.rows.shape
    alone = trained_indexer.queries(new_documents)
    with pytest.raises(ConfigError, match="no neighbours"):
        alone.neighbours(5)


def test_mentions_that_a_policy_allows(trained_indexer: Indexer) -> None:
    queries = trained_indexer.queries([Document("q", "Winter wheat and oats", language="en")])
    everything = queries.mentions()
    vocabulary = trained_indexer.vocabulary
    columns = everything.columns.tolist()
    excluded = next(one for one in columns if not vocabulary.narrower(vocabulary[one].id))
    policy = queries.policy(exclude=(vocabulary[excluded].id,))
    rest = queries.mentions(policy)
    assert rest.columns.tolist() == [one for one in columns if one != excluded]
    assert len(rest.columns) == len(columns) - 1
    assert {*queries.namings(0)} == {*everything.columns.tolist()}


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes of the batches that lsa has encoded since the last look."""
    pytest.importorskip("faiss", reason="needs the extra `dense`")
    from labelkin.represent.lsa import LsaEncoder

    sizes: list[int] = []
    usual = LsaEncoder.encode

    def encode(self: LsaEncoder, documents: Any) -> Any:
        sizes.append(len(documents))
        return usual(self, documents)

    monkeypatch.setattr(LsaEncoder, "encode", encode)
    return sizes


def test_neighbours_by_vectors_are_found_once(
    trained_indexer: Indexer, near: Any, new_documents: list[Document], encoded: list[int]
) -> None:
    trained_indexer.build("lsa")
    encoded.clear()
    expected = trained_indexer.neighbour_arrays(new_documents, 12, representation="lsa")
    assert expected.rows.tolist() != near.neighbours(10).rows[:, :12].tolist()
    encoded.clear()
    found = near.neighbours_by("lsa", 12)
    vectors = near.vectors("lsa")
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(near.neighbours_by("lsa", 4).rows, expected.rows[:, :4])
    assert near.neighbours_by("lsa", 12).rows is not near.neighbours(10).rows
    assert near.vectors("lsa") is vectors
    assert encoded == [len(new_documents)]
    deeper = near.neighbours_by("lsa", 20)
    assert deeper.k == 20
    assert encoded == [len(new_documents)]


def test_parts_and_other_neighbours_keep_what_vectors_have_found(
    near: Any, new_documents: list[Document], encoded: list[int]
) -> None:
    found, vectors = near.neighbours_by("lsa", 12), near.vectors("lsa")
    encoded.clear()
    part = near.part(slice(2, 5))
    np.testing.assert_array_equal(part.neighbours_by("lsa", 12).rows, found.rows[2:5])
    np.testing.assert_array_equal(part.vectors("lsa"), vectors[2:5])
    other = near.with_neighbours(near.neighbours(10))
    np.testing.assert_array_equal(other.neighbours_by("lsa", 12).rows, found.rows)
    assert other.vectors("lsa") is vectors
    assert encoded == []
    # A part and other neighbours can also search by themselves.
    fresh = near.part(slice(0, 2)).with_neighbours(near.neighbours(10)[slice(0, 2)])
    assert fresh.neighbours_by("lsa", 15).k == 15


def test_vectors_that_are_given_are_not_searched_again(
    trained_indexer: Indexer, near: Any, new_documents: list[Document], encoded: list[int]
) -> None:
    neighbours = near.neighbours(5)
    cache = trained_indexer.runtime.indexes.context.cache
    alone = Queries(near.views, near.models, new_documents, cache, neighbours=neighbours)
    for ask in (
        lambda: alone.neighbours_by("lsa", 5),
        lambda: alone.vectors("lsa"),
        lambda: alone.encoder_version("lsa"),
    ):
        with pytest.raises(ModelMismatchError, match=r"searched by lsa.*; use another method"):
            ask()
    vectors = np.ones((len(new_documents), 3), dtype=np.float32)
    alone.give_vectors("lsa", vectors, neighbours)
    assert alone.vectors("lsa") is vectors
    assert alone.neighbours_by("lsa", 60).rows.tolist() == neighbours.rows.tolist()
    assert encoded == []


def test_only_an_encoder_has_vectors(near: Any) -> None:
    for name in ("stems", "lsa,wordllama", "a/b,c/d", ""):
        with pytest.raises(ConfigError, match=r"no encoder .*; known: lsa, wordllama, and"):
            near.vectors(name)
