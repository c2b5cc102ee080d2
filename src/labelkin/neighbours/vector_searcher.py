"""Searching vectors with faiss, exactly or approximately."""

from __future__ import annotations

import importlib.util
import logging
import math
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file
from labelkin.checksums import TrailedFile, verify_trailer
from labelkin.exceptions import MissingExtraError
from labelkin.represent.encoder import Vectors, normalised
from labelkin.store.config import DenseSection

logger = logging.getLogger(__name__)

# Up to this many new vectors are compared directly before they are indexed.
_MOST_UNINDEXED = 5_000
# With fewer vectors an approximate index gains nothing.
_WORTH_APPROXIMATION = 10_000
_MOST_TRAINING = 200_000
_CHUNK = 1 << 16
_SEED = 0
# Neighbours beyond the wanted ones, so that ties are ordered as a whole.
_TIE_MARGIN = 8
_TIE = 1e-6
_NO_FAISS = "searching vectors needs faiss; pip install 'labelkin[dense]'"

Places = npt.NDArray[np.int64]


class VectorSearcher:
    """Vectors by place, some of them in a faiss index, the newest compared directly.

    It never changes once it has been handed out, so threads may share it.

    Scores are in [0, 1] and fall as vectors move apart; the same vector has 1
    (but for inner products of vectors that are not normalised):

        l2       1 / (1 + |q − v|)
        cosine   (1 + cos) / 2
        ip       (1 + q·v / m) / 2,  m = |q| times the length of the longest v
    """

    def __init__(self, settings: DenseSection, vectors: Path | None = None) -> None:
        """`vectors` is the path of the vectors without a suffix; None keeps nothing on disk."""
        self._settings = settings
        name = f"{settings.index}-{settings.metric}.faiss"
        self._path = vectors.with_name(f"{vectors.name}.{name}") if vectors else None
        # Where earlier versions kept it.
        self._former_path = vectors.with_name(name) if vectors else None
        self._vectors: npt.NDArray[np.float16] = np.empty((0, 0), dtype=np.float16)
        self._index: Any = None
        self._kind = "flat"
        self._is_saved = True
        self._end = 0
        self._alive: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._indexed: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._lengths: npt.NDArray[np.float32] = np.empty(0, dtype=np.float32)
        self._longest = 1.0

    def updated(
        self, vectors: npt.NDArray[np.float16], alive: npt.NDArray[np.bool_]
    ) -> VectorSearcher:
        """A searcher of these vectors, except those that are not alive; this one does not change.

        The first vectors must be the ones that this searcher has. The faiss
        index is shared until enough vectors are new or gone to extend or rebuild it.
        """
        searcher = copy(self)
        searcher._vectors = vectors
        known = len(self._lengths)
        searcher._lengths = np.concatenate((self._lengths, _lengths(vectors[known:])))
        searcher._alive = alive & (searcher._lengths > 0)
        if not searcher._alive.any():
            return searcher
        searcher._longest = float(searcher._lengths[searcher._alive].max(initial=0.0)) or 1.0
        if searcher._index is None:
            searcher._load()
        indexed = int(searcher._indexed.sum())
        gone = indexed - int((searcher._indexed & searcher._alive[: searcher._end]).sum())
        is_other = searcher._kind != searcher._wanted_kind()
        if searcher._index is None or is_other or gone > max(1000, indexed // 5):
            searcher._build()
        elif len(vectors) - searcher._end > _MOST_UNINDEXED:
            if searcher._index is self._index:
                searcher._index = load_faiss().clone_index(self._index)
            searcher._add(len(vectors))
        return searcher

    def nearest(
        self, queries: Vectors, k: int, without: Sequence[Places] = (), threads: int = 0
    ) -> tuple[Places, npt.NDArray[np.float32]]:
        """Places and scores of the `k` best for each query, −1 and 0 where there are fewer.

        `without` has the places that each query excludes, if any does. `threads`
        limits those that faiss uses for this call; 0 leaves it to faiss.
        """
        places = np.full((len(queries), k), -1, dtype=np.int64)
        scores = np.zeros((len(queries), k), dtype=np.float32)
        if not places.size or not self._alive.any():
            return places, scores
        queries = queries.astype(np.float16).astype(np.float32)
        if threads:
            # OpenMP keeps the number for each calling thread.
            load_faiss().omp_set_num_threads(threads)
        most = max(map(len, without), default=0)
        for number, proposed in enumerate(self._candidates(queries, k + most)):
            candidates = proposed[self._alive[proposed]]
            if most:
                candidates = candidates[~np.isin(candidates, without[number])]
            if not queries[number].any() or not len(candidates):
                continue
            values = self._scores(queries[number], candidates)
            order = np.lexsort((candidates, -np.round(values / _TIE)))[:k]
            places[number, : len(order)] = candidates[order]
            scores[number, : len(order)] = values[order]
        return places, scores

    def save(self) -> None:
        """Write an approximate index to disk, because building it takes long."""
        if self._path is None or self._is_saved or self._kind == "flat":
            return
        faiss = load_faiss()
        try:
            with atomic_file(self._path) as file:
                signed = TrailedFile(file)
                faiss.write_index(self._index, faiss.PyCallbackIOWriter(signed.write))
                # faiss does not read beyond its own end.
                signed.finish()
        except (OSError, RuntimeError) as error:
            logger.warning("%s: %s; the index is not saved", self._path, error)
        self._is_saved = True

    def _wanted_kind(self) -> str:
        few = int(self._alive.sum()) < _WORTH_APPROXIMATION
        return "flat" if few else self._settings.index

    def _candidates(self, queries: Vectors, k: int) -> Iterator[Places]:
        """For each query the places that may be among its `k` best."""
        faiss = load_faiss()
        targets = normalised(queries) if self._settings.metric == "cosine" else queries
        targets = np.ascontiguousarray(targets)
        wanted = min(k + _TIE_MARGIN, self._index.ntotal)
        _, places = self._index.search(targets, wanted, params=self._parameters(wanted))
        newest = np.flatnonzero(self._alive[self._end :]) + self._end
        if len(newest):
            vectors = self._prepared(newest)
            wanted = min(k + _TIE_MARGIN, len(newest))
            _, near = faiss.knn(targets, vectors, wanted, metric=self._index.metric_type)
            places = np.concatenate((places, newest[near]), axis=1)
        return (line[line >= 0] for line in places)

    def _parameters(self, wanted: int) -> Any:
        """Search parameters of the index, restricted to vectors that are alive."""
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
        # faiss does not take ownership by itself.
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
        self._is_saved = False

    def _prepared(self, places: Places) -> Vectors:
        vectors = self._vectors[places].astype(np.float32)
        if self._settings.metric == "cosine":
            vectors = normalised(vectors)
        return np.ascontiguousarray(vectors)

    def _inner(self) -> Any:
        return load_faiss().downcast_index(self._index.index)

    def _load(self) -> None:
        """Load the saved index if it belongs to these vectors."""
        kind = self._wanted_kind()
        path = self._path if self._path and self._path.exists() else self._former_path
        if path is None or kind == "flat" or not path.exists():
            return
        faiss = load_faiss()
        types = {"hnsw": faiss.IndexHNSWFlat, "ivf-sq8": faiss.IndexIVFScalarQuantizer}
        try:
            verify_trailer(path)
            index = faiss.read_index(str(path))
        except (RuntimeError, OSError, ValueError) as error:
            logger.warning("%s: %s; rebuilding it", path, error)
            return
        if not isinstance(index, faiss.IndexIDMap) or not isinstance(
            faiss.downcast_index(index.index), types[kind]
        ):
            return
        places = faiss.vector_to_array(index.id_map)
        if index.d != self._vectors.shape[1] or (len(places) and places.max() >= len(self._alive)):
            return
        self._index, self._kind, self._is_saved = index, kind, True
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
    """Import faiss; MissingExtraError if it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError(_NO_FAISS) from error
    return faiss


def check_faiss() -> None:
    """Raise MissingExtraError if faiss is not installed, without importing it."""
    if importlib.util.find_spec("faiss") is None:
        raise MissingExtraError(_NO_FAISS)
