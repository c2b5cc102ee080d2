"""What every derived store must do, run against all of them."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar

import numpy as np
import pytest

from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.latents import LatentStore
from labelkin.corpus import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.term_index import TermIndex
from labelkin.neighbours.vector_index import VectorIndex
from labelkin.represent import make_representation
from labelkin.represent.cache import open_term_cache
from labelkin.represent.encoder import open_encoder
from labelkin.store import Collection, Config
from labelkin.store.derived import DerivedStore, SnapshotOutdatedError, StoreState
from labelkin.store.label_sets import LabelSegments
from labelkin.store.locks import FileLock, beside
from labelkin.store.reader import Reader
from labelkin.store.snapshot import Snapshot
from labelkin.store.writer import add_documents, remove_documents
from labelkin.vocab import Concept, Vocabulary

from .tiny_model import tiny_model

LABELS = [f"L{number}" for number in range(6)]
FRUIT = ("apple", "cherry", "quince", "melon", "grape")


def documents(names: Sequence[object], words: str = "orchard") -> list[Document]:
    """A labelled document for each name; its text has a word that no other name has."""
    return [
        Document(
            str(name),
            # No stemmer touches a word that ends with a digit.
            f"{words} word{name}0",
            " ".join(FRUIT[place % 5 :]),
            language="en",
            labels=(LABELS[place % 6], LABELS[(place + len(str(name))) % 6]),
        )
        for place, name in enumerate(names)
    ]


class Case(ABC):
    """One kind of store over an open collection, and what it must give for a snapshot."""

    # Whether a store that is ahead refuses an older snapshot, or serves it all the same.
    refuses_older: ClassVar[bool] = True
    # Whether a store of another history is rebuilt as a whole, or used as far as it is common.
    rebuilds: ClassVar[bool] = True
    # The names of files whose damage must be noticed, as patterns.
    damaged: ClassVar[tuple[str, ...]] = ()
    # The packages of extras that the store needs.
    packages: ClassVar[tuple[str, ...]] = ()

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._opened: list[Any] = []

    @classmethod
    def require(cls) -> None:
        """Skip where an extra is missing."""
        for package in cls.packages:
            pytest.importorskip(package)

    @abstractmethod
    def store(self) -> DerivedStore:
        """A store that has read nothing yet."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where the store keeps its files."""

    @abstractmethod
    def check(self, store: Any, snapshot: Snapshot) -> None:
        """Whether the store's users get what the snapshot has."""

    def lock(self, store: DerivedStore) -> Path | None:
        """The file that a process locks while it writes."""
        return beside(store.folder, "write")

    def close(self) -> None:
        for opened in self._opened:
            opened.close()

    def closed_later(self, opened: Any) -> Any:
        self._opened.append(opened)
        return opened

    def files(self) -> dict[Path, tuple[int, bytes]]:
        """The store's files with their times and contents."""
        return {
            path: (path.stat().st_mtime_ns, path.read_bytes())
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not path.name.endswith((".lock", ".write", ".open"))
        }


def live_texts(reader: Reader) -> dict[int, Document]:
    pages = reader.labelled_texts(0, reader.generation().next_row)
    return {row: document for page in pages for row, document in page}


class Terms(Case):
    damaged = ("meta.json", "*.term")

    def store(self) -> TermIndex:
        config = self.collection.config
        cache = self.closed_later(open_term_cache(self.collection))
        representation = make_representation("stems", config.representation)
        engine = config.neighbours.engine
        index = TermIndex(self.collection, representation, cache, engine)
        return self.closed_later(index)

    @property
    def folder(self) -> Path:
        return self.collection.path / "indexes"

    def check(self, store: TermIndex, snapshot: Snapshot) -> None:
        searcher = store.searcher(snapshot)
        texts = live_texts(snapshot)
        terms = {row: document.title.split()[-1] for row, document in texts.items()}
        queries = [{"stems": {term: 1.0}} for term in terms.values()]
        results = searcher.nearest(queries, 5, [()] * len(queries))
        assert [rows.tolist() for rows, _ in results] == [[row] for row in terms]
        # A word that every document has.
        ((rows, _),) = searcher.nearest([{"stems": {"grape": 1.0}}], 10_000, [()])
        assert sorted(rows.tolist()) == sorted(texts)


