"""Finding the neighbours of documents in a collection."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError, ConfigError
from labelkin.neighbours.engine import IndexDamagedError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.neighbours.term_index import BuildProgress, IndexState, TermIndex
from labelkin.neighbours.term_searcher import TermQuery, TermSearcher
from labelkin.represent.cache import TermCache
from labelkin.represent.representation import make_representation
from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

MAX_K = 10_000
# Queries that a thread takes at a time.
_CHUNK = 16

Found = tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """A term that a text and its neighbour share, and its share of the score."""

    kind: str
    term: str
    share: float


class NeighbourSearch(Closing):
    """Searches a collection; what anyone has changed is seen by the next search."""

    def __init__(self, collection: Collection, representation: str | None = None) -> None:
        config = collection.config
        self._collection = collection
        self._settings = config.neighbours
        self.representation = make_representation(
            representation or config.representation.name, config.representation
        )
        self._cache = TermCache(
            collection.path / "cache" / "terms.sqlite", read_only=collection.database.read_only
        )
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

    def fingerprint(self) -> dict[str, Any]:
        """What neighbours found in the collection as it is now depend on."""
        generation = self._collection.generation()
        return self._fingerprint(generation.number, generation.token)

    def _fingerprint(self, generation: int, token: str) -> dict[str, Any]:
        return {
            "collection": self._collection.manifest.uid,
            "generation": generation,
            "token": token,
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
        if not 0 <= k <= MAX_K:
            raise ConfigError(f"k is {k}, which is not between 0 and {MAX_K:,}")
        try:
            return self._search(documents, k, store_terms)
        except IndexDamagedError as error:
            logger.warning("%s; the index is built anew", error)
            self._index.rebuild()
            self._searcher = None
            return self._search(documents, k, store_terms)

    def _search(self, documents: Sequence[Document], k: int, store_terms: bool) -> Neighbours:
        searcher = self._up_to_date_searcher()
        state = self._index.state
        with self._collection.database.snapshot():
            gone = set(self._collection.tombstones_since(state.generation))
            own_rows = self._collection.rows_of([document.id for document in documents])
        texts = self._prepared(documents)
        queries = self._queries(searcher, texts, store_terms)

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
            if self._searcher is None:
                raise
            logger.warning("%s; searching without the newest documents", error)
        if self._searcher is None or self._searcher[0] != self._index.state:
            searcher = TermSearcher(self._index.index, self._index.folder)
            self._searcher = (self._index.state, searcher)
        return self._searcher[1]

    def _queries(
        self, searcher: TermSearcher, texts: Sequence[Document], store_terms: bool
    ) -> list[TermQuery]:
        queries = [TermQuery() for _ in texts]
        found = self._cache.terms(self.representation.kinds, texts, store=store_terms)
        for name, of_all in found.items():
            for query, terms in zip(queries, of_all, strict=True):
                searcher.extend(query, name, terms)
        return [query.strongest(self._settings.max_query_terms) for query in queries]

    def _prepared(self, documents: Sequence[Document]) -> list[Document]:
        """The documents as they would be stored: not too long, and with a language.

        In a collection with one language, a text that states none is in that
        one: nothing else could be found, and short texts are easily mistaken.
        """
        limit = self._collection.config.documents.max_characters
        expected = self._collection.only_language()
        return [
            self._collection.in_its_language(document.cut(limit), expected)
            for document in documents
        ]

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


def _strongest(matches: list[MatchedTerm], limit: int) -> list[MatchedTerm]:
    total = sum(match.share for match in matches) or 1.0
    ordered = sorted(matches, key=lambda match: (-match.share, match.term))
    return [replace(match, share=match.share / total) for match in ordered[:limit]]
