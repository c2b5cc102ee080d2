"""When a batch of texts is searched with the engine for batches.

That engine answers several times as many queries, but it has to be loaded, and its
index built. So the other one answers until that would have been worth it, and whenever
the second index cannot be used: it is never a reason for a search to fail or to wait.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, cast

from labelkin import compiled
from labelkin.exceptions import CollectionBusyError, CollectionError
from labelkin.neighbours.engine import EngineSearcher
from labelkin.neighbours.term_index import TermIndex
from labelkin.store.derived import BuildProgress, SnapshotOutdatedError
from labelkin.store.snapshot import Snapshot

if TYPE_CHECKING:
    from labelkin.neighbours.postings_searcher import PostingsSearcher

logger = logging.getLogger(__name__)

#: Fewer texts are no batch: they are always searched with the other engine.
SMALLEST_BATCH = 64
# Rough seconds of CPU, from trials on mesh47k: to load the compiled engine, to index a row, and
# what a query saves for each row that is indexed.
_LOADING, _INDEXING, _SAVED = 0.6, 1.4e-4, 2.5e-8
# How long not to ask again while another process is building the index.
_PAUSE_SECONDS = 10.0


class BulkIndex:
    """The index for batches beside that of another engine, opened when it pays.

    All snapshots of a collection share it; `open_index` opens the index for one of them.
    """

    def __init__(self, open_index: Callable[[Snapshot], TermIndex]) -> None:
        self._open_index = open_index
        self._lock = Lock()
        self._expected = 0
        self._searched = 0
        self._decision: bool | None = None
        self._not_before = 0.0
        self._has_failed = False

    def expect(
        self, queries: int, snapshot: Snapshot, progress: BuildProgress | None = None
    ) -> bool:
        """Whether so many queries are worth the index; builds what is missing of it."""
        with self._lock:
            self._expected = max(self._expected, queries)
            return self._opened(snapshot, progress) is not None

    def decide(self, is_used: bool) -> None:
        """Use it for all batches, or for none."""
        self._decision = is_used

    def searcher_for(
        self, queries: int, snapshot: Snapshot, other: EngineSearcher
    ) -> PostingsSearcher | None:
        """A searcher for a batch, with the statistics of the other engine; None if none pays."""
        if queries < SMALLEST_BATCH or not self._lock.acquire(blocking=False):
            # Another thread may be building the index.
            return None
        try:
            self._searched += queries
            index = self._opened(snapshot)
            if index is None:
                return None
            return cast("PostingsSearcher", index.searcher(snapshot)).scored_like(other)
        finally:
            self._lock.release()

    def report_damage(self, reason: str, snapshot: Snapshot) -> None:
        """Have the index rebuilt when it is next used."""
        self._open_index(snapshot).report_damage(reason, logging.WARNING)

    def _opened(
        self, snapshot: Snapshot, progress: BuildProgress | None = None
    ) -> TermIndex | None:
        """The index at the state of a snapshot; None if it does not pay or cannot be used."""
        if self._decision is False or self._has_failed or time.monotonic() < self._not_before:
            return None
        try:
            index = self._open_index(snapshot)
            index.patience = 0.0
            if not self._pays(index, snapshot) or not compiled.can_load():
                return None
            index.catch_up(snapshot, progress)
        except SnapshotOutdatedError as error:
            logger.debug("%s", error)
            return None
        except CollectionBusyError as error:
            logger.info("%s; batches are searched without it meanwhile", error)
            self._not_before = time.monotonic() + _PAUSE_SECONDS
            return None
        except CollectionError as error:
            logger.warning("%s; batches are searched without the second index", error)
            self._has_failed = True
            return None
        return index

    def _pays(self, index: TermIndex, snapshot: Snapshot) -> bool:
        """Whether the expected queries, or all so far, save what it takes to open the index."""
        if snapshot.read_only and not index.is_recorded(snapshot):
            return False
        if self._decision:
            return True
        rows, missing = snapshot.generation().next_row, index.missing_rows(snapshot)
        queries = max(self._expected, self._searched)
        return queries * rows * _SAVED >= _LOADING + missing * _INDEXING
