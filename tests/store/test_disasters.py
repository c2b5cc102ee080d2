"""What happens when the process dies, the disk is full, or the folder cannot be written to."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from labelkin.corpus import Document
from labelkin.exceptions import CollectionFullError, CollectionReadOnlyError
from labelkin.indexer import Indexer

BATCH = 50
Mounted = Callable[..., AbstractContextManager[Callable[..., None]]]


def make_corpus(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            record = {
                "id": str(number),
                "title": f"Document {number}",
                "abstract": "word " * 50,
                "labels": [f"label {number % 97}", f"rare {number // 10}"],
                "language": "en",
            }
            file.write(json.dumps(record) + "\n")


def small_batches(folder: Path) -> None:
    config = folder / "labelkin.toml"
    config.write_text(config.read_text().replace("batch_size = 1000", f"batch_size = {BATCH}"))


def count_documents(folder: Path) -> int:
    with Indexer.open(folder) as indexer:
        return indexer.collection.count()


def start_adding(folder: Path, corpus: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "labelkin", "add", str(folder), str(corpus)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill_in_the_middle(folder: Path, corpus: Path, wait_for: int, extra_seconds: float) -> None:
    process = start_adding(folder, corpus)
    deadline = time.monotonic() + 60
    while count_documents(folder) < wait_for and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(extra_seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def check_whole(folder: Path, total: int) -> None:
    with Indexer.open(folder) as indexer:
        ids = [document.id for document in indexer.documents()]
        info = indexer.info()
    assert len(ids) == len(set(ids)) == info.documents == total
    assert info.label_occurrences == 2 * total
    assert info.labels_used == info.concepts


def kill_and_complete(tmp_path: Path, total: int, kills: int) -> None:
    tmp_path.mkdir(exist_ok=True)
    folder, corpus = tmp_path / "c", tmp_path / "corpus.jsonl"
    make_corpus(corpus, total)
    Indexer.create(folder).close()
    small_batches(folder)
    for kill in range(kills):
        before = count_documents(folder)
        kill_in_the_middle(folder, corpus, before + BATCH, extra_seconds=0.003 * (kill % 7))
        stored = count_documents(folder)
        assert stored % BATCH == 0 or stored == total
        check_whole(folder, stored)
        if stored == total:
            break
    assert start_adding(folder, corpus).wait() == 0
    check_whole(folder, total)


def test_killed_while_adding(tmp_path: Path) -> None:
    kill_and_complete(tmp_path, total=6_000, kills=3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_hundreds_of_times_while_adding(tmp_path: Path) -> None:
    for round_ in range(20):
        kill_and_complete(tmp_path / str(round_), total=20_000, kills=15)


def test_interrupted_adding_says_how_to_go_on(tmp_path: Path) -> None:
    folder, corpus = tmp_path / "c", tmp_path / "corpus.jsonl"
    make_corpus(corpus, 20_000)
    Indexer.create(folder).close()
    small_batches(folder)
    command = [sys.executable, "-m", "labelkin", "add", str(folder), str(corpus)]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while count_documents(folder) < BATCH:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; stored data is kept" in output
    assert "Traceback" not in output
    assert count_documents(folder) % BATCH == 0


@pytest.mark.mount
def test_full_disk(tmp_path: Path, mounted: Mounted) -> None:
    with mounted(tmp_path / "small", "size=4m"):
        folder = tmp_path / "small" / "c"
        ballast = tmp_path / "small" / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        with Indexer.create(folder, language="en") as indexer:
            indexer.add(Document(str(n), "x", labels=("L",)) for n in range(1000))
            big = (Document(f"big {n}", "x", "word " * 2000, labels=("L",)) for n in range(5000))
            with pytest.raises(CollectionFullError, match="the disk is full") as caught:
                indexer.add(big)
            assert "\n" not in str(caught.value)
            assert indexer.collection.count() % 1000 == 0
        with Indexer.open(folder) as indexer:
            stored = [document.id for document in indexer.documents()]
            assert stored[:1000] == [str(n) for n in range(1000)]
            assert indexer.info().label_occurrences == len(stored)
            ballast.unlink()
            indexer.add([Document("new", "x", labels=("L",))])
            assert indexer.document("new") is not None


@pytest.mark.mount
def test_creating_on_a_full_disk_leaves_nothing(tmp_path: Path, mounted: Mounted) -> None:
    with mounted(tmp_path / "tiny", "size=16k"):
        with pytest.raises(CollectionFullError, match="the disk is full"):
            Indexer.create(tmp_path / "tiny" / "c")
        assert list((tmp_path / "tiny").iterdir()) == []


def die_with_an_unfinished_log(folder: Path) -> None:
    """Add one document in a process that dies without closing the database."""
    code = (
        "import os, sys; from labelkin import Document, Indexer; "
        "indexer = Indexer.open(sys.argv[1]); "
        "indexer.add([Document('late', 'x', labels=('L',), language='en')]); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder)], check=False).returncode == 9
    assert (folder / "documents.sqlite-wal").stat().st_size > 0


@pytest.mark.mount
@pytest.mark.parametrize("log", ["checkpointed", "unfinished", "unfinished without its index"])
def test_read_only_mount(log: str, tmp_path: Path, mounted: Mounted) -> None:
    with mounted(tmp_path / "disk", "size=20m") as mount:
        folder = tmp_path / "disk" / "c"
        with Indexer.create(folder, language="en") as indexer:
            indexer.add([Document("d1", "x", labels=("L",))])
        if log != "checkpointed":
            die_with_an_unfinished_log(folder)
        if log == "unfinished without its index":
            (folder / "documents.sqlite-shm").unlink()
        mount("remount", "ro")
        expected = ["d1"] if log == "checkpointed" else ["d1", "late"]
        with Indexer.open(folder) as indexer:
            assert [document.id for document in indexer.documents()] == expected
            info = indexer.info()
            assert info.read_only
            assert info.label_occurrences == len(expected)
            with pytest.raises(CollectionReadOnlyError, match="cannot be written to"):
                indexer.add([Document("d2", "x")])
            with pytest.raises(CollectionReadOnlyError):
                indexer.remove(["d1"])


def read_as_nobody(folder: Path, pipe: Connection) -> None:
    nobody = 65534
    os.setuid(nobody)
    with Indexer.open(folder) as indexer:
        for _ in range(2):
            pipe.send([document.id for document in indexer.documents()])
            pipe.recv()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to become another user")
def test_a_reader_without_permission_sees_what_the_owner_writes() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        folder = Path(scratch) / "c"
        with Indexer.create(folder, language="en") as indexer:
            indexer.add([Document("d1", "x")])
        ours, theirs = multiprocessing.Pipe()
        # Forked, because another user may not be allowed to read Python's own files.
        context = multiprocessing.get_context("fork")
        reader = context.Process(target=read_as_nobody, args=(folder, theirs))
        reader.start()
        assert ours.recv() == ["d1"]
        with Indexer.open(folder) as indexer:
            indexer.add([Document("d2", "x")])
        ours.send("go on")
        assert ours.recv() == ["d1", "d2"]
        ours.send("done")
        reader.join(30)
        assert reader.exitcode == 0


def test_two_processes_add_at_the_same_time(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    Indexer.create(folder).close()
    small_batches(folder)
    corpora = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    make_corpus(corpora[0], 3000)
    # The same new labels under other ids.
    corpora[1].write_text(corpora[0].read_text().replace('{"id": "', '{"id": "other '))
    processes = [start_adding(folder, corpus) for corpus in corpora]
    assert [process.wait() for process in processes] == [0, 0]
    check_whole(folder, 6000)


def test_read_only_on_request(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add([Document("d1", "x")])
        with Indexer.open(tmp_path / "c", read_only=True) as reader:
            assert reader.document("d1") is not None
            indexer.add([Document("d2", "x")])
            assert reader.document("d2") is not None
            with pytest.raises(CollectionReadOnlyError):
                reader.remove(["d1"])
