"""Large batches are searched with the second index, and get the same neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus.document import Document
from labelkin.demo import demo_documents
from labelkin.indexer import Indexer
from labelkin.integrity import check_collection
from labelkin.neighbours import bulk, indexes
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.postings_engine import PostingsSearcher
from labelkin.neighbours.term_index import stored_index
from labelkin.store.config import CONFIG_NAME, update_config

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
                "labelkin.neighbours.postings_kernel.add_postings", lambda *arguments: False
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
