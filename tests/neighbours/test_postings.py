"""Segments of postings: merging, hashes that collide, tables of impacts, blocks, damage."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from labelkin.checksums import read_sealed, sealed
from labelkin.exceptions import MissingExtraError
from labelkin.neighbours import postings, postings_engine, postings_kernel
from labelkin.neighbours.engine import TIE, EngineSearcher, IndexedDocument
from labelkin.neighbours.postings_engine import Part, PostingsEngine, PostingsSearcher
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

    monkeypatch.setattr(postings, "term_hashes", hashes)
    monkeypatch.setattr(postings_engine, "term_hashes", hashes)
    documents = random_documents(60, seed=2)
    with grown(tmp_path / "i", documents, 12) as engine:
        check_by_formula(engine.searcher(), documents)
        segment = engine._listed()[0]
        names = [bytes(segment.name(place)) for place in range(len(segment.hashes))]
        assert len(set(names)) == len(names)
        assert names == sorted(names, key=lambda name: (zlib.crc32(name) % different, name))


def test_merging_in_small_ranges_gives_the_same_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = random_documents(80, seed=4)
    with grown(tmp_path / "whole", documents, 1) as whole:
        monkeypatch.setattr(postings, "_CHUNK", 5)
        with grown(tmp_path / "i", documents, 2) as engine:
            (merged,), (expected,) = engine._listed(), whole._listed()
            for name in ("rows", "hashes", "ends", "names", "starts", "documents"):
                assert np.array_equal(getattr(merged, name), getattr(expected, name)), name
            assert np.array_equal(
                merged.table[:, merged.impacts], expected.table[:, expected.impacts]
            )
            assert merged.lengths.tolist() == expected.lengths.tolist()


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
    monkeypatch.setattr(postings_engine, "_KNOWN_TERMS", 10)
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


def test_blocks_and_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that are compiled, run by Python with sizes that tests can reach."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(postings_kernel, "_BLOCK", 16)
    monkeypatch.setattr(postings_kernel, "_STRIP", 8)
    counts = [0, 1, 30, 100]
    lists = [np.sort(rng.choice(100, count, replace=False)) for count in counts]
    documents = np.concatenate(lists).astype(np.uint32)
    impacts = rng.integers(0, 5, len(documents)).astype(np.uint16)
    table = rng.random(5, dtype=np.float32)
    ends = np.cumsum(counts).astype(np.uint64)
    begins = ends - np.array(counts, dtype=np.uint64)
    weights = rng.random(4, dtype=np.float32)
    expected = np.zeros(100, dtype=np.float32)
    owners = np.repeat(np.arange(4), counts)
    np.add.at(expected, documents, weights[owners] * table[impacts])
    for add in (postings_kernel.add_postings.py_func, postings_kernel.add_postings):
        scores = np.zeros(100, dtype=np.float32)
        assert add(begins, ends, weights, documents, impacts, table, scores)
        assert scores == pytest.approx(expected, rel=1e-5)
    monkeypatch.setattr(postings_kernel, "_maximum", postings_kernel._maximum.py_func)
    monkeypatch.setattr(postings_kernel, "replace_lowest", postings_kernel.replace_lowest.py_func)
    for best in (postings_kernel.best_places.py_func, postings_kernel.best_places):
        for k in (1, 7, 100, 300):
            limit = np.sort(expected)[::-1][min(k, 100) - 1]
            wanted = np.flatnonzero((expected > 0) & (expected >= limit - 2 * TIE * expected.max()))
            assert best(expected, k, TIE).tolist() == wanted.tolist()
        assert best(np.zeros(50, dtype=np.float32), 3, TIE).tolist() == []


def test_postings_that_cannot_be_right_are_no_access_beyond_the_arrays() -> None:
    one = np.array([0], dtype=np.uint64), np.array([1], dtype=np.uint64)
    weight, table = np.ones(1, dtype=np.float32), np.ones(3, dtype=np.float32)
    scores = np.zeros(10, dtype=np.float32)
    for wrong_document, wrong_impact in ((10, 0), (4_000_000_000, 0), (0, 3)):
        postings_of = (
            np.array([wrong_document], dtype=np.uint32),
            np.array([wrong_impact], dtype=np.uint16),
        )
        assert not postings_kernel.add_postings(*one, weight, *postings_of, table, scores)
    assert not scores.any()


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
