"""The desk of one collection, opened when it is first used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection
from threading import Lock
from typing import Any

from labelkin.closing import Closing
from labelkin.desk.database import REMEDY, DeskDatabase
from labelkin.desk.decisions import Decisions
from labelkin.desk.worklists import WorkLists
from labelkin.exceptions import CollectionDamagedError, CollectionError, CollectionReadOnlyError
from labelkin.layout import DESK_NAME


class Desk(Closing):
    """Work lists and verdicts of a collection. Threads and processes may share it.

    The file is created at the first write; without it, everything is empty.
    What a method that writes has returned from survives a crash.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.path = folder / DESK_NAME
        self._read_only = read_only
        self._lock = Lock()
        self._database: DeskDatabase | None = None
        self._is_closed = False
        self.worklists = WorkLists(self)
        self.decisions = Decisions(self)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._is_closed = True
            if self._database is not None:
                self._database.close()
                self._database = None

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement selects; none if there is no file yet."""
        database = self._opened(create=False)
        return [] if database is None else database.query(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Write all or nothing; waits for another writer for a few seconds."""
        database = self._opened(create=True)
        if database is None:
            raise CollectionReadOnlyError(f"{self.path.parent}: the collection is read-only")
        with database.transaction() as connection:
            yield connection

    def _opened(self, *, create: bool) -> DeskDatabase | None:
        with self._lock:
            if self._is_closed:
                raise CollectionError(f"{self.path.parent}: the collection is closed")
            if self._database is None:
                if self.path.exists():
                    self._database = DeskDatabase(self.path, read_only=self._read_only)
                elif create and not self._read_only:
                    self._database = DeskDatabase.create(self.path)
            return self._database

    def verify(self) -> None:
        """Read everything; raises a CollectionError if something is damaged."""
        for (line,) in self.query("PRAGMA integrity_check(1)"):
            if line != "ok":
                raise CollectionDamagedError(f"{self.path}: {line}", REMEDY)
        for one in self.worklists:
            count = sum(1 for _ in self.worklists.items_with_records(one.id))
            # Somebody may have removed the list meanwhile.
            if count != one.total and self.worklists.get(one.id) is not None:
                raise CollectionDamagedError(
                    f"{self.path}: {one.total - count} records of the work list {one.name!r} are "
                    "missing",
                    REMEDY,
                )
        for _ in self.decisions.all():
            pass

    def read_json(self, text: str) -> Any:
        """The JSON that a row holds; CollectionDamagedError if it is none."""
        try:
            return json.loads(text)
        except (ValueError, TypeError) as error:
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> CollectionDamagedError:
        """The error of a row that cannot be read."""
        return CollectionDamagedError(f"{self.path}: a row cannot be read ({error})", REMEDY)
