"""Segments of postings: merging, hashes that collide, tables of impacts, blocks, damage."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labelkin.checksums import read_sealed, sealed
from labelkin.exceptions import MissingExtraError
from labelkin.neighbours import (
    postings,
    postings_builder,
    postings_engine,
    postings_kernel,
    postings_merge,
    postings_searcher,
)
from labelkin.neighbours.array_file import Checksums
from labelkin.neighbours.engine import TIE, EngineSearcher, IndexedDocument, best_hits
from labelkin.neighbours.postings import Segment
from labelkin.neighbours.postings_builder import SegmentBuilder
from labelkin.neighbours.postings_engine import Part, PostingsEngine
from labelkin.neighbours.postings_searcher import PostingsSearcher
from labelkin.store.derived import StoreDamagedError, StoreState

from .engine_conformance import (
    FIELDS,
    check_hits,
    document,
    query,
    random_documents,
    random_queries,
    scores_by_formula,
)

Kernel = tuple[Callable[..., Any], Callable[..., Any]]


def opened(folder: Path) -> PostingsEngine:
    return PostingsEngine(folder, FIELDS, read_only=False)


def grown(folder: Path, documents: Sequence[IndexedDocument], generations: int) -> PostingsEngine:
    engine = opened(folder)
    step = -(-len(documents) // generations)
    for number in range(generations):
        part = documents[number * step : number * step + step]
        target = StoreState(number + 1, f"t{number + 1}", part[-1][0] + 1)
        engine.apply([], [part], target)
    return engine


def check_by_formula(searcher: EngineSearcher, documents: Sequence[IndexedDocument]) -> None:
    for weighted in random_queries(20, seed=3):
        (hits,) = searcher.nearest([weighted], 10, [()])
        check_hits(hits, scores_by_formula(documents, weighted), 10)


def test_small_segments_are_merged_and_files_that_are_not_listed_deleted(tmp_path: Path) -> None:
    documents = random_documents(64)
    with grown(tmp_path / "i", documents, 64) as engine:
        segments = engine._listed()
        assert len(segments) <= 7
        assert np.concatenate([one.rows for one in segments]).tolist() == list(range(64))
        (tmp_path / "i" / "segment-999999").mkdir()
        engine.apply([], [], StoreState(65, "t65", 64))
        folders = {path.name for path in (tmp_path / "i").iterdir() if path.is_dir()}
        assert folders == set(engine._segments)
        check_by_formula(engine.searcher(), documents)


@pytest.mark.parametrize("different", [1, 2, 7])
def test_terms_whose_hashes_collide_are_told_apart(
    different: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashes(keys: Sequence[bytes]) -> np.ndarray:
        return np.array([zlib.crc32(key) % different for key in keys], dtype=np.uint32)

    monkeypatch.setattr(postings_builder, "term_hashes", hashes)
    monkeypatch.setattr(postings_searcher, "term_hashes", hashes)
    documents = random_documents(60, seed=2)
    with grown(tmp_path / "i", documents, 12) as engine:
        check_by_formula(engine.searcher(), documents)
        segment = engine._listed()[0]
        starts = [0, *segment.ends.tolist()[:-1]]
        names = [
            segment.names[start:end].tobytes()
            for start, end in zip(starts, segment.ends, strict=True)
        ]
        assert len(set(names)) == len(names)
        assert names == sorted(names, key=lambda name: (zlib.crc32(name) % different, name))


@pytest.mark.parametrize("removed", [[], [0, 3, 39, 40, 41, 79], range(20, 60)])
@pytest.mark.parametrize("parts", [2, 7])
@pytest.mark.parametrize(
    ("terms", "size", "most"), [(1, 1 << 20, 1 << 20), (9, 1 << 20, 1), (50, 20, 5), (90, 5, 90)]
)
def test_merging_in_small_ranges_gives_the_same_segment(
    removed: Sequence[int],
    parts: int,
    terms: int,
    size: int,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = random_documents(80, seed=4)
    left = [one for one in documents if one[0] not in removed]
    step = 80 // parts + 1
    segments, dead = [], []
    for number, start in enumerate(range(0, 80, step)):
        builder = SegmentBuilder(sorted(FIELDS))
        for one in documents[start : start + step]:
            builder.add(one)
        builder.write(tmp_path / f"part-{number}")
        segments.append(Segment.open(tmp_path / f"part-{number}"))
        dead.append(segments[-1].places_of(np.array(removed, dtype=np.int64)))
    whole = SegmentBuilder(sorted(FIELDS))
    for one in left:
        whole.add(one)
    whole.write(tmp_path / "whole")
    expected = Segment.open(tmp_path / "whole")
    for name, value in {"_TERMS": terms, "_BYTES": size, "_POSTINGS": most, "_ROWS": 3}.items():
        monkeypatch.setattr(postings_merge, name, value)
    checksums = postings_merge.merge_segments(segments, dead, tmp_path / "merged")
    merged = Segment.open(tmp_path / "merged")
    for name in ("rows", "hashes", "ends", "names", "starts", "documents"):
        assert np.array_equal(getattr(merged, name), getattr(expected, name)), name
    assert np.array_equal(merged.table[:, merged.impacts], expected.table[:, expected.impacts])
    assert merged.lengths.tolist() == expected.lengths.tolist()
    Part("merged", checksums).verify(tmp_path)


@pytest.mark.parametrize("run", [1, 200, 1 << 19])
@pytest.mark.parametrize("commit", [1, 1000, 1 << 23])
def test_runs_and_commits_of_any_size_give_the_same_scores(
    run: int, commit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_engine, "_RUN", run)
    monkeypatch.setattr(postings_engine, "_COMMIT", commit)
    documents = random_documents(60, seed=9)
    with opened(tmp_path / "i") as engine:
        pages = [documents[start : start + 7] for start in range(0, 60, 7)]
        engine.apply([], pages, StoreState(1, "t1", 60))
        assert len(engine._listed()) <= 7
        assert {one.name for one in (tmp_path / "i").iterdir()} == {
            "labelkin.json",
            *engine._segments,
        }
        check_by_formula(engine.searcher(), documents)


def test_a_build_takes_no_more_memory_for_more_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither writing runs nor merging them keeps anything for each document or posting."""
    monkeypatch.setattr(postings_engine, "_RUN", 1 << 13)
    monkeypatch.setattr(postings_engine, "_COMMIT", 1 << 16)
    for name in ("_TERMS", "_POSTINGS", "_ROWS"):
        monkeypatch.setattr(postings_merge, name, 1 << 10)

    def pages(count: int) -> Iterator[list[IndexedDocument]]:
        rng = np.random.default_rng(0)
        for row in range(0, count, 100):
            words = rng.zipf(1.3, (100, 60)) % 30_000
            yield [
                (row + number, {"stems": [f"w{word}" for word in of_one], "names": []})
                for number, of_one in enumerate(words.tolist())
            ]

    def peak(count: int) -> int:
        with opened(tmp_path / str(count)) as engine:
            tracemalloc.start()
            try:
                engine.apply([], pages(count), StoreState(1, "t1", count))
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    peak(100)
    assert peak(8000) < 1.25 * peak(2000)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")
