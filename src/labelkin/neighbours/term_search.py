"""Finding neighbours by the terms that they share."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.engine import IndexDamagedError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.neighbours.search import BuildProgress, MatchedTerm, NeighbourSearch
from labelkin.neighbours.term_index import IndexState, TermIndex
from labelkin.neighbours.term_searcher import TermQuery, TermSearcher
from labelkin.represent.cache import open_term_cache
from labelkin.represent.representation import make_representation
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

# Queries that a thread takes at a time.
_CHUNK = 16

Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


class TermSearch(NeighbourSearch):
    """Searches by the terms that texts share, with BM25."""

    def __init__(self, collection: Collection, representation: str) -> None:
        super().__init__(collection)
        self.representation = make_representation(representation, collection.config.representation)
        self._cache = open_term_cache(collection)
        self._index = TermIndex(collection, self.representation, self._cache)
        self._searcher: tuple[IndexState, TermSearcher] | None = None

    def close(self) -> None:
        """Let go of the files."""
        self._searcher = None
        self._index.close()
        self._cache.close()

    def build(self, progress: BuildProgress | None = None) -> int:
        """Bring the index up to date; the number of documents that were new to it."""
        return self._index.catch_up(progress)

    def _fingerprint(self, generation: int, token: str) -> dict[str, Any]:
        return {
            **super()._fingerprint(generation, token),
            "representation": self.representation.versions(),
            "engine": "bm25",
            "max_query_terms": self._settings.max_query_terms,
        }

    def _search(self, documents: Sequence[Document], k: int, store: bool) -> Neighbours:
        try:
            return self._found(documents, k, store)
        except IndexDamagedError as error:
            logger.warning("%s; the index is built anew", error)
            self._index.rebuild()
            self._searcher = None
            return self._found(documents, k, store)

    def _found(self, documents: Sequence[Document], k: int, store: bool) -> Neighbours:
        searcher = self._up_to_date_searcher()
        state = self._index.state
        with self._collection.database.snapshot():
            gone = set(self._collection.tombstones_since(state.generation))
            own_rows = self._collection.rows_of([document.id for document in documents])
        texts = self._prepared(documents)
        queries = self._queries(searcher, texts, store)

        def work(chunk: slice) -> list[Found]:
            found = []
            for query, document in zip(queries[chunk], documents[chunk], strict=True):
                own = own_rows.get(document.id)
                without = gone if own is None else gone | {own}
                found.append(searcher.nearest(query.queries, k, without))
            return found

        rows = np.full((len(documents), k), NOBODY, dtype=np.int64)
        scores = np.zeros((len(documents), k), dtype=np.float32)
        chunks = [slice(start, start + _CHUNK) for start in range(0, len(documents), _CHUNK)]
        threads = self._settings.threads or os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            for chunk, found in zip(chunks, pool.map(work, chunks), strict=True):
                for place, (near, values) in enumerate(found, start=chunk.start):
                    rows[place, : len(near)] = near
                    scores[place, : len(near)] = values
        neighbours = Neighbours(
            ids=tuple(document.id for document in documents),
            rows=rows,
            scores=scores,
            own_scores=np.array([query.own_score for query in queries], dtype=np.float32),
            fingerprint=self._fingerprint(state.generation, state.token),
        )
        return replace(neighbours, duplicates=self._duplicates(texts, neighbours))

    def matched_terms(
        self, document: Document, neighbours: Sequence[Document], limit: int = 5
    ) -> list[list[MatchedTerm]]:
        """For each neighbour the terms that bring it near to `document`, strongest first."""
        searcher = self._searcher[1] if self._searcher else self._up_to_date_searcher()
        texts = [*self._prepared([document]), *neighbours]
        found: list[list[MatchedTerm]] = [[] for _ in neighbours]
        terms = self._cache.terms(self.representation.kinds, texts, store=False)
        for name, (ours, *of_all) in terms.items():
            for matches, theirs in zip(found, of_all, strict=True):
                shares = searcher.contributions(name, ours, theirs)
                matches += [MatchedTerm(name, term, share) for term, share in shares.items()]
        return [_strongest(matches, limit) for matches in found]

    def _up_to_date_searcher(self) -> TermSearcher:
        try:
            self._index.catch_up()
        except CollectionBusyError as error:
            if self._searcher is None or self._searcher[0].kinds != self._index.state.kinds:
                raise
            logger.warning("%s; searching without the newest documents", error)
        if self._searcher is None or self._searcher[0] != self._index.state:
            searcher = TermSearcher(self._index.index, self._index.folder)
            self._searcher = (self._index.state, searcher)
        return self._searcher[1]

    def _queries(
        self, searcher: TermSearcher, texts: Sequence[Document], store: bool
    ) -> list[TermQuery]:
        queries = [TermQuery() for _ in texts]
        found = self._cache.terms(self.representation.kinds, texts, store=store)
        for name, of_all in found.items():
            for query, terms in zip(queries, of_all, strict=True):
                searcher.extend(query, name, terms)
        return [query.strongest(self._settings.max_query_terms) for query in queries]


def _strongest(matches: list[MatchedTerm], limit: int) -> list[MatchedTerm]:
    total = sum(match.share for match in matches) or 1.0
    ordered = sorted(matches, key=lambda match: (-match.share, match.term))
    return [replace(match, share=match.share / total) for match in ordered[:limit]]
