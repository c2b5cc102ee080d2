"""Finding neighbours by the terms that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.neighbours.bm25 import idf
from labelkin.neighbours.engine import EngineSearcher, Hits
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.search import MatchedTerm, NeighbourSearch, SearchContext
from labelkin.neighbours.term_index import TermIndex
from labelkin.represent.representation import Representation
from labelkin.represent.texts import Texts
from labelkin.store.derived import StoreDamagedError
from labelkin.store.snapshot import Snapshot

# Queries that a thread takes at a time.
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class TermQuery:
    """The terms of a text that the index has, with what each adds to the text's own score."""

    shares: dict[tuple[str, str], float]

    @property
    def own_score(self) -> float:
        """What the text would score as a document of the index."""
        return sum(self.shares.values())

    def strongest(self, count: int) -> TermQuery:
        """The query with its `count` most informative terms, all of them for 0."""
        if not count or len(self.shares) <= count:
            return self
        ordered = sorted(self.shares, key=lambda key: -self.shares[key])[:count]
        return TermQuery({key: self.shares[key] for key in ordered})

    def weighted(self) -> dict[str, dict[str, float]]:
        """The terms as an engine takes them: by field, each counted once."""
        fields: dict[str, dict[str, float]] = {}
        for field, term in self.shares:
            fields.setdefault(field, {})[term] = 1.0
        return fields


class TermSearch(NeighbourSearch):
    """Searches one generation by the terms that texts share, with BM25."""

    def __init__(
        self,
        snapshot: Snapshot,
        context: SearchContext,
        representation: Representation,
        index: TermIndex,
    ) -> None:
        super().__init__(snapshot, context)
        self.representation = representation
        self._index = index
        self._searcher = index.searcher(snapshot)

    def _fingerprint(self) -> dict[str, Any]:
        return {
            "representation": self.representation.versions(),
            "engine": "bm25",
            "max_query_terms": self._settings.max_query_terms,
        }

    def _search(self, texts: Texts, k: int) -> Neighbours:
        try:
            self._index.check_sound()
            return self._nearest(texts, k, self._searcher)
        except StoreDamagedError as error:
            self._searcher = self._index.repaired(self.snapshot, self._searcher, str(error))
            return self._nearest(texts, k, self._searcher)

    def _nearest(self, texts: Texts, k: int, searcher: EngineSearcher) -> Neighbours:
        queries = self._queries(texts, searcher)
        excluded = texts.own_rows

        def work(chunk: slice) -> list[Hits]:
            weighted = [query.weighted() for query in queries[chunk]]
            return searcher.nearest(weighted, k, excluded[chunk])

        rows = np.full((len(texts), k), NO_NEIGHBOUR, dtype=np.int64)
        scores = np.zeros((len(texts), k), dtype=np.float32)
        chunks = [slice(start, start + _CHUNK) for start in range(0, len(texts), _CHUNK)]
        for chunk, hits in zip(chunks, self.context.mapped(work, chunks), strict=True):
            for place, (near, values) in enumerate(hits, start=chunk.start):
                rows[place, : len(near)] = near
                scores[place, : len(near)] = values
        return Neighbours(
            ids=tuple(document.id for document in texts.documents),
            rows=rows,
            scores=scores,
            own_scores=np.array([query.own_score for query in queries], dtype=np.float32),
        )

    def matched_terms(
        self, document: Document, neighbours: Sequence[Document], limit: int = 5
    ) -> list[list[MatchedTerm]]:
        """For each neighbour the terms that it shares with `document`, strongest first."""
        texts = self.texts([*self.snapshot.prepared([document]), *neighbours])
        matches: list[list[MatchedTerm]] = [[] for _ in neighbours]
        for field, (ours, *of_all) in texts.terms(self.representation.kinds).items():
            idfs = self._idfs(self._searcher, field, ours)
            statistics = self._searcher.statistics(field)
            for shared, theirs in zip(matches, of_all, strict=True):
                shares = statistics.contributions(Counter(theirs), len(theirs), idfs)
                shared += [MatchedTerm(field, term, share) for term, share in shares.items()]
        return [_strongest(shared, limit) for shared in matches]

    def _queries(self, texts: Texts, searcher: EngineSearcher) -> list[TermQuery]:
        shares: list[dict[tuple[str, str], float]] = [{} for _ in texts.documents]
        for field, of_all in texts.terms(self.representation.kinds).items():
            for place, terms in enumerate(of_all):
                idfs = self._idfs(searcher, field, terms)
                if idfs:
                    statistics = searcher.statistics(field)
                    added = statistics.contributions(Counter(terms), len(terms), idfs)
                    shares[place].update({(field, term): share for term, share in added.items()})
        limit = self._settings.max_query_terms
        return [TermQuery(of_text).strongest(limit) for of_text in shares]

    @staticmethod
    def _idfs(searcher: EngineSearcher, field: str, terms: Sequence[str]) -> dict[str, float]:
        """The idf of each term that the index has."""
        distinct = list(dict.fromkeys(terms))
        frequencies = searcher.document_frequencies(field, distinct)
        documents = searcher.statistics(field).documents
        if not documents:
            return {}
        return {
            term: idf(documents, frequency)
            for term, frequency in zip(distinct, frequencies, strict=True)
            if frequency
        }


def _strongest(matches: list[MatchedTerm], limit: int) -> list[MatchedTerm]:
    total = sum(match.share for match in matches) or 1.0
    ordered = sorted(matches, key=lambda match: (-match.share, match.term))
    return [replace(match, share=match.share / total) for match in ordered[:limit]]