def test_a_build_needs_few_file_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems allow 256 by default; a build may have as many runs as commits allow."""
    runs = postings_engine._COMMIT // postings_engine._RUN
    monkeypatch.setattr(postings_engine, "_RUN", 40)
    monkeypatch.setattr(postings_engine, "_COMMIT", 40 * runs)
    most, write = 0, SegmentBuilder.write

    def counted(self: SegmentBuilder, folder: Path) -> Checksums:
        nonlocal most
        most = max(most, open_files())
        return write(self, folder)

    monkeypatch.setattr(SegmentBuilder, "write", counted)
    before = open_files()
    pages = [[document(row, "a b c d e f g h i")] for row in range(60 * runs)]
    opened(tmp_path / "i").apply((), pages, StoreState(1, "t", len(pages)))
    assert most - before < 150


def test_hashes_that_collide_are_merged_beyond_a_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        postings_builder, "term_hashes", lambda keys: np.zeros(len(keys), dtype=np.uint32)
    )
    monkeypatch.setattr(
        postings_searcher, "term_hashes", lambda keys: np.zeros(len(keys), dtype=np.uint32)
    )
    monkeypatch.setattr(postings_merge, "_TERMS", 4)
    documents = random_documents(40, seed=10)
    with grown(tmp_path / "i", documents, 8) as engine:
        check_by_formula(engine.searcher(), documents)


@pytest.mark.parametrize(
    ("removed", "newest"),
    [([], 9), ([9], 8), ([0, 9, 8], 7), ([0, 8], 9), (range(10), -1), (range(1, 10), 0)],
)
def test_the_newest_row_that_was_not_removed(
    removed: Sequence[int], newest: int, tmp_path: Path
) -> None:
    builder = SegmentBuilder(sorted(FIELDS))
    for row in range(10):
        builder.add(document(row, "rye"))
    builder.write(tmp_path / "s")
    rows = np.array(sorted({*removed, 77}), dtype=np.int64)
    assert Segment.open(tmp_path / "s").newest_but(rows) == newest


def test_high_frequencies_and_large_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_SMALL_TABLE", 3)
    documents = [
        (row, {"stems": ["rye"] * count + ["oats"] * row, "names": []})
        for row, count in enumerate((1, 255, 256, 1000, 70_000))
    ]
    with grown(tmp_path / "i", documents, 2) as engine:
        assert {segment.impacts.dtype for segment in engine._listed()} <= {np.dtype(np.uint32)}
        hits = engine.searcher().nearest([query("rye oats")], 5, [()])[0]
        check_hits(hits, scores_by_formula(documents, query("rye oats")), 5)


def test_a_segment_is_rewritten_when_much_of_it_was_removed(tmp_path: Path) -> None:
    documents = random_documents(40, seed=5)
    with grown(tmp_path / "i", documents, 1) as engine:
        engine.apply(range(5), [], StoreState(2, "t2", 40))
        assert len(engine._removed) == 5
        assert engine.searcher().statistics("stems").documents == 40
        engine.apply(range(5, 15), [], StoreState(3, "t3", 40))
        assert len(engine._removed) == 0
        assert engine.searcher().statistics("stems").documents == 25
        assert engine.state().newest == 39
        check_by_formula(engine.searcher(), documents[15:])
        # Terms that no document has any more are gone from the dictionary too.
        segment = engine._listed()[0]
        assert np.diff(segment.starts).min() > 0
    with opened(tmp_path / "i") as again:
        check_by_formula(again.searcher(), documents[15:])


def test_scored_like_another_engine(tmp_path: Path) -> None:
    """Removed documents count in one index and not in the other, but scores are the same."""
    documents = random_documents(40, seed=6)
    with grown(tmp_path / "a", documents, 1) as first, opened(tmp_path / "b") as second:
        first.apply(range(5), [], StoreState(2, "t2", 40))
        second.apply([], [documents[5:]], StoreState(1, "t1", 40))
        asked = random_queries(10, seed=7)
        ours, theirs = first.searcher(), second.searcher()
        expected = theirs.nearest(asked, 8, [()] * 10)
        assert not np.allclose(ours.nearest(asked, 8, [()] * 10)[0][1], expected[0][1])
        like = ours.scored_like(theirs)
        assert like.statistics("stems") == theirs.statistics("stems")
        assert like.document_frequencies("stems", ["w1"]) == theirs.document_frequencies(
            "stems", ["w1"]
        )
        for (rows, scores), (wanted, values) in zip(
            like.nearest(asked, 8, [()] * 10), expected, strict=True
        ):
            assert rows.tolist() == wanted.tolist()
            assert scores == pytest.approx(values, rel=1e-5)


def test_known_terms_are_forgotten_when_there_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings_searcher, "_KNOWN_TERMS", 10)
    documents = random_documents(40, seed=8)
    with grown(tmp_path / "i", documents, 3) as engine:
        searcher = engine.searcher()
        for _ in range(3):
            check_by_formula(searcher, documents)
        assert len(searcher._known) < 60


@pytest.mark.parametrize("name", postings.FILES)
@pytest.mark.parametrize("how", ["flipped", "cut", "missing"])
def test_damage_is_noticed(name: str, how: str, tmp_path: Path) -> None:
    with grown(tmp_path / "i", random_documents(30), 1):
        pass
    (path,) = (tmp_path / "i").glob(f"segment-*/{name}.npy")
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        flipped = content[:-1] + bytes([content[-1] ^ 4])
        path.write_bytes(flipped if how == "flipped" else content[:-1])
    for attempt in (PostingsEngine.state, PostingsEngine.searcher, PostingsEngine.verify):
        with opened(tmp_path / "i") as again, pytest.raises(StoreDamagedError, match=name):
            attempt(again)
    with opened(tmp_path / "i") as again:
        again.clear()
        assert again.state().newest == -1


def test_a_damaged_record_is_noticed(tmp_path: Path) -> None:
    with grown(tmp_path / "i", random_documents(5), 1):
        pass
    path = tmp_path / "i" / "labelkin.json"
    path.write_text(path.read_text().replace('"next_row": 5', '"next_row": 6'))
    with opened(tmp_path / "i") as again:
        assert again.recorded() == StoreState()
        with pytest.raises(StoreDamagedError, match="checksum"):
            again.state()


PYTHON = (
    "_end_of_block",
    "_are_right",
    "_clear",
    "_find_highest",
    "_enlarged",
    "replace_lowest",
)


@pytest.fixture(params=["compiled", "Python"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The functions that are compiled; run by Python, sizes are ones that tests can reach."""
    if request.param == "compiled":
        return postings_kernel.add_candidates, postings_kernel.best_candidates
    monkeypatch.setattr(postings_kernel, "_BLOCK", 48)
    monkeypatch.setattr(postings_kernel, "_STRIP", 8)
    for name in PYTHON:
        monkeypatch.setattr(postings_kernel, name, getattr(postings_kernel, name).py_func)
    # Integers wrap around in compiled code, and NumPy warns of it.
    return (
        np.errstate(over="ignore")(postings_kernel.add_candidates.py_func),
        postings_kernel.best_candidates.py_func,
    )


