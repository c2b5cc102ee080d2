"""Work lists: files of records that indexers go through one by one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from labelkin.corpus.document import Document
from labelkin.desk.rows import as_text, document_of, document_text, now
from labelkin.exceptions import CollectionError
from labelkin.store.rows import storable
from labelkin.wording import shortened

if TYPE_CHECKING:
    from labelkin.desk.desk import Desk

STATUSES = ("pending", "draft", "done", "skipped")
_PAGE = 500
# A list that is incomplete after this time belongs to an upload that a crash has ended.
_ABANDONED = timedelta(days=1)
_ITEM = "place, id, title, status, updated"
_NUMBER = "(SELECT number FROM worklists WHERE is_complete AND id = ?)"
_SHOWN_TITLE = 200
# Keeps what is stored, where None removes it.
KEEP: Any = object()


@dataclass(frozen=True, slots=True)
class Heading:
    """A final heading of a record; `major` marks a main topic."""

    id: str
    name: str = ""
    major: bool = False


@dataclass(frozen=True, slots=True)
class WorkList:
    """A list of records; `position` is the place that was last worked at, from 1.

    `counts` has the number of records by status; `unreadable` are the records
    of the file that could not be read, with their places and what is wrong.
    """

    id: str
    name: str
    created: str
    total: int
    position: int
    counts: Mapping[str, int] = field(default_factory=dict)
    unreadable: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A record of a work list; `document`, `draft` and `labels` only where they were asked for.

    `labels` are the final headings, None as long as there are none.
    """

    place: int
    id: str
    title: str
    status: str
    updated: str | None = None
    document: Document | None = None
    draft: Mapping[str, Any] | None = None
    labels: tuple[Heading, ...] | None = None

    def labelled(self) -> Document:
        """The document with its final headings, else its own, and the status as metadata."""
        if self.document is None:
            raise ValueError("the item was listed without its record")
        document = replace(
            self.document, metadata={**self.document.metadata, "status": self.status}
        )
        if self.labels is None:
            return document
        return replace(
            document,
            labels=tuple(one.id for one in self.labels),
            label_names={one.id: one.name for one in self.labels if one.name},
            major_labels=tuple(one.id for one in self.labels if one.major),
        )


