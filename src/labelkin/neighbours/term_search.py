"""Finding neighbours by the terms that they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.neighbours.bm25 import FieldStatistics, idf
from labelkin.neighbours.bulk import SMALLEST_BATCH, BulkIndex
from labelkin.neighbours.engine import EngineSearcher, Hits
from labelkin.neighbours.heading_terms import HeadingTerms, field_kind, heading_field
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.postings_searcher import PostingsSearcher
from labelkin.neighbours.search import IN_HEADINGS, MatchedTerm, NeighbourSearch, SearchContext
from labelkin.neighbours.term_index import TermIndex
from labelkin.represent.representation import Representation
from labelkin.represent.texts import Texts
from labelkin.store.derived import BuildProgress, StoreDamagedError
from labelkin.store.snapshot import Snapshot

# Queries that a thread takes at a time.
_CHUNK = 16


@dataclass(frozen=True, slots=True)
class TermQuery:
    """The terms of a text that the index has, with their weights by field.

    `shares` is what each, by kind and term, adds to the text's own score.
    """

    shares: dict[tuple[str, str], float]
    weighted: dict[str, dict[str, float]]

    @property
    def own_score(self) -> float:
        """What the text would score as a document of the index, one without headings."""
        return sum(self.shares.values())

    def strongest(self, count: int) -> TermQuery:
        """The query with its `count` most informative terms, all of them for 0."""
        if not count or len(self.shares) <= count:
            return self
        ordered = sorted(self.shares, key=lambda key: -self.shares[key])[:count]
        shares = {key: self.shares[key] for key in ordered}
        weighted = {
            field: {term: one for term, one in terms.items() if (field_kind(field), term) in shares}
            for field, terms in self.weighted.items()
        }
        return TermQuery(shares, weighted)


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
        kinds, searcher = self.representation.kinds, self._searcher
        theirs = self.texts(list(neighbours.values())).terms(kinds)
        if self._settings.heading_weight:
            names = HeadingTerms(kinds, self.context.cache).of(
                self.snapshot, list(neighbours.items())
            )
            theirs |= {heading_field(kind): of_all for kind, of_all in names.items()}
        (query,) = self._queries(self.texts([document]), searcher, most=0)
        matches: list[list[MatchedTerm]] = [[] for _ in neighbours]
        for field, weights in query.weighted.items():
            shown = field if field_kind(field) == field else IN_HEADINGS
            idfs = self._idfs(searcher, field, weights)
            statistics = searcher.statistics(field)
            for matched, terms in zip(matches, theirs[field], strict=True):
                shares = statistics.contributions(Counter(terms), len(terms), idfs)
                matched += [
                    MatchedTerm(shown, term, weights[term] * share)
                    for term, share in shares.items()
                ]
        return [_strongest(matched, limit) for matched in matches]

    def _queries(self, texts: Texts, searcher: EngineSearcher, most: int) -> list[TermQuery]:
        """The query of each text, with at most so many terms."""
        queries = [TermQuery({}, {}) for _ in texts.documents]
        terms, weights = texts.terms(self.representation.kinds), self._term_weights(texts)
        for kind, of_all in terms.items():
            known = self._known_terms(kind, set().union(*weights[kind]), searcher)
            for query, of_text, weight in zip(queries, of_all, weights[kind], strict=True):
                known.add_to(query, of_text, weight)
        return [query.strongest(most) for query in queries]

    def _known_terms(self, kind: str, terms: set[str], searcher: EngineSearcher) -> _BatchTerms:
        """What the index knows of the terms of a batch."""
        idfs = self._idfs(searcher, kind, terms)
        heading_weight, in_headings = self._settings.heading_weight, dict[str, float]()
        everywhere = idfs
        if heading_weight:
            field = heading_field(kind)
            in_headings = self._idfs(searcher, field, terms)
            if in_headings:
                unknown = idf(searcher.statistics(field).documents, 0)
                everywhere = {**dict.fromkeys(in_headings, unknown), **idfs}
        statistics = searcher.statistics(kind)
        return _BatchTerms(kind, idfs, everywhere, heading_weight, in_headings, statistics)

    def _term_weights(self, texts: Texts) -> dict[str, list[dict[str, float]]]:
        """For each kind the weight of each term of each text."""
        kinds = self.representation.kinds
        if self._settings.term_frequency == "once":
            return {
                kind: [dict.fromkeys(terms, 1.0) for terms in of_all]
                for kind, of_all in texts.terms(kinds).items()
            }
        extra = self._settings.title_weight - 1
        titles = texts.title_terms(kinds) if extra else {}
        weights: dict[str, list[dict[str, float]]] = {}
        for kind, of_all in texts.terms(kinds).items():
            weights[kind] = []
            for place, terms in enumerate(of_all):
                counts = Counter(terms)
                for term in titles[kind][place] if extra else ():
                    # The keywords of a title need not be keywords of the text.
                    if term in counts:
                        counts[term] += extra
                weights[kind].append({term: 1 + math.log(n) for term, n in counts.items()})
        return weights

    @staticmethod
    def _idfs(searcher: EngineSearcher, field: str, terms: Iterable[str]) -> dict[str, float]:
        """The idf of each of these different terms that the index has."""
        distinct = list(terms)
        frequencies = searcher.document_frequencies(field, distinct)
        documents = searcher.statistics(field).documents
        if not documents:
            return {}
        return {
            term: idf(documents, frequency)
            for term, frequency in zip(distinct, frequencies, strict=True)
            if frequency
        }


@dataclass(frozen=True, slots=True)
class _BatchTerms:
    """The terms of a batch, of one kind, that the index has in texts or in headings.

    `idfs` are those of terms in texts, `in_headings` those of terms in headings;
    `everywhere` has all of them, with the idf in texts.
    """

    kind: str
    idfs: dict[str, float]
    everywhere: dict[str, float]
    heading_weight: float
    in_headings: dict[str, float]
    statistics: FieldStatistics

    def add_to(self, query: TermQuery, terms: Sequence[str], weights: Mapping[str, float]) -> None:
        """Add the terms of a text to its query."""
        query.weighted[self.kind] = {
            term: weight for term, weight in weights.items() if term in self.idfs
        }
        everywhere, in_headings = self.everywhere, self.in_headings
        if self.heading_weight:
            # The engine multiplies by the rarity of a term in headings. That in texts is as good,
            # and scores then do not depend on the headings of documents that are held out.
            query.weighted[heading_field(self.kind)] = {
                term: self.heading_weight * weight * everywhere[term] / in_headings[term]
                for term, weight in weights.items()
                if term in in_headings
            }
        idfs = {term: everywhere[term] for term in weights if term in everywhere}
        shares = self.statistics.contributions(Counter(terms), len(terms), idfs)
        for term, share in shares.items():
            query.shares[self.kind, term] = weights[term] * share


def _strongest(matches: list[MatchedTerm], limit: int) -> list[MatchedTerm]:
    total = sum(match.share for match in matches) or 1.0
    ordered = sorted(matches, key=lambda match: (-match.share, match.term))
    return [replace(match, share=match.share / total) for match in ordered[:limit]]