def search(
    kernel: Kernel,
    lists: Sequence[Sequence[np.ndarray]],
    weights: np.ndarray,
    k: int,
    removed: Sequence[Sequence[int]] = ((), ()),
    excluded: Sequence[Sequence[int]] = ((), ()),
) -> tuple[list[int], list[float], list[float]]:
    """The best of two segments of 100 documents for one query of some terms, and all scores.

    Of the postings of a term in a segment, the second has the second impact and so on.
    """
    add, best = kernel
    rng = np.random.default_rng(1)
    expected = np.zeros(200, dtype=np.float32)
    heaps = np.zeros((1, k), dtype=np.float32)
    found = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(2, np.int64)
    for number, of_terms in enumerate(lists):
        counts = np.array([len(one) for one in of_terms], dtype=np.uint64)
        ends = np.cumsum(counts)
        documents = np.concatenate(of_terms).astype(np.uint32)
        impacts = rng.integers(0, 5, len(documents)).astype(np.uint16)
        table = rng.random(5, dtype=np.float32)
        for place, document_number in enumerate(documents):
            weight = weights[np.searchsorted(ends, place, side="right")]
            expected[100 * number + document_number] += weight * table[impacts[place]]
        gone = [np.array(one[number], dtype=np.int64) for one in (removed, excluded)]
        for one in gone:
            expected[100 * number + one] = 0
        is_right, found = add(
            *(ends - counts, ends, weights, np.array([0, len(weights)])),
            *(documents, impacts, table, 100 * number, 100),
            *(*gone, np.array([0, len(gone[1])])),
            *(np.array([2 * TIE * weights.sum()]), heaps, found),
        )
        assert is_right
    places, scores, starts = best(found, k, TIE)
    assert starts.tolist() == [0, len(places)]
    return places.tolist(), scores.tolist(), expected.tolist()


