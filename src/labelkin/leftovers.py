"""What killed processes leave in a collection: files that nothing will ever read.

Everything is written under another name, or listed last, so a kill costs nothing but
the space of what was not finished. Files that another process may be writing at this
moment are no leftovers: its lock tells or, of a file that replaces another, its number in
the name and the time of the last write. Neither are files with names that labelkin does
not give.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labelkin.checksums import read_sealed
from labelkin.exceptions import CollectionBusyError, LabelkinError
from labelkin.neighbours.engine import ENGINES
from labelkin.neighbours.sample_search import SAMPLE_PREFIX
from labelkin.neighbours.term_index import stored_index
from labelkin.neighbours.vector_file import VectorFile
from labelkin.store.collection import Collection
from labelkin.store.folder import disk_bytes
from labelkin.store.locks import FileLock, beside
from labelkin.store.models import DESCRIPTION, TRAINING_LOCK

# Held by the one process that compacts a collection.
COMPACTING = ".compact.lock"
CHECKPOINT = "checkpoint"
# The one model whose training has an index of a sample.
_RERANKER = "rerank"
# Fitted without a lock; the next fit deletes what a killed one has left.
_UNLOCKED = "lsa"
# The number of a process means nothing in another container.
_ABANDONED_SECONDS = 600

_UNFINISHED = re.compile(r"\..+\.(\d+)-[0-9a-f]{8}\.part")
# What engines and trainings write to a folder before its record.
_OF_BUILD = re.compile(
    r"terms|labelkin\.json|meta\.json|\.managed\.json|\.tantivy-\w+\.lock|\.tmp\w+|\..+\.part"
    r"|(?:segment|removed)-\d+|[0-9a-f]{32}\..+"
)
_OF_MODEL = re.compile(r"(?:.+-)?([0-9a-f]{16,})\.\w+")
_COMPACTION = "unfinished files of a compaction"
_WRITING = "a file that was not finished"
_BUILD = "unfinished files of an index"
_TRAINING = "files of a training that was not finished"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or folder, and what it was going to be."""

    path: Path
    reason: str
    bytes: int

    @classmethod
    def at(cls, path: Path, reason: str) -> Leftover:
        """A leftover with its size."""
        return cls(path, reason, disk_bytes(path))

    def remove(self) -> None:
        """Delete it."""
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink(missing_ok=True)


def find_leftovers(
    collection: Collection, *, remove: bool = False, is_compacting: bool = False
) -> list[Leftover]:
    """What killed processes have left; with `remove`, it is deleted.

    `is_compacting` if the caller holds the lock of compactions.
    """
    leftovers = []
    for leftover in _found(collection, remove=remove, is_compacting=is_compacting):
        leftovers.append(leftover)
        if remove:
            leftover.remove()
    return leftovers


def _found(collection: Collection, *, remove: bool, is_compacting: bool) -> Iterator[Leftover]:
    """All leftovers, each while the lock is held that keeps others from using its place."""
    path = collection.path
    yield from _unfinished(path)
    with _locked(path / COMPACTING) as is_free:
        if is_free or is_compacting:
            indexes = (path / "indexes").glob(".terms-*.compact")
            for folder in (beside(collection.segments.folder, "compact"), *indexes):
                if folder.is_dir():
                    yield Leftover.at(folder, _COMPACTION)
    yield from _of_segments(collection, remove=remove)
    # Listed before the lock is looked at: a training takes it first.
    samples = sorted((path / "indexes").glob(f"{SAMPLE_PREFIX}*"))
    with _locked(path / "models" / _RERANKER / TRAINING_LOCK) as is_free:
        if is_free:
            yield from (Leftover.at(folder, _TRAINING) for folder in samples if _is_own(folder))
    for pattern in ("terms-*", "vectors-*"):
        for folder in sorted((path / "indexes").glob(pattern)):
            yield from _of_index(folder)
    for folder in sorted((path / "cache").glob("vectors-*")):
        with _locked(beside(folder, "write")) as is_free:
            if is_free:
                files = VectorFile(folder, "V16").leftovers()
                yield from (Leftover.at(file, _WRITING) for file in files)
    for folder in sorted((path / "models").glob("[!.]*")):
        if folder.name != _UNLOCKED:
            yield from _of_model(folder)


def _unfinished(path: Path) -> Iterator[Leftover]:
    """Files that were going to replace others, of processes that are no more."""
    for file in sorted(path.rglob("*.part")):
        if is_unfinished(file) and _is_abandoned(file):
            yield Leftover.at(file, _WRITING)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # Another user's.
        return True
    return True


def _is_abandoned(file: Path) -> bool:
    """Whether nothing has been written to a file for a while."""
    try:
        return file.stat().st_mtime < time.time() - _ABANDONED_SECONDS
    except FileNotFoundError:
        return False


def _of_segments(collection: Collection, *, remove: bool) -> Iterator[Leftover]:
    """Label segments that are not listed. Whoever writes them holds the write transaction."""
    reason = "a label segment that is not listed"
    files = collection.segments.leftovers()
    if not remove:
        yield from (Leftover.at(file, reason) for file in files if _is_abandoned(file))
    elif files:
        # Another process that writes for long may be writing them.
        with suppress(CollectionBusyError), collection.database.transaction():
            files = collection.segments.leftovers()
            yield from (Leftover.at(file, reason) for file in files)


def _is_own(folder: Path) -> bool:
    """Whether a folder holds nothing but what labelkin writes to one of its name."""
    return folder.is_dir() and all(_OF_BUILD.fullmatch(one.name) for one in folder.iterdir())


def is_unfinished(file: Path) -> bool:
    """Whether a file was going to replace another one, and its process is no more."""
    match = _UNFINISHED.fullmatch(file.name)
    return match is not None and not _is_running(int(match[1]))


def _of_index(folder: Path) -> Iterator[Leftover]:
    with _locked(beside(folder, "write")) as is_free:
        if not is_free:
            return
        if folder.name.startswith("vectors-"):
            files = VectorFile(folder, np.int64).leftovers()
        elif not (folder / "labelkin.json").exists():
            with _locked(beside(folder, "open")) as is_unused:
                if is_unused and _is_own(folder):
                    yield Leftover.at(folder, _BUILD)
            return
        else:
            files = _of_engine(folder)
        yield from (Leftover.at(file, _BUILD) for file in files)


def _of_engine(folder: Path) -> list[Path]:
    """Files of a term index; none if what is wrong with it is more than that."""
    record = stored_index(folder)
    if record is None:
        return []
    try:
        return ENGINES[record.engine](folder, record.kinds, read_only=True).leftovers()
    except (LabelkinError, OSError, ValueError):
        return []


def _of_model(folder: Path) -> Iterator[Leftover]:
    """Files that the description of a model does not name. A checkpoint can be resumed."""
    with _locked(folder / TRAINING_LOCK) as is_free:
        if not is_free:
            return
        description = ""
        if (folder / DESCRIPTION).exists():
            try:
                description = json.dumps(read_sealed(folder / DESCRIPTION))
            except (OSError, ValueError):
                # Damaged: nobody can say which files are its own.
                return
        for file in sorted(folder.glob("*.*")):
            match = _OF_MODEL.fullmatch(file.name)
            if match and match[1] not in description:
                yield Leftover.at(file, _TRAINING)


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether nobody holds a lock; it is held meanwhile, unless nobody has ever taken it."""
    if not path.exists():
        yield True
        return
    with FileLock(path) as lock:
        yield lock.take()
