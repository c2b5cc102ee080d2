"""Work lists and verdicts on disk: shared by threads and processes, and never half there."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from labelkin import Document, Indexer
from labelkin.desk import Decision, Desk, Heading, Verdict, WorkList, write_decisions
from labelkin.exceptions import (
    CollectionDamagedError,
    CollectionError,
    CollectionReadOnlyError,
    CollectionTooNewError,
)
from labelkin.integrity import check_collection
from labelkin.vocab import Vocabulary


@pytest.fixture
def collection(vocabulary: Vocabulary, documents: list[Document], tmp_path: Path) -> Path:
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        indexer.add(documents)
    return tmp_path / "c"


@pytest.fixture
def desk(collection: Path) -> Iterator[Desk]:
    with Desk(collection) as opened:
        yield opened


def some(count: int) -> list[Document]:
    return [
        Document(f"n{number}", f"Title {number}", "A text.", labels=("V1",), metadata={"n": number})
        for number in range(1, count + 1)
    ]


def decided(identifier: str, *verdicts: Verdict, **rest: object) -> Decision:
    return Decision(Document(identifier, "A title"), verdicts, **rest)  # type: ignore[arg-type]


def found(desk: Desk, identifier: str) -> WorkList:
    worklist = desk.worklists.get(identifier)
    assert worklist is not None
    return worklist


def test_nothing_is_created_by_reading(desk: Desk) -> None:
    assert list(desk.worklists) == [] and len(desk.worklists) == 0
    assert desk.decisions.page() == [] and list(desk.decisions.latest()) == []
    assert desk.worklists.get("x") is None
    assert not desk.path.exists()


def test_a_list_keeps_drafts_labels_and_position(desk: Desk, collection: Path) -> None:
    made = desk.worklists.create("records.jsonl", some(3))
    assert made.counts == {"pending": 3, "draft": 0, "done": 0, "skipped": 0}
    assert (made.total, made.position, made.name) == (3, 1, "records.jsonl")
    draft = {"chosen": ["V1"], "half": "\ud800", "none": float("nan")}
    assert desk.worklists.update(made.id, 2, "draft", draft=draft)
    assert desk.worklists.update(made.id, 3, "done", labels=[Heading("V2", "Rye", major=True)])
    with Desk(collection) as again:
        worklist = found(again, made.id)
        assert worklist.counts == {"pending": 1, "draft": 1, "done": 1, "skipped": 0}
        assert worklist.position == 3
        item = again.worklists.item(made.id, 2)
        assert item is not None
        assert item.draft == {"chosen": ["V1"], "half": "?", "none": None}
        assert item.document == some(3)[1]
        last = again.worklists.item(made.id, 3)
        assert last is not None and last.labels == (Heading("V2", "Rye", major=True),)
        assert [one.place for one in again.worklists.items(made.id, status="done")] == [3]
        assert [one.id for one in again.worklists.items(made.id, offset=1, limit=1)] == ["n2"]


def test_what_is_not_given_stays_and_none_removes(desk: Desk) -> None:
    made = desk.worklists.create("a", some(1))
    desk.worklists.update(made.id, 1, "draft", draft={"a": 1}, labels=[Heading("V1")])
    desk.worklists.update(made.id, 1, "skipped")
    item = desk.worklists.item(made.id, 1)
    assert item is not None and item.draft == {"a": 1} and item.labels == (Heading("V1"),)
    desk.worklists.update(made.id, 1, "pending", draft=None, labels=None)
    item = desk.worklists.item(made.id, 1)
    assert item is not None and item.draft is None and item.labels is None


def test_places_and_lists_that_are_not_there(desk: Desk) -> None:
    made = desk.worklists.create("a", some(2))
    for place in (0, 3, -1, 2**60):
        assert not desk.worklists.update(made.id, place, "done")
        assert not desk.worklists.move(made.id, place)
        assert desk.worklists.item(made.id, place) is None
    assert not desk.worklists.update("other", 1, "done")
    assert not desk.worklists.remove("other")
    assert found(desk, made.id).position == 1
    assert desk.worklists.move(made.id, 2) and found(desk, made.id).position == 2
    with pytest.raises(ValueError, match="no status 'ready'; known: pending"):
        desk.worklists.update(made.id, 1, "ready")


def test_final_headings_replace_those_that_a_record_came_with(desk: Desk) -> None:
    made = desk.worklists.create("a", some(2))
    desk.worklists.update(made.id, 1, "done", labels=[Heading("V2", "Rye"), Heading("V3")])
    first, second = (one.labelled() for one in desk.worklists.items_with_records(made.id))
    assert first.labels == ("V2", "V3") and first.label_names == {"V2": "Rye"}
    assert first.metadata == {"n": 1, "status": "done"}
    assert second.labels == ("V1",) and second.metadata["status"] == "pending"


def test_a_list_is_seen_when_it_is_complete(desk: Desk) -> None:
    writer = desk.worklists.begin("a")
    writer.append(some(2))
    assert list(desk.worklists) == [] and desk.worklists.item(writer.id, 1) is None
    assert not desk.worklists.update(writer.id, 1, "done")
    other = desk.worklists.create("b", some(1))
    assert writer.finish([("line 3", "no text")]).unreadable == (("line 3", "no text"),)
    assert [one.id for one in desk.worklists] == [other.id, writer.id]


def test_a_list_that_fails_leaves_nothing(desk: Desk) -> None:
    def broken() -> Iterator[Document]:
        yield from some(700)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        desk.worklists.create("a", broken())
    assert desk.query("SELECT count(*) FROM items") == [(0,)]
    assert desk.query("SELECT count(*) FROM worklists") == [(0,)]


def test_an_upload_that_a_crash_has_ended_is_removed_a_day_later(desk: Desk) -> None:
    for _ in range(2):
        desk.worklists.begin("a").append(some(2))
    old = (datetime.now(UTC) - timedelta(days=2)).isoformat(timespec="milliseconds")
    with desk.transaction() as connection:
        connection.execute("UPDATE worklists SET created = ? WHERE number = 1", (old,))
    made = desk.worklists.create("b", some(1))
    assert desk.query("SELECT DISTINCT worklist FROM items ORDER BY worklist") == [(2,), (3,)]
    assert [one.id for one in desk.worklists] == [made.id]


def test_a_discarded_list_is_not_filled_any_more(desk: Desk) -> None:
    writer = desk.worklists.begin("a")
    writer.discard()
    with pytest.raises(CollectionError, match="removed meanwhile"):
        writer.append(some(1))
    assert desk.query("SELECT count(*) FROM items") == [(0,)]


def test_removing_a_list_leaves_the_others(desk: Desk) -> None:
    first, second = (desk.worklists.create(name, some(2)) for name in "ab")
    assert desk.worklists.remove(first.id)
    assert [one.id for one in desk.worklists] == [second.id]
    assert desk.query("SELECT count(*) FROM items") == [(2,)]
    assert desk.worklists.create("c", some(1)).id not in (first.id, second.id)


def test_the_latest_decision_counts(desk: Desk) -> None:
    desk.decisions.add(decided("d1", Verdict("V1", "accepted", "Bread", 0.9, 1, "accept")))
    desk.decisions.add(decided("d2", Verdict("V3", "rejected")))
    verdicts = (Verdict("V1", "unneeded"), Verdict("V2", "added", "Rye"), Verdict("V3", "accepted"))
    desk.decisions.add(decided("d1", *verdicts, method="knn", generation=4, seconds=2.5))
    assert [one.number for one in desk.decisions.latest()] == [2, 3]
    assert [one.number for one in desk.decisions.all()] == [1, 2, 3]
    assert [one.number for one in desk.decisions.page(1, 1)] == [2]
    last = list(desk.decisions.latest())[-1]
    assert last.verdicts == verdicts and (last.method, last.generation) == ("knn", 4)
    assert last.labelled().labels == ("V2", "V3")
    assert last.labelled().label_names == {"V2": "Rye"}
    with pytest.raises(ValueError, match="no verdict 'maybe'"):
        Verdict("V1", "maybe")


def test_files_of_verdicts(desk: Desk, tmp_path: Path) -> None:
    suggested = Verdict("V1", "rejected", "=1+1", 0.5, 2, "review")
    desk.decisions.add(decided("d1", suggested, Verdict("V2", "added"), method="rerank"))
    assert write_decisions(desk.decisions.latest(), tmp_path / "v.jsonl") == 1
    record = json.loads((tmp_path / "v.jsonl").read_text())
    assert record["labels"] == ["V2"]
    assert (
        record["verdicts"][0].items()
        >= {
            "id": "V1",
            "verdict": "rejected",
            "score": 0.5,
            "rank": 2,
            "band": "review",
            "method": "rerank",
        }.items()
    )
    assert record["verdicts"][0]["time"] == record["decision"]["time"]
    assert write_decisions(desk.decisions.latest(), tmp_path / "v.csv") == 1
    header, first, second = (tmp_path / "v.csv").read_text().splitlines()
    assert header.startswith("document,title,time,method,generation,concept,name,verdict,score")
    assert ",V1,'=1+1,rejected,0.5,2,review,,false" in first
    assert ",V2,,added,,,,,false" in second


def test_threads_share_a_desk(desk: Desk) -> None:
    made = desk.worklists.create("a", some(40))

    def work(place: int) -> None:
        assert desk.worklists.update(made.id, place, "done", draft={"place": place})
        desk.decisions.add(decided(f"d{place}", Verdict("V1", "accepted")))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(1, 41)))
    assert found(desk, made.id).counts["done"] == 40
    assert len(desk.decisions) == 40


WRITER = """
import sys
from pathlib import Path
from labelkin import Document
from labelkin.desk import Decision, Desk, Verdict
with Desk(Path(sys.argv[1])) as desk:
    for number in range(25):
        document = Document(f"{sys.argv[2]}-{number}", "A title")
        desk.decisions.add(Decision(document, (Verdict("V1", "accepted"),)))
        print(number, flush=True)
