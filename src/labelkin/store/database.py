"""The SQLite file of a collection: opening it in every situation, and its transactions.

SQLite's write lock is the collection's writer lock: it is held for one
transaction, waits its turn for a few seconds, and the system releases it when a
process dies.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    CollectionFullError,
    CollectionReadOnlyError,
)

logger = logging.getLogger(__name__)

DATABASE_NAME = "documents.sqlite"
WRITER_PATIENCE_SECONDS = 10.0
_LITTLE_SPACE = 1 << 20

# Concepts are written as JSON, which escapes the quotes that names hold.
IS_DEPRECATED = """instr(concept, '"deprecated": true') > 0"""

SCHEMA = f"""
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,     -- never reused; a replacement is a new row
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    fields TEXT,                 -- JSON: further texts by name
    language TEXT,
    metadata TEXT,               -- JSON
    labels BLOB NOT NULL,        -- vocabulary columns, ascending, int32 little-endian
    unresolved TEXT,             -- JSON: labels that the vocabulary lacks, with their names
    digest BLOB NOT NULL         -- of all the above: an unchanged document is not stored again
);
CREATE INDEX documents_by_language ON documents (language);
CREATE INDEX documents_with_unresolved ON documents (row) WHERE unresolved IS NOT NULL;
CREATE TABLE tombstones (row INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
CREATE INDEX tombstones_by_generation ON tombstones (generation);
CREATE TABLE concepts (
    "column" INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    concept TEXT NOT NULL        -- JSON
);
CREATE INDEX deprecated_concepts ON concepts ("column") WHERE {IS_DEPRECATED};
-- The change log: one entry a transaction. Rows from the previous entry's next_row
-- up to this one's were added by it; tombstones carry its generation. The token is
-- random: a derived store that remembers it notices a database put back from a backup.
CREATE TABLE changes (
    generation INTEGER PRIMARY KEY,
    next_row INTEGER NOT NULL,
    next_column INTEGER NOT NULL,
    token TEXT NOT NULL,
    at TEXT NOT NULL
);
"""


class Database:
    """One connection to a collection's database.

    A folder that cannot be written to is opened for reading: through the
    write-ahead log where its files are there, as an immutable file where the
    log is empty, and else from a temporary copy (a log that was never
    checkpointed cannot be read in place without writing). An immutable file is
    opened anew when someone else, who may write, has changed it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._immutable_state: tuple[int, int] | None = None
        writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        self.read_only = read_only or not writable
        with self.errors_explained():
            self.connection = self._connect(writable)

    @classmethod
    def create(cls, path: Path) -> Database:
        """A new, empty database."""
        path.touch()
        database = cls(path)
        try:
            with database.errors_explained():
                database.connection.execute("PRAGMA journal_mode = WAL")
                database.connection.executescript(SCHEMA)
                database.connection.execute(
                    "INSERT INTO changes VALUES (0, 0, 0, '', datetime('now'))"
                )
        except BaseException:
            database.close()
            raise
        return database

    def _connect(self, writable: bool) -> sqlite3.Connection:
        if writable:
            return self._open("mode=ro" if self.read_only else "mode=rw")
        with suppress(sqlite3.OperationalError):
            return self._open("mode=ro")
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            return self._open_copy(log)
        self._immutable_state = self._state()
        return self._open("mode=ro&immutable=1")

    def _state(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_mtime_ns, found.st_size

    def _open(self, parameters: str, path: Path | None = None) -> sqlite3.Connection:
        uri = f"file:{quote(str((path or self.path).absolute()))}?{parameters}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=WRITER_PATIENCE_SECONDS, isolation_level=None
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -32000")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_copy(self, log: Path) -> sqlite3.Connection:
        logger.warning("%s: read-only with an unfinished log; reading a temporary copy", self.path)
        self._copy = tempfile.TemporaryDirectory(prefix="labelkin-")
        copy = Path(self._copy.name) / self.path.name
        shutil.copyfile(self.path, copy)
        shutil.copyfile(log, copy.with_name(log.name))
        return self._open("mode=rw", copy)

    def close(self) -> None:
        """Close the connection; the last one to leave folds the log into the file."""
        self.connection.close()
        if self._copy is not None:
            self._copy.cleanup()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing, alone. Waits for another writer for a few seconds."""
        if self.read_only:
            raise CollectionReadOnlyError(
                f"{self.path.parent}: the collection cannot be written to; "
                "check the folder's permissions and that its disk is not mounted read-only"
            )
        with self.errors_explained():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read one generation, whatever others write meanwhile."""
        with self.errors_explained():
            if self.connection.in_transaction:
                yield self.connection
                return
            self.connection.execute("BEGIN")
            try:
                yield self.connection
            finally:
                self.connection.execute("ROLLBACK")

    def data_version(self) -> int:
        """Changes when another connection has committed; costs microseconds."""
        with self.errors_explained():
            return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """SQLite's errors, and a full disk, as one line that says what to do."""
        try:
            self._follow_owner()
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _follow_owner(self) -> None:
        """Open an immutable file anew if it was changed, but never within a snapshot."""
        if self._immutable_state is None or self.connection.in_transaction:
            return
        if self._immutable_state != self._state():
            self._immutable_state = None
            self.connection.close()
            self.connection = self._connect(writable=False)

    def _explained(self, error: sqlite3.Error) -> CollectionError:
        folder = self.path.parent
        code = getattr(error, "sqlite_errorcode", None)
        primary = code & 0xFF if code is not None else None
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return CollectionBusyError(
                f"{folder}: another process has been writing for more than "
                f"{WRITER_PATIENCE_SECONDS:.0f} seconds; try again when it is done"
            )
        # A full disk also shows as a failure to write to the log or its index.
        no_space = shutil.disk_usage(folder).free < _LITTLE_SPACE if folder.is_dir() else False
        if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and no_space):
            return CollectionFullError(f"{folder}: the disk is full; nothing stored was lost")
        if primary == sqlite3.SQLITE_READONLY:
            return CollectionReadOnlyError(f"{folder}: the collection cannot be written to")
        if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return CollectionDamagedError(f"{self.path}: {error}; restore it from a backup")
        if primary == sqlite3.SQLITE_CANTOPEN:
            return CollectionDamagedError(f"{self.path}: missing or cannot be opened")
        return CollectionError(f"{self.path}: {error}")
