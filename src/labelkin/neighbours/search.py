"""Finding the neighbours of documents in a collection."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.neighbours.term_index import BuildProgress, IndexState, TermIndex
from labelkin.neighbours.term_searcher import TermQuery, TermSearcher
from labelkin.represent.cache import TermCache
from labelkin.represent.representation import make_representation
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

# Queries that a thread takes at a time.
_CHUNK = 16

Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """A term that a text and its neighbour share, and its share of the score."""

    kind: str
    term: str
    share: float


class NeighbourSearch:
    """Searches a collection; what anyone has changed is seen by the next search."""

    def __init__(self, collection: Collection, representation: str | None = None) -> None:
        config = collection.config
        self._collection = collection
        self._settings = config.neighbours
        self._cache = TermCache(
            collection.path / "cache" / "terms.sqlite", read_only=collection.database.read_only
        )
        self.representation = make_representation(
            representation or config.representation.name, config.representation
        )
        self._index = TermIndex(collection, self.representation, self._cache)
        self._searcher: tuple[IndexState, TermSearcher] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self._searcher = None
        self._index.close()
        self._cache.close()

    def build(self, progress: BuildProgress | None = None) -> int:
        """Bring the index up to date; the number of documents that were new to it."""
        return self._index.catch_up(progress)

    def fingerprint(self) -> dict[str, Any]:
        """What the neighbours found now depend on."""
        return {
            "collection": self._collection.manifest.uid,
            "generation": self._collection.generation().number,
            "representation": self.representation.versions(),
            "engine": "bm25",
            "max_query_terms": self._settings.max_query_terms,
        }

    def search(
        self,
        documents: Sequence[Document],
        k: int | None = None,
        *,
        store_terms: bool = False,
    ) -> Neighbours:
        """The `k` nearest documents of each, nearest first, equal ones by row.

        A document that is in the collection, by its id, is searched leave-one-out:
        it is never its own neighbour. Neighbours with the very same text are
        listed as duplicates. `store_terms` keeps the extracted terms on disk.
        """
        k = self._settings.k if k is None else k
        searcher = self._up_to_date_searcher()
        gone = set(self._collection.tombstones_since(self._index.state.generation))
        own_rows = self._collection.rows_of([document.id for document in documents])
        queries = self._queries(searcher, documents, store_terms)
        limit = self._settings.max_query_terms

        def work(chunk: slice) -> list[Found]:
            found = []
            for query, document in zip(queries[chunk], documents[chunk], strict=True):
                own = own_rows.get(document.id)
                without = gone if own is None else gone | {own}
                found.append(searcher.nearest(query.strongest(limit), k, without))
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
            fingerprint=self.fingerprint(),
        )
        return replace(neighbours, duplicates=self._duplicates(documents, neighbours))

    def matched_terms(
        self, document: Document, neighbour: Document, limit: int = 5
    ) -> list[MatchedTerm]:
        """The terms that bring a document of the collection near to another, strongest first."""
        searcher = self._up_to_date_searcher()
        pair = [self._in_its_language(document), neighbour]
        found: list[MatchedTerm] = []
        for kind in self.representation.kinds:
            ours, theirs = self._cache.terms(kind, pair, store=False)
            shares = searcher.contributions(kind.name, ours, theirs)
            found += [MatchedTerm(kind.name, term, share) for term, share in shares.items()]
        total = sum(match.share for match in found) or 1.0
        found.sort(key=lambda match: (-match.share, match.term))
        return [replace(match, share=match.share / total) for match in found[:limit]]

    def _up_to_date_searcher(self) -> TermSearcher:
        try:
            self._index.catch_up()
        except CollectionBusyError as error:
            if self._searcher is None:
                raise
            logger.warning("%s; searching without the newest documents", error)
        if self._searcher is None or self._searcher[0] != self._index.state:
            self._searcher = (self._index.state, TermSearcher(self._index.index))
        return self._searcher[1]

    def _queries(
        self, searcher: TermSearcher, documents: Sequence[Document], store_terms: bool
    ) -> list[TermQuery]:
        texts = [self._in_its_language(document) for document in documents]
        queries = [TermQuery() for _ in texts]
        for kind in self.representation.kinds:
            of_all = self._cache.terms(kind, texts, store=store_terms)
            for query, terms in zip(queries, of_all, strict=True):
                searcher.extend(query, kind.name, terms)
        return queries

    def _in_its_language(self, document: Document) -> Document:
        cut = document.cut(self._collection.config.documents.max_characters)
        return self._collection.in_its_language(cut)

    def _duplicates(
        self, documents: Sequence[Document], neighbours: Neighbours
    ) -> tuple[tuple[str, int], ...]:
        """Pairs of a document and a row that holds the very same text."""
        distances = neighbours.distances("self")
        places = np.argwhere((distances == 0) & (neighbours.rows != NOBODY))
        texts = self._collection.texts_of(
            [int(neighbours.rows[place, rank]) for place, rank in places]
        )
        pairs = [(int(place), int(neighbours.rows[place, rank])) for place, rank in places]
        return tuple(
            (documents[place].id, row)
            for place, row in pairs
            if row in texts and texts[row].text == documents[place].text
        )