class Vectors(Case):
    damaged = ("labelkin.json", "*.vectors", "*.keys")

    packages = ("sklearn",)

    def store(self) -> VectorIndex:
        self._encoder = self.closed_later(open_encoder("lsa", self.collection))
        return self.closed_later(VectorIndex(self.collection, self._encoder))

    @property
    def folder(self) -> Path:
        return self.collection.path / "indexes"

    def check(self, store: VectorIndex, snapshot: Snapshot) -> None:
        stored = store.at(snapshot)
        texts = live_texts(snapshot)
        is_live = ~np.isin(stored.keys, snapshot.tombstones())
        assert stored.keys[is_live].tolist() == list(texts)
        expected = self._encoder.encode(list(texts.values()))
        np.testing.assert_allclose(stored.vectors[is_live], expected, atol=1e-3)


class Latents(Case):
    damaged = ("latents.json", "latents-*.f16")

    @property
    def folder(self) -> Path:
        return self.collection.path / "models" / "label-ae"

    def store(self) -> LatentStore:
        model = self._model = self.closed_later(tiny_model(self.folder, LABELS[:5]))
        by_id = self.collection.columns_by_id()
        columns = np.array([by_id[label] for label in model.info.labels], dtype=np.int64)
        self._columns = LabelColumns(columns, len(by_id))
        return self.closed_later(LatentStore(model, self._columns))

    def files(self) -> dict[Path, tuple[int, bytes]]:
        return {path: about for path, about in super().files().items() if "latents" in path.name}

    def check(self, store: LatentStore, snapshot: Snapshot) -> None:
        latents = store.at(snapshot)
        label_sets = snapshot.label_sets()
        assert len(latents) == label_sets.rows == snapshot.generation().next_row
        rows = np.array(list(live_texts(snapshot)), dtype=np.int64)
        expected = self._model.encode(self._columns.matrix(label_sets, rows))
        np.testing.assert_allclose(latents.of(rows), expected, rtol=1e-2, atol=1e-2)

    def lock(self, store: DerivedStore) -> Path:
        return self.folder / ".latents.lock"


class Segments(Case):
    refuses_older = False
    rebuilds = False
    damaged = ("manifest.json", "*.columns.npy", "*.starts.npy")

    @property
    def folder(self) -> Path:
        return self.collection.path / "other-labels"

    def store(self) -> LabelSegments:
        return self.closed_later(LabelSegments(self.folder))

    def check(self, store: LabelSegments, snapshot: Snapshot) -> None:
        label_sets = store.label_sets(snapshot)
        end = snapshot.generation().next_row
        assert label_sets.rows == end
        for row, blob in snapshot.stored_label_sets(0, end):
            assert label_sets.columns(row).tobytes() == blob

    def lock(self, store: DerivedStore) -> None:
        """The database's write transaction is the lock."""


KINDS = [Terms, Vectors, Latents, Segments]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__.lower())
def kind(request: pytest.FixtureRequest) -> type[Case]:
    request.param.require()
    return request.param


@pytest.fixture(autouse=True)
def _writes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelkin.autoencoder.latents._WORTH_WRITING", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A collection of 30 documents."""
    folder = tmp_path / "c"
    vocabulary = Vocabulary(Concept(label, {"en": label}) for label in LABELS)
    with Collection.create(folder, vocabulary, Config()) as collection:
        add_documents(collection, documents(range(30)))
    return folder


@contextmanager
def opened(kind: type[Case], path: Path, *, read_only: bool = False) -> Iterator[Case]:
    with Collection(path, read_only=read_only) as collection:
        case = kind(collection)
        try:
            yield case
        finally:
            case.close()


@pytest.fixture
def case(kind: type[Case], path: Path) -> Iterator[Case]:
    with opened(kind, path) as one:
        yield one


def add(case: Case, *names: object, words: str = "orchard") -> Snapshot:
    add_documents(case.collection, documents(names, words))
    return case.collection.snapshot()


def remove(case: Case, *names: object) -> Snapshot:
    remove_documents(case.collection, map(str, names))
    return case.collection.snapshot()


def test_it_catches_up_after_documents_were_added_and_removed(case: Case) -> None:
    store = case.store()
    snapshot = case.collection.snapshot()
    assert not store.reflects(snapshot)
    assert store.catch_up(snapshot) == 30
    assert store.reflects(snapshot)
    assert store.state == StoreState.of(snapshot.generation())
    case.check(store, snapshot)
    add(case, "a", "b", "c", "d", "e")
    remove(case, 3, 29)
    # Replaced documents have new rows.
    snapshot = add(case, 7, 8, words="garden")
    assert store.catch_up(snapshot) == 7
    case.check(store, snapshot)
    snapshot = remove(case, "a", 0)
    assert store.catch_up(snapshot) == 0
    assert store.reflects(snapshot)
    case.check(store, snapshot)


