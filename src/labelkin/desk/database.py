"""The file `desk.sqlite`: its schema, how it is created, and what is wrong with it."""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path

from labelkin.atomic import hidden_beside, sync_folder
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    CollectionTooNewError,
)
from labelkin.store.database import WRITER_PATIENCE_SECONDS, Database
from labelkin.store.folder import folder_errors_explained
from labelkin.store.locks import FileLock, beside

REMEDY = (
    "restore it from a backup, or move it away: work lists and verdicts are lost then, "
    "documents are not"
)
_VERSION = 1
# SQLite's `application_id`: tells a desk from any other SQLite file.
_APPLICATION = 0x6C6B6473

_SCHEMA = f"""
CREATE TABLE worklists (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created TEXT NOT NULL,
    total INTEGER NOT NULL,
    position INTEGER NOT NULL,
    is_complete INTEGER NOT NULL,  -- 0 while its records are being stored
    unreadable TEXT NOT NULL       -- JSON: records that could not be read, [[where, problem]]
);
CREATE TABLE items (
    worklist INTEGER NOT NULL,     -- worklists.number
    place INTEGER NOT NULL,        -- from 1
    status TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    updated TEXT,
    labels TEXT,                   -- JSON: the final headings
    draft TEXT,                    -- JSON: whatever the page needs to go on
    record TEXT NOT NULL,          -- JSON: the document as it was uploaded
    PRIMARY KEY (worklist, place)
);
CREATE INDEX items_by_status ON items (worklist, status, place);
-- One row for each time that an indexer has decided about a document.
CREATE TABLE decisions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL,
    at TEXT NOT NULL,
    method TEXT,
    generation INTEGER,
    seconds REAL,
    blind INTEGER NOT NULL,
    verdicts TEXT NOT NULL,        -- JSON
    document TEXT NOT NULL         -- JSON: the document as it was then
);
CREATE INDEX decisions_by_document ON decisions (document_id, number);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""


class DeskDatabase(Database):
    """An open `desk.sqlite`; threads and processes may share the file."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__(path, read_only=read_only)
        try:
            self._check_version()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(cls, path: Path) -> DeskDatabase:
        """Open the file; it is created unless another process has done so.

        It is filled under another name and renamed: it exists whole or not at all.
        """
        with folder_errors_explained(path.parent), FileLock(beside(path, "write")) as lock:
            if not lock.take(WRITER_PATIENCE_SECONDS):
                raise CollectionBusyError(f"{path}: another process is creating it; try again")
            if not path.exists():
                _write_new(path)
            beside(path, "write").unlink(missing_ok=True)
        return cls(path)

    def _check_version(self) -> None:
        ((application,),) = self.query("PRAGMA application_id")
        ((version,),) = self.query("PRAGMA user_version")
        if application != _APPLICATION or not version:
            raise CollectionDamagedError(f"{self.path}: not a desk of labelkin", REMEDY)
        if version > _VERSION:
            raise CollectionTooNewError(
                f"{self.path}: written by a newer labelkin (version {version}, this one knows "
                f"{_VERSION}); upgrade labelkin"
            )

    def _explained(self, error: sqlite3.Error) -> CollectionError:
        explained = super()._explained(error)
        if isinstance(explained, CollectionDamagedError):
            return CollectionDamagedError(f"{self.path}: {error}", REMEDY)
        return explained


def _write_new(path: Path) -> None:
    temporary = hidden_beside(path, f"{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        temporary.touch()
        database = Database(temporary)
        try:
            with database.errors_explained():
                database.connection.execute("PRAGMA journal_mode = WAL")
                database.connection.executescript(_SCHEMA)
        finally:
            database.close()
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
