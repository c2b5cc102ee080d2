"""Compacting: nothing that is needed is lost, and nobody notices."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionBusyError, CollectionFullError, CollectionReadOnlyError
from labelkin.integrity import check_collection
from labelkin.leftovers import COMPACTING, find_leftovers
from labelkin.store import label_sets
from labelkin.store.locks import FileLock
from labelkin.vocab import Vocabulary

COUNT = 300
REMOVED = 120


def texts() -> list[Document]:
    return list(demo_documents(COUNT, 0))


def create(path: Path, documents: list[Document]) -> Indexer:
    indexer = Indexer.create(path, Vocabulary(demo_concepts(0)), language="en")
    indexer.add(documents)
    return indexer


@pytest.fixture(scope="module")
def _grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that has been indexed in all ways before many documents were removed."""
    path = tmp_path_factory.mktemp("grown") / "c"
    documents = texts()
    with create(path, documents[:250]) as indexer:
        build_all(indexer)
        indexer.remove(document.id for document in documents[:REMOVED])
        indexer.add(documents[250:])
        build_all(indexer)
    return path


def build_all(indexer: Indexer) -> None:
    indexer.build()
    for engine in ("lsa",) if has_faiss() else ():
        indexer.build(engine)
    indexer.search().expect(1_000_000)


def has_faiss() -> bool:
    try:
        import faiss  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.fixture
def grown(_grown: Path, tmp_path: Path) -> Path:
    return shutil.copytree(_grown, tmp_path / "c")


def neighbours(path: Path) -> list:
    queries = [Document("", one.title, one.body, language="en") for one in texts()[:20]]
    with Indexer.open(path) as indexer:
        return [
            [(near.id, round(near.score, 3)) for near in of_one]
            for of_one in indexer.neighbours(queries)
        ]


def test_removed_documents_leave_everything(grown: Path, tmp_path: Path) -> None:
    with Indexer.open(grown) as indexer:
        before = [document.id for document in indexer.documents()]
        size = indexer.collection.disk_bytes()
        report = indexer.compact()
    assert report.is_complete
    assert 0 < report.freed < size
    changes = {(one.part.partition("-")[0], one.change) for one in report.parts}
    assert {"labels", "cache/terms.sqlite"} <= {part for part, _ in changes}
    for kind in ("terms", "vectors") if has_faiss() else ("terms",):
        assert (f"indexes/{kind}", f"{REMOVED} removed documents dropped") in changes
    checked = check_collection(grown)
    assert not checked.problems
    notes = {one.part.partition("-")[0]: one.note for one in checked.findings}
    assert notes["indexes/terms"] == f"{COUNT - REMOVED} documents"
    with Indexer.open(grown) as indexer:
        assert [document.id for document in indexer.documents()] == before
        assert indexer.compact().parts == []
    # Removed documents count in the statistics of scores no longer.
    create(tmp_path / "new", texts()[REMOVED:]).close()
    assert neighbours(grown) == neighbours(tmp_path / "new")


def test_nobody_has_searched_since_documents_were_removed(grown: Path) -> None:
    with Indexer.open(grown) as indexer:
        indexer.compact()
        indexer.remove(document.id for document in texts()[REMOVED:200])
        report = indexer.compact()
        assert report.is_complete
        (cache,) = [one for one in report.parts if one.part == "cache/terms.sqlite"]
        assert cache.bytes_after < cache.bytes_before
        changes = {(one.part.partition("-")[0], one.change) for one in report.parts}
        for kind in ("terms", "vectors") if has_faiss() else ("terms",):
            assert (f"indexes/{kind}", "80 removed documents dropped") in changes
        assert indexer.compact().parts == []
    assert not check_collection(grown).problems


def test_it_can_be_written_to_afterwards(grown: Path) -> None:
    documents = texts()
    with Indexer.open(grown) as indexer:
        indexer.compact()
        indexer.add(documents[:20])
        indexer.remove([documents[200].id])
        build_all(indexer)
    assert not check_collection(grown).problems
    with Indexer.open(grown) as indexer:
        assert indexer.compact().is_complete
        stored = {document.id: document.labels for document in indexer.documents()}
    kept = [*documents[:20], *documents[REMOVED:200], *documents[201:]]
    assert stored == {one.id: one.labels for one in kept}
    assert not check_collection(grown).problems