@pytest.mark.parametrize("k", [1, 7, 100, 300])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_blocks_and_strips(k: int, seed: int, kernel: Kernel) -> None:
    rng = np.random.default_rng(seed)
    lists = [
        [np.sort(rng.choice(100, count, replace=False)) for count in counts]
        for counts in ([0, 1, 30, 100, 0], [5, 0, 70, 40, 0])
    ]
    weights = rng.random(5, dtype=np.float32)
    gone = [[3, 47, 48, 99], [0]]
    places, scores, expected = search(kernel, lists, weights, k, gone, [[], [1, 2, 95, 96]])
    everything = np.array(expected, dtype=np.float32)
    positive = np.flatnonzero(everything > 0)
    rows, values = best_hits(positive, everything[positive], k)
    assert places == rows.tolist()
    assert scores == values.tolist()


def test_ties_at_the_last_place_are_resolved_to_their_end(kernel: Kernel) -> None:
    """A later document whose score is lower by less than a tie does not displace an earlier one."""
    terms = [[np.arange(100), np.arange(0, 100, 2)], [np.arange(100), np.array([7])]]
    add, best = kernel
    table = np.ones(1, dtype=np.float32)
    heaps = np.zeros((1, 30), dtype=np.float32)
    found = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(2, np.int64)
    nothing, weights = np.zeros(0, np.int64), np.array([1, 4e-6], dtype=np.float32)
    for number, of_terms in enumerate(terms):
        ends = np.cumsum([len(one) for one in of_terms]).astype(np.uint64)
        documents = np.concatenate(of_terms).astype(np.uint32)
        is_right, found = add(
            *(np.array([0, ends[0]], np.uint64), ends, weights, np.array([0, 2])),
            *(documents, np.zeros(len(documents), np.uint16), table, 100 * number, 100),
            *(nothing, nothing, np.zeros(2, np.int64), np.array([4e-5]), heaps, found),
        )
        assert is_right
    assert best(found, 30, TIE)[0].tolist() == list(range(30))
    assert best(found, 150, TIE)[0].tolist() == list(range(150))


