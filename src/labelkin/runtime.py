"""One open collection for many threads: the current snapshot, its indexes, the models.

    Runtime ──► Snapshot (immutable) + Views (searches, decoders), replaced as a whole
       ├──► Indexes: opened once, brought up to date for each new snapshot
       ├──► Models: loaded once per checksum
       └──► Collection: a connection per thread, one writer at a time

A request takes the current views and keeps them to its end. A thread's own
writes are in the views that it takes next. Without `follow`, every request
looks for changes and brings the indexes up to date itself. With it, a
background thread does so, and requests wait for nothing but their own writes.
If whoever does so falls behind, requests look for changes and wait a little: a
write that was acknowledged a second before a request is in its answer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Event, RLock, Thread, local
from typing import TypeVar
from weakref import WeakSet

from labelkin.closing import Closing
from labelkin.exceptions import (
    CollectionBehindError,
    CollectionBusyError,
    CollectionError,
    LabelkinError,
)
from labelkin.neighbours.indexes import Indexes, representation_name
from labelkin.store.collection import Collection
from labelkin.store.database import LONG_LOG
from labelkin.store.derived import SnapshotOutdatedError
from labelkin.store.models import Models
from labelkin.store.snapshot import Snapshot, Views

logger = logging.getLogger(__name__)

# How often the background thread looks for changes of other processes.
_POLL_SECONDS = 0.4
# For how long requests rely on the last look at the collection, and how long they wait for a
# thread that is bringing the indexes up to date when it is older than that.
_OLDEST_SECONDS = 0.8
_LONGEST_WAIT = 1.0
_ATTEMPTS = 20
# How long requests use the last state before they ask for a busy index again.
_BUSY_SECONDS = 2.0

Result = TypeVar("Result")


class Runtime(Closing):
    """Gives requests a consistent state of a collection, and keeps that state current."""

    def __init__(self, collection: Collection, *, follow: bool = False) -> None:
        self.collection = collection
        self.indexes = Indexes(collection)
        self.models = Models(collection.path / "models")
        self._lock = RLock()
        self._current: Views | None = None
        self._snapshots: WeakSet[Snapshot] = WeakSet()
        self._threads = local()
        self._wake = Event()
        self._is_closing = False
        self._busy_until = 0.0
        self._shortened = -1
        self._follower: Thread | None = None
        # When the current state was last compared with the collection.
        self._looked = 0.0
        if follow:
            self._follower = Thread(target=self._follow, name="labelkin-follower", daemon=True)
            self._follower.start()

    def close(self) -> None:
        """End the background thread and close everything."""
        self._is_closing = True
        self.collection.database.refuse()
        self.indexes.stop()
        self._wake.set()
        if self._follower is not None:
            self._follower.join()
        with self._lock:
            self._current = None
            self.indexes.close()
            self.models.close()
            for snapshot in list(self._snapshots):
                snapshot.close()
            self.collection.close()

    def wrote(self) -> None:
        """Record that the calling thread has changed the collection."""
        if not self._is_closing:
            self._threads.written = self.collection.generation().number
            self._wake.set()

    def require(self, generation: int) -> None:
        """Let the calling thread's next calls see at least this generation.

        For a write that another thread or process made for the same client.
        """
        current = self._current
        if current is None or current.snapshot.generation().number < generation:
            reached = self.collection.generation().number
            if reached < generation:
                raise CollectionBehindError(
                    f"{self.collection.path}: at generation {reached}, not at {generation} or "
                    "later; was it restored from a backup, or is it another collection?"
                )
            self._wake.set()
        self._threads.written = max(getattr(self._threads, "written", 0), generation)

    def forget(self) -> None:
        """Drop the current state, unless a background thread follows the changes anyway.

        For long writes: while a state is held, SQLite's log can only grow.
        """
        if self._follower is None:
            with self._lock:
                self._current = None

    def views(self, representation: str | None = None, *, needs_index: bool = True) -> Views:
        """The current state, with the index of a representation up to date if one is needed."""
        current = self._current
        if current is None or not self._is_fresh(current):
            return self._refreshed(representation, needs_index)
        if needs_index:
            try:
                self.indexes.search(current, representation)
            except SnapshotOutdatedError:
                return self._refreshed(representation, needs_index, force=True)
        return current

    def release(self, representation: str) -> None:
        """Drop the searches by a representation, and fused ones with it, until they are used."""
        with self._lock:
            for key in [] if self._current is None else self._current.used():
                kind, name = key if isinstance(key, tuple) else (key, "")
                names = [name, *(part.strip() for part in str(name).split(","))]
                if self._current is not None and kind == "search" and representation in names:
                    self._current.drop(key)
            self.indexes.release(representation)

    def retried(self, work: Callable[[], Result]) -> Result:
        """The result of `work`, done again if a derived store has outrun its snapshot."""
        for _ in range(_ATTEMPTS):
            try:
                result = work()
            except SnapshotOutdatedError:
                self._refreshed(None, needs_index=False, force=True)
            else:
                self._shorten_log()
                return result
        raise CollectionError(
            f"{self.collection.path}: the collection is changing too fast to read; try again"
        )

    def _shorten_log(self) -> None:
        """Fold a long log into the database file.

        SQLite can begin the log again only if no reader depends on it. The
        current state is therefore taken again after the log has been copied.
        """
        database = self.collection.database
        if database.read_only or database.log_bytes() < LONG_LOG:
            return
        if not self._lock.acquire(blocking=False):
            return
        try:
            current = self._current
            if current is None or self._is_closing or self._is_behind(current):
                return
            generation = current.snapshot.generation()
            if generation.number == self._shortened:
                return
            self._shortened = generation.number
            database.checkpoint()
            views = Views(self.collection.snapshot(current.snapshot))
            self._snapshots.add(views.snapshot)
            if views.snapshot.generation() == generation:
                current.renew(views)
                self._current = views
        except LabelkinError as error:
            logger.debug("%s", error)
        finally:
            self._lock.release()

    def _is_fresh(self, views: Views) -> bool:
        """Whether the calling thread may use these views."""
        snapshot = views.snapshot
        if self._follower is not None:
            written = getattr(self._threads, "written", 0)
            return snapshot.generation().number >= written and not self._is_overdue()
        return self._is_latest(views)

    def _is_overdue(self) -> bool:
        """Whether nobody has looked for changes for too long."""
        return time.monotonic() - self._looked > _OLDEST_SECONDS

    def _is_latest(self, views: Views) -> bool:
        """Whether nothing has changed since these views were taken; remember having looked."""
        looked = time.monotonic()
        if self._is_behind(views):
            return False
        self._looked = max(self._looked, looked)
        return True

    def _is_behind(self, views: Views) -> bool:
        snapshot = views.snapshot
        return (
            snapshot.config is not self.collection.config
            or snapshot.segment_damages != self.collection.segments.damages
            or snapshot.generation() != self.collection.generation()
        )

    def _refreshed(
        self, representation: str | None, needs_index: bool, *, force: bool = False
    ) -> Views:
        """The latest state. A thread without writes of its own hardly waits for other writers."""
        current = self._current
        is_mine = self._lock.acquire(blocking=False)
        if not is_mine and self._is_overdue():
            is_mine = self._lock.acquire(timeout=_LONGEST_WAIT)
            current = self._current
        if not is_mine:
            written = getattr(self._threads, "written", 0)
            if (
                current is not None
                and not force
                and current.snapshot.generation().number >= written
                and (not needs_index or self._has_search(current, representation))
            ):
                return current
            self._lock.acquire()
        try:
            if self._is_closing:
                raise CollectionError(f"{self.collection.path}: the collection is closed")
            latest = self._current
            # While another process builds the index, requests do not wait for its lock every time.
            is_busy = time.monotonic() < self._busy_until
            if latest is not None and is_busy and self._serves(latest, representation, needs_index):
                return latest
            if latest is not None and not force and self._is_latest(latest):
                if needs_index:
                    self.indexes.search(latest, representation)
                return latest
            return self._next(latest, representation, needs_index)
        finally:
            self._lock.release()

    def _next(self, latest: Views | None, representation: str | None, needs_index: bool) -> Views:
        previous = None if latest is None else latest.snapshot
        for _ in range(_ATTEMPTS):
            looked = time.monotonic()
            snapshot = self.collection.snapshot(previous)
            views = Views(snapshot)
            self._snapshots.add(snapshot)
            try:
                if needs_index:
                    self.indexes.search(views, representation)
                if latest is not None:
                    latest.renew(views)
            except SnapshotOutdatedError:
                # Another process has written and brought an index up to date meanwhile.
                continue
            except CollectionBusyError as error:
                if latest is None or (needs_index and not self._has_search(latest, representation)):
                    raise
                logger.warning("%s; answering without the newest documents", error)
                self._busy_until = time.monotonic() + _BUSY_SECONDS
                return latest
            self._current, self._looked = views, looked
            return views
        raise CollectionError(
            f"{self.collection.path}: the collection is changing too fast to read; try again"
        )

    def _serves(self, views: Views, representation: str | None, needs_index: bool) -> bool:
        return not needs_index or self._has_search(views, representation)

    def _has_search(self, views: Views, representation: str | None) -> bool:
        return views.has(("search", self._name(views, representation)))

    @staticmethod
    def _name(views: Views, representation: str | None) -> str:
        return representation_name(views.snapshot, representation)

    def _follow(self) -> None:
        """Replace the current state soon after the collection or its settings have changed."""
        failure = ""
        while True:
            self._wake.wait(_POLL_SECONDS)
            self._wake.clear()
            if self._is_closing:
                return
            try:
                current = self._current
                if current is not None and not self._is_latest(current):
                    self._refreshed(None, needs_index=False)
                failure = ""
            except LabelkinError as error:
                # Requests go on with the state before, and need not fail each on their own.
                self._looked = time.monotonic()
                if str(error) != failure:
                    logger.warning("%s", error)
                failure = str(error)
            except Exception:
                logger.exception("%s: cannot follow its changes", self.collection.path)
                self._wake.wait(_POLL_SECONDS)
