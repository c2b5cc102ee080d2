"""Copies a collection while others write to it: `labelkin backup`.

What is derived from the documents is copied first, each store in one of its own states,
and the database last: it has had every state that a store of the copy reflects, and the
stores catch up when the copy is opened. The database is copied by SQLite's online backup
out of one read transaction, which keeps nobody from writing.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sqlite3
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from labelkin.atomic import atomic_file, sync_folder
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    CollectionExistsError,
)
from labelkin.integrity import check_collection
from labelkin.layout import DATABASE_NAME, DESK_NAME, LABELS_NAME, MANIFEST_NAME
from labelkin.leftovers import CHECKPOINT, is_unfinished
from labelkin.neighbours.sample_search import SAMPLE_PREFIX
from labelkin.store.collection import Collection
from labelkin.store.config import CONFIG_NAME
from labelkin.store.database import Database
from labelkin.store.folder import disk_bytes, file_signature, folder_errors_explained
from labelkin.store.locks import FileLock

# Called with the pages of the database that are copied, and all of them.
BackupProgress = Callable[[int, int], None]

_ARCHIVES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz"}
_SINGLE = (MANIFEST_NAME, CONFIG_NAME, "evaluation.json")
_TEMPORARY = (".lock", ".part", "-wal", "-shm")
_LATENTS = "latents"
# Errors of writing alone.
_OF_TARGET = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
_SEE = "`labelkin doctor` says more; nothing was copied"
_ATTEMPTS = 20
_PAUSE = 0.05
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was copied: documents and generation of the copy, and what it lacks, with the reason."""

    path: str
    target: str
    documents: int
    generation: int
    bytes: int
    left_out: dict[str, str] = field(default_factory=dict)


def back_up(
    collection: Collection,
    target: Path,
    *,
    indexes: bool = True,
    progress: BackupProgress | None = None,
) -> BackupReport:
    """Copy a collection to `target`, which must not exist: a folder, or a file .tar or .tar.gz.

    Without `indexes`, what can be rebuilt from the documents is left out. The copy is
    verified; it appears whole or not at all.
    """
    _check_target(collection.path, target)
    with folder_errors_explained(target):
        folder = target.absolute()
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(folder)
        folder = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.backup")
        folder.mkdir()
        # Tells other backups that this one is not finished yet.
        with FileLock(folder) as lock:
            try:
                if not lock.take():
                    message = "another backup to the same place has just begun; try again"
                    raise CollectionBusyError(f"{target}: {message}")
                report = _Copy(collection, target, folder, indexes=indexes).run(progress)
                _publish(folder, target)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return report