def test_a_query_without_terms_among_others(kernel: Kernel) -> None:
    add, best = kernel
    heaps = np.zeros((3, 2), dtype=np.float32)
    found = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(4, np.int64)
    nothing = np.zeros(0, np.int64)
    is_right, found = add(
        *(np.array([0, 0], np.uint64), np.array([3, 3], np.uint64), np.ones(2, np.float32)),
        *(np.array([0, 1, 1, 2]), np.array([4, 6, 8], np.uint32), np.zeros(3, np.uint16)),
        *(np.ones(1, np.float32), 0, 9, nothing, np.array([4]), np.array([0, 0, 0, 1])),
        *(np.zeros(3), heaps, found),
    )
    assert is_right
    places, _, starts = best(found, 2, TIE)
    assert starts.tolist() == [0, 2, 2, 4]
    assert places.tolist() == [4, 6, 6, 8]


def test_queries_of_a_batch_do_not_touch_each_other(kernel: Kernel) -> None:
    """Blocks are searched for all queries in turn, in two segments one after the other."""
    add, best = kernel
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 60, (2, 12))
    of_segments = [
        [np.sort(rng.choice(100, count, replace=False)) for count in of_segment]
        for of_segment in counts.tolist()
    ]
    weights = rng.random(12, dtype=np.float32)
    table = rng.random(7, dtype=np.float32)
    excluded, excluded_starts = np.array([5, 50, 98, 50]), np.array([0, 2, 2, 4])

    def searched(starts: list[int], first: int, end: int) -> list[list[int]]:
        """Those with the terms from the first to the end, as a batch."""
        queries = len(starts) - 1
        heaps = np.zeros((queries, 9), dtype=np.float32)
        found = np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(queries + 1, np.int64)
        query = [0, 3, 7].index(first)
        own = excluded_starts[query : query + queries + 1]
        for number, lists in enumerate(of_segments):
            ends = np.cumsum([len(one) for one in lists]).astype(np.uint64)
            documents = np.concatenate(lists).astype(np.uint32)
            begins = ends - np.array([len(one) for one in lists], dtype=np.uint64)
            is_right, found = add(
                *(begins[first:end], ends[first:end], weights[first:end]),
                *(np.array(starts), documents, (documents % 7).astype(np.uint16), table),
                *(100 * number, 100, np.array([4, 70]), excluded[own[0] : own[-1]], own - own[0]),
                *(np.full(queries, 1e-4), heaps, found),
            )
            assert is_right
        places, _, bounds = best(found, 9, TIE)
        return [one.tolist() for one in np.split(places, bounds[1:-1])]

    together = searched([0, 3, 7, 12], 0, 12)
    assert together == [
        *searched([0, 3], 0, 3),
        *searched([0, 4], 3, 7),
        *searched([0, 5], 7, 12),
    ]
    assert all(len(one) == 9 for one in together)


