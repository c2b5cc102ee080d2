"""Finding neighbours by the terms that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.neighbours.bulk import SMALLEST_BATCH, BulkIndex
from labelkin.neighbours.engine import EngineSearcher, Hits, TermStatistics
from labelkin.neighbours.heading_terms import HeadingTerms, field_kind, heading_field
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.postings_searcher import PostingsSearcher
from labelkin.neighbours.search import IN_HEADINGS, MatchedTerm, NeighbourSearch, SearchContext
from labelkin.neighbours.term_index import TermIndex
from labelkin.neighbours.term_query import TermQueries, TermQuery, term_idfs
from labelkin.represent.representation import Representation
from labelkin.represent.texts import Texts
from labelkin.store.derived import BuildProgress, StoreDamagedError
from labelkin.store.snapshot import Snapshot

# Queries that a thread takes at a time.
_CHUNK = 16


class TermSearch(NeighbourSearch):
    """Searches one generation by the terms that texts share, with BM25."""

    def __init__(
        self,
        snapshot: Snapshot,
        context: SearchContext,
        representation: Representation,
        index: TermIndex,
        bulk: BulkIndex | None = None,
    ) -> None:
        super().__init__(snapshot, context)
        self.representation = representation
        self._index = index
        self._searcher = index.searcher(snapshot)
        self._bulk = bulk
        self._bulk_searcher: PostingsSearcher | None = None

    def expect(self, queries: int, progress: BuildProgress | None = None) -> bool:
        """Whether they are worth the engine for batches, whose index is then built."""
        return self._bulk is not None and self._bulk.expect(queries, self.snapshot, progress)

    def decide(self, is_bulk: bool) -> None:
        """Use the engine for batches, or do without."""
        if self._bulk is not None:
            self._bulk.decide(is_bulk)

    def _fingerprint(self) -> dict[str, Any]:
        return {
            "representation": self.representation.versions(),
            "engine": self._scoring(),
            "max_query_terms": self._settings.max_query_terms,
        }

    def _scoring(self) -> str:
        """How documents are scored; plain BM25 is called the same as in earlier versions."""
        settings = self._settings
        parts = ["bm25"]
        if settings.term_frequency != "once":
            parts.append(f"terms by {settings.term_frequency} frequency")
            parts.append(f"titles x{settings.title_weight}")
        if settings.heading_weight:
            parts.append(f"headings x{settings.heading_weight:g}")
        return ", ".join(parts)

    def _search(self, texts: Texts, k: int) -> Neighbours:
        if (searcher := self._searcher_of_batches(len(texts))) is not None:
            try:
                return self._nearest(texts, k, searcher)
            except StoreDamagedError as error:
                # Else the other engine, whose statistics it uses, is damaged; that shows below.
                if self._bulk is not None and searcher.is_damaged:
                    self._bulk.report_damage(str(error), self.snapshot)
                self._bulk_searcher = None
        try:
            self._index.check_sound()
            return self._nearest(texts, k, self._searcher)
        except StoreDamagedError as error:
            self._searcher = self._index.repaired(self.snapshot, self._searcher, str(error))
            return self._nearest(texts, k, self._searcher)

    def _searcher_of_batches(self, queries: int) -> PostingsSearcher | None:
        """The engine for batches, if there are so many queries that it pays."""
        if self._bulk is None or queries < SMALLEST_BATCH:
            return None
        if self._bulk_searcher is None:
            self._bulk_searcher = self._bulk.searcher_for(queries, self.snapshot, self._searcher)
        return self._bulk_searcher

    def _nearest(self, texts: Texts, k: int, searcher: EngineSearcher) -> Neighbours:
        queries = self._queries(texts, searcher, self._settings.max_query_terms)
        excluded = texts.own_rows

        def work(chunk: slice) -> list[Hits]:
            weighted = [query.weighted for query in queries[chunk]]
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
        self, document: Document, neighbours: Mapping[int, Document], limit: int = 5
    ) -> list[list[MatchedTerm]]:
        """For each neighbour the terms that it shares with `document`, strongest first.

        A term that it has in its text and in its headings is listed twice.
        """
        kinds, numbers = self.representation.kinds, self._term_statistics()
        theirs = self.texts(list(neighbours.values())).terms(kinds)
        if self._settings.heading_weight:
            names = HeadingTerms(kinds, self.context.cache).of(
                self.snapshot, list(neighbours.items())
            )
            theirs |= {heading_field(kind): of_all for kind, of_all in names.items()}
        (query,) = self._queries(self.texts([document]), numbers, most=0)
        matches: list[list[MatchedTerm]] = [[] for _ in neighbours]
        for field, weights in query.weighted.items():
            shown = field if field_kind(field) == field else IN_HEADINGS
            idfs = term_idfs(numbers, field, weights)
            statistics = numbers.statistics(field)
            for matched, terms in zip(matches, theirs[field], strict=True):
                shares = statistics.contributions(Counter(terms), len(terms), idfs)
                matched += [
                    MatchedTerm(shown, term, weights[term] * share)
                    for term, share in shares.items()
                ]
        return [_strongest(matched, limit) for matched in matches]

    def _term_statistics(self) -> TermStatistics:
        return self._searcher

    def _queries(self, texts: Texts, statistics: TermStatistics, most: int) -> list[TermQuery]:
        """The query of each text, with at most so many terms."""
        return TermQueries(self.representation, self._settings).of(texts, statistics, most)


def _strongest(matches: list[MatchedTerm], limit: int) -> list[MatchedTerm]:
    total = sum(match.share for match in matches) or 1.0
    ordered = sorted(matches, key=lambda match: (-match.share, match.term))
    return [replace(match, share=match.share / total) for match in ordered[:limit]]
