"""What every term engine must do: subclass `EngineConformance` and say how to open the engine.

    class TestMyEngine(EngineConformance):
        def open(self, folder, fields, *, read_only=False):
            return MyEngine(folder, fields, read_only=read_only)

Expected scores are computed here, by the formula in `labelkin.neighbours.bm25`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from labelkin.neighbours.bm25 import FieldStatistics, idf, quantised_length, term_score
from labelkin.neighbours.engine import (
    EngineSearcher,
    EngineState,
    Hits,
    IndexedDocument,
    TermEngine,
    WeightedTerms,
)
from labelkin.store.derived import StoreState

FIELDS = {"stems": "1", "names": "1"}
# Scores that differ by less than this share of the best count as equal.
TIE = 1e-5


def document(row: int, stems: str = "", names: str = "") -> IndexedDocument:
    return row, {"stems": stems.split(), "names": names.split()}


def query(stems: str = "", names: str = "") -> WeightedTerms:
    fields = {"stems": stems, "names": names}
    return {field: dict.fromkeys(text.split(), 1.0) for field, text in fields.items() if text}


def random_documents(count: int, seed: int = 0, first: int = 0) -> list[IndexedDocument]:
    """Documents of very different lengths; frequent and rare words, and fields that are empty."""
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(120)]
    weights = [1 / (number + 2) for number in range(120)]
    documents = []
    for row in range(first, first + count):
        length = rng.choice((0, 1, 5, 30, 60, 400))
        terms = {
            "stems": rng.choices(words, weights, k=length),
            "names": rng.choices(words[:20], k=rng.randint(0, 4)),
        }
        documents.append((row, terms))
    return documents


def random_queries(count: int, seed: int = 1) -> list[WeightedTerms]:
    rng = random.Random(seed)
    return [
        {
            field: {f"w{number}": rng.choice((1.0, 0.5, 2.0, 7.25)) for number in numbers}
            for field, numbers in (
                ("stems", rng.sample(range(130), rng.randint(1, 25))),
                ("names", rng.sample(range(25), rng.randint(0, 5))),
            )
        }
        for _ in range(count)
    ]


def statistics_by_formula(documents: Sequence[IndexedDocument], field: str) -> FieldStatistics:
    """All documents count, also those whose field is empty."""
    lengths = [len(terms.get(field, ())) for _, terms in documents]
    return FieldStatistics(len(lengths), sum(lengths) / len(lengths))


def scores_by_formula(
    documents: Sequence[IndexedDocument], weighted: WeightedTerms
) -> dict[int, float]:
    """The score of each row that has a term of the query."""
    scores: dict[int, float] = {}
    for field, terms in weighted.items():
        statistics = statistics_by_formula(documents, field)
        bags = {row: Counter(of_row.get(field, ())) for row, of_row in documents}
        for term, weight in terms.items():
            with_term = [row for row, bag in bags.items() if term in bag]
            for row in with_term:
                length = quantised_length(bags[row].total())
                score = term_score(bags[row][term], length, statistics.average_length)
                score *= weight * idf(statistics.documents, len(with_term))
                scores[row] = scores.get(row, 0.0) + score
    return scores


def check_hits(hits: Hits, scores: Mapping[int, float], k: int) -> None:
    """Whether these are the `k` best rows of `scores`, ties in the order of rows."""
    rows, values = hits
    assert len(rows) == len(values) == min(k, len(scores))
    if not len(rows):
        return
    assert len({*rows.tolist()}) == len(rows)
    best = max(scores.values())
    assert values == pytest.approx([scores[row] for row in rows.tolist()], rel=1e-4)
    # No row is missing whose score is clearly above the last.
    last = min(scores[row] for row in rows.tolist())
    better = {row for row, score in scores.items() if score > last + 2 * TIE * best}
    assert better <= {*rows.tolist()}
    for before, after in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        assert scores[before] >= scores[after] - 2 * TIE * best
        if scores[before] == scores[after]:
            assert before < after


class InterruptedBuildError(Exception):
    """Stands for a crash in the middle of a build."""


class EngineConformance:
    """The tests of an engine; `open` opens it."""

    def open(
        self, folder: Path, fields: Mapping[str, str], *, read_only: bool = False
    ) -> TermEngine:
        raise NotImplementedError

    def commit_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the engine commit after each page, if it commits on the way at all."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return tmp_path / "index"

    @pytest.fixture
    def engine(self, folder: Path) -> Iterator[TermEngine]:
        with self.open(folder, FIELDS) as opened:
            yield opened

    def apply(
        self,
        engine: TermEngine,
        documents: Iterable[IndexedDocument] = (),
        removed: Iterable[int] = (),
        generation: int = 1,
        page: int = 7,
    ) -> StoreState:
        """Apply documents page by page as one generation, the way an index does."""
        documents = list(documents)
        before = engine.state().applied.next_row
        target = StoreState(
            generation,
            f"token {generation}",
            max([before, *(row + 1 for row, _ in documents)]),
        )
        pages = (documents[start : start + page] for start in range(0, len(documents), page))
        engine.apply(removed, pages, target)
        return target

    def nearest(
        self,
        searcher: EngineSearcher,
        weighted: WeightedTerms,
        k: int,
        excluded: Iterable[int] = (),
    ) -> Hits:
        (hits,) = searcher.nearest([weighted], k, [frozenset(excluded)])
        return hits

    def rows(
        self, engine: TermEngine, weighted: WeightedTerms, k: int = 100, *excluded: int
    ) -> list[int]:
        return self.nearest(engine.searcher(), weighted, k, excluded)[0].tolist()

    # What the index has.

    def test_an_empty_index(self, engine: TermEngine) -> None:
        assert engine.state() == EngineState(StoreState(), None, -1)
        searcher = engine.searcher()
        assert searcher.document_frequencies("stems", ["bread"]) == [0]
        assert searcher.statistics("stems").documents == 0
        rows, scores = self.nearest(searcher, query("bread"), 10)
        assert len(rows) == len(scores) == 0

    def test_statistics_are_the_numbers_of_the_formula(self, engine: TermEngine) -> None:
        documents = random_documents(100)
        self.apply(engine, documents)
        searcher = engine.searcher()
        for field in FIELDS:
            terms = [f"w{number}" for number in range(125)]
            expected = [sum(term in of_row[field] for _, of_row in documents) for term in terms]
            assert searcher.document_frequencies(field, terms) == expected
            # Asked for after the frequencies of terms that the index has: an engine may need them.
            statistics = searcher.statistics(field)
            assert isinstance(statistics, FieldStatistics)
            by_formula = statistics_by_formula(documents, field)
            assert statistics.documents == by_formula.documents
            assert statistics.average_length == pytest.approx(by_formula.average_length, rel=1e-5)

    def test_fields_are_kept_apart(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "bread", "kenya"), document(1, "kenya", "bread")])
        assert self.rows(engine, query("bread")) == [0]
        assert self.rows(engine, query(names="bread")) == [1]
        assert engine.searcher().document_frequencies("names", ["bread", "rye"]) == [1, 0]

    def test_unknown_terms_find_nothing_and_add_nothing(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "bread rye"), document(1, "oats")])
        searcher = engine.searcher()
        assert searcher.document_frequencies("stems", ["wheat", "rye", ""]) == [0, 1, 0]
        assert self.rows(engine, query("wheat barley")) == []
        known = self.nearest(searcher, query("rye"), 5)
        with_unknown = self.nearest(searcher, query("rye wheat"), 5)
        assert known[0].tolist() == with_unknown[0].tolist() == [0]
        assert with_unknown[1] == pytest.approx(known[1], rel=1e-6)

    @pytest.mark.parametrize(
        "term", ["AND", "stems:rye", "*", "r?e", "(rye", "rye^2", "ry\u00e9", "小麦", "-rye", '"']
    )
    def test_terms_are_taken_literally(self, term: str, engine: TermEngine) -> None:
        self.apply(engine, [document(0, f"{term} bread"), document(1, "rye bread")])
        assert engine.searcher().document_frequencies("stems", [term]) == [1]
        assert self.rows(engine, query(term)) == [0]

    # Ranking.

    @pytest.mark.parametrize("k", [1, 10, 1000])
    def test_scores_are_those_of_the_formula(self, k: int, engine: TermEngine) -> None:
        documents = random_documents(150)
        self.apply(engine, documents)
        queries = random_queries(30)
        results = engine.searcher().nearest(queries, k, [()] * len(queries))
        for weighted, hits in zip(queries, results, strict=True):
            assert hits[0].dtype == np.int64
            assert hits[1].dtype == np.float32
            check_hits(hits, scores_by_formula(documents, weighted), k)

    def test_weights_multiply_what_a_term_adds(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "bread rye"), document(1, "rye oats"), document(2, "oats")])
        searcher = engine.searcher()

        def score(weighted: WeightedTerms, row: int) -> float:
            rows, scores = self.nearest(searcher, weighted, 10)
            return float(scores[rows.tolist().index(row)])

        bread, rye = score(query("bread"), 0), score(query("rye"), 0)
        assert score({"stems": {"bread": 3.0}}, 0) == pytest.approx(3 * bread, rel=1e-5)
        both = score({"stems": {"bread": 3.0, "rye": 0.5}}, 0)
        assert both == pytest.approx(3 * bread + 0.5 * rye, rel=1e-5)
        # Asked for before with another weight.
        assert score(query("bread rye"), 0) == pytest.approx(bread + rye, rel=1e-5)
        heavy_oats = {"stems": {"bread": 0.01, "oats": 10.0, "rye": 1.0}}
        assert self.nearest(searcher, heavy_oats, 3)[0].tolist() == [2, 1, 0]

    def test_scores_of_several_fields_are_added(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "bread", "kenya"), document(1, "bread", "geneva")])
        searcher = engine.searcher()
        parts = [
            self.nearest(searcher, one, 1)[1][0] for one in (query("bread"), query(names="kenya"))
        ]
        rows, scores = self.nearest(searcher, query("bread", "kenya"), 2)
        assert rows.tolist() == [0, 1]
        assert scores[0] == pytest.approx(sum(parts), rel=1e-5)

    def test_equal_scores_are_ordered_by_row(self, engine: TermEngine) -> None:
        # Several pages and generations: an engine may keep them in several parts.
        for generation in range(3):
            first = generation * 40
            documents = [document(row, "sourdough oven dough") for row in range(first, first + 40)]
            self.apply(engine, documents, generation=generation + 1)
        self.apply(engine, [document(120, "sourdough oven dough rye")], generation=4)
        asked = query("oven rye sourdough")
        for k in (1, 2, 7, 41, 121):
            assert self.rows(engine, asked, k) == [120, *range(k - 1)]
        assert self.rows(engine, asked, 5, 120, 0, 2, 3) == [1, 4, 5, 6, 7]

    def test_a_tie_by_different_terms_is_ordered_by_row(self, engine: TermEngine) -> None:
        pairs = ["rye oats", "oats rye", "rye wheat", "wheat rye", "oats wheat", "wheat oats"]
        self.apply(engine, [document(row, pair) for row, pair in enumerate(pairs)])
        assert self.rows(engine, query("rye oats wheat")) == list(range(6))

    def test_excluded_rows_do_not_count(self, engine: TermEngine) -> None:
        documents = random_documents(60, seed=3)
        self.apply(engine, documents)
        weighted = random_queries(1, seed=4)[0]
        scores = scores_by_formula(documents, weighted)
        order = sorted(scores, key=lambda row: (-scores[row], row))
        for excluded in (order[:1], order[:5], order[2:40], order, [10_000]):
            hits = self.nearest(engine.searcher(), weighted, 10, excluded)
            left = {row: score for row, score in scores.items() if row not in excluded}
            check_hits(hits, left, 10)

    def test_each_query_has_excluded_rows_of_its_own(self, engine: TermEngine) -> None:
        self.apply(engine, [document(row, "rye bread") for row in range(6)])
        excluded = [(), {0}, frozenset({0, 1, 2}), [5], range(6)]
        results = engine.searcher().nearest([query("rye")] * 5, 3, excluded)
        assert [rows.tolist() for rows, _ in results] == [
            [0, 1, 2],
            [1, 2, 3],
            [3, 4, 5],
            [0, 1, 2],
            [],
        ]

    def test_k_beyond_the_collection_gives_all_that_match(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "rye"), document(1, "oats"), document(2, "rye rye")])
        assert sorted(self.rows(engine, query("rye"), 10_000)) == [0, 2]
        assert self.rows(engine, query("rye"), 0) == []

    def test_an_empty_query_finds_nothing(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "rye")])
        for nothing in ({}, {"stems": {}}, {"stems": {}, "names": {}}):
            assert self.rows(engine, nothing) == []
        assert engine.searcher().nearest([], 3, []) == []

    def test_a_batch_gives_what_single_queries_give(self, engine: TermEngine) -> None:
        self.apply(engine, random_documents(120, seed=5))
        searcher = engine.searcher()
        queries = random_queries(25, seed=6)
        excluded = [frozenset(range(number)) for number in range(25)]
        together = searcher.nearest(queries, 8, excluded)
        for weighted, without, (rows, scores) in zip(queries, excluded, together, strict=True):
            ((alone, values),) = searcher.nearest([weighted], 8, [without])
            assert rows.tolist() == alone.tolist()
            assert scores.tolist() == values.tolist()

    def test_threads_share_a_searcher(self, engine: TermEngine) -> None:
        self.apply(engine, random_documents(120, seed=7))
        queries = random_queries(40, seed=8)
        nobody = [()] * len(queries)
        expected = engine.searcher().nearest(queries, 10, nobody)
        searcher = engine.searcher()
        barrier = Barrier(4)

        def work() -> list[Hits]:
            barrier.wait()
            searcher.document_frequencies("stems", ["w1", "w2"])
            return searcher.nearest(queries, 10, nobody)

        with ThreadPoolExecutor(4) as pool:
            results = [future.result() for future in [pool.submit(work) for _ in range(4)]]
        for result in results:
            for (rows, scores), (wanted, values) in zip(result, expected, strict=True):
                assert rows.tolist() == wanted.tolist()
                assert scores.tolist() == values.tolist()

    # Changes.

    def test_a_searcher_keeps_to_its_state(self, engine: TermEngine) -> None:
        self.apply(engine, [document(0, "rye"), document(1, "rye bread")])
        before = engine.searcher()
        expected = self.nearest(before, query("rye"), 10)
        self.apply(engine, [document(2, "rye")], removed=[0], generation=2)
        rows, scores = self.nearest(before, query("rye"), 10)
        assert rows.tolist() == expected[0].tolist() == [0, 1]
        assert scores.tolist() == expected[1].tolist()
        assert self.rows(engine, query("rye")) == [2, 1]

    def test_removed_rows_are_not_found(self, engine: TermEngine) -> None:
        self.apply(engine, [document(row, f"rye word{row}") for row in range(30)])
        target = self.apply(engine, removed=[0, 3, 29, 1000], generation=2)
        assert target.next_row == 30
        expected = sorted({*range(30)} - {0, 3, 29})
        assert self.rows(engine, query("rye")) == expected
        assert self.rows(engine, query("word3")) == []
        # Replaced: gone under the old row, there under a new one.
        self.apply(engine, [document(30, "rye word3")], removed=[4], generation=3)
        assert self.rows(engine, query("word3")) == [30]
        assert sorted(self.rows(engine, query("rye"))) == sorted({*expected, 30} - {4})
        state = engine.state()
        assert (state.applied.generation, state.applied.next_row) == (3, 31)

    def test_removing_everything(self, engine: TermEngine, folder: Path) -> None:
        self.apply(engine, [document(row, "rye") for row in range(5)])
        target = self.apply(engine, removed=range(5), generation=2)
        assert self.rows(engine, query("rye")) == []
        assert engine.state() == EngineState(target, None, -1)
        self.apply(engine, [document(5, "rye")], generation=3)
        assert self.rows(engine, query("rye")) == [5]

    def test_an_index_that_grew_finds_what_a_new_one_finds(
        self, engine: TermEngine, tmp_path: Path
    ) -> None:
        documents = random_documents(90, seed=9)
        for generation in range(6):
            part = documents[generation * 15 : generation * 15 + 15]
            self.apply(engine, part, generation=generation + 1)
        with self.open(tmp_path / "whole", FIELDS) as whole:
            self.apply(whole, documents)
            queries = random_queries(20, seed=10)
            nobody = [()] * len(queries)
            results = engine.searcher().nearest(queries, 10, nobody)
            expected = whole.searcher().nearest(queries, 10, nobody)
        for (rows, scores), (wanted, values) in zip(results, expected, strict=True):
            assert rows.tolist() == wanted.tolist()
            assert scores == pytest.approx(values, rel=1e-4)

    # State.

    def test_the_state_is_recorded_and_reopened(self, engine: TermEngine, folder: Path) -> None:
        documents = random_documents(40, seed=11)
        self.apply(engine, documents)
        target = self.apply(engine, removed=[2], generation=2)
        assert engine.state() == EngineState(target, None, 39)
        weighted = random_queries(1, seed=12)[0]
        expected = self.nearest(engine.searcher(), weighted, 10)
        engine.close()
        with self.open(folder, FIELDS) as again:
            assert again.state() == EngineState(target, None, 39)
            rows, scores = self.nearest(again.searcher(), weighted, 10)
            assert rows.tolist() == expected[0].tolist()
            assert scores == pytest.approx(expected[1], rel=1e-6)

    def test_a_target_without_new_rows_is_recorded(self, engine: TermEngine, folder: Path) -> None:
        self.apply(engine, [document(0, "rye")])
        # Rows without labels are in no page; the target says that they are done.
        target = StoreState(5, "token 5", 17)
        engine.apply([], [], target)
        with self.open(folder, FIELDS) as again:
            assert again.state() == EngineState(target, None, 0)

    def test_a_cleared_index_is_empty(self, engine: TermEngine, folder: Path) -> None:
        self.apply(engine, random_documents(20))
        engine.clear()
        assert engine.state() == EngineState(StoreState(), None, -1)
        assert self.rows(engine, query("w1 w2 w3")) == []
        self.apply(engine, [document(0, "rye")])
        assert self.rows(engine, query("rye")) == [0]
        with self.open(folder, FIELDS) as again:
            assert again.state().newest == 0

    @pytest.mark.parametrize("often", [False, True])
    @pytest.mark.parametrize("pages", [0, 1, 3])
    def test_an_interrupted_build_continues(
        self, pages: int, often: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if often:
            self.commit_often(monkeypatch)
        documents = random_documents(50, seed=13)
        target = StoreState(3, "token 3", 50)

        def failing() -> Iterator[list[IndexedDocument]]:
            for number in range(pages):
                yield documents[number * 10 : number * 10 + 10]
            raise InterruptedBuildError

        with self.open(folder, FIELDS) as engine:
            engine.state()
            with pytest.raises(InterruptedBuildError):
                engine.apply([], failing(), target)
        with self.open(folder, FIELDS) as engine:
            state = engine.state()
            done = state.applied.next_row
            # Whole pages or nothing, recorded as part of the generation that they belong to.
            assert done in range(0, pages * 10 + 1, 10)
            assert state.newest == done - 1
            assert state.pending in (None, (3, "token 3"))
            if done:
                assert (state.applied.generation, state.applied.token) == (3, "token 3")
            self.apply(engine, documents[done:], generation=3, page=10)
            assert engine.state() == EngineState(target, None, 49)
            for weighted in random_queries(10, seed=14):
                hits = self.nearest(engine.searcher(), weighted, 10)
                check_hits(hits, scores_by_formula(documents, weighted), 10)

    def test_reading_only_leaves_the_folder_alone(self, engine: TermEngine, folder: Path) -> None:
        documents = random_documents(30, seed=15)
        target = self.apply(engine, documents)
        engine.close()
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        with self.open(folder, FIELDS, read_only=True) as reader:
            assert reader.state() == EngineState(target, None, 29)
            weighted = random_queries(1, seed=16)[0]
            hits = self.nearest(reader.searcher(), weighted, 10)
            check_hits(hits, scores_by_formula(documents, weighted), 10)
            # What the reader lacks is applied outside of the folder.
            self.apply(reader, [document(30, "quixotic")], generation=2)
            assert self.rows(reader, query("quixotic")) == [30]
            reader.clear()
            assert self.rows(reader, query("quixotic w1 w2")) == []
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert after == before

    def test_closing_twice(self, folder: Path) -> None:
        engine = self.open(folder, FIELDS)
        self.apply(engine, [document(0, "rye")])
        engine.close()
        engine.close()