@pytest.mark.parametrize(
    ("documents", "impact"),
    [([100], 0), ([4_000_000_000], 0), ([0], 3), ([60, 3], 0), ([99, 98], 0), ([2, 70, 1], 0)],
)
def test_postings_that_cannot_be_right_are_no_access_beyond_the_arrays(
    documents: list[int], impact: int, kernel: Kernel
) -> None:
    """Documents that do not ascend are noticed where that matters: between blocks."""
    add, _ = kernel
    is_sorted = documents == sorted(documents)
    if not is_sorted and postings_kernel._BLOCK > 100:
        pytest.skip("one block only")
    nothing = np.zeros(0, np.int64)
    found = nothing, np.zeros(0, np.float32), np.zeros(2, np.int64)
    is_right, _ = add(
        *(np.array([0], np.uint64), np.array([len(documents)], np.uint64)),
        *(np.ones(1, np.float32), np.array([0, 1]), np.array(documents, np.uint32)),
        *(np.full(len(documents), impact, np.uint16), np.ones(3, np.float32), 0, 100),
        *(nothing, nothing, np.zeros(2, np.int64), np.zeros(1)),
        *(np.zeros((1, 2), np.float32), found),
    )
    assert is_right == (documents == [99, 98])


@pytest.mark.parametrize(("begin", "end"), [(2**40, 2**40 + 14), (0, 12), (5, 2)])
def test_postings_beyond_the_file_are_damage(begin: int, end: int, kernel: Kernel) -> None:
    add, _ = kernel
    nothing = np.zeros(0, np.int64)
    found = nothing, np.zeros(0, np.float32), np.zeros(2, np.int64)
    is_right, _ = add(
        *(np.array([begin], np.uint64), np.array([end], np.uint64)),
        *(np.ones(1, np.float32), np.array([0, 1]), np.arange(10, dtype=np.uint32)),
        *(np.zeros(10, np.uint16), np.ones(1, np.float32), 0, 100),
        *(nothing, nothing, np.zeros(2, np.int64), np.zeros(1)),
        *(np.zeros((1, 2), np.float32), found),
    )
    assert not is_right


