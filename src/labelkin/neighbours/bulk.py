"""When a batch of texts is searched with the engine for batches.

That engine answers several times as many queries, but it has to be opened, and its
index built. So the other one answers until that would have been worth it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import cast

from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.engine import EngineSearcher
from labelkin.neighbours.postings_engine import PostingsSearcher
from labelkin.neighbours.term_index import TermIndex
from labelkin.store.derived import (
    BuildProgress,
    SnapshotOutdatedError,
    StoreDamagedError,
    StoreState,
)
from labelkin.store.snapshot import Snapshot

logger = logging.getLogger(__name__)

#: Fewer texts are no batch: they are always searched with the other engine.
SMALLEST_BATCH = 64
# Seconds of CPU, as measured (results/speed.md): to load the compiled engine, to index a row, and
# what a query saves for each row that is indexed.
_LOADING, _INDEXING, _SAVED = 0.6, 1.4e-4, 2.5e-8


class BulkIndex:
    """The index for batches beside that of another engine, opened when it pays.

    All snapshots of a collection share it; `open_index` opens the index for one of them.
    """

    def __init__(self, open_index: Callable[[Snapshot], TermIndex]) -> None:
        self._open_index = open_index
        self._lock = Lock()
        self._searched = 0
        self._expected: int | None = None
        self._searcher: tuple[StoreState, EngineSearcher, PostingsSearcher] | None = None

    def expect(
        self, queries: int, snapshot: Snapshot, progress: BuildProgress | None = None
    ) -> None:
        """Decide by this number of queries, not by how many there have been; build what pays."""
        with self._lock:
            self._expected = queries
            self._opened(snapshot, progress)

    def searcher_for(
        self, queries: int, snapshot: Snapshot, other: EngineSearcher
    ) -> PostingsSearcher | None:
        """A searcher for a batch, with the statistics of the other engine; None if none pays."""
        if queries < SMALLEST_BATCH:
            return None
        with self._lock:
            self._searched += queries
            index = self._opened(snapshot)
            if index is None:
                return None
            known = self._searcher
            if known is None or known[0] != index.state or known[1] is not other:
                searcher = cast(PostingsSearcher, index.searcher(snapshot))
                self._searcher = known = (index.state, other, searcher.scored_like(other))
            return known[2]

    def _opened(
        self, snapshot: Snapshot, progress: BuildProgress | None = None
    ) -> TermIndex | None:
        """The index at the state of a snapshot; None if it does not pay, or is not to be had."""
        index = self._open_index(snapshot)
        if not self._pays(index, snapshot):
            return None
        try:
            index.catch_up(snapshot, progress)
        except (SnapshotOutdatedError, CollectionBusyError, StoreDamagedError) as error:
            # Another process is ahead, or is building it.
            logger.info("%s", error)
            return None
        return index

    def report_damage(self, reason: str, snapshot: Snapshot) -> None:
        """Have the index rebuilt when it is next used."""
        with self._lock:
            self._searcher = None
            self._open_index(snapshot).report_damage(reason, logging.WARNING)

    def _pays(self, index: TermIndex, snapshot: Snapshot) -> bool:
        """Whether the expected queries, or all so far, save what it takes to open the index."""
        rows = snapshot.generation().next_row
        missing = index.missing_rows(snapshot)
        if missing and snapshot.read_only:
            return False
        queries = self._searched if self._expected is None else self._expected
        return queries * rows * _SAVED >= _LOADING + missing * _INDEXING
