from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.demo import demo_documents
from labelkin.exceptions import MissingExtraError
from labelkin.indexer import Indexer
from labelkin.neighbours.vector_file import VectorFile
from labelkin.neighbours.vector_searcher import VectorSearcher
from labelkin.represent.cache import text_checksum
from labelkin.store.config import CONFIG_NAME, DenseSection, update_config
from labelkin.store.locks import FileLock, beside

pytest.importorskip("faiss")
pytest.importorskip("sklearn")


def brute_force(
    vectors: np.ndarray, queries: np.ndarray, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    vectors, queries = vectors.astype(np.float64), queries.astype(np.float64)
    if metric == "l2":
        distances = np.linalg.norm(queries[:, None] - vectors[None], axis=2)
        scores = 1 / (1 + distances)
    else:
        scores = queries @ vectors.T
        lengths = np.linalg.norm(vectors, axis=1)
        own = np.linalg.norm(queries, axis=1)[:, None]
        scores = scores / (own * (lengths if metric == "cosine" else lengths.max()))
        scores = (1 + scores) / 2
    return np.argsort(-scores, axis=1, kind="stable"), scores


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_flat_equals_brute_force(metric: str) -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(500, 24)).astype(np.float16)
    queries = rng.normal(size=(40, 24)).astype(np.float16)
    empty = VectorSearcher(DenseSection.model_validate({"metric": metric}))
    searcher = empty.updated(vectors, np.ones(500, dtype=bool))
    places, scores = searcher.nearest(queries.astype(np.float32), 20)
    expected, values = brute_force(vectors, queries, metric)
    best = np.take_along_axis(values, expected[:, :20], axis=1)
    # Equal up to rounding: what is found is as near as what should be.
    assert np.take_along_axis(values, places, axis=1) == pytest.approx(best, abs=2e-6)
    assert scores == pytest.approx(best, abs=2e-6)
    assert (places == expected[:, :20]).mean() > 0.99
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
@pytest.mark.parametrize("index", ["ivf-sq8", "hnsw"])
def test_approximate_indexes_are_near_and_follow_changes(
    index: str, metric: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_searcher._WORTH_APPROXIMATION", 100)
    rng = np.random.default_rng(4)
    centres = rng.normal(size=(20, 16)) * 3
    vectors = (centres[rng.integers(20, size=2100)] + rng.normal(size=(2100, 16))).astype(
        np.float16
    )
    settings = DenseSection.model_validate({"index": index, "metric": metric})
    searcher = VectorSearcher(settings, tmp_path / "v").updated(
        vectors[:2000], np.ones(2000, dtype=bool)
    )
    searcher.save()
    alive = np.ones(2100, dtype=bool)
    alive[::3] = False
    expected, _ = brute_force(vectors, vectors[:50], metric)
    wanted = [[place for place in line if alive[place]][:10] for line in expected]
    for one in (searcher, VectorSearcher(settings, tmp_path / "v")):
        places, _ = one.updated(vectors, alive).nearest(vectors[:50].astype(np.float32), 10)
        assert alive[places].all()
        shared = [len({*found} & {*line}) for found, line in zip(places, wanted, strict=True)]
        assert np.mean(shared) > 9


@pytest.mark.parametrize("index", ["ivf-sq8", "hnsw"])
def test_an_index_that_grows_until_it_is_worth_approximating(
    index: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_searcher._WORTH_APPROXIMATION", 100)
    vectors = np.random.default_rng(5).normal(size=(400, 8)).astype(np.float16)
    settings = DenseSection.model_validate({"index": index})
    searcher = VectorSearcher(settings, tmp_path / "v")
    few = np.ones(400, dtype=bool)
    few[3:] = False
    for end, alive in ((90, few[:90]), (90, few[:90] | True), (110, few[:110] | True), (400, few)):
        searcher = searcher.updated(vectors[:end], alive)
        searcher.save()
        again = VectorSearcher(settings, tmp_path / "v").updated(vectors[:end], alive)
        for one in (searcher, again):
            places, _ = one.nearest(vectors[:2].astype(np.float32), 3)
            assert places[:, 0].tolist() == [0, 1]
            assert alive[places].all()


def test_a_kept_index_of_another_kind_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_searcher._WORTH_APPROXIMATION", 100)
    vectors = np.random.default_rng(6).normal(size=(200, 8)).astype(np.float16)
    alive = np.ones(200, dtype=bool)
    ivf = VectorSearcher(DenseSection.model_validate({"index": "ivf-sq8"}), tmp_path / "v")
    ivf.updated(vectors, alive).save()
    (tmp_path / "v.ivf-sq8-l2.faiss").rename(tmp_path / "v.hnsw-l2.faiss")
    hnsw = VectorSearcher(DenseSection.model_validate({"index": "hnsw"}), tmp_path / "v")
    hnsw = hnsw.updated(vectors, alive)
    places, _ = hnsw.nearest(vectors[:1].astype(np.float32), 3)
    assert places[0, 0] == 0


def test_an_index_is_written_when_it_has_changed_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_searcher._WORTH_APPROXIMATION", 100)
    vectors = np.random.default_rng(7).normal(size=(201, 8)).astype(np.float16)
    searcher = VectorSearcher(DenseSection.model_validate({"index": "hnsw"}), tmp_path / "v")
    searcher = searcher.updated(vectors[:200], np.ones(200, dtype=bool))
    searcher.save()
    (kept,) = tmp_path.iterdir()
    kept.unlink()
    searcher.updated(vectors, np.ones(201, dtype=bool)).save()
    assert not kept.exists()


def test_many_removed_vectors_hide_nothing() -> None:
    vectors = np.random.default_rng(8).normal(size=(2000, 8)).astype(np.float16)
    alive = np.ones(2000, dtype=bool)
    searcher = VectorSearcher(DenseSection()).updated(vectors, alive)
    query = vectors[:1].astype(np.float32)
    nearest, _ = searcher.nearest(query, 900)
    alive = alive.copy()
    alive[nearest[0, :890]] = False
    fewer = searcher.updated(vectors, alive)
    assert fewer.nearest(query, 10)[0].tolist() == nearest[:, 890:].tolist()


@pytest.mark.parametrize("unindexed", [5000, 10])
@pytest.mark.parametrize("index", ["flat", "hnsw"])
def test_a_searcher_does_not_change_when_it_is_updated(
    index: str, unindexed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_searcher._WORTH_APPROXIMATION", 100)
    monkeypatch.setattr("labelkin.neighbours.vector_searcher._MOST_UNINDEXED", unindexed)
    vectors = np.random.default_rng(9).normal(size=(400, 8)).astype(np.float16)
    settings = DenseSection.model_validate({"index": index})
    before = VectorSearcher(settings).updated(vectors[:300], np.ones(300, dtype=bool))
    queries = vectors[:20].astype(np.float32)
    expected = before.nearest(queries, 10)
    alive = np.ones(400, dtype=bool)
    alive[expected[0][:, :3].ravel()] = False
    after = before.updated(vectors, alive)
    assert alive[after.nearest(queries, 10)[0]].all()
    for found, wanted in zip(before.nearest(queries, 10), expected, strict=True):
        assert np.array_equal(found, wanted)


@pytest.fixture
def indexer(tmp_path: Path) -> Iterator[Indexer]:
    with Indexer.create(tmp_path / "c", language="en") as made:
        made.add(demo_documents(120))
        yield made


def lsa(indexer: Indexer, *documents: Document, k: int = 3) -> list[list[str]]:
    found = indexer.neighbour_arrays(documents, k, representation="lsa")
    texts = indexer.collection.texts_of([int(row) for row in found.rows.flat])
    return [[texts[row].id for row in line if row >= 0] for line in found.rows.tolist()]


def test_the_same_text_is_at_0_and_nobody_is_their_own_neighbour(indexer: Indexer) -> None:
    documents = list(demo_documents(30))
    copies = [Document(f"copy-{d.id}", d.title, d.body, language="en") for d in documents]
    found = indexer.neighbour_arrays(copies, 3, representation="lsa")
    assert found.rows[:, 0].tolist() == list(range(30))
    assert (found.distances()[:, 0] == 0).all()
    assert found.duplicates == tuple((copy.id, row) for row, copy in enumerate(copies))
    own = indexer.neighbour_arrays(documents, 3, representation="lsa")
    assert not (own.rows == np.arange(30)[:, None]).any()
    assert (own.rows[:, :2] == found.rows[:, 1:]).all()


def test_changes_are_seen_by_the_next_search_of_anyone(indexer: Indexer) -> None:
    stored = next(iter(demo_documents(1)))
    query = Document("q", stored.title, stored.body, language="en")
    with Indexer.open(indexer.collection.path) as other:
        assert lsa(other, query)[0][0] == stored.id
        indexer.add([Document("new", query.title, query.body, labels=("X",), language="en")])
        assert lsa(other, query)[0][:2] == [stored.id, "new"]
        indexer.remove([stored.id])
        assert lsa(other, query)[0][0] == "new"
        indexer.add([Document("bare", query.title, query.body, language="en")])
        assert "bare" not in lsa(other, query)[0]
        assert lsa(indexer, query) == lsa(other, query)


@pytest.mark.parametrize("built", [False, True])
def test_a_collection_that_is_only_read(indexer: Indexer, built: bool) -> None:
    query = Document("q", next(iter(demo_documents(1))).text, language="en")
    if built:
        indexer.build("lsa")
        indexer.add([Document("new", query.title, labels=("X",), language="en")])
    folder = indexer.collection.path
    before = {path for path in folder.rglob("*") if "sqlite" not in path.name}
    with Indexer.open(folder, read_only=True) as reader:
        assert ("new" in lsa(reader, query)[0][:2]) is built
    assert {path for path in folder.rglob("*") if "sqlite" not in path.name} == before


def test_a_reader_that_stays_open_while_the_owner_goes_on(indexer: Indexer) -> None:
    documents = list(demo_documents(3))
    indexer.build("lsa")
    with Indexer.open(indexer.collection.path, read_only=True) as reader:
        lsa(reader, documents[0])
        for number, document in enumerate(documents):
            copy = Document(f"n{number}", document.title, document.body, labels=("X",))
            indexer.add([copy])
            # Only the reader has its vector, in memory; then the owner leaves it out.
            found = reader.neighbour_arrays([document], 3, representation="lsa")
            assert found.fingerprint == reader.search("lsa").fingerprint()
            assert lsa(reader, document)[0][0] == copy.id
            indexer.remove([copy.id])
            indexer.build("lsa")
            assert lsa(reader, document) == lsa(indexer, document)


def test_stored_documents_are_not_encoded_again(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = demo_documents(2)
    indexer.add([Document("bare", second.title, language="en")])
    indexer.remove([first.id])
    rows = np.arange(121)
    for name in ("lsa", "stems,lsa"):
        search = indexer.search(name)
        texts = indexer.collection.texts_of(rows.tolist())
        expected = search.search(search.texts([texts.get(row, Document("")) for row in rows]), 5)
        found = search.search_rows(rows, 5)
        assert np.array_equal(found.rows, expected.rows)
        assert found.ids == expected.ids
        assert (found.rows[0] == -1).all()
        assert found.rows[120, 0] >= 0
    monkeypatch.setattr("labelkin.represent.lsa.LsaEncoder.encode", None)
    assert len(indexer.search("lsa").search_rows(rows[1:120], 5)) == 119


def test_no_documents(indexer: Indexer) -> None:
    for name in ("lsa", "stems,lsa"):
        assert indexer.neighbour_arrays([], 3, representation=name).rows.shape == (0, 3)


def test_without_faiss(indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'labelkin\[dense\]'"):
        indexer.build("wordllama")


def test_an_interrupted_build_continues(indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    from labelkin.represent.lsa import LsaEncoder

    update_config(indexer.collection.path / CONFIG_NAME, {"dense": {"batch_size": 10}})
    encode = LsaEncoder.encode
    asked: list[int] = []

    def interrupted(self: LsaEncoder, documents: list[Document]) -> np.ndarray:
        if sum(asked) >= 50:
            raise KeyboardInterrupt
        asked.append(len(documents))
        return encode(self, documents)

    monkeypatch.setattr(LsaEncoder, "encode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        indexer.build("lsa")
    monkeypatch.undo()
    assert indexer.build("lsa") == 70


def test_a_build_whose_vectors_vanish_starts_over(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from labelkin.represent.lsa import LsaEncoder

    update_config(indexer.collection.path / CONFIG_NAME, {"dense": {"batch_size": 10}})
    encode = LsaEncoder.encode
    asked: list[int] = []

    def removing(self: LsaEncoder, documents: list[Document]) -> np.ndarray:
        asked.append(len(documents))
        if len(asked) == 4:
            (folder,) = (indexer.collection.path / "indexes").glob("vectors-*")
            shutil.rmtree(folder)
        return encode(self, documents)

    monkeypatch.setattr(LsaEncoder, "encode", removing)
    assert indexer.build("lsa") == 120
    assert sum(asked) == 160
    found = indexer.neighbour_arrays(list(demo_documents(1)), 200, representation="lsa")
    assert (found.rows >= 0).sum() == 119


def test_vectors_that_someone_is_making_are_not_dropped(indexer: Indexer) -> None:
    indexer.build("lsa")
    (old,) = (indexer.collection.path / "indexes").glob("vectors-*")
    with FileLock(beside(old, "write")) as lock:
        assert lock.take()
        indexer.build("lsa", relearn=True)
        indexer.add([Document("new", "wheat bread", labels=("X",), language="en")])
        with Indexer.open(indexer.collection.path) as other:
            other.build("lsa", relearn=True)
        assert old.is_dir()


def test_vectors_of_queries_are_kept_on_request(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = [Document("q", "Wheat in the valley", language="en")]
    first = indexer.neighbour_arrays(query, 3, representation="lsa", store_terms=True)
    monkeypatch.setattr("labelkin.represent.lsa.LsaEncoder.encode", None)
    again = indexer.neighbour_arrays(query, 3, representation="lsa")
    assert np.array_equal(first.scores, again.scores)


def test_vectors_of_queries_are_kept_once_and_a_full_disk_is_passed_over(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from labelkin.neighbours.vector_index import VectorCache
    from labelkin.represent.encoder import open_encoder

    cache = VectorCache(indexer.collection, open_encoder("lsa", indexer.collection))
    texts = list(demo_documents(20))
    expected = cache.vectors(texts, store=True)
    # As if another process had stored them just before.
    cache._store([text_checksum(text) for text in texts], expected)
    assert len(cache._file.read()) == 20
    assert np.array_equal(cache.vectors(texts[::-1])[::-1], expected)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(VectorFile, "append", full)
    assert cache.vectors([Document("q", texts[0].title, language="en")], store=True).any()
    assert "vectors are not cached" in caplog.messages[-1]


def test_a_database_restored_from_a_backup(indexer: Indexer, tmp_path: Path) -> None:
    indexer.build("lsa")
    indexer.collection.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = indexer.collection.path
    shutil.copyfile(path / "documents.sqlite", tmp_path / "backup")
    query = Document("q", next(iter(demo_documents(1))).title, language="en")
    indexer.add([Document("lost", "wheat wheat wheat", labels=("X",), language="en")])
    indexer.build("lsa")
    indexer.close()
    for name in ("documents.sqlite", "documents.sqlite-wal", "documents.sqlite-shm"):
        (path / name).unlink(missing_ok=True)
    shutil.copyfile(tmp_path / "backup", path / "documents.sqlite")
    with Indexer.open(path) as restored:
        restored.add([Document("other", "barley field", labels=("X",), language="en")])
        found = restored.neighbour_arrays([query], 200, representation="lsa")
        assert (found.rows >= 0).sum() == 121


def test_a_vector_file_ignores_what_a_crash_left(tmp_path: Path) -> None:
    file = VectorFile(tmp_path / "v", np.int64)
    file.append(np.array([1, 2]), np.ones((2, 3)), {"n": 1})
    (vectors,) = (tmp_path / "v").glob("*.vectors")
    with vectors.open("ab") as broken:
        broken.write(b"half a vector")
    file.append(np.array([5]), np.zeros((1, 3)), {"n": 2})
    found = file.read()
    assert found.keys.tolist() == [1, 2, 5]
    assert found.vectors.sum(axis=1).tolist() == [3, 3, 0]
    assert found.record == {"n": 2}
    vectors.unlink()
    assert len(file.read()) == 0