class WorkLists:
    """All work lists of a desk, the newest first."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def __iter__(self) -> Iterator[WorkList]:
        rows = self._desk.query(
            "SELECT number, id, name, created, total, position, unreadable FROM worklists "
            "WHERE is_complete ORDER BY number DESC"
        )
        return iter([self._worklist(row) for row in rows])

    def __len__(self) -> int:
        rows = self._desk.query("SELECT count(*) FROM worklists WHERE is_complete")
        return int(rows[0][0]) if rows else 0

    def get(self, identifier: str) -> WorkList | None:
        """The list with this id."""
        rows = self._desk.query(
            "SELECT number, id, name, created, total, position, unreadable FROM worklists "
            "WHERE is_complete AND id = ?",
            (storable(identifier),),
        )
        return self._worklist(rows[0]) if rows else None

    def _worklist(self, row: tuple[Any, ...]) -> WorkList:
        number, identifier, name, created, total, position, unreadable = row
        counts = dict(
            self._desk.query(
                "SELECT status, count(*) FROM items WHERE worklist = ? GROUP BY status", (number,)
            )
        )
        return WorkList(
            identifier,
            name,
            created,
            total,
            position,
            {status: counts.get(status, 0) for status in STATUSES},
            tuple((where, problem) for where, problem in self._desk.read_json(unreadable)),
        )

    def create(self, name: str, documents: Iterable[Document]) -> WorkList:
        """A new list of documents, in their order."""
        writer = self.begin(name)
        waiting = iter(documents)
        try:
            while batch := list(islice(waiting, _PAGE)):
                writer.append(batch)
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def begin(self, name: str) -> WorkListWriter:
        """A new list that is filled batch by batch; nobody sees it before it is finished."""
        identifier = secrets.token_hex(8)
        oldest = (datetime.now(UTC) - _ABANDONED).isoformat(timespec="milliseconds")
        with self._desk.transaction() as connection:
            connection.execute(
                "DELETE FROM items WHERE worklist IN "
                "(SELECT number FROM worklists WHERE NOT is_complete AND created < ?)",
                (oldest,),
            )
            connection.execute(
                "DELETE FROM worklists WHERE NOT is_complete AND created < ?", (oldest,)
            )
            cursor = connection.execute(
                "INSERT INTO worklists (id, name, created, total, position, is_complete, "
                "unreadable) VALUES (?, ?, ?, 0, 1, 0, '[]')",
                (identifier, storable(name), now()),
            )
            number = int(cursor.lastrowid or 0)
        return WorkListWriter(self._desk, identifier, number)

    def remove(self, identifier: str) -> bool:
        """Remove a list with all drafts; whether there was one."""
        with self._desk.transaction() as connection:
            row = connection.execute(
                "SELECT number FROM worklists WHERE is_complete AND id = ?", (storable(identifier),)
            ).fetchone()
            if row is None:
                return False
            connection.execute("DELETE FROM items WHERE worklist = ?", row)
            connection.execute("DELETE FROM worklists WHERE number = ?", row)
        return True

    def items(
        self, identifier: str, *, offset: int = 0, limit: int = 100, status: str | None = None
    ) -> list[WorkItem]:
        """Some items of a list without their records, in the order of their places."""
        wanted = "" if status is None else "AND status = ?"
        given = () if status is None else (status,)
        rows = self._desk.query(
            f"SELECT {_ITEM} FROM items WHERE worklist = {_NUMBER} {wanted} "
            "ORDER BY place LIMIT ? OFFSET ?",
            (storable(identifier), *given, limit, offset),
        )
        return [WorkItem(*row) for row in rows]

    def items_with_records(self, identifier: str) -> Iterator[WorkItem]:
        """All items of a list with their records, a page in memory at a time."""
        place = 0
        while rows := self._desk.query(
            f"SELECT {_ITEM}, record, draft, labels FROM items "
            f"WHERE worklist = {_NUMBER} AND place > ? ORDER BY place LIMIT ?",
            (storable(identifier), place, _PAGE),
        ):
            for row in rows:
                yield self._item(row)
            place = rows[-1][0]

    def item(self, identifier: str, place: int) -> WorkItem | None:
        """One item with its record and its draft."""
        rows = self._desk.query(
            f"SELECT {_ITEM}, record, draft, labels FROM items "
            f"WHERE worklist = {_NUMBER} AND place = ?",
            (storable(identifier), place),
        )
        return self._item(rows[0]) if rows else None

    def _item(self, row: tuple[Any, ...]) -> WorkItem:
        *shown, record, draft, labels = row
        try:
            document = document_of(record)
            headings = None if labels is None else [Heading(*one) for one in json.loads(labels)]
            kept = None if draft is None else json.loads(draft)
        except (ValueError, TypeError) as error:
            raise self._desk.damaged(error) from error
        return replace(
            WorkItem(*shown),
            document=document,
            draft=kept,
            labels=None if headings is None else tuple(headings),
        )

    def update(
        self,
        identifier: str,
        place: int,
        status: str,
        *,
        draft: Mapping[str, Any] | None = KEEP,
        labels: Iterable[Heading] | None = KEEP,
    ) -> bool:
        """Store the state of an item and move the list's position to it; False if there is none.

        A draft or labels that are not given stay as they are; None removes them.
        """
        if status not in STATUSES:
            raise ValueError(f"no status {status!r}; known: {', '.join(STATUSES)}")
        changes: dict[str, Any] = {"status": status, "updated": now()}
        if draft is not KEEP:
            changes["draft"] = None if draft is None else as_text(draft)
        if labels is not KEEP:
            changes["labels"] = (
                None
                if labels is None
                else as_text([[one.id, one.name, one.major] for one in labels])
            )
        assignments = ", ".join(f"{column} = ?" for column in changes)
        with self._desk.transaction() as connection:
            row = connection.execute(f"SELECT {_NUMBER}", (storable(identifier),)).fetchone()
            cursor = connection.execute(
                f"UPDATE items SET {assignments} WHERE worklist = ? AND place = ?",
                (*changes.values(), *row, place),
            )
            if not cursor.rowcount:
                return False
            connection.execute("UPDATE worklists SET position = ? WHERE number = ?", (place, *row))
        return True

    def move(self, identifier: str, position: int) -> bool:
        """Move the position of a list; False if it has no such place."""
        with self._desk.transaction() as connection:
            cursor = connection.execute(
                "UPDATE worklists SET position = ? "
                "WHERE is_complete AND id = ? AND ? BETWEEN 1 AND total",
                (position, storable(identifier), position),
            )
            return bool(cursor.rowcount)


class WorkListWriter:
    """A work list that is being filled."""

    def __init__(self, desk: Desk, identifier: str, number: int) -> None:
        self._desk = desk
        self.id = identifier
        self._number = number
        self.total = 0

    def append(self, documents: Iterable[Document]) -> None:
        """Store a batch of documents."""
        rows = [
            (
                self._number,
                place,
                document.id,
                storable(document.title or shortened(document.text, _SHOWN_TITLE)),
                document_text(document),
            )
            for place, document in enumerate(documents, start=self.total + 1)
        ]
        with self._desk.transaction() as connection:
            self._check(connection)
            connection.executemany(
                "INSERT INTO items (worklist, place, status, id, title, record) "
                "VALUES (?, ?, 'pending', ?, ?, ?)",
                rows,
            )
        self.total += len(rows)

    def finish(self, unreadable: Sequence[tuple[str, str]] = ()) -> WorkList:
        """Show the list to everyone."""
        with self._desk.transaction() as connection:
            self._check(connection)
            connection.execute(
                "UPDATE worklists SET is_complete = 1, total = ?, unreadable = ? WHERE number = ?",
                (self.total, as_text([list(one) for one in unreadable]), self._number),
            )
        worklist = self._desk.worklists.get(self.id)
        if worklist is None:
            raise self._gone()
        return worklist

    def _check(self, connection: Connection) -> None:
        """Raise unless the list is still there."""
        row = connection.execute("SELECT 1 FROM worklists WHERE number = ?", (self._number,))
        if row.fetchone() is None:
            raise self._gone()

    def _gone(self) -> CollectionError:
        return CollectionError(f"{self._desk.path}: the work list was removed meanwhile")

    def discard(self) -> None:
        """Remove what was stored."""
        with self._desk.transaction() as connection:
            connection.execute("DELETE FROM items WHERE worklist = ?", (self._number,))
            connection.execute("DELETE FROM worklists WHERE number = ?", (self._number,))
