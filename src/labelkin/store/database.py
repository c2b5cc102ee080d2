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
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock, RLock, local
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    CollectionFullError,
    CollectionReadOnlyError,
)
from labelkin.layout import DATABASE_NAME as DATABASE_NAME

logger = logging.getLogger(__name__)

WRITER_PATIENCE_SECONDS = 10.0
_LITTLE_SPACE = 1 << 20
# A log of more bytes is folded into the file and cut when the next writer starts it again.
LONG_LOG = 4 << 20
# Free pages can be given back a few at a time; a database keeps this once it is made.
_GIVES_BACK = "PRAGMA auto_vacuum = INCREMENTAL"
_PAGES_AT_ONCE = 2_000
# A database of an earlier version is rewritten if so much of it is free, and it is small enough
# for a writer to wait.
_WORTH_REWRITING = 0.2
_MOST_REWRITTEN = 1 << 28
# SQLite's small default is enough for readers.
_WRITER_CACHE = "PRAGMA cache_size = -32000"

# Concepts are written as JSON, which escapes the quotes that names hold.
IS_DEPRECATED = """instr(concept, '"deprecated": true') > 0"""

TEXT_INDEX = "CREATE INDEX documents_by_text ON documents (text_checksum)"
# Columns of documents that earlier versions did not have.
LATER_COLUMNS = {"heading_order": "BLOB", "text_checksum": "INTEGER", "revision": "TEXT"}

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
    digest BLOB NOT NULL,        -- of all above and the order: the same is not stored again
    heading_order BLOB,          -- see ResolvedLabels.places; NULL: labels, then unresolved
    text_checksum INTEGER,       -- finds documents with the same text
    revision TEXT                -- see corpus.revision; older records are left out
);
{TEXT_INDEX};
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
-- random: a derived store that records it detects a database restored from a backup.
CREATE TABLE changes (
    generation INTEGER PRIMARY KEY,
    next_row INTEGER NOT NULL,
    next_column INTEGER NOT NULL,
    token TEXT NOT NULL,
    at TEXT NOT NULL
);
"""

# Made by the first document that moves: those whose text and labels are as they were in
# another row, because the names of headings or their metadata have changed.
MOVES_TABLE = """CREATE TABLE IF NOT EXISTS moves (
    row INTEGER PRIMARY KEY,
    former INTEGER NOT NULL      -- its row before
)"""

# Made by the first record that its source deletes (not by `remove`): these do not come back
# with a record that is no newer.
DELETIONS_TABLE = """CREATE TABLE IF NOT EXISTS deletions (
    id TEXT PRIMARY KEY,
    revision TEXT NOT NULL       -- that the document had
) WITHOUT ROWID"""

# Made by the first label that brings back a concept of an undone edition.
REVIVALS_TABLE = """CREATE TABLE IF NOT EXISTS revivals (
    "column" INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL  -- that has brought it back last
)"""

# Made by the first update of the vocabulary: the generations that brought another
# edition, the names that concepts had before, what undoing the last one needs, and moves. Rows are
# never reused, so a document that is still in its row here has not been changed since.
EDITION_TABLES = (
    """CREATE TABLE IF NOT EXISTS editions (
    generation INTEGER PRIMARY KEY,
    can_be_undone INTEGER NOT NULL
)""",
    """CREATE TABLE IF NOT EXISTS former_concepts (
    "column" INTEGER PRIMARY KEY,
    concept TEXT                 -- JSON; NULL: the former edition lacks the concept
)""",
    """CREATE TABLE IF NOT EXISTS former_names (
    "column" INTEGER NOT NULL,
    name TEXT NOT NULL,
    generation INTEGER NOT NULL, -- that brought the edition without this name
    PRIMARY KEY ("column", name)
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS former_labels (
    row INTEGER PRIMARY KEY,
    labels BLOB NOT NULL,
    unresolved TEXT,
    heading_order BLOB
)""",
    """CREATE TABLE IF NOT EXISTS former_rows (
    row INTEGER PRIMARY KEY,     -- of former_labels
    former INTEGER NOT NULL      -- the document's row before the update
)""",
    MOVES_TABLE,
)


class _Connection:
    """A thread's connection; closed when the thread ends or the database is closed."""

    def __init__(self, connection: sqlite3.Connection, file_state: tuple[int, int] | None) -> None:
        self.connection = connection
        self.file_state = file_state
        self.writes = False
        self.lock = RLock()

    def close(self) -> None:
        # A connection that is in use must not be closed under its user.
        with self.lock:
            self.connection.close()

    def __del__(self) -> None:
        self.connection.close()


def shrink(connection: sqlite3.Connection, *, is_sparse: bool = False) -> None:
    """Give free pages of a database back to the file system, in short transactions.

    One that an earlier version has made has to be rewritten for that, and so has one whose
    pages are filled in part only (`is_sparse`); if it is large, its free pages stay for what
    is written next. Readers of other connections go on.
    """

    def value(name: str) -> int:
        return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

    free, pages = value("freelist_count"), value("page_count")
    gives_back = bool(value("auto_vacuum"))
    is_small = (pages - free) * value("page_size") <= _MOST_REWRITTEN
    is_worth_it = is_sparse or (not gives_back and free >= max(_WORTH_REWRITING * pages, 1))
    if is_small and is_worth_it:
        connection.execute(_GIVES_BACK)
        connection.execute("VACUUM")
    elif gives_back:
        for _ in range(0, free, _PAGES_AT_ONCE):
            # Gives back one page a step, and `execute` makes one step.
            connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})")
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


