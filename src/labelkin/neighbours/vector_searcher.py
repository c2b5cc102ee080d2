"""Searching vectors with faiss, exactly or approximately."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file
from labelkin.exceptions import MissingExtraError
from labelkin.represent.encoder import Vectors, normalised
from labelkin.store.config import DenseSection

logger = logging.getLogger(__name__)

# Newer vectors than these are compared one by one until there are more of them.
_MOST_UNINDEXED = 5_000
# Below this an approximate index gains nothing.
_WORTH_APPROXIMATION = 10_000
_MOST_TRAINING = 200_000
_CHUNK = 1 << 16
_SEED = 0
# Neighbours beyond the wanted ones, so that ties are ordered as a whole.
_TIE_MARGIN = 8
_TIE = 1e-6

Places = npt.NDArray[np.int64]


class VectorSearcher:
    """Vectors by place, some of them in a faiss index, the newest compared directly.

    Scores are in [0, 1] and fall as vectors move apart; the same vector has 1
    (but for inner products of vectors that are not normalised):

        l2       1 / (1 + |q − v|)
        cosine   (1 + cos) / 2
        ip       (1 + q·v / m) / 2,  m = |q| times the length of the longest v
    """

    def __init__(self, settings: DenseSection, folder: Path | None = None) -> None:
        self._settings = settings
        self._path = folder / f"{settings.index}-{settings.metric}.faiss" if folder else None
        self._vectors: npt.NDArray[np.float16] = np.empty((0, 0), dtype=np.float16)
        self._index: Any = None
        self._kind = "flat"
        self._is_kept = True
        self._end = 0
        self._alive: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._indexed: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._longest = 1.0

    def update(self, vectors: npt.NDArray[np.float16], alive: npt.NDArray[np.bool_]) -> None:
        """Search these vectors from now on, but for those that are not alive.

        Vectors that were there before are the same.
        """
        self._vectors = vectors
        lengths = _lengths(vectors)
        self._alive = alive & (lengths > 0)
        if not self._alive.any():
            return
        self._longest = float(lengths[self._alive].max(initial=0.0)) or 1.0
        if self._index is None:
            self._load()
        indexed = int(self._indexed.sum())
        gone = indexed - int((self._indexed & self._alive[: self._end]).sum())
        other = self._kind != self._wanted_kind()
        if self._index is None or other or gone > max(1000, indexed // 5):
            self._build()
        elif len(vectors) - self._end > _MOST_UNINDEXED or self._kind == "flat":
            self._add(len(vectors))

    def nearest(
        self, queries: Vectors, k: int, without: Places
    ) -> tuple[Places, npt.NDArray[np.float32]]:
        """Places and scores of the `k` best for each query, −1 and 0 where there are fewer.

        `without` has a place for each query that is not to be found, or −1.
        """
        places = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.zeros((len(queries), k), dtype=np.float32)
        if not places.size or not self._alive.any():
            return places, scores
        queries = queries.astype(np.float16).astype(np.float32)
        for number, found in enumerate(self._candidates(queries, k)):
            found = found[(found != without[number]) & self._alive[found]]
            if not queries[number].any() or not len(found):
                continue
            values = self._scores(queries[number], found)
            order = np.lexsort((found, -np.round(values / _TIE)))[:k]
            places[number, : len(order)] = found[order]
            scores[number, : len(order)] = values[order]
        return places, scores

    def save(self) -> None:
        """Keep an approximate index on disk, since it takes long to build."""
        if self._path is None or self._is_kept or self._kind == "flat":
            return
        faiss = load_faiss()
        try:
            with atomic_file(self._path) as file:
                faiss.write_index(self._index, faiss.PyCallbackIOWriter(file.write))
        except (OSError, RuntimeError) as error:
            logger.warning("%s: %s; the index is not kept", self._path, error)
        self._is_kept = True

    def _wanted_kind(self) -> str:
        few = int(self._alive.sum()) < _WORTH_APPROXIMATION
        return "flat" if few else self._settings.index

    def _candidates(self, queries: Vectors, k: int) -> Iterator[Places]:
        """For each query the places that may be among its `k` best."""
        faiss = load_faiss()
        asked = normalised(queries) if self._settings.metric == "cosine" else queries
        asked = np.ascontiguousarray(asked)
        wanted = min(k + 1 + _TIE_MARGIN, self._index.ntotal)
        _, found = self._index.search(asked, wanted, params=self._parameters(wanted))
        newest = np.flatnonzero(self._alive[self._end :]) + self._end
        if len(newest):
            vectors = self._prepared(newest)
            wanted = min(k + 1 + _TIE_MARGIN, len(newest))
            _, near = faiss.knn(asked, vectors, wanted, metric=self._index.metric_type)
            found = np.concatenate((found, newest[near]), axis=1)
        return (line[line >= 0] for line in found)

    def _parameters(self, wanted: int) -> Any:
        """How to search the index: well enough, and among the living only."""
        faiss = load_faiss()
        alive = faiss.IDSelectorBitmap(np.packbits(self._alive, bitorder="little"))
        if self._kind == "hnsw":
            return faiss.SearchParametersHNSW(sel=alive, efSearch=max(64, 2 * wanted))
        if self._kind == "ivf-sq8":
            return faiss.SearchParametersIVF(sel=alive, nprobe=self._inner().nprobe)
        return faiss.SearchParameters(sel=alive)

    def _scores(self, query: Vectors, places: Places) -> npt.NDArray[np.float32]:
        vectors = self._vectors[places].astype(np.float32)
        if self._settings.metric == "l2":
            values = 1 / (1 + np.linalg.norm(vectors - query, axis=1))
        else:
            products = vectors @ query
            if self._settings.metric == "cosine":
                scale = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
            else:
                scale = np.float32(self._longest) * np.linalg.norm(query)
            values = (1 + products / scale) / 2
        return np.asarray(np.clip(values, 0, 1), dtype=np.float32)

    def _build(self) -> None:
        faiss = load_faiss()
        width = self._vectors.shape[1]
        euclidean = self._settings.metric == "l2"
        metric = faiss.METRIC_L2 if euclidean else faiss.METRIC_INNER_PRODUCT
        alive = np.flatnonzero(self._alive)
        self._kind = self._wanted_kind()
        if self._kind == "ivf-sq8":
            lists = max(1, int(4 * math.sqrt(len(alive))))
            inner = faiss.index_factory(width, f"IVF{lists},SQ8", metric)
            inner.nprobe = max(8, lists // 8)
            inner.cp.seed = _SEED
            step = max(1, len(alive) // _MOST_TRAINING)
            inner.train(self._prepared(alive[::step]))
        elif self._kind == "hnsw":
            inner = faiss.IndexHNSWFlat(width, 32, metric)
            inner.hnsw.efConstruction = 80
        else:
            inner = faiss.IndexFlat(width, metric)
        self._index = faiss.IndexIDMap(inner)
        # faiss owns what it is given only when it is told so.
        inner.this.disown()
        self._index.own_fields = True
        self._end = 0
        self._indexed = np.empty(0, dtype=np.bool_)
        self._add(len(self._vectors))

    def _add(self, end: int) -> None:
        for start in range(self._end, end, _CHUNK):
            stop = min(start + _CHUNK, end)
            places = np.flatnonzero(self._alive[start:stop]) + start
            if len(places):
                self._index.add_with_ids(self._prepared(places), places)
        new = self._alive[self._end : end]
        self._indexed = np.concatenate((self._indexed, new))
        self._end = end
        self._is_kept = False

    def _prepared(self, places: Places) -> Vectors:
        vectors = self._vectors[places].astype(np.float32)
        if self._settings.metric == "cosine":
            vectors = normalised(vectors)
        return np.ascontiguousarray(vectors)

    def _inner(self) -> Any:
        return load_faiss().downcast_index(self._index.index)

    def _load(self) -> None:
        """Take the index that was kept, if it is one of these vectors."""
        kind = self._wanted_kind()
        if self._path is None or kind == "flat" or not self._path.exists():
            return
        faiss = load_faiss()
        types = {"hnsw": faiss.IndexHNSWFlat, "ivf-sq8": faiss.IndexIVFScalarQuantizer}
        try:
            index = faiss.read_index(str(self._path))
        except RuntimeError:
            return
        if not isinstance(index, faiss.IndexIDMap) or not isinstance(
            faiss.downcast_index(index.index), types[kind]
        ):
            return
        places = faiss.vector_to_array(index.id_map)
        if index.d != self._vectors.shape[1] or (len(places) and places.max() >= len(self._alive)):
            return
        self._index, self._kind, self._is_kept = index, kind, True
        self._end = int(places.max(initial=-1)) + 1
        self._indexed = np.zeros(self._end, dtype=np.bool_)
        self._indexed[places] = True


def _lengths(vectors: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
    lengths = np.zeros(len(vectors), dtype=np.float32)
    for start in range(0, len(vectors), _CHUNK):
        part = vectors[start : start + _CHUNK].astype(np.float32)
        lengths[start : start + _CHUNK] = np.linalg.norm(part, axis=1)
    return lengths


def load_faiss() -> Any:
    """The module, or the line that installs it."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError(
            "searching vectors needs faiss; pip install 'labelkin[dense]'"
        ) from error
    return faiss