def test_documents_without_labels_are_no_obstacle(case: Case) -> None:
    store = case.store()
    store.catch_up(case.collection.snapshot())
    add_documents(case.collection, [Document(f"bare {n}", "x", language="en") for n in range(3)])
    snapshot = case.collection.snapshot()
    store.catch_up(snapshot)
    assert store.reflects(snapshot)
    snapshot = add(case, "new")
    assert store.catch_up(snapshot) == 1
    case.check(store, snapshot)


def test_an_empty_collection(kind: type[Case], path: Path) -> None:
    with opened(kind, path) as case:
        snapshot = remove(case, *range(30))
        # LSA is fitted to nothing, and such a model does not stay in use.
        store = case.store()
        store.catch_up(snapshot)
        assert store.reflects(snapshot)
        if kind is not Vectors:
            case.check(store, add(case, "new"))


def test_catching_up_again_does_nothing(case: Case) -> None:
    store = case.store()
    store.catch_up(case.collection.snapshot())
    before = case.files()
    assert before
    assert store.catch_up(case.collection.snapshot()) == 0
    assert case.files() == before
    again = case.store()
    assert again.catch_up(case.collection.snapshot()) == 0
    assert case.files() == before
    case.check(again, case.collection.snapshot())


def test_progress_is_reported(case: Case) -> None:
    reports: list[tuple[int, int]] = []
    case.store().catch_up(case.collection.snapshot(), lambda *report: reports.append(report))
    assert reports == sorted(reports)
    if isinstance(case, Terms | Vectors):
        assert reports[-1] == (30, 30)


def test_another_object_continues(kind: type[Case], path: Path) -> None:
    with opened(kind, path) as case:
        store = case.store()
        store.catch_up(case.collection.snapshot())
        files = case.files()
    with opened(kind, path) as case:
        store = case.store()
        remove(case, 5)
        snapshot = add(case, "a", "b", "c", "d")
        assert store.catch_up(snapshot) == 4
        case.check(store, snapshot)
        assert case.files() != files
    with opened(kind, path) as case:
        store, snapshot = case.store(), case.collection.snapshot()
        assert store.catch_up(snapshot) == 0
        case.check(store, snapshot)


def test_a_store_in_memory_follows_another_process(case: Case) -> None:
    mine, theirs = case.store(), case.store()
    mine.catch_up(case.collection.snapshot())
    for number in range(3):
        remove(case, number)
        snapshot = add(case, f"a{number}")
        assert theirs.catch_up(snapshot) == 1
        assert mine.catch_up(snapshot) == 0
        case.check(mine, snapshot)


def back_up(path: Path) -> None:
    """Copy the database away; nobody has it open."""
    shutil.copy(path / "documents.sqlite", path.parent / "backup")


def restore(path: Path) -> None:
    for suffix in ("-wal", "-shm"):
        (path / f"documents.sqlite{suffix}").unlink(missing_ok=True)
    shutil.copy(path.parent / "backup", path / "documents.sqlite")


