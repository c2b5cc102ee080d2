"""Neighbours within a sample of a collection's documents.

A training that looks at 200,000 of 37 million documents needs the nearest of those
200,000. Searched among all, half a per cent of what is found would be in the sample,
and each search would take as long as the collection is large. So the sample gets an
index of its own, in a folder that is deleted afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.compiled import can_load
from labelkin.neighbours.engine import ENGINES, POSTINGS, TANTIVY, IndexedDocument
from labelkin.neighbours.heading_terms import HeadingTerms, index_fields
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.search import NeighbourSearch
from labelkin.neighbours.term_index import indexed_documents
from labelkin.neighbours.term_search import TermSearch
from labelkin.represent.texts import Texts
from labelkin.store.derived import StoreState
from labelkin.store.snapshot import Snapshot

logger = logging.getLogger(__name__)

# A larger share of the documents is searched among all of them: enough are in the sample.
_LARGEST_SHARE = 0.5
_BATCH = 1000
SAMPLE_PREFIX = "sample-"

Integers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]


def nearest_places(
    search: NeighbourSearch, rows: Integers, k: int, progress: Progress | None = None
) -> Integers:
    """For each of the documents in `rows` the places of its nearest among them, −1 for none.

    `rows` ascend. A sample of a larger collection is searched by itself, if `search` is one
    by terms; else, the `k` nearest of all documents are looked up, and those that are not
    in `rows` are left out.
    """
    if isinstance(search, TermSearch) and len(rows) <= _LARGEST_SHARE * _indexed(search.snapshot):
        try:
            with SampleSearch(search, rows) as sampled:
                return _places_among(sampled, rows, k, progress)
        except OSError as error:
            logger.warning("no index of the sample (%s); all documents are searched", error)
    search.expect(len(rows))
    return _places_among(search, rows, k, progress)


def _indexed(snapshot: Snapshot) -> int:
    """How many documents a search can find: those with labels that have not been removed."""
    is_indexed = snapshot.label_sets().sizes() > 0
    tombstones = snapshot.tombstones()
    is_indexed[tombstones[tombstones < len(is_indexed)]] = False
    return int(np.count_nonzero(is_indexed))


def _places_among(
    search: NeighbourSearch, rows: Integers, k: int, progress: Progress | None
) -> Integers:
    place_of = np.full(search.snapshot.label_sets().rows, -1, dtype=np.int64)
    place_of[rows] = np.arange(len(rows))
    places = np.full((len(rows), k), -1, dtype=np.int64)
    # Read once: on a cluster it follows the workers, some of which may be lost meanwhile.
    batch = search.batch
    for start in range(0, len(rows), batch):
        near = search.search_rows(rows[start : start + batch], k).rows
        known = near != NO_NEIGHBOUR
        places[start : start + len(near)] = np.where(known, place_of[np.where(known, near, 0)], -1)
        if progress is not None:
            progress(start + len(near), len(rows))
    return places


class SampleSearch(TermSearch, Closing):
    """Searches some documents of a snapshot as another search does all of them."""

    def __init__(self, search: TermSearch, rows: Integers) -> None:
        NeighbourSearch.__init__(self, search.snapshot, search.context)
        self.representation = search.representation
        self._rows = rows
        self._bulk = self._bulk_searcher = None
        # Beside the other indexes: the system's folder may be in memory, and small.
        home = self.snapshot.path / "indexes"
        # What a training left that was killed; no other one runs, the reranker has a lock.
        for left in home.glob(f"{SAMPLE_PREFIX}*"):
            rmtree(left, ignore_errors=True)
        self._folder = TemporaryDirectory(
            dir=home, prefix=SAMPLE_PREFIX, ignore_cleanup_errors=True
        )
        is_fast = self._settings.bulk and can_load()
        has_headings = self._settings.heading_weight > 0
        self._engine = ENGINES[POSTINGS if is_fast else TANTIVY](
            Path(self._folder.name) / "terms",
            index_fields(self.representation, headings=has_headings),
            read_only=False,
        )
        try:
            target = StoreState.of(self.snapshot.generation())
            self._engine.apply((), self._pages(has_headings), target)
            self._searcher = self._engine.searcher()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Delete the index."""
        self._engine.close()
        self._folder.cleanup()

    def _search(self, texts: Texts, k: int) -> Neighbours:
        return self._nearest(texts, k, self._searcher)

    def _pages(self, has_headings: bool) -> Iterator[list[IndexedDocument]]:
        kinds, cache = self.representation.kinds, self.context.cache
        headings = HeadingTerms(kinds, cache) if has_headings else None
        for start in range(0, len(self._rows), _BATCH):
            texts = self.snapshot.texts_of(self._rows[start : start + _BATCH].tolist())
            page = sorted(texts.items())
            yield indexed_documents(self.snapshot, page, kinds, cache, headings)