def test_those_who_read_an_earlier_state_do_not_notice(grown: Path) -> None:
    documents = texts()
    with Indexer.open(grown) as indexer, Indexer.open(grown) as other:
        earlier = other.collection.pinned()
        search = other.search()
        queries = [Document("", one.title, one.body, language="en") for one in documents[:9]]
        before = search.search(search.texts(queries), 10).rows
        rows = np.arange(REMOVED, 200)
        expected = other.snapshot().label_sets().gather(rows)[1]
        indexer.remove(document.id for document in documents[REMOVED:200])
        indexer.build()
        indexer.compact()
        # Their labels are in no segment any more, but this reader still sees the documents.
        assert (earlier.label_sets().gather(rows)[1] == expected).all()
        assert (search.search(search.texts(queries), 10).rows == before).all()
        earlier.close()
        assert not indexer.collection.label_sets().sizes_of(rows).any()


def test_a_writer_comes_in_between(grown: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments that were merged meanwhile are compacted again; in the end, others wait."""
    written = label_sets._write_segments
    with Indexer.open(grown) as indexer, Indexer.open(grown) as other:
        added = iter(range(1000))

        def write(*arguments: object) -> dict:
            done = written(*arguments)  # type: ignore[arg-type]
            if len(arguments) == 3 and not indexer.collection.database.connection.in_transaction:
                count = next(added)
                many = [Document(f"{count} {one.id}", one.title) for one in texts()]
                other.add(many)
            return done

        monkeypatch.setattr(label_sets, "_write_segments", write)
        indexer.compact()
        monkeypatch.undo()
        assert next(added) > 1
        assert indexer.collection.count() == COUNT - REMOVED + (next(added) - 1) * COUNT
    assert not check_collection(grown).problems


def test_others_read_and_write_meanwhile(grown: Path, caplog: pytest.LogCaptureFixture) -> None:
    ended, failures = Event(), []
    documents = texts()
    acknowledged: set[str] = {one.id for one in documents[REMOVED:]}

    def write(indexer: Indexer) -> None:
        for number in range(10_000):
            if ended.is_set():
                return
            names = [f"{number} {one.id}" for one in documents[:5]]
            indexer.add(
                Document(name, one.title, one.body, labels=one.labels, language="en")
                for name, one in zip(names, documents, strict=False)
            )
            acknowledged.update(names)
            indexer.remove(names[:2])
            acknowledged.difference_update(names[:2])

    def read(indexer: Indexer) -> None:
        query = Document("", documents[3].title, documents[3].body, language="en")
        while not ended.is_set():
            assert indexer.suggest([query])[0]

    def started(work: Callable[[Indexer], None]) -> Thread:
        def run() -> None:
            try:
                with Indexer.open(grown) as indexer:
                    work(indexer)
            except Exception as error:
                failures.append(error)

        thread = Thread(target=run)
        thread.start()
        return thread

    threads = [started(write), started(read)]
    try:
        with Indexer.open(grown) as indexer:
            reports = [indexer.compact() for _ in range(3)]
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert not caplog.records
    assert all(report.is_complete for report in reports)
    with Indexer.open(grown) as indexer:
        assert {document.id for document in indexer.documents()} == acknowledged
    assert not check_collection(grown).problems


COMPACT_FOREVER = """
import sys
from labelkin import Document, Indexer
with Indexer.open(sys.argv[1]) as indexer:
    documents = list(indexer.documents())[:40]
    first = int(sys.argv[2])
    for number in range(first, first + 1000):
        ids = [f"{number} {place}" for place in range(len(documents))]
        indexer.add(
            Document(name, one.title, one.body, labels=one.labels, language="en")
            for name, one in zip(ids, documents)
        )
        print("added", number, flush=True)
        indexer.build()
        indexer.remove(ids[1:])
        print("removed", number, flush=True)
        indexer.build()
        indexer.compact()
"""


def kill_while_compacting(path: Path, kills: int, seed: int) -> None:
    chance, number = random.Random(seed), 0
    with Indexer.open(path) as indexer:
        original = {document.id for document in indexer.documents()}
    kept: set[str] = set()
    unremoved: set[int] = set()
    for _ in range(kills):
        command = [sys.executable, "-c", COMPACT_FOREVER, str(path), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            # Added and removed once.
            process.stdout.readline()
            process.stdout.readline()
            time.sleep(chance.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            lines = process.stdout.read().split("\n")
        known = {"added": number + 1, "removed": number + 1}
        for line in lines[:-1]:
            known[line.split()[0]] = int(line.split()[1]) + 1
        with Indexer.open(path) as indexer:
            stored = {document.id for document in indexer.documents()}
            near = indexer.neighbours([Document("", "orchard", "apple wheat", language="en")])
            assert len(near) == 1
        assert original <= stored
        kept |= {f"{one} 0" for one in range(number, known["added"])}
        assert kept <= stored
        others = {int(name.split()[0]) for name in stored - original if not name.endswith(" 0")}
        # Those that an earlier kill kept from being removed stay.
        assert all(one >= known["removed"] for one in others - unremoved)
        unremoved |= others
        assert not check_collection(path).problems
        number = known["added"] + 1
    with Indexer.open(path) as indexer:
        assert indexer.compact().is_complete
    report = check_collection(path)
    assert not report.problems
    assert all(one.state != "leftover" for one in report.findings)


def test_killed_while_compacting(grown: Path) -> None:
    kill_while_compacting(grown, kills=2, seed=0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_many_times_while_compacting(grown: Path) -> None:
    kill_while_compacting(grown, kills=100, seed=1)


def test_only_one_at_a_time(grown: Path) -> None:
    with Indexer.open(grown) as indexer, FileLock(grown / COMPACTING) as lock:
        assert lock.take()
        with pytest.raises(CollectionBusyError, match="another process is compacting"):
            indexer.compact()


def test_what_another_process_writes_is_left_as_it_is(
    grown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.neighbours.vector_index.WRITER_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr("labelkin.store.derived.DerivedStore.patience", 0.1)
    locks = [FileLock(path) for path in (grown / "indexes").glob(".*.write")]
    with Indexer.open(grown) as indexer:
        assert all(lock.take() for lock in locks)
        report = indexer.compact()
        for lock in locks:
            lock.close()
        assert not report.is_complete
        assert all("another process" in one.problem for one in report.parts if one.problem)
        assert indexer.compact().is_complete


def test_a_collection_that_cannot_be_written_to(grown: Path) -> None:
    with (
        Indexer.open(grown, read_only=True) as indexer,
        pytest.raises(CollectionReadOnlyError, match="cannot be written to"),
    ):
        indexer.compact()


@pytest.mark.mount
def test_a_full_disk(grown: Path, tmp_path: Path, mounted: Callable) -> None:
    with mounted(tmp_path / "small", "size=16m"):
        folder = shutil.copytree(grown, tmp_path / "small" / "c")
        before = neighbours(folder)
        ballast = tmp_path / "small" / "ballast"
        with Indexer.open(folder) as indexer:
            indexer.build()
            with pytest.raises(OSError, match="No space"), ballast.open("wb") as file:
                while True:
                    file.write(bytes(1000))
                    file.flush()
            with pytest.raises(CollectionFullError, match="the disk is full") as caught:
                indexer.compact()
            assert "\n" not in str(caught.value)
        ballast.unlink()
        assert not check_collection(folder).problems
        assert neighbours(folder) == before
        with Indexer.open(folder) as indexer:
            assert indexer.compact().is_complete
        assert not check_collection(folder).problems


def test_segments_of_a_writer_are_no_leftovers(
    grown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.store.database.WRITER_PATIENCE_SECONDS", 0.1)
    segment = grown / "labels" / "000000000000-000000009999.starts.npy"
    segment.touch()
    with Indexer.open(grown) as indexer, Indexer.open(grown) as other:
        assert find_leftovers(indexer.collection) == []
        writer, done = Event(), Event()

        def write() -> None:
            with other.collection.database.transaction():
                writer.set()
                done.wait(30)

        thread = Thread(target=write)
        thread.start()
        writer.wait(30)
        try:
            assert find_leftovers(indexer.collection, remove=True) == []
        finally:
            done.set()
            thread.join()
        assert segment.exists()
        assert [one.path for one in find_leftovers(indexer.collection, remove=True)] == [segment]
    assert not segment.exists()