class PinnedConnection:
    """A connection that sees one state of the database; any thread may use it, one at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = Lock()

    def query(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows that a statement selects."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def close(self) -> None:
        """End the read transaction, after the query under way."""
        with self._lock:
            self._connection.close()


class Database:
    """A collection's database, with a connection for each thread that uses it.

    A folder that cannot be written to is opened for reading: through the
    write-ahead log if its files exist, as an immutable file if the log is
    empty, and otherwise from a temporary copy (a log that was never
    checkpointed cannot be read in place without writing). An immutable file is
    reopened when its owner has changed it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._copy_lock = Lock()
        self._threads = local()
        self._connections: WeakSet[_Connection] = WeakSet()
        self._writer_lock = RLock()
        self._is_closed = False
        self._is_writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        self.read_only = read_only or not self._is_writable
        self._identity = self._file_identity()
        with self.errors_explained():
            self._own()

    @classmethod
    def create(cls, path: Path) -> Database:
        """Create an empty database."""
        path.touch()
        database = cls(path)
        try:
            with database.errors_explained():
                database.connection.execute(_GIVES_BACK)
                database.connection.execute("PRAGMA journal_mode = WAL")
                database.connection.executescript(SCHEMA)
                database.connection.execute(
                    "INSERT INTO changes VALUES (0, 0, 0, '', datetime('now'))"
                )
        except BaseException:
            database.close()
            raise
        return database

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of the calling thread."""
        return self._own().connection

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement selects, in the latest state."""
        with self.errors_explained():
            own = self._own()
            with own.lock:
                return own.connection.execute(statement, values).fetchall()

    def pinned(self) -> PinnedConnection:
        """A new connection that sees the present state until the caller closes it."""
        with self.errors_explained():
            connection, _ = self._connect()
            try:
                connection.execute("BEGIN")
                connection.execute("SELECT max(generation) FROM changes").fetchone()
            except BaseException:
                connection.close()
                raise
            return PinnedConnection(connection)

    def copy_to(self, path: Path, progress: Callable[[int, int], None] | None = None) -> None:
        """Write the present state to a new file; others can write meanwhile.

        Raises sqlite3.OperationalError if the new file cannot be written. `progress` is called
        with the pages that are copied, and all of them.
        """

        def show(_: int, left: int, total: int) -> None:
            if progress is not None:
                progress(total - left, total)

        with self.errors_explained():
            connection, _ = self._connect()
        with closing(connection), closing(sqlite3.connect(path)) as copy:
            # In a transaction of its own, SQLite need not begin again when others write.
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            connection.backup(copy, pages=_PAGES_AT_ONCE, progress=show, sleep=0)

    def _own(self) -> _Connection:
        own: _Connection | None = getattr(self._threads, "own", None)
        if own is None:
            own = self._threads.own = _Connection(*self._connect())
            self._connections.add(own)
        return own

    def _connect(self) -> tuple[sqlite3.Connection, tuple[int, int] | None]:
        """A new connection and, for an immutable file, the state it was opened in."""
        if self._is_closed:
            raise CollectionError(f"{self.path.parent}: the collection is closed")
        self._check_identity()
        if self._is_writable:
            return self._open("mode=ro" if self.read_only else "mode=rw"), None
        with suppress(sqlite3.OperationalError):
            return self._open("mode=ro"), None
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            return self._open("mode=rw", self._copied(log)), None
        state = self._file_state()
        return self._open("mode=ro&immutable=1"), state

    def _check_identity(self) -> None:
        """Refuse a file that has taken the place of the one that was opened."""
        now = self._file_identity()
        if self._identity != now:
            what = "removed" if now is None else "replaced"
            raise CollectionDamagedError(
                f"{self.path}: the file was {what} while the collection was open; "
                "close the collection and open it again"
            )

    def _file_identity(self) -> tuple[int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _file_state(self) -> tuple[int, int]:
        status = self.path.stat()
        return status.st_mtime_ns, status.st_size

    def _open(self, parameters: str, path: Path | None = None) -> sqlite3.Connection:
        uri = f"file:{quote(str((path or self.path).absolute()))}?{parameters}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=WRITER_PATIENCE_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA journal_size_limit = {LONG_LOG}")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _copied(self, log: Path) -> Path:
        """A temporary copy of the file and its log, made once."""
        with self._copy_lock:
            if self._copy is None:
                logger.warning(
                    "%s: read-only with an unfinished log; reading a temporary copy", self.path
                )
                self._copy = tempfile.TemporaryDirectory(prefix="labelkin-")
                copy = Path(self._copy.name) / self.path.name
                shutil.copyfile(self.path, copy)
                shutil.copyfile(log, copy.with_name(log.name))
            return Path(self._copy.name) / self.path.name

    def log_bytes(self) -> int:
        """The size of the write-ahead log."""
        try:
            return self.path.with_name(f"{self.path.name}-wal").stat().st_size
        except OSError:
            return 0

    def checkpoint(self) -> None:
        """Copy the log into the file, as far as readers of older states allow."""
        self.query("PRAGMA wal_checkpoint(PASSIVE)")

    def shrink(self) -> None:
        """Give the pages that removed documents have left back to the file system.

        Writers can write in between.
        """
        with self._writer_lock, self.errors_explained():
            own = self._own()
            with own.lock:
                shrink(own.connection)

    def refuse(self) -> None:
        """Let no one open a connection any more; `close` follows."""
        self._is_closed = True

    def close(self) -> None:
        """Close all connections; the last one to close folds the log into the file."""
        self._is_closed = True
        for own in list(self._connections):
            own.close()
        self._threads = local()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all or nothing, as the only writer. Waits for another writer for a few seconds."""
        if self.read_only:
            raise CollectionReadOnlyError(
                f"{self.path.parent}: the collection cannot be written to; "
                "check the folder's permissions and that its disk is not mounted read-only"
            )
        if not self._writer_lock.acquire(timeout=WRITER_PATIENCE_SECONDS):
            raise self._busy()
        try:
            with self.errors_explained():
                own = self._own()
                self._check_identity()
                with own.lock:
                    if not own.writes:
                        own.connection.execute(_WRITER_CACHE)
                        own.writes = True
                    own.connection.execute("BEGIN IMMEDIATE")
                    try:
                        yield own.connection
                        own.connection.execute("COMMIT")
                    except BaseException:
                        if own.connection.in_transaction:
                            own.connection.execute("ROLLBACK")
                        raise
        finally:
            self._writer_lock.release()

    @contextmanager
    def errors_explained(self) -> Iterator[None]:
        """Turn SQLite errors, and a full disk, into one line that says what to do."""
        try:
            self._follow_owner()
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _follow_owner(self) -> None:
        """Reopen an immutable file that was changed."""
        own: _Connection | None = getattr(self._threads, "own", None)
        if own is None or own.file_state is None or own.connection.in_transaction:
            return
        if own.file_state != self._file_state():
            own.close()
            del self._threads.own

    def _busy(self) -> CollectionBusyError:
        return CollectionBusyError(
            f"{self.path.parent}: another process has been writing for more than "
            f"{WRITER_PATIENCE_SECONDS:.0f} seconds; try again when it is done"
        )

    def _explained(self, error: sqlite3.Error) -> CollectionError:
        folder = self.path.parent
        code = getattr(error, "sqlite_errorcode", None)
        primary = code & 0xFF if code is not None else None
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._busy()
        # A full disk also shows as a failure to write to the log or its index.
        no_space = shutil.disk_usage(folder).free < _LITTLE_SPACE if folder.is_dir() else False
        if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and no_space):
            return CollectionFullError(f"{folder}: the disk is full; nothing stored was lost")
        if primary == sqlite3.SQLITE_READONLY:
            return CollectionReadOnlyError(f"{folder}: the collection cannot be written to")
        if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            # SQLite also says so of a page that could not be read.
            remedy = (
                "a failing disk looks the same: look after the disk and run "
                f"`labelkin doctor {folder}` before you restore a backup"
            )
            return CollectionDamagedError(f"{self.path}: {error}", remedy)
        if self._is_closed:
            return CollectionError(f"{folder}: the collection is closed")
        if "no such table" in str(error):
            return CollectionDamagedError(
                f"{self.path}: not the database of a collection ({error})",
                "restore it from a backup",
            )
        if primary == sqlite3.SQLITE_CANTOPEN:
            return CollectionDamagedError(f"{self.path}: missing or cannot be opened")
        if primary == sqlite3.SQLITE_IOERR:
            remedy = f"look after the disk, then run `labelkin doctor {folder}`"
            return CollectionError(f"{self.path}: {error}; what was stored is kept", remedy)
        return CollectionError(f"{self.path}: {error}")
