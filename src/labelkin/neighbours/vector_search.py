"""Finding neighbours by dense vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.search import NeighbourSearch, SearchContext
from labelkin.neighbours.vector_file import StoredVectors
from labelkin.neighbours.vector_index import VectorCache, VectorIndex
from labelkin.neighbours.vector_searcher import VectorSearcher
from labelkin.represent.encoder import Encoder, Vectors
from labelkin.represent.texts import Texts, vectors_key
from labelkin.store.derived import SnapshotDamagedError
from labelkin.store.reader import Reader
from labelkin.store.snapshot import Snapshot


class VectorState:
    """The vectors of a collection under one encoder, and the searcher of their latest state."""

    def __init__(self, reader: Reader, encoder: Encoder) -> None:
        self.encoder = encoder
        self.index = VectorIndex(reader, encoder)
        self.cache = VectorCache(reader, encoder)
        self._latest: tuple[tuple[str, int, int], VectorSearcher] | None = None

    def close(self) -> None:
        """Close encoder and files."""
        self._latest = None
        self.encoder.close()
        self.index.close()

    def at(self, snapshot: Snapshot) -> tuple[StoredVectors, VectorSearcher]:
        """The vectors of a snapshot and their searcher."""
        with self.index.lock:
            stored = self.index.at(snapshot)
            gone = snapshot.tombstones()
            key = (stored.name, len(stored), len(gone))
            if self._latest is not None and self._latest[0] == key:
                return stored, self._latest[1]
            before = None
            if self._latest is not None and self._latest[0][0] == stored.name:
                before = self._latest[1]
            if before is None:
                before = VectorSearcher(snapshot.config.dense, self.index.file_stem)
            searcher = before.updated(stored.vectors, ~np.isin(stored.keys, gone))
            if not snapshot.read_only:
                searcher.save()
            self._latest = (key, searcher)
            return stored, searcher


class VectorSearch(NeighbourSearch):
    """Searches one generation by how near the vectors of texts are."""

    # The vectors of a transformer differ slightly with the batch that they are encoded in.
    _apart = 0.01

    def __init__(self, snapshot: Snapshot, context: SearchContext, state: VectorState) -> None:
        super().__init__(snapshot, context)
        self._encoder = state.encoder
        self._index = state.index
        self._cache = state.cache
        self._vectors, self._searcher = state.at(snapshot)

    def _fingerprint(self) -> dict[str, Any]:
        dense = self.snapshot.config.dense
        return {
            "representation": {self._encoder.name: self._encoder.version},
            "engine": f"faiss {dense.index}, {dense.metric}",
        }

    def search_rows(self, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """The neighbours of stored documents, by the vectors that are stored."""
        texts = self.texts(self._stored(rows), without_copies=True)
        own = self._places(rows)
        own[[not document.id for document in texts.documents]] = NO_NEIGHBOUR
        is_known = own != NO_NEIGHBOUR
        stored = self._vectors.vectors
        vectors = np.zeros((len(rows), stored.shape[1]), dtype=np.float32)
        vectors[is_known] = stored[own[is_known]]
        if len(stored) and not is_known.all():
            others = [texts.prepared[place] for place in np.flatnonzero(~is_known)]
            vectors[~is_known] = self._cache.vectors(others)
        texts.given(vectors_key(self._encoder.name), vectors)
        return self.search(texts, k)

    def vectors(self, texts: Texts) -> Vectors:
        """The vector of each text, encoded once."""
        return texts.once(
            vectors_key(self._encoder.name),
            lambda: self._cache.vectors(texts.prepared, store=texts.store_terms),
        )

    def stored_vectors(self, rows: npt.NDArray[np.int64]) -> Vectors:
        """The vectors of stored documents; zeros for rows that have none."""
        places = self._places(rows)
        is_known = places != NO_NEIGHBOUR
        vectors = np.zeros((len(rows), self._vectors.vectors.shape[1]), dtype=np.float32)
        vectors[is_known] = self._vectors.vectors[places[is_known]]
        return vectors

    def encoded(self, documents: Sequence[Document]) -> Vectors:
        """The vectors of texts that are no queries, kept on disk for the next time."""
        return self._cache.vectors(documents, store=True)

    @property
    def version(self) -> str:
        """The version of the encoder."""
        return self._encoder.version

    def _search(self, texts: Texts, k: int) -> Neighbours:
        if self._index.damage is not None:
            # Found in the background, after this search was made.
            raise SnapshotDamagedError(f"{self._index.damage}; try again")
        vectors = self.vectors(texts)
        own = [self._places(np.array(sorted(rows), dtype=np.int64)) for rows in texts.own_rows]
        threads = self._settings.threads
        places, scores = self._searcher.nearest(vectors, k, own, threads)
        near = np.full(places.shape, NO_NEIGHBOUR, dtype=np.int64)
        is_there = places != NO_NEIGHBOUR
        near[is_there] = self._vectors.keys[places[is_there]]
        return Neighbours(
            ids=tuple(document.id for document in texts.documents),
            rows=near,
            scores=scores,
            own_scores=np.ones(len(texts), dtype=np.float32),
        )

    def _places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where the vectors of these rows are, −1 for rows without one."""
        keys = self._vectors.keys
        if not len(keys):
            return np.full(len(rows), NO_NEIGHBOUR, dtype=np.int64)
        places = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
        return np.where(keys[places] == rows, places, NO_NEIGHBOUR)