def test_a_dictionary_that_cannot_be_right_is_no_access_beyond_the_arrays() -> None:
    hashes = np.array([7, 7, 7, 9], dtype=np.uint32)
    names = np.frombuffer(b"abcd", dtype=np.uint8)
    asked = np.array([7, 7, 9, 8], dtype=np.uint32)
    keys = np.frombuffer(b"bacdd", dtype=np.uint8)
    key_ends = np.array([1, 2, 4, 5])
    for find in (postings_kernel.find_terms, postings_kernel.find_terms.py_func):
        ends = np.array([1, 2, 2, 4])
        assert find(hashes, ends, names, asked, key_ends, keys).tolist() == [1, 0, 3, -1]
        for wrong in ([-1, 2, 2, 4], [1, 900, 901, 903], [1, 2, 3, 5]):
            places = find(hashes, np.array(wrong), names, asked, key_ends, keys)
            assert places[2] == -1 or wrong[2] == 2


def test_without_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings_engine, "can_load", lambda: False)
    with (
        opened(tmp_path / "i") as engine,
        pytest.raises(MissingExtraError, match=r"labelkin\[bulk"),
    ):
        engine.searcher()
    assert isinstance(PostingsSearcher([], np.zeros(0, dtype=np.int64), []), EngineSearcher)


def test_documents_without_terms(tmp_path: Path) -> None:
    with opened(tmp_path / "i") as engine:
        engine.apply([], [[document(0), document(1)]], StoreState(1, "t", 2))
        engine.apply([], [[document(2, "rye")]], StoreState(2, "u", 3))
        assert engine.searcher().nearest([query("rye")], 5, [()])[0][0].tolist() == [2]
        assert engine.searcher().statistics("stems").documents == 3
    with opened(tmp_path / "i") as again:
        assert again.state().newest == 2


def test_another_process_that_merges_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files go while they are verified; the new record lists others."""
    documents = random_documents(30)
    with grown(tmp_path / "i", documents[:20], 1) as engine, opened(tmp_path / "i") as reader:
        verify = Part.verify

        def merged_meanwhile(part: Part, folder: Path) -> None:
            monkeypatch.setattr(Part, "verify", verify)
            engine.apply([], [documents[20:]], StoreState(2, "t2", 30))
            verify(part, folder)

        monkeypatch.setattr(Part, "verify", merged_meanwhile)
        reader.verify()
        assert reader.state().newest == 29
        check_by_formula(reader.searcher(), documents)


def test_files_are_verified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = random_documents(40)
    with grown(tmp_path / "i", documents[:30], 1) as engine, opened(tmp_path / "i") as reader:
        verified: list[str] = []
        verify = Part.verify
        monkeypatch.setattr(
            Part, "verify", lambda part, folder: (verified.append(part.name), verify(part, folder))
        )
        reader.verify()
        reader.state()
        reader.state()
        assert len(verified) == 1
        engine.apply([], [documents[30:]], StoreState(2, "t2", 40))
        reader.verify()
        reader.state()
        assert len(verified) == 2


def test_reading_only_keeps_no_segments_that_were_merged(tmp_path: Path) -> None:
    documents = random_documents(40)
    with grown(tmp_path / "i", documents[:20], 1):
        pass
    with PostingsEngine(tmp_path / "i", FIELDS, read_only=True) as reader:
        reader.state()
        for row in range(20, 40):
            target = StoreState(row, f"t{row}", row + 1)
            reader.apply([], [[documents[row]]], target)
        check_by_formula(reader.searcher(), documents)
        assert reader._temporary is not None
        left = [path.name for path in Path(reader._temporary.name).iterdir()]
        assert set(left) <= set(reader._segments)
    assert len(list((tmp_path / "i").glob("segment-*"))) == 1


def test_a_record_of_another_kind_is_damage(tmp_path: Path) -> None:
    with grown(tmp_path / "i", random_documents(5), 1):
        pass
    record = tmp_path / "i" / "labelkin.json"
    content = read_sealed(record) | {"segments": [["segment-000001", []]]}
    record.write_text(sealed(content))
    with opened(tmp_path / "i") as again, pytest.raises(StoreDamagedError, match=r"labelkin\.json"):
        again.state()
