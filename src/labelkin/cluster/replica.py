"""A copy of a collection that executors open, which nobody changes.

The database is copied: over a network file system, SQLite can share no log with a process
that writes. Everything else is linked, where the file system can, and copied otherwise:
stores of a collection replace their files, or append to them what readers of an earlier
state do not look at.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from labelkin.cluster.task import digest
from labelkin.cluster.workspace import Workspace
from labelkin.exceptions import ClusterError, CollectionBusyError
from labelkin.indexer import Indexer
from labelkin.layout import DATABASE_NAME, LABELS_NAME, MANIFEST_NAME
from labelkin.store.collection import Collection
from labelkin.store.config import CONFIG_NAME, update_config
from labelkin.store.folder import file_signature, folder_errors_explained
from labelkin.store.reader import Generation

_KIND = "collections"
_LINKED = (LABELS_NAME, "indexes", "models")
# Tables of names, which each process would make again.
_CACHED = Path("cache", "names.npz")
# An executor is one of many processes on its machine.
_ALONE = {"neighbours": {"threads": 1}, "representation": {"processes": 1}}


@dataclass(frozen=True, slots=True)
class Replica:
    """A copy of a collection, and the generation that it is of.

    Longer parts of texts than `max_characters` are cut there.
    """

    path: Path
    generation: int
    token: str
    max_characters: int


def make_replica(collection: Collection, workspace: Workspace, generation: Generation) -> Replica:
    """The copy of the present state, which has to be that of `generation`.

    It is made only if there is none; CollectionBusyError if the collection changes meanwhile.
    """
    files = _files(collection.path)
    state = _state(collection, files)
    name = digest(generation.number, generation.token, state)
    folder = workspace.part(_KIND)
    target = folder / name
    workspace.sweep(_KIND, [target])
    if not target.exists():
        temporary = folder / f".{name}.{secrets.token_hex(4)}.part"
        try:
            with folder_errors_explained(folder):
                _fill(collection, files, temporary)
            _check_unchanged(collection, generation)
            if _state(collection, _files(collection.path)) != state:
                raise _changed(collection)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    _check_unchanged(collection, generation)
    longest = collection.config.documents.max_characters
    return Replica(target, generation.number, generation.token, longest)


@lru_cache(maxsize=1)
def open_replica(replica: Replica) -> Indexer:
    """The copy, opened once in a process; ClusterError if it is of another generation."""
    indexer = Indexer.open(replica.path, read_only=True)
    generation = indexer.collection.generation()
    if (generation.number, generation.token) != (replica.generation, replica.token):
        raise ClusterError(
            f"{replica.path}: at generation {generation.number}, not at {replica.generation}; "
            "delete it and run the same command again"
        )
    return indexer


def _check_unchanged(collection: Collection, generation: Generation) -> None:
    if collection.generation() != generation:
        raise _changed(collection)


def _changed(collection: Collection) -> CollectionBusyError:
    return CollectionBusyError(
        f"{collection.path}: has changed while it was copied for the cluster; try again"
    )


def _state(collection: Collection, files: list[Path]) -> list[tuple[str, object]]:
    """What tells whether a file of stores, models or settings has been replaced."""
    names = [*map(str, files), CONFIG_NAME]
    return [(name, file_signature(collection.path / name)) for name in names]


def _files(path: Path) -> list[Path]:
    """The files of the stores and models, without locks and unfinished ones."""
    found = [one for name in _LINKED for one in (path / name).rglob("*")]
    found.append(path / _CACHED)
    return sorted(
        one.relative_to(path)
        for one in found
        if one.is_file()
        and not any(part.startswith(".") for part in one.relative_to(path).parts[:-1])
        and not one.name.endswith((".lock", ".part", ".write", ".open"))
    )


def _fill(collection: Collection, files: list[Path], target: Path) -> None:
    target.mkdir()
    for folder in _LINKED:
        (target / folder).mkdir()
    for name in files:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        _link(collection.path / name, target / name)
    shutil.copyfile(collection.path / MANIFEST_NAME, target / MANIFEST_NAME)
    shutil.copyfile(collection.path / CONFIG_NAME, target / CONFIG_NAME)
    update_config(target / CONFIG_NAME, _ALONE)
    collection.database.copy_to(target / DATABASE_NAME)
    with closing(sqlite3.connect(target / DATABASE_NAME)) as database:
        # Readers on other machines could not share the memory that a log needs.
        database.execute("PRAGMA journal_mode = DELETE").fetchone()


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