"""


def test_processes_create_and_share_a_desk(collection: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(collection), str(one)])
        for one in range(4)
    ]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    with Desk(collection) as desk:
        assert len({one.document.id for one in desk.decisions.all()}) == 100
    assert [path.name for path in collection.glob(".desk*")] == []


def test_a_killed_process_loses_nothing_that_it_acknowledged(collection: Path) -> None:
    command = [sys.executable, "-c", WRITER.replace("range(25)", "range(10**6)"), str(collection)]
    process = subprocess.Popen([*command, "k"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [process.stdout.readline().strip() for _ in range(20)]
    process.kill()
    acknowledged += process.stdout.read().split()
    process.wait()
    process.stdout.close()
    with Desk(collection) as desk:
        stored = {one.document.id for one in desk.decisions.all()}
    assert {f"k-{number}" for number in acknowledged} <= stored
    assert check_collection(collection).is_sound


def test_a_read_only_collection_shows_its_desk(desk: Desk, collection: Path) -> None:
    made = desk.worklists.create("a", some(1))
    with Desk(collection, read_only=True) as reader:
        assert found(reader, made.id).total == 1
        with pytest.raises(CollectionReadOnlyError):
            reader.worklists.update(made.id, 1, "done")


def test_a_read_only_collection_gets_no_desk(collection: Path) -> None:
    with Desk(collection, read_only=True) as reader:
        with pytest.raises(CollectionReadOnlyError, match="read-only"):
            reader.decisions.add(decided("d1"))
        assert not reader.path.exists()


@pytest.mark.parametrize("content", [b"", b"not a database at all, but long enough" * 100])
def test_a_damaged_desk_is_one_line_and_stops_nothing_else(
    collection: Path, content: bytes
) -> None:
    (collection / "desk.sqlite").write_bytes(content)
    with Indexer.open(collection) as indexer:
        with pytest.raises(CollectionDamagedError, match=r"desk\.sqlite.*restore it from a backup"):
            len(indexer.desk.decisions)
        with pytest.raises(CollectionDamagedError, match="move it away"):
            indexer.desk.decisions.add(decided("d1"))
        assert indexer.suggest([Document("", "Rye bread")])[0]
        assert "restore it from a backup" in indexer.info().desk_problem
    (finding,) = check_collection(collection).problems
    assert (finding.part, finding.state) == ("desk.sqlite", "damaged")
    assert "move it away" in finding.remedy
    assert (collection / "desk.sqlite").read_bytes() == content


def test_another_database_is_no_desk(collection: Path) -> None:
    shutil.copy(collection / "documents.sqlite", collection / "desk.sqlite")
    with (
        Desk(collection) as desk,
        pytest.raises(CollectionDamagedError, match="not a desk of labelkin"),
    ):
        len(desk.decisions)


def test_a_desk_of_a_newer_version_is_refused(desk: Desk, collection: Path) -> None:
    desk.decisions.add(decided("d1"))
    desk.close()
    connection = sqlite3.connect(collection / "desk.sqlite")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with (
        Desk(collection) as newer,
        pytest.raises(CollectionTooNewError, match="upgrade labelkin"),
    ):
        len(newer.decisions)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM items WHERE place = 2", "1 records of the work list 'a' are missing"),
        ("UPDATE items SET record = '{'", "a row cannot be read"),
        ("UPDATE items SET draft = '{'", "a row cannot be read"),
        ("UPDATE decisions SET verdicts = '[{}]'", "a row cannot be read"),
        ("DROP TABLE decisions", "no such table"),
    ],
)
def test_check_reads_everything(desk: Desk, collection: Path, statement: str, problem: str) -> None:
    desk.worklists.create("a", some(3))
    desk.decisions.add(decided("d1", Verdict("V1", "accepted")))
    report = check_collection(collection)
    assert report.is_sound and "desk.sqlite" in [one.part for one in report.findings]
    with desk.transaction() as connection:
        connection.execute(statement)
    (finding,) = check_collection(collection).problems
    assert finding.part == "desk.sqlite" and problem in finding.problem


def test_info_counts_what_is_on_the_desk(collection: Path) -> None:
    with Indexer.open(collection) as indexer:
        assert (indexer.info().worklists, indexer.info().decisions) == (0, 0)
        indexer.desk.worklists.create("a", some(1))
        indexer.desk.decisions.add(decided("d1"))
        assert (indexer.info().worklists, indexer.info().decisions) == (1, 1)
        assert [one.document.id for one in indexer.verdicts()] == ["d1"]
    with pytest.raises(CollectionError, match="closed"):
        len(indexer.desk.decisions)


def test_the_desk_of_a_closed_indexer_is_closed(collection: Path) -> None:
    """Whether it was used before or not."""
    for is_used in (False, True):
        indexer = Indexer.open(collection)
        if is_used:
            assert len(indexer.desk.decisions) == 0
        indexer.close()
        with pytest.raises(CollectionError, match="closed"):
            len(indexer.desk.decisions)