@pytest.mark.parametrize("since", [[], ["x", "y"], ["x", "y", "z", "u", "v", "w"]])
def test_a_database_restored_from_a_backup_is_noticed(
    since: list[str], kind: type[Case], path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(kind, path) as case:
        case.store().catch_up(case.collection.snapshot())
    back_up(path)
    with opened(kind, path) as case:
        store = case.store()
        remove(case, 1, 2)
        store.catch_up(add(case, "lost1", "lost2", "lost3"))
    restore(path)
    with opened(kind, path) as case:
        store = case.store()
        snapshot = add(case, *since) if since else case.collection.snapshot()
        added = store.catch_up(snapshot)
        case.check(store, snapshot)
        if case.rebuilds:
            assert added == 30 + len(since)
            assert "restored from a backup?" in caplog.text
            assert f"rebuilding the {store.noun}" in caplog.text
        caplog.clear()
        snapshot = add(case, "after")
        again = case.store()
        assert again.catch_up(snapshot) == 1
        case.check(again, snapshot)
        assert caplog.messages == []


@pytest.mark.parametrize("content", [b"", b"{", b"\x00" * 20])
@pytest.mark.parametrize(
    ("kind", "pattern"),
    [(kind, pattern) for kind in KINDS for pattern in kind.damaged],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_damaged_file_is_rebuilt_with_a_warning(
    kind: type[Case], pattern: str, content: bytes, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind.require()
    with opened(kind, path) as case:
        case.store().catch_up(case.collection.snapshot())
        files = [file for file in case.files() if file.match(pattern)]
        assert files
    for file in files:
        file.write_bytes(content)
    with opened(kind, path) as case:
        store = case.store()
        snapshot = add(case, "new")
        store.catch_up(snapshot)
        case.check(store, snapshot)
        (record, *_) = caplog.records
        assert record.levelname == "WARNING"
        assert "rebuilding" in caplog.text
        caplog.clear()
    with opened(kind, path) as case:
        # Once it is repaired, nothing is left to report.
        store, snapshot = case.store(), case.collection.snapshot()
        assert store.catch_up(snapshot) == 0
        case.check(store, snapshot)
        assert caplog.messages == []


def test_deleted_files_are_rebuilt(kind: type[Case], path: Path) -> None:
    with opened(kind, path) as case:
        case.store().catch_up(case.collection.snapshot())
        for file in case.files():
            file.unlink()
    with opened(kind, path) as case:
        store, snapshot = case.store(), case.collection.snapshot()
        assert store.catch_up(snapshot) == 30
        case.check(store, snapshot)


def test_rebuilding_on_demand(case: Case) -> None:
    store = case.store()
    snapshot = remove(case, 4)
    store.catch_up(snapshot)
    store.rebuild(snapshot)
    assert store.reflects(snapshot)
    case.check(store, snapshot)


@pytest.mark.parametrize("is_new", [False, True])
def test_a_store_that_is_ahead_of_a_snapshot(case: Case, is_new: bool) -> None:
    store = case.store()
    older = case.collection.snapshot()
    remove(case, 2, 3)
    newer = add(case, "a", "b")
    store.catch_up(newer)
    before = case.files()
    one = case.store() if is_new else store
    if case.refuses_older:
        with pytest.raises(SnapshotOutdatedError, match=r"already at generation|ahead of"):
            one.catch_up(older)
    else:
        case.check(one, older)
    assert case.files() == before
    assert one.catch_up(newer) == 0
    case.check(one, newer)


def at_once(*works: Callable[[], int]) -> list[int]:
    barrier = Barrier(len(works))

    def run(work: Callable[[], int]) -> int:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result() for future in [pool.submit(run, work) for work in works]]


def test_one_of_several_threads_does_the_work(case: Case) -> None:
    store = case.store()
    for expected in (30, 2):
        added = at_once(*[lambda: store.catch_up(case.collection.snapshot())] * 4)
        assert sorted(added) == [0, 0, 0, expected]
        case.check(store, case.collection.snapshot())
        add(case, f"a{expected}", f"b{expected}")


def test_one_of_several_processes_does_the_work(case: Case) -> None:
    stores = [case.store() for _ in range(3)]
    if case.lock(stores[0]) is None:
        pytest.skip("has no lock of its own")
    snapshot = case.collection.snapshot()
    added = at_once(*[lambda store=store: store.catch_up(snapshot) for store in stores])
    assert sorted(added) == [0, 0, 30]
    for store in stores:
        case.check(store, snapshot)


def test_a_process_that_writes_for_long_makes_others_give_up(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.store.derived.WRITER_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("labelkin.autoencoder.latents._PATIENCE", 0.1)
    store = case.store()
    path = case.lock(store)
    if path is None:
        pytest.skip("has no lock of its own")
    snapshot = case.collection.snapshot()
    with FileLock(path) as lock:
        assert lock.take()
        with pytest.raises(CollectionBusyError):
            store.catch_up(snapshot)
    assert store.catch_up(snapshot) == 30


@pytest.mark.parametrize("state", ["behind", "of another history", "damaged"])
def test_reading_only_changes_no_file(state: str, kind: type[Case], path: Path) -> None:
    with opened(kind, path) as case:
        case.store().catch_up(case.collection.snapshot())
    if state == "of another history":
        back_up(path)
        with opened(kind, path) as case:
            case.store().catch_up(add(case, "lost"))
        restore(path)
    with opened(kind, path) as case:
        add(case, "new")
        remove(case, 1)
        if state == "damaged":
            for file in case.files():
                if file.match(kind.damaged[0]):
                    file.write_bytes(b"{")
    with opened(kind, path, read_only=True) as case:
        store = case.store()
        before = case.files()
        case.check(store, case.collection.snapshot())
        case.check(store, case.collection.snapshot())
        assert case.files() == before
