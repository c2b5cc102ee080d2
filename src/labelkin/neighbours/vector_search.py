"""Finding neighbours by dense vectors."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.neighbours.search import BuildProgress, NeighbourSearch
from labelkin.neighbours.vector_index import VectorCache, VectorIndex
from labelkin.neighbours.vector_searcher import VectorSearcher, load_faiss
from labelkin.represent.encoder import Vectors, open_encoder
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

_NOTHING = Document("", "", language="en")


class VectorSearch(NeighbourSearch):
    """Searches by how near the vectors of texts are."""

    # A transformer's vector varies in its last digits with the texts that it is encoded beside.
    _apart = 0.01

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
        self._encoder.close()
        self._forget()

    def _forget(self) -> None:
        self._searcher = VectorSearcher(self._collection.config.dense, self._index.folder)
        self._state: tuple[str, int, int] | None = None

    def build(self, progress: BuildProgress | None = None) -> int:
        """Encode what is missing; the number of documents that were new."""
        if not self._encoder.is_current():
            self._encoder.close()
            self._open()
        added = self._index.catch_up(progress)
        if added and self._collection.config.dense.index != "flat":
            self._refresh()
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

    def search_rows(self, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """The neighbours of stored documents, by the vectors that are stored."""
        self._bring_up_to_date()
        texts = self._collection.texts_of(rows.tolist())
        documents = [texts.get(int(row), _NOTHING) for row in rows]
        own = self._places(rows)
        own[[document is _NOTHING for document in documents]] = NOBODY
        known = own != NOBODY
        stored = self._index.stored.vectors
        vectors = np.zeros((len(rows), stored.shape[1]), dtype=np.float32)
        vectors[known] = stored[own[known]]
        if len(stored) and not known.all():
            others = [documents[place] for place in np.flatnonzero(~known)]
            vectors[~known] = self._cache.vectors(others)
        return self._near(documents, vectors, k, own)

    def _search(self, documents: Sequence[Document], k: int, store: bool) -> Neighbours:
        self._bring_up_to_date()
        texts = self._prepared(documents)
        rows = self._collection.rows_of([document.id for document in documents])
        own = np.array([rows.get(document.id, NOBODY) for document in documents], np.int64)
        vectors = self._cache.vectors(texts, store=store)
        return self._near(texts, vectors, k, self._places(own))

    def _bring_up_to_date(self) -> None:
        try:
            self.build()
        except CollectionBusyError as error:
            if self._state is None:
                raise
            logger.warning("%s; searching without the newest documents", error)
        self._refresh()

    def _places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where the vectors of these rows are, −1 for rows without one."""
        there = self._index.stored.keys
        if not len(there):
            return np.full(len(rows), NOBODY, dtype=np.int64)
        places = np.minimum(np.searchsorted(there, rows), len(there) - 1)
        return np.where(there[places] == rows, places, NOBODY)

    def _near(
        self,
        documents: Sequence[Document],
        vectors: Vectors,
        k: int,
        own: npt.NDArray[np.int64],
    ) -> Neighbours:
        found, scores = self._searcher.nearest(vectors, k, own)
        rows = np.full(found.shape, NOBODY, dtype=np.int64)
        there = found != NOBODY
        rows[there] = self._index.stored.keys[found[there]]
        neighbours = Neighbours(
            ids=tuple(document.id for document in documents),
            rows=rows,
            scores=scores,
            own_scores=np.ones(len(documents), dtype=np.float32),
            fingerprint=self._fingerprint(self._index.generation, self._index.token),
        )
        return replace(neighbours, duplicates=self._duplicates(documents, neighbours))

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
            if not self._collection.database.read_only:
                self._searcher.save()
