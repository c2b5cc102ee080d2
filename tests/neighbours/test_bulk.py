"""Large batches are searched with the second index, and get the same neighbours."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from labelkin import compiled
from labelkin.corpus.document import Document
from labelkin.demo import demo_documents
from labelkin.exceptions import MissingExtraError
from labelkin.indexer import Indexer
from labelkin.integrity import check_collection
from labelkin.neighbours import bulk, indexes
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.postings_searcher import PostingsSearcher
from labelkin.neighbours.term_index import TermIndex, stored_index
from labelkin.neighbours.term_search import TermSearch
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.locks import FileLock, beside

DOCUMENTS = list(demo_documents(400))
QUERIES = DOCUMENTS[:100]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(DOCUMENTS[:300])
        indexer.build()
    return tmp_path / "c"


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of queries of each search in the second index, which always pays."""
    seen: list[int] = []
    nearest = PostingsSearcher.nearest

    def counted(self: PostingsSearcher, queries, k, excluded):  # type: ignore[no-untyped-def]
        seen.append(len(queries))
        return nearest(self, queries, k, excluded)

    monkeypatch.setattr(PostingsSearcher, "nearest", counted)
    monkeypatch.setattr(bulk, "_LOADING", 0.0)
    monkeypatch.setattr(bulk, "_INDEXING", 0.0)
    return seen


def postings_folders(collection: Path) -> list[Path]:
    folders = (collection / "indexes").glob("terms-*")
    return [one for one in folders if (index := stored_index(one)) and index.engine == "postings"]


def both_ways(indexer: Indexer, documents: list[Document]) -> Iterator[Neighbours]:
    for is_on in (True, False):
        update_config(indexer.collection.path / CONFIG_NAME, {"neighbours": {"bulk": is_on}})
        yield indexer.neighbour_arrays(documents, 15)


def check_same(indexer: Indexer, documents: list[Document]) -> None:
    ours, theirs = both_ways(indexer, documents)
    assert np.array_equal(ours.rows, theirs.rows)
    assert ours.scores == pytest.approx(theirs.scores, rel=1e-5)
    assert ours.own_scores.tolist() == theirs.own_scores.tolist()
    assert ours.duplicates == theirs.duplicates
    assert ours.fingerprint == theirs.fingerprint


def test_batches_get_the_same_neighbours_as_the_collection_changes(
    collection: Path, batches: list[int]
) -> None:
    with Indexer.open(collection) as indexer:
        check_same(indexer, QUERIES)
        assert sum(batches) == len(QUERIES)
        # Removed documents count in tantivy's statistics for a while.
        indexer.remove([one.id for one in DOCUMENTS[:37]])
        check_same(indexer, QUERIES)
        indexer.add(DOCUMENTS[300:])
        indexer.add([Document(DOCUMENTS[50].id, "Another title", labels=("Wheat",))])
        check_same(indexer, QUERIES)
        assert sum(batches) == 3 * len(QUERIES)
    (folder,) = postings_folders(collection)
    assert check_collection(collection).is_sound
    # Another process finds the index up to date.
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with Indexer.open(collection) as indexer:
        check_same(indexer, QUERIES)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_few_texts_are_no_batch(collection: Path, batches: list[int]) -> None:
    with Indexer.open(collection) as indexer:
        for _ in range(5):
            indexer.neighbour_arrays(QUERIES[: bulk.SMALLEST_BATCH - 1], 5)
    assert not batches
    assert not postings_folders(collection)


