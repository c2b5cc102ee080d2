"""The engine against BM25 computed from its formula, with document lengths kept in one byte.

The formula here is written out on its own, by hand, and shares no code with the package.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.indexer import Indexer
from labelkin.neighbours.bm25 import quantised_length
from labelkin.neighbours.tantivy_engine import TantivySearcher

COUNT = 400
# Settings of the search: weight of a term by its frequency n in the query, weight of headings.
SETTINGS: dict[str, tuple[Callable[[int], float], float]] = {
    "paper": (lambda _: 1.0, 0.0),
    "default": (lambda n: 1 + math.log(n), 1.5),
}


def one_byte(length: int) -> int:
    """Lucene's SmallFloat: below 40 as it is, above with the four leading bits, rounded down."""
    if length < 40:
        return length
    above = length - 24
    shift = above.bit_length() - 4
    return 24 + ((above >> shift) << shift)


def corpus(seed: int, count: int, prefix: str) -> list[Document]:
    rng = random.Random(seed)
    words = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(500)]
    weights = [1 / (n + 3) for n in range(500)]
    return [
        Document(
            f"{prefix}{number}",
            body=" ".join(rng.choices(words, weights, k=rng.randint(1, 300))),
            language="xx",
            labels=tuple(
                " ".join(rng.choices(words, weights, k=rng.randint(1, 3)))
                for _ in range(rng.randint(1, 12))
            ),
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module", params=list(SETTINGS))
def indexer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Indexer]:
    recipe = None if request.param == "default" else request.param
    made = Indexer.create(tmp_path_factory.mktemp("reference") / "c", recipe=recipe)
    made.add(corpus(1, COUNT, "d"))
    yield made
    made.close()


def settings_of(indexer: Indexer) -> tuple[Callable[[int], float], float]:
    return SETTINGS["default" if indexer.config.neighbours.heading_weight else "paper"]


def texts(documents: list[Document]) -> list[Counter[str]]:
    return [Counter(document.body.split()) for document in documents]


def headings(documents: list[Document]) -> list[Counter[str]]:
    """The words of a document's headings, each once."""
    return [Counter({*" ".join(document.labels).split()}) for document in documents]


def scores_by_formula(
    query: Document,
    bags: list[Counter[str]],
    weight: Callable[[int], float],
    documents: list[Document],
) -> np.ndarray:
    """The scores of texts or headings; a word is as rare as it is in the texts."""
    asked = Counter(query.body.split())
    lengths = [bag.total() for bag in bags]
    average = sum(lengths) / len(lengths)
    frequency = Counter(word for bag in texts(documents) for word in bag)
    scores = np.zeros(len(bags))
    for number, bag in enumerate(bags):
        for word in asked.keys() & bag.keys():
            n, tf = frequency[word], bag[word]
            idf = math.log(1 + (len(bags) - n + 0.5) / (n + 0.5))
            k = 1.2 * (1 - 0.75 + 0.75 * one_byte(lengths[number]) / average)
            scores[number] += weight(asked[word]) * idf * 2.2 * tf / (tf + k)
    return scores


def test_scores_and_order(indexer: Indexer) -> None:
    documents = corpus(1, COUNT, "d")
    queries = corpus(2, 60, "q")
    weight, of_headings = settings_of(indexer)
    found = indexer.neighbour_arrays(queries, 50)
    for place, query in enumerate(queries):
        expected = scores_by_formula(query, texts(documents), weight, documents)
        in_headings = scores_by_formula(query, headings(documents), weight, documents)
        expected += of_headings * in_headings
        assert found.scores[place] == pytest.approx(expected[found.rows[place]], rel=1e-5)
        order = np.lexsort((np.arange(COUNT), -np.round(expected / expected.max() * 1e5)))
        assert found.rows[place].tolist() == order[:50].tolist()


def test_own_score_is_what_the_text_scores_as_a_document(indexer: Indexer) -> None:
    documents = corpus(1, COUNT, "d")
    copies = [Document(f"copy {d.id}", body=d.body, language="xx") for d in documents[:100]]
    weight, _ = settings_of(indexer)
    found = indexer.neighbour_arrays(copies, 3)
    for place, copy in enumerate(copies):
        own = scores_by_formula(copy, texts(documents), weight, documents)[place]
        assert found.own_scores[place] == pytest.approx(own, rel=1e-5)
    # A very short text may be beaten by a longer one, but is itself at 0 all the same.
    distances = found.distances("self")
    for place in range(100):
        if place in found.rows[place]:
            assert distances[place][found.rows[place] == place] == 0


def test_lengths_are_those_that_the_engine_stores(indexer: Indexer, tmp_path: Path) -> None:
    lengths = [*range(1, 70), 100, 199, 500, 1000, 4097, 20_000]
    with Indexer.create(tmp_path / "c") as lengthy:
        lengthy.add(
            Document(
                str(n),
                body=f"length{'ab'[n % 2]} " + "pad " * (n - 1),
                labels=("L",),
                language="xx",
            )
            for n in lengths
        )
        searcher = lengthy.search()._searcher
        assert isinstance(searcher, TantivySearcher)
        rows: list[int] = []
        for suffix in "ab":
            query = searcher._term_query("stems", f"length{suffix}", 1.0)
            hits = searcher._searcher.search(query, 100).hits
            found = searcher._searcher.fast_field_values("row", [address for _, address in hits])
            rows += found
            for (_, address), row in zip(hits, found, strict=True):
                explanation = query.explain(searcher._searcher, address).to_json()
                (length,) = re.findall(r'"value": ([\d.]+),\s*"description": "dl,', explanation)
                assert float(length) == quantised_length(lengths[row]) == one_byte(lengths[row])
    assert sorted(rows) == list(range(len(lengths)))
