from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest

from labelkin.corpus import Document
from labelkin.exceptions import CollectionError
from labelkin.indexer import Indexer
from labelkin.store import Collection
from labelkin.store.label_sets import LabelSets
from labelkin.store.reader import Reader
from labelkin.store.snapshot import Snapshot, Views
from labelkin.vocab import Vocabulary

from .descriptors import open_files


@pytest.fixture
def indexer(tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]) -> Iterator[Indexer]:
    with Indexer.create(tmp_path / "c", vocabulary) as made:
        made.add(documents)
        yield made


@pytest.fixture
def collection(indexer: Indexer) -> Collection:
    return indexer.collection


def state_of(reader: Reader) -> dict[str, Any]:
    """Everything that a reader can be asked for."""
    label_sets = reader.label_sets()
    rows = range(label_sets.rows)
    ids = [identifier for identifier, _ in reader.identifiers()]
    return {
        "generation": reader.generation(),
        "documents": list(reader.documents()),
        "one by one": [reader.document(identifier) for identifier in ids],
        "rows": reader.rows_of(ids),
        "texts": reader.texts_of(list(rows)),
        "titles": reader.titles_of(list(rows)),
        "labelled": list(reader.labelled_texts(0, len(rows))),
        "label sets": [label_sets.columns(row).tolist() for row in rows],
        "tombstones": reader.tombstones().tolist(),
        "vocabulary": list(reader.vocabulary),
        "columns": reader.columns_by_id(),
        "concepts": reader.concepts(range(reader.generation().next_column)),
        "order": len(reader.label_order()),
        "languages": reader.languages(),
        "language": reader.only_language(),
        "unresolved": reader.count_unresolved(),
        "count": reader.count(),
    }


def change(indexer: Indexer, number: int) -> None:
    """Add, replace and remove documents; every change has new concepts as well."""
    name = f"n{number}"
    indexer.add(
        [
            Document(name, f"Title {number}", language="de", labels=("V1", f"Concept {number}")),
            Document("d1", f"Replaced {number} times", language="en", labels=("V3",)),
        ],
        keep_unknown=True,
    )
    indexer.add([Document(f"u{number}", "x", language="fr", labels=("unknown",))])
    indexer.remove(["d2", f"n{number - 1}"])


def test_a_snapshot_shows_what_the_collection_shows(
    indexer: Indexer, collection: Collection
) -> None:
    for number in range(3):
        change(indexer, number)
        assert state_of(collection.snapshot()) == state_of(collection)


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_snapshot_stays_as_it_is(
    asked_before: bool, indexer: Indexer, collection: Collection
) -> None:
    expected = state_of(collection)
    snapshot = collection.snapshot()
    if asked_before:
        assert state_of(snapshot) == expected
    for number in range(3):
        change(indexer, number)
        assert state_of(snapshot) == expected
    assert state_of(collection) != expected


def test_a_snapshot_stays_as_it_is_while_another_process_writes(
    indexer: Indexer, collection: Collection
) -> None:
    snapshot, expected = collection.snapshot(), state_of(collection)
    with Indexer.open(collection.path) as other:
        for number in range(3):
            change(other, number)
            assert state_of(snapshot) == expected
        assert state_of(collection.snapshot()) == state_of(other.collection)