def test_it_is_built_when_the_batches_so_far_would_have_paid_for_it(
    collection: Path, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A query saves a second here: the index pays from the 250th on, built or not.
    monkeypatch.setattr(bulk, "_SAVED", 1 / 300)
    monkeypatch.setattr(bulk, "_INDEXING", 200 / 300)
    monkeypatch.setattr(bulk, "_LOADING", 50.0)
    with Indexer.open(collection) as indexer:
        for expected in (0, 0, 100, 200):
            indexer.neighbour_arrays(QUERIES, 5)
            assert sum(batches) == expected
    # It has to be loaded only: from the 50th query on.
    with Indexer.open(collection) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
        assert sum(batches) == 300


def test_a_collection_that_cannot_be_written_to_uses_what_is_there(
    collection: Path, batches: list[int]
) -> None:
    with Indexer.open(collection, read_only=True) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
    assert not batches
    with Indexer.open(collection) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
    with Indexer.open(collection, read_only=True) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
    assert sum(batches) == 200


def test_without_numba_or_with_another_engine(
    collection: Path, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Indexer.open(collection) as indexer:
        expected = indexer.neighbour_arrays(QUERIES, 5)
        batches.clear()
        update_config(collection / CONFIG_NAME, {"neighbours": {"engine": "postings"}})
        alone = indexer.neighbour_arrays(QUERIES, 5)
        assert np.array_equal(alone.rows, expected.rows)
        assert len(indexer.neighbour_arrays(QUERIES[:1], 5)) == 1
        assert sum(batches) == 101
    batches.clear()
    update_config(collection / CONFIG_NAME, {"neighbours": {"engine": "tantivy"}})
    monkeypatch.setattr(indexes, "can_compile", lambda: False)
    with Indexer.open(collection) as indexer:
        assert np.array_equal(indexer.neighbour_arrays(QUERIES, 5).rows, expected.rows)
    assert not batches


def test_a_damaged_index_is_rebuilt(
    collection: Path, batches: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    with Indexer.open(collection) as indexer:
        expected = indexer.neighbour_arrays(QUERIES, 5)
    (folder,) = postings_folders(collection)
    (path,) = folder.glob("segment-*/documents.npy")
    path.write_bytes(path.read_bytes()[:-8])
    report = check_collection(collection)
    assert [one.part for one in report.problems] == [f"indexes/{folder.name}"]
    with Indexer.open(collection) as indexer:
        assert np.array_equal(indexer.neighbour_arrays(QUERIES, 5).rows, expected.rows)
    assert "rebuilding the index" in caplog.text
    assert check_collection(collection).is_sound


def test_damage_during_a_search_leaves_the_answer_to_the_other_engine(
    collection: Path, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Indexer.open(collection) as indexer:
        expected = indexer.neighbour_arrays(QUERIES, 5)
        with monkeypatch.context() as patch:
            patch.setattr(
                "labelkin.neighbours.postings_kernel.add_candidates",
                lambda *arguments: (False, arguments[-1]),
            )
            again = indexer.neighbour_arrays(QUERIES, 5)
        assert np.array_equal(again.rows, expected.rows)
        # Rebuilt for the next batch.
        batches.clear()
        assert np.array_equal(indexer.neighbour_arrays(QUERIES, 5).rows, expected.rows)
        assert sum(batches) == len(QUERIES)


def test_an_outdated_index_is_dropped(collection: Path, batches: list[int]) -> None:
    with Indexer.open(collection) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
    (old,) = postings_folders(collection)
    update_config(collection / CONFIG_NAME, {"neighbours": {"heading_weight": 0.0}})
    with Indexer.open(collection) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
    (new,) = postings_folders(collection)
    assert new != old


def test_a_thread_that_builds_it_keeps_no_other_waiting(
    collection: Path, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    building, may_go_on = Event(), Event()
    catch_up = TermIndex.catch_up

    def slowly(index: TermIndex, *arguments: Any) -> int:
        if index._engine_name == "postings":
            building.set()
            assert may_go_on.wait(30)
        return catch_up(index, *arguments)

    with Indexer.open(collection) as indexer:
        expected = indexer.neighbour_arrays(QUERIES[:10], 5)
        monkeypatch.setattr(TermIndex, "catch_up", slowly)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(indexer.neighbour_arrays, QUERIES, 5)
            assert building.wait(30)
            # Answered by the other engine meanwhile.
            second = indexer.neighbour_arrays(QUERIES, 5)
            assert not batches
            may_go_on.set()
            assert np.array_equal(first.result().rows, second.rows)
        assert sum(batches) == len(QUERIES)
        assert np.array_equal(second.rows[:10], expected.rows)


def test_another_process_that_builds_it_keeps_nobody_waiting(
    collection: Path, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Indexer.open(collection) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
        (folder,) = postings_folders(collection)
        indexer.add(DOCUMENTS[300:])
        indexer.build()
        batches.clear()
        started = time.monotonic()
        with FileLock(beside(folder, "write")) as lock:
            assert lock.take()
            for _ in range(3):
                indexer.neighbour_arrays(QUERIES, 5)
        assert not batches
        assert time.monotonic() - started < 5
        # Not asked again for a while; then it is used.
        indexer.neighbour_arrays(QUERIES, 5)
        assert not batches
        search = indexer.search()
        assert isinstance(search, TermSearch) and search._bulk is not None
        search._bulk._not_before = 0.0
        indexer.neighbour_arrays(QUERIES, 5)
        assert sum(batches) == len(QUERIES)


def test_a_full_disk_leaves_the_answer_to_the_other_engine(
    collection: Path,
    batches: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Indexer.open(collection) as indexer:
        expected = indexer.neighbour_arrays(QUERIES[:10], 5)
        with monkeypatch.context() as patch:
            patch.setattr("labelkin.neighbours.array_file.ArrayFile.write", full)
            found = indexer.neighbour_arrays(QUERIES, 5)
        assert np.array_equal(found.rows[:10], expected.rows)
        # Not tried again in this process, and nothing is left on the disk.
        indexer.neighbour_arrays(QUERIES, 5)
        assert not batches
        assert len(caplog.records) == 1
        assert "batches are searched without the second index" in caplog.text
        assert not list((collection / "indexes").glob("terms-*/segment-*"))


def test_numba_that_cannot_be_loaded(
    collection: Path,
    batches: list[int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As after an upgrade of NumPy that numba does not know yet."""
    monkeypatch.setitem(sys.modules, "numba", None)
    for module in (compiled, indexes):
        monkeypatch.setattr(module, "can_compile", lambda: True)
    compiled.can_load.cache_clear()
    try:
        with Indexer.open(collection) as indexer:
            for _ in range(2):
                assert len(indexer.neighbour_arrays(QUERIES, 5)) == len(QUERIES)
        assert not batches
        assert caplog.text.count("numba cannot be loaded") == 1
        update_config(collection / CONFIG_NAME, {"neighbours": {"engine": "postings"}})
        with Indexer.open(collection) as indexer, pytest.raises(MissingExtraError, match="numba"):
            indexer.neighbour_arrays(QUERIES, 5)
    finally:
        compiled.can_load.cache_clear()


def test_terms_that_are_too_long_for_tantivy(collection: Path, batches: list[int]) -> None:
    odd = [
        Document("x", "wheat " + "x" * 70_000, labels=("Wheat",), language="en"),
        Document("y", "barns wheat " + "é" * 33_000, labels=("Barns",), language="en"),
        Document("z", "z" * 65_530 + " barns wheat", labels=("Barns",), language="en"),
    ]
    with Indexer.open(collection) as indexer:
        indexer.add(odd)
        check_same(indexer, [*odd, *QUERIES])
    assert batches


def test_the_index_is_dropped_when_it_is_switched_off(collection: Path, batches: list[int]) -> None:
    with Indexer.open(collection) as indexer:
        indexer.neighbour_arrays(QUERIES, 5)
    assert postings_folders(collection)
    update_config(collection / CONFIG_NAME, {"neighbours": {"bulk": False}})
    with Indexer.open(collection) as indexer:
        indexer.add(DOCUMENTS[300:])
        indexer.build()
    assert not postings_folders(collection)
