"""Finding neighbours by dense vectors."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.neighbours.search import BuildProgress, NeighbourSearch
from labelkin.neighbours.vector_index import VectorCache, VectorIndex
from labelkin.neighbours.vector_searcher import VectorSearcher, load_faiss
from labelkin.represent.encoder import open_encoder
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)


class VectorSearch(NeighbourSearch):
    """Searches by how near the vectors of texts are."""

    def __init__(self, collection: Collection, encoder: str) -> None:
        super().__init__(collection)
        self._name = encoder
        threads = self._settings.threads or os.cpu_count() or 1
        load_faiss().omp_set_num_threads(threads)
        self._open()

    def _open(self) -> None:
        self._encoder = open_encoder(self._name, self._collection)
        self._index = VectorIndex(self._collection, self._encoder)
        self._cache = VectorCache(self._collection, self._encoder)
        self._forget()

    def close(self) -> None:
        """Let go of the vectors."""
        self._forget()

    def _forget(self) -> None:
        self._searcher = VectorSearcher(self._collection.config.dense, self._index.folder)
        self._state: tuple[str, int, int] | None = None

    def build(self, progress: BuildProgress | None = None) -> int:
        """Encode what is missing; the number of documents that were new."""
        if not self._encoder.is_current():
            self._open()
        added = self._index.catch_up(progress)
        approximate = self._collection.config.dense.index != "flat"
        if added and approximate and not self._collection.database.read_only:
            self._refresh()
            self._searcher.save()
        return added

    def relearn(self) -> None:
        """Have the encoder learn from the collection as it is now."""
        self._encoder.relearn()

    def _fingerprint(self, generation: int, token: str) -> dict[str, Any]:
        dense = self._collection.config.dense
        return {
            **super()._fingerprint(generation, token),
            "representation": {self._encoder.name: self._encoder.version},
            "engine": f"faiss {dense.index}, {dense.metric}",
        }

    def _search(self, documents: Sequence[Document], k: int, store: bool) -> Neighbours:
        try:
            self.build()
        except CollectionBusyError as error:
            if self._state is None:
                raise
            logger.warning("%s; searching without the newest documents", error)
        self._refresh()
        texts = self._prepared(documents)
        rows_there = self._index.stored.keys
        own_rows = self._collection.rows_of([document.id for document in documents])
        own = np.array([own_rows.get(document.id, NOBODY) for document in documents], np.int64)
        places = np.minimum(np.searchsorted(rows_there, own), max(len(rows_there) - 1, 0))
        if len(rows_there):
            own = np.where(rows_there[places] == own, places, NOBODY)
        found, scores = self._searcher.nearest(self._cache.vectors(texts, store=store), k, own)
        rows = np.full(found.shape, NOBODY, dtype=np.int64)
        there = found != NOBODY
        rows[there] = rows_there[found[there]]
        neighbours = Neighbours(
            ids=tuple(document.id for document in documents),
            rows=rows,
            scores=scores,
            own_scores=np.ones(len(documents), dtype=np.float32),
            fingerprint=self._fingerprint(self._index.generation, self._index.token),
        )
        return replace(neighbours, duplicates=self._duplicates(texts, neighbours))

    def _refresh(self) -> None:
        """Take in new vectors and leave out those that are gone."""
        stored = self._index.stored
        with self._collection.database.snapshot():
            generation = self._collection.generation()
            gone = self._collection.tombstones(generation)
        state = (stored.name, len(stored), len(gone))
        if self._state is not None and self._state[0] != stored.name:
            self._forget()
        if state != self._state:
            alive = ~np.isin(stored.keys, gone)
            self._searcher.update(stored.vectors, alive)
            self._state = state