def test_a_collection_that_takes_its_vocabulary_from_documents(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        states = []
        for number in range(4):
            indexer.add([Document(str(number), "x", labels=("L", f"L{number}"))])
            snapshot = indexer.collection.snapshot()
            states.append((snapshot, state_of(snapshot)))
        for number, (snapshot, expected) in enumerate(states):
            assert state_of(snapshot) == expected
            assert [concept.id for concept in snapshot.vocabulary] == [
                "L",
                *(f"L{n}" for n in range(number + 1)),
            ]
            assert snapshot.vocabulary.find("L0").id == "L0"
            assert f"L{number + 1}" not in snapshot.vocabulary


def test_a_snapshot_stays_as_it_is_while_segments_are_merged_and_deleted(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add([Document("a", "x", labels=("A", "B")), Document("b", "x", labels=("B",))])
        snapshot = indexer.collection.snapshot()
        for number in range(20):
            indexer.add([Document(str(number), "x", labels=("A",))])
        for path in (tmp_path / "c" / "labels").iterdir():
            path.unlink()
        sets = snapshot.label_sets()
        assert [sets.columns(row).tolist() for row in range(sets.rows)] == [[0, 1], [1]]


def test_settings_are_those_of_its_moment(collection: Collection) -> None:
    snapshot = collection.snapshot()
    path = collection.path / "labelkin.toml"
    path.write_text(path.read_text().replace("k = 20", "k = 33"))
    assert snapshot.config.neighbours.k == 20
    assert collection.snapshot().config.neighbours.k == 33


def test_tombstones_continue_from_the_previous_snapshot(
    indexer: Indexer, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = collection.snapshot()
    assert first.tombstones().tolist() == []
    change(indexer, 0)
    asked: list[tuple[int, int]] = []
    between = Reader.tombstones_between
    monkeypatch.setattr(
        Reader,
        "tombstones_between",
        lambda self, *span: asked.append(span) or between(self, *span),
    )
    second = collection.snapshot(first)
    assert second.tombstones().tolist() == [0, 1]
    assert asked == [(first.generation().number, second.generation().number)]
    assert collection.snapshot(second).tombstones() is second.tombstones()
    assert first.tombstones().tolist() == []


def test_only_a_newer_generation_makes_a_snapshot_outdated(
    indexer: Indexer, collection: Collection
) -> None:
    before = collection.snapshot()
    change(indexer, 0)
    after = collection.snapshot()
    newer, older = after.generation(), before.generation()
    assert before.is_outdated(newer.number, newer.token)
    assert not before.is_outdated(newer.number, "another history")
    assert not before.is_outdated(newer.number + 1, newer.token)
    assert not before.is_outdated(older.number, older.token)
    assert not after.is_outdated(newer.number, newer.token)
    assert after.knows(older.number, older.token)
    assert not before.knows(newer.number, newer.token)


def test_the_connection_is_closed_with_the_last_reference(
    indexer: Indexer, collection: Collection, tmp_path: Path
) -> None:
    logs = open_files(tmp_path, "-wal")
    snapshots = [collection.snapshot() for _ in range(5)]
    finalizers = [snapshot.close for snapshot in snapshots]
    views = Views(snapshots[0])
    for snapshot in snapshots:
        state_of(snapshot)
    views.get("order", lambda views: views.snapshot.label_order())
    del snapshot
    assert open_files(tmp_path, "-wal") == logs + 5
    del snapshots[1:]
    assert open_files(tmp_path, "-wal") == logs + 1
    assert [finalizer.alive for finalizer in finalizers] == [True, *[False] * 4]
    snapshots.clear()
    assert open_files(tmp_path, "-wal") == logs + 1
    del views
    assert open_files(tmp_path, "-wal") == logs
    # Descriptors that SQLite keeps are used again.
    files = open_files(tmp_path)
    for _ in range(20):
        change(indexer, 0)
        state_of(collection.snapshot())
    assert open_files(tmp_path, "-wal") == logs
    assert open_files(tmp_path, "sqlite") <= files


def test_a_closed_snapshot_is_an_error(collection: Collection) -> None:
    snapshot = collection.snapshot()
    snapshot.close()
    snapshot.close()
    with pytest.raises(CollectionError, match="closed"):
        snapshot.document("d1")


def test_a_snapshot_does_not_keep_the_log_from_being_written_back(
    indexer: Indexer, collection: Collection
) -> None:
    snapshot = collection.snapshot()
    log = collection.path / "documents.sqlite-wal"
    change(indexer, 0)
    del snapshot
    collection.database.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert log.stat().st_size == 0


def test_threads_read_one_snapshot_at_once(indexer: Indexer, collection: Collection) -> None:
    for number in range(3):
        change(indexer, number)
    expected = state_of(collection)
    snapshot = collection.snapshot()
    barrier, done = Barrier(9), Event()

    def read() -> int:
        barrier.wait()
        rounds = 0
        while not done.is_set() or rounds < 2:
            assert state_of(snapshot) == expected
            rounds += 1
        return rounds

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read) for _ in range(8)]
        barrier.wait()
        try:
            for number in range(3, 8):
                change(indexer, number)
        finally:
            done.set()
        assert all(reader.result() >= 2 for reader in readers)
    assert collection.generation() != expected["generation"]


def test_threads_take_snapshots_while_others_write(
    indexer: Indexer, collection: Collection
) -> None:
    done = Event()

    def check(snapshot: Snapshot) -> int:
        state = state_of(snapshot)
        generation = state["generation"]
        assert len(state["label sets"]) == generation.next_row
        assert len(state["vocabulary"]) == generation.next_column
        assert state["count"] == len(state["documents"])
        assert len(state["documents"]) + len(state["tombstones"]) == generation.next_row
        return int(generation.number)

    def read() -> list[int]:
        numbers = []
        previous = None
        while not done.is_set():
            previous = collection.snapshot(previous)
            numbers.append(check(previous))
        return numbers

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for number in range(15):
                change(indexer, number)
        finally:
            done.set()
        for reader in readers:
            numbers = reader.result()
            assert numbers == sorted(numbers)


def test_views_are_made_once_per_snapshot(collection: Collection) -> None:
    views = Views(collection.snapshot())
    barrier = Barrier(6)
    made: list[int] = []

    def ask() -> object:
        barrier.wait()
        return views.get("view", lambda _: made.append(1) or object())

    with ThreadPoolExecutor(6) as pool:
        results = [future.result() for future in [pool.submit(ask) for _ in range(6)]]
    assert len({id(result) for result in results}) == 1
    assert made == [1]
    assert views.used() == ["view"]
    assert views.has("view")


@pytest.mark.parametrize(
    ("document", "title", "year"),
    [
        (Document("a", "A title", "Text", metadata={"year": 1987}), "A title", 1987),
        (Document("a", "", "Some\n text", metadata={"year": "1987 Jul-Aug"}), "Some text", 1987),
        (Document("a", " ", "x" * 900, metadata={"year": None}), "x" * 200, None),
        (Document("a", "", "", {"notes": "In a field"}, metadata={"year": 87}), "In a field", None),
        (Document("a", "", "", {}, metadata={"year": [1987], "x": {"year": 1}}), "", None),
        (Document("a", "T", metadata={"note": 'the "year" 1987'}), "T", None),
        (Document("a", "T", metadata={"year": True}), "T", None),
    ],
)
def test_titles_and_years(
    indexer: Indexer, document: Document, title: str, year: int | None
) -> None:
    indexer.add([document])
    row = indexer.collection.rows_of(["a"])["a"]
    assert indexer.collection.titles_of([row]) == {row: ("a", title, year)}


def test_label_frequencies_are_counted_once_per_state(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    count = LabelSets.frequencies

    def counting(self: LabelSets, width: int, dropped: Any) -> Any:
        counted.append(width)
        return count(self, width, dropped)

    monkeypatch.setattr(LabelSets, "frequencies", counting)
    width = len(indexer.vocabulary)
    first = indexer.label_frequencies()
    assert first.tolist() == [1, 1, 1, 0, 0]
    assert indexer.label_frequencies() is first
    # Callers share it.
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 9
    assert indexer.label_frequencies(width + 2).tolist() == [1, 1, 1, 0, 0, 0, 0]
    assert indexer.label_frequencies(2).tolist() == [1, 1]
    assert counted == [width]
    indexer.remove(["d1"])
    indexer.add([Document("n", "x", language="en", labels=("V3", "New"))], keep_unknown=True)
    assert indexer.label_frequencies().tolist() == [0, 0, 2, 0, 0, 1]
    assert counted == [width, width + 1]