def _check_target(path: Path, target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise CollectionExistsError(f"{target}: already exists; choose another name or remove it")
    if path.resolve() in target.resolve().parents:
        raise CollectionError(f"{target}: inside the collection; choose a place outside of it")


def _remove_unfinished(target: Path) -> None:
    """Delete what killed backups to the same place have left."""
    for folder in target.parent.glob(f".{target.name}.*.backup"):
        with FileLock(folder) as lock:
            if lock.take():
                shutil.rmtree(folder, ignore_errors=True)
    for archive in target.parent.glob(f".{target.name}.*.part"):
        if is_unfinished(archive):
            archive.unlink(missing_ok=True)


def _publish(folder: Path, target: Path) -> None:
    mode = next((mode for suffix, mode in _ARCHIVES.items() if _has_suffix(target, suffix)), None)
    if mode is None:
        folder.replace(target)
        try:
            sync_folder(target.absolute().parent)
        except OSError:
            # It may not last, so the command fails; the same command can then be given again.
            shutil.rmtree(target, ignore_errors=True)
            raise
    else:
        _write_archive(folder, target, mode)


def _has_suffix(target: Path, suffix: str) -> bool:
    return target.name.lower().endswith(suffix)


class _Copy:
    """The copy of one collection, in a folder that gets its name when it is complete."""

    def __init__(
        self, collection: Collection, target: Path, folder: Path, *, indexes: bool
    ) -> None:
        self._collection = collection
        self._path = collection.path
        self._target = target
        self._folder = folder
        self._indexes = indexes
        self._left_out: dict[str, str] = {}

    def run(self, progress: BackupProgress | None) -> BackupReport:
        """Copy everything, then verify it."""
        try:
            return self._run(progress)
        except OSError as error:
            if error.errno in _OF_TARGET:
                raise
            # Of most errors nobody can say whether reading or writing has failed.
            raise CollectionError(
                f"{self._path} cannot be copied to {self._target}: {error.strerror or error}",
                f"look after the disks of both, then run `labelkin doctor {self._path}`",
            ) from error
        except CollectionDamagedError as error:
            if str(self._folder) not in str(error):
                raise
            raise CollectionError(
                f"{self._target}: the copy cannot be read back",
                "look after its disk and back up again",
            ) from error

    def _run(self, progress: BackupProgress | None) -> BackupReport:
        for name in (LABELS_NAME, "indexes", "models"):
            (self._folder / name).mkdir()
        self._copy_models()
        if self._indexes:
            self._copy_derived()
        else:
            reason = "left out as asked; rebuilt when the copy is used"
            self._left_out |= dict.fromkeys(("labels", "indexes", "cache"), reason)
        for name in _SINGLE:
            if (self._path / name).exists():
                shutil.copyfile(self._path / name, self._folder / name)
        if (self._path / DESK_NAME).exists():
            self._copy_database(Path(DESK_NAME))
        self._copy_database(Path(DATABASE_NAME), progress)
        self._verify()
        with Collection(self._folder) as copy:
            documents, generation = copy.count(), copy.generation().number
        for path in self._folder.rglob("*"):
            if path.is_file():
                _sync(path)
            else:
                sync_folder(path)
        total = disk_bytes(self._folder)
        return BackupReport(
            str(self._path), str(self._target), documents, generation, total, self._left_out
        )

    def _copy_models(self) -> None:
        for folder in sorted((self._path / "models").glob("[!.]*")):
            name = folder.relative_to(self._path)
            if not self._copy_folder(name):
                raise CollectionBusyError(f"{folder}: changes all the time; try again later")

    def _copy_derived(self) -> None:
        indexes = [one.name for one in self._listed("indexes")]
        # Not those of a training that is running.
        kept = (f"indexes/{name}" for name in indexes if not name.startswith(SAMPLE_PREFIX))
        folders = (LABELS_NAME, *kept)
        cache = self._listed("cache")
        (self._folder / "cache").mkdir()
        for name in (*folders, *(f"cache/{one.name}" for one in cache if one.is_dir())):
            if not self._copy_folder(Path(name)):
                self._left_out[name] = "being written; rebuilt when the copy is used"
        for file in cache:
            name = f"cache/{file.name}"
            if file.suffix == ".sqlite":
                try:
                    self._copy_database(Path(name))
                except CollectionError as error:
                    (self._folder / name).unlink(missing_ok=True)
                    self._left_out[name] = str(error)
            elif file.is_file() and not file.name.endswith(_TEMPORARY):
                shutil.copyfile(file, self._folder / name)

    def _listed(self, name: str) -> list[Path]:
        return sorted((self._path / name).glob("[!.]*"))

    def _copy_folder(self, name: Path) -> bool:
        """Copy the files of a folder in the state of one moment; False if there is no such moment.

        All files are opened while none of them changes. What is replaced or deleted later
        stays readable, and what is appended later is not copied.
        """
        source = self._path / name
        for attempt in range(_ATTEMPTS):
            time.sleep(_PAUSE if attempt else 0)
            before = self._states(source)
            with ExitStack() as stack:
                try:
                    opened = {one: stack.enter_context((source / one).open("rb")) for one in before}
                except FileNotFoundError:
                    continue
                sizes = {one: os.fstat(file.fileno()).st_size for one, file in opened.items()}
                if self._states(source) != before:
                    continue
                for one, file in opened.items():
                    _copy_file(file, self._folder / name / one, sizes[one])
                return True
        return False

    def _states(self, source: Path) -> dict[Path, object]:
        files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
        return {
            name: file_signature(source / name)
            for name in files
            if not name.name.endswith(_TEMPORARY)
            and name.parts[0] != CHECKPOINT
            and (self._indexes or not name.name.startswith(_LATENTS))
        }

    def _copy_database(self, name: Path, progress: BackupProgress | None = None) -> None:
        with closing(Database(self._path / name, read_only=True)) as database:
            try:
                database.copy_to(self._folder / name, progress)
            except sqlite3.OperationalError as error:
                # The copy cannot be written, or the database cannot be read.
                is_full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
                raise OSError(errno.ENOSPC if is_full else errno.EIO, str(error)) from error
            except sqlite3.DatabaseError as error:
                raise CollectionDamagedError(f"{self._path / name}: {error}", _SEE) from error

    def _verify(self) -> None:
        """Check everything; what can be rebuilt or trained again is left out if it is damaged."""
        report = check_collection(self._folder, repair=True)
        for one in report.problems:
            if one.state == "damaged" and one.part.startswith("models/"):
                shutil.rmtree(self._folder / "models" / one.part.split("/")[1], ignore_errors=True)
            elif one.state == "damaged":
                raise CollectionDamagedError(f"{self._path / one.part}: {one.problem}", _SEE)
            self._left_out[one.part] = f"damaged: {one.problem}"
        _remove_logs(self._folder)


def _remove_logs(folder: Path) -> None:
    """Delete SQLite's logs, which readers leave behind; what is in one goes to its database."""
    for log in folder.rglob("*-wal"):
        if log.stat().st_size:
            with closing(sqlite3.connect(log.with_name(log.name.removesuffix("-wal")))) as database:
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for path in [*folder.rglob("*-wal"), *folder.rglob("*-shm")]:
        log = path.with_name(f"{path.name[:-4]}-wal")
        if not log.exists() or not log.stat().st_size:
            path.unlink(missing_ok=True)


def _copy_file(source: IO[bytes], target: Path, size: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        while size and (piece := source.read(min(size, _PIECE))):
            file.write(piece)
            size -= len(piece)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write_archive(folder: Path, target: Path, mode: str) -> None:
    """Write a folder as an archive, and compare what is in it with the folder."""
    name = target.name.split(".tar")[0].removesuffix(".tgz")
    number = 0
    try:
        with atomic_file(target) as file:
            with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
                archive.add(folder, arcname=name)
            file.flush()
            with Path(file.name).open("rb") as written:
                expected = {
                    f"{name}/{path.relative_to(folder).as_posix()}": _crc(path.open("rb"))
                    for path in folder.rglob("*")
                    if path.is_file()
                }
                if dict(_members(written)) != expected:
                    raise CollectionDamagedError(f"{target}: what was written cannot be read again")
            number = os.fstat(file.fileno()).st_ino
    except OSError:
        # As for a folder: what may not last is removed, unless it is somebody else's.
        if number and target.exists() and target.stat().st_ino == number:
            target.unlink()
        raise


def _members(file: IO[bytes]) -> Iterator[tuple[str, int]]:
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None:
                yield member.name, _crc(content)


def _crc(file: IO[bytes]) -> int:
    value = 0
    with file:
        while piece := file.read(_PIECE):
            value = zlib.crc32(piece, value)
    return value
