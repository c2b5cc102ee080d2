from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event, Thread

import pytest

from labelkin.corpus import Document
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    VocabularyError,
)
from labelkin.indexer import Indexer
from labelkin.store import Collection, Config
from labelkin.store.database import Database
from labelkin.store.writer import add_documents
from labelkin.vocab import Vocabulary

from .descriptors import open_files

ADD = "INSERT INTO changes VALUES ((SELECT max(generation) + 1 FROM changes), 0, 0, ?, '')"
COUNT = "SELECT count(*) FROM changes"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = Database.create(tmp_path / "documents.sqlite")
    yield made
    made.close()


def write(database: Database, token: str = "t") -> None:
    with database.transaction() as connection:
        connection.execute(ADD, (token,))


def count(database: Database) -> int:
    ((entries,),) = database.connection.execute(COUNT).fetchall()
    return int(entries)


def in_thread(work: Callable[[], None]) -> None:
    """Run `work` in a thread that ends, and raise what it raises."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_a_second_thread_reads_and_writes(database: Database) -> None:
    connections = [database.connection]

    def work() -> None:
        assert count(database) == 1
        write(database)
        connections.append(database.connection)

    in_thread(work)
    assert count(database) == 2
    assert database.connection is connections[0]
    assert connections[1] is not connections[0]


def test_threads_that_write_at_once_queue(database: Database) -> None:
    barrier = Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for step in range(10):
            write(database, f"{number} {step}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert count(database) == 81


def test_a_thread_does_not_see_what_another_has_not_committed(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(ADD, ("t",))
        assert count(database) == 2
        in_thread(lambda: count(database) == 1 or pytest.fail("not committed yet"))
    in_thread(lambda: count(database) == 2 or pytest.fail("not seen"))


def test_a_thread_that_writes_for_long_makes_the_others_give_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.store.database.WRITER_PATIENCE_SECONDS", 0.1)
    with (
        database.transaction(),
        pytest.raises(CollectionBusyError, match="has been writing for more than"),
    ):
        in_thread(lambda: write(database))
    write(database)
    assert count(database) == 2


def test_damage_may_be_an_error_of_the_disk(database: Database) -> None:
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    with (
        pytest.raises(CollectionDamagedError, match="a failing disk looks the same") as it,
        database.errors_explained(),
    ):
        raise error
    folder = database.path.parent
    assert f"run `labelkin doctor {folder}` before you restore a backup" in str(it.value)


def test_a_failed_transaction_changes_nothing(database: Database) -> None:
    with pytest.raises(VocabularyError), database.transaction() as connection:
        connection.execute(ADD, ("t",))
        raise VocabularyError("passes through")
    assert not database.connection.in_transaction
    assert count(database) == 1
    in_thread(lambda: write(database))


def test_connections_of_ended_threads_are_closed(database: Database, tmp_path: Path) -> None:
    count(database)
    in_thread(lambda: write(database))
    logs, files = open_files(tmp_path, "-wal"), open_files(tmp_path)
    assert logs == 1
    for _ in range(20):
        in_thread(lambda: write(database))
    assert open_files(tmp_path) == files
    # Also those of threads that run at the same time.
    barrier, done = Barrier(11), Event()

    def work() -> None:
        count(database)
        barrier.wait()
        done.wait()

    threads = [Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    barrier.wait()
    assert open_files(tmp_path, "-wal") == logs + 10
    done.set()
    for thread in threads:
        thread.join()
    assert open_files(tmp_path, "-wal") == logs
    database.close()
    assert open_files(tmp_path) == 0


def test_closing_closes_the_connections_of_all_threads(tmp_path: Path, database: Database) -> None:
    barrier, done = Barrier(4), Event()
    errors: list[str] = []

    def work() -> None:
        connection = database.connection
        barrier.wait()
        done.wait()
        with pytest.raises(sqlite3.ProgrammingError):
            connection.execute(COUNT)
        try:
            count(database)
        except CollectionError as error:
            errors.append(str(error))

    threads = [Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    barrier.wait()
    database.close()
    assert open_files(tmp_path) == 0
    done.set()
    for thread in threads:
        thread.join()
    assert len(errors) == 3
    assert all("the collection is closed" in error for error in errors)


def enter(database: Database) -> None:
    with database.transaction():
        pass


@pytest.mark.parametrize(
    "use",
    [lambda database: database.connection, lambda database: database.pinned(), enter],
    ids=["connection", "pinned", "transaction"],
)
def test_every_use_after_closing_is_an_error(
    use: Callable[[Database], object], database: Database, tmp_path: Path
) -> None:
    database.close()
    database.close()
    for run in (lambda work: work(), in_thread):
        with pytest.raises(CollectionError, match="the collection is closed"):
            run(lambda: use(database))
    assert open_files(tmp_path) == 0


def test_every_use_of_a_closed_collection_is_an_error(
    tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]
) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        indexer.add(documents)
        indexer.neighbour_arrays(documents, 2)
        snapshot = indexer.snapshot()
        collection = indexer.collection
    uses: list[Callable[[], object]] = [
        collection.generation,
        collection.snapshot,
        collection.count,
        collection.label_sets,
        collection.tombstones,
        lambda: collection.vocabulary,
        lambda: collection.document("d1"),
        lambda: list(collection.documents()),
        lambda: add_documents(collection, [Document("new", "x", language="en")]),
        lambda: snapshot.document("d1"),
        lambda: indexer.neighbour_arrays(documents, 2),
        lambda: indexer.remove(["d1"]),
    ]
    for number, use in enumerate(uses):
        with pytest.raises(CollectionError):
            pytest.fail(f"use {number} gave {use()!r}")
    for ending in ("sqlite", "-wal", "-shm"):
        assert open_files(tmp_path / "c", ending) == 0


def test_a_pinned_connection_sees_one_state_in_any_thread(database: Database) -> None:
    pinned = database.pinned()
    for _ in range(3):
        in_thread(lambda: write(database))
        assert pinned.query(COUNT, ()) == [(1,)]
        in_thread(lambda: pinned.query(COUNT, ()) == [(1,)] or pytest.fail("changed"))
        assert database.query(COUNT) != [(1,)]
    pinned.close()
    assert count(database) == 4


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", Vocabulary(), Config()).close()
    with Collection(tmp_path / "c", read_only=True) as reader:
        assert reader.database.read_only
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.database.connection.execute("DELETE FROM changes")
        with pytest.raises(CollectionError, match="cannot be written to"):
            enter(reader.database)
