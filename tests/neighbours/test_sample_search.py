from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, compiled
from labelkin.demo import demo_documents
from labelkin.indexer import Indexer
from labelkin.neighbours import sample_search
from labelkin.neighbours.sample_search import SampleSearch, nearest_places
from labelkin.neighbours.term_search import TermSearch

K = 10


@pytest.fixture(scope="module")
def indexer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexer]:
    with Indexer.create(tmp_path_factory.mktemp("sample") / "c", language="en") as indexer:
        indexer.add(demo_documents(600))
        indexer.remove([f"demo-{number:05d}" for number in range(1, 40)])
        yield indexer


def alive(indexer: Indexer) -> np.ndarray:
    return np.setdiff1d(np.arange(indexer.snapshot().generation().next_row), gone(indexer))


def gone(indexer: Indexer) -> np.ndarray:
    return indexer.snapshot().tombstones()


@pytest.fixture(params=["postings", "tantivy"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "postings":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(sample_search, "can_load", lambda: False)
    return str(request.param)


@pytest.mark.usefixtures("engine")
def test_a_sample_of_everything_has_the_neighbours_of_the_collection(tmp_path: Path) -> None:
    # Without removals, whose statistics tantivy keeps for a while.
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(demo_documents(300))
        search, rows = indexer.search(), alive(indexer)
        assert isinstance(search, TermSearch)
        with SampleSearch(search, rows) as sampled:
            ours = sampled.search_rows(rows[:50], K)
        theirs = search.search_rows(rows[:50], K)
    assert ours.rows.tolist() == theirs.rows.tolist()
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4)


@pytest.mark.usefixtures("engine")
def test_a_small_sample_is_filled_with_its_own_nearest(indexer: Indexer) -> None:
    rows = alive(indexer)[::5]
    places = nearest_places(indexer.search(), rows, K)
    assert places.shape == (len(rows), K)
    assert places.max() < len(rows)
    # Among all documents, four of five of the nearest are outside of the sample.
    assert np.mean(places >= 0) > 0.9
    assert not (places == np.arange(len(rows))[:, None]).any()


def test_both_engines_agree(indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    rows = alive(indexer)[::4]
    found = []
    for is_fast in (True, False):
        monkeypatch.setattr(sample_search, "can_load", lambda is_fast=is_fast: is_fast)
        found.append(nearest_places(indexer.search(), rows, K))
    np.testing.assert_array_equal(*found)


def test_most_of_the_collection_is_searched_without_another_index(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("an index of its own")

    monkeypatch.setattr(sample_search, "SampleSearch", refuse)
    rows = alive(indexer)
    steps: list[tuple[int, int]] = []
    places = nearest_places(indexer.search(), rows, K, lambda *step: steps.append(step))
    assert steps[-1] == (len(rows), len(rows))
    near = indexer.search().search_rows(rows[:20], K).rows
    np.testing.assert_array_equal(places[:20], np.searchsorted(rows, near))
    with pytest.raises(AssertionError, match="its own"):
        nearest_places(indexer.search(), rows[::4], K)


def test_the_index_is_deleted(indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    search, indexes = indexer.search(), indexer.collection.path / "indexes"
    assert isinstance(search, TermSearch)
    # What a training that was killed has left.
    (indexes / "sample-1" / "terms").mkdir(parents=True)
    with SampleSearch(search, alive(indexer)[:30]):
        assert [one.name for one in indexes.glob("sample-*")] != ["sample-1"]
        assert len(list(indexes.glob("sample-*"))) == 1
    assert not list(indexes.glob("sample-*"))
    monkeypatch.setattr(sample_search, "indexed_documents", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SampleSearch(search, alive(indexer)[:30])
    assert not list(indexes.glob("sample-*"))


def test_documents_that_cannot_be_found_do_not_make_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of replaced documents, and documents without labels, are not in the index."""
    monkeypatch.setattr(sample_search, "SampleSearch", lambda *_: 1 / 0)
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        documents = list(demo_documents(60))
        indexer.add(documents)
        indexer.add([replace(one, title=f"{one.title} again") for one in documents])
        indexer.add([Document(f"bare-{n}", f"Text {n}") for n in range(80)])
        rows = np.flatnonzero(indexer.snapshot().label_sets().sizes() > 0)
        nearest_places(indexer.search(), np.setdiff1d(rows, gone(indexer)), K)


def test_without_space_for_the_index_everything_is_searched(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    rows = alive(indexer)[::5]
    monkeypatch.setattr(sample_search, "SampleSearch", full)
    places = nearest_places(indexer.search(), rows, K)
    assert places.shape == (len(rows), K)
    assert "No space left on device" in caplog.text


def test_it_has_no_engine_for_batches_besides(indexer: Indexer) -> None:
    search = indexer.search()
    assert isinstance(search, TermSearch)
    with SampleSearch(search, alive(indexer)[:30]) as sampled:
        assert not sampled.expect(1_000_000)
        sampled.decide(True)


def test_bulk_false_does_without_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "can_load", lambda: 1 / 0)
    monkeypatch.setattr(sample_search, "can_load", lambda: 1 / 0)
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        path = indexer.collection.path / "labelkin.toml"
        path.write_text(path.read_text().replace("bulk = true", "bulk = false"))
        indexer.add(demo_documents(60))
        assert not indexer.config.neighbours.bulk
        assert nearest_places(indexer.search(), np.arange(20), K).max() >= 0
