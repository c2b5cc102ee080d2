"""A backup is a whole collection or nothing, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from labelkin import Document, Indexer
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    CollectionExistsError,
    CollectionFullError,
)
from labelkin.integrity import CheckReport, check_collection

from .runtime_data import fresh_documents, signature

BATCH = 40


def answers(path: Path, *, read_only: bool = False) -> list:
    with Indexer.open(path, read_only=read_only) as indexer:
        return [signature(one) for one in indexer.suggest(fresh_documents(5))]


def ids(path: Path) -> list[str]:
    with Indexer.open(path, read_only=True) as indexer:
        return [document.id for document in indexer.documents()]


@pytest.fixture
def source(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "source")


def test_a_folder(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "new" / "copy"
    expected = answers(source)
    with Indexer.open(source) as indexer:
        indexer.desk.worklists.create("list", [Document("1", "Wheat")])
        report = indexer.backup(target)
        assert (report.documents, report.left_out) == (indexer.collection.count(), {})
    assert report.generation > 0
    assert report.bytes == sum(one.stat().st_size for one in target.rglob("*") if one.is_file())
    assert not [one for one in target.rglob("*") if one.name.endswith(("-wal", "-shm", ".lock"))]
    assert check_collection(target).is_sound
    models = {one.relative_to(source) for one in source.rglob("models/*/[!.]*")}
    assert models == {one.relative_to(target) for one in target.rglob("models/*/[!.]*")}
    with Indexer.open(target) as indexer:
        assert len(indexer.desk.worklists) == 1
        # Everything is up to date, so nothing is built.
        assert indexer.build() == 0
    assert answers(target) == expected
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["copy"]


@pytest.mark.parametrize("name", ["copy.tar", "copy.tar.gz"])
def test_an_archive(name: str, small: Path, tmp_path: Path) -> None:
    with Indexer.open(small, read_only=True) as indexer:
        indexer.backup(tmp_path / name)
    with tarfile.open(tmp_path / name) as archive:
        archive.extractall(tmp_path / "there", filter="data")
    assert check_collection(tmp_path / "there" / "copy").is_sound
    assert ids(tmp_path / "there" / "copy") == ids(small)


def test_what_a_killed_backup_has_left_of_an_archive(small: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    killed, running = (
        tmp_path / f".copy.tar.gz.{number}-0123abcd.part" for number in (process.pid, os.getpid())
    )
    killed.touch()
    running.touch()
    with Indexer.open(small, read_only=True) as indexer:
        indexer.backup(tmp_path / "copy.tar.gz")
    assert not killed.exists()
    assert running.exists()


def test_without_indexes(source: Path, tmp_path: Path) -> None:
    with Indexer.open(source) as indexer:
        report = indexer.backup(tmp_path / "copy", indexes=False)
    assert {"labels", "indexes", "cache"} == {*report.left_out}
    assert not any((tmp_path / "copy" / "indexes").iterdir())
    assert not [*(tmp_path / "copy").rglob("latents*")]
    assert answers(tmp_path / "copy") == answers(source)


def test_an_existing_target_is_refused(small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with Indexer.open(small, read_only=True) as indexer:
        for name in ("file", "folder", "link"):
            with pytest.raises(CollectionExistsError, match="already exists"):
                indexer.backup(tmp_path / name)
        with pytest.raises(CollectionError, match="inside the collection"):
            indexer.backup(small / "copy")


def test_others_write_meanwhile(source: Path, tmp_path: Path) -> None:
    ended, failures = Event(), []
    acknowledged = 0

    def write() -> None:
        nonlocal acknowledged
        try:
            with Indexer.open(source) as indexer:
                texts = list(indexer.documents())[:BATCH]
                while not ended.is_set():
                    name = f"batch {acknowledged}"
                    indexer.add(
                        Document(f"{name} {place}", one.title, one.body, labels=one.labels)
                        for place, one in enumerate(texts)
                    )
                    acknowledged += 1
                    if acknowledged % 3 == 0:
                        indexer.build()
        except Exception as error:
            failures.append(error)

    before = len(ids(source))
    thread = Thread(target=write)
    thread.start()
    try:
        copies = []
        for number in range(2):
            known = acknowledged
            with Indexer.open(source, read_only=True) as indexer:
                report = indexer.backup(tmp_path / f"copy {number}")
            assert "models" not in str(report.left_out)
            copies.append((tmp_path / f"copy {number}", known))
    finally:
        ended.set()
        thread.join()
    assert not failures
    for copy, known in copies:
        new, rest = divmod(len(ids(copy)) - before, BATCH)
        assert rest == 0
        assert new >= known
        assert check_collection(copy).is_sound
        assert answers(copy)


def kill_while_copying(source: Path, target: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    code = (
        "import sys; from labelkin import Indexer; import labelkin.backup; "
        "indexer = Indexer.open(sys.argv[1], read_only=True); print(flush=True); "
        "indexer.backup(sys.argv[2])"
    )
    seconds = 0.3
    for _ in range(kills):
        command = [sys.executable, "-c", code, str(source), str(target)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            started = time.monotonic()
            time.sleep(chance.uniform(0, seconds))
            process.send_signal(signal.SIGKILL)
            process.wait()
        if target.exists():
            seconds = time.monotonic() - started
            assert check_collection(target).is_sound
            shutil.rmtree(target)
    with Indexer.open(source) as indexer:
        indexer.backup(target)
    assert check_collection(target).is_sound
    assert not [*target.parent.glob(".*")]
    assert check_collection(source).is_sound


def test_killed_while_copying(source: Path, tmp_path: Path) -> None:
    kill_while_copying(source, tmp_path / "copies" / "copy", kills=2, seed=0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_killed_many_times_while_copying(source: Path, tmp_path: Path) -> None:
    kill_while_copying(source, tmp_path / "copies" / "copy", kills=60, seed=1)


def test_a_failure_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("labelkin.backup._publish", fail)
    with Indexer.open(source) as indexer, pytest.raises(KeyboardInterrupt):
        indexer.backup(tmp_path / "new" / "copy")
    assert not [*(tmp_path / "new").iterdir()]


@pytest.mark.parametrize("place", ["copyfile", "Database.copy_to"])
def test_an_error_names_both_places(
    place: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        if place == "copyfile":
            raise OSError(errno.EIO, "Input/output error")
        raise sqlite3.OperationalError("disk I/O error")

    owner = "labelkin.backup.shutil" if place == "copyfile" else "labelkin.backup"
    monkeypatch.setattr(f"{owner}.{place}", fail)
    target = tmp_path / "new" / "copy"
    with (
        Indexer.open(source) as indexer,
        pytest.raises(CollectionError, match="look after the disks of both") as caught,
    ):
        indexer.backup(target)
    assert f"{source} cannot be copied to {target}: " in str(caught.value)
    assert not [*(tmp_path / "new").iterdir()]


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def test_what_is_damaged_is_left_out(source: Path, tmp_path: Path) -> None:
    answers(source)
    damage(next(source.glob("indexes/terms-*/*.idx")))
    damage(next(source.glob("models/rerank/ranker-*")))
    with Indexer.open(source, read_only=True) as indexer:
        report = indexer.backup(tmp_path / "copy")
    assert "models/rerank" in report.left_out
    assert any(part.startswith("indexes/terms-") for part in report.left_out)
    assert not (tmp_path / "copy" / "models" / "rerank").exists()
    assert check_collection(tmp_path / "copy").is_sound
    assert ids(tmp_path / "copy") == ids(source)


def test_leftovers_are_not_called_damaged(source: Path, tmp_path: Path) -> None:
    sample = source / "indexes" / "sample-0123abcd" / "terms" / "labelkin.json"
    segment = source / "labels" / "000000000007-000000000009.starts.npy"
    for path in (sample, segment):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"something")
    with Indexer.open(source, read_only=True) as indexer:
        report = indexer.backup(tmp_path / "copy")
    assert report.left_out == {}
    assert not [*(tmp_path / "copy").rglob("sample-*")]
    assert not (tmp_path / "copy" / "labels" / segment.name).exists()
    assert sample.exists()
    assert segment.exists()


def test_what_is_in_a_log_is_kept(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(folder: Path, *, repair: bool) -> CheckReport:
        report = check_collection(folder, repair=repair)
        database, elsewhere = folder / "documents.sqlite", tmp_path / "elsewhere.sqlite"
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("CREATE TABLE written (at_last)")
            connection.commit()
            # As a process leaves them that is killed.
            for end in ("", "-wal"):
                shutil.copyfile(f"{database}{end}", f"{elsewhere}{end}")
        for end in ("", "-wal"):
            shutil.copyfile(f"{elsewhere}{end}", f"{database}{end}")
        assert Path(f"{database}-wal").stat().st_size
        return report

    monkeypatch.setattr("labelkin.backup.check_collection", check)
    with Indexer.open(source, read_only=True) as indexer:
        indexer.backup(tmp_path / "copy")
    assert not [*(tmp_path / "copy").rglob("*-wal"), *(tmp_path / "copy").rglob("*-shm")]
    with closing(sqlite3.connect(tmp_path / "copy" / "documents.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM written").fetchall() == [(0,)]


def test_another_backup_to_the_same_place(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.backup.FileLock.take", lambda _: False)
    with (
        Indexer.open(source, read_only=True) as indexer,
        pytest.raises(CollectionBusyError, match="another backup to the same place"),
    ):
        indexer.backup(tmp_path / "new" / "copy")
    assert not [*(tmp_path / "new").iterdir()]


def test_damaged_documents_are_not_copied(source: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(source / "documents.sqlite")) as connection:
        connection.execute("UPDATE documents SET title = 'other' WHERE row = 3")
        connection.commit()
    with (
        Indexer.open(source, read_only=True) as indexer,
        pytest.raises(CollectionDamagedError, match=r"does not match its checksum.*doctor"),
    ):
        indexer.backup(tmp_path / "new" / "copy")
    assert not [*(tmp_path / "new").iterdir()]


@pytest.mark.mount
@pytest.mark.parametrize("name", ["copy", "copy.tar"])
def test_a_full_disk(
    name: str, source: Path, tmp_path: Path, mounted: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = sum(one.stat().st_size for one in source.rglob("*") if one.is_file())
    for size in (needed // 20, needed // 2):
        with mounted(tmp_path / f"small {size}", f"size={size}"):
            target = tmp_path / f"small {size}" / name
            with (
                Indexer.open(source, read_only=True) as indexer,
                pytest.raises(CollectionFullError, match="the disk is full") as caught,
            ):
                indexer.backup(target)
            assert str(target) in str(caught.value)
            assert not [*target.parent.iterdir()]


@pytest.mark.mount
def test_a_source_that_cannot_be_written_to(small: Path, tmp_path: Path, mounted: Callable) -> None:
    with mounted(tmp_path / "disk", "size=30m") as mount:
        folder = shutil.copytree(small, tmp_path / "disk" / "c")
        mount("remount", "ro")
        with Indexer.open(folder) as indexer:
            indexer.backup(tmp_path / "copy")
    assert ids(tmp_path / "copy") == ids(small)
    with Indexer.open(tmp_path / "copy") as indexer:
        indexer.add([Document("new", "Wheat")])
