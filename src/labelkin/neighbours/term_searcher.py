"""Searching one state of the BM25 index."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection as Container
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.bm25 import FieldStatistics, idf
from labelkin.neighbours.engine import ROW, engine_errors_explained

if TYPE_CHECKING:
    import tantivy

# Documents whose scores differ by less, relative to the best, count as equal:
# a float32 sum depends on the order in which the engine adds.
_TIE = 1e-5
_TIE_MARGIN = 8
_MOST_KNOWN_TERMS = 1_000_000


@dataclass(frozen=True, slots=True)
class KnownTerm:
    """A term that the index has: how to ask for it, and how much it tells."""

    query: tantivy.Query
    idf: float


@dataclass(slots=True)
class TermQuery:
    """The known terms of a text, each with what it adds to the text's own score."""

    shares: list[float] = field(default_factory=list)
    queries: list[tantivy.Query] = field(default_factory=list)

    @property
    def own_score(self) -> float:
        """What the text would score as a document of the index."""
        return sum(self.shares)

    def strongest(self, count: int) -> TermQuery:
        """The query with its `count` most informative terms, all of them for 0."""
        if not count or len(self.queries) <= count:
            return self
        order = sorted(range(len(self.shares)), key=lambda place: -self.shares[place])[:count]
        return TermQuery(
            [self.shares[place] for place in order], [self.queries[place] for place in order]
        )


class TermSearcher:
    """A reader of the index as it was when this was made. Safe to share between threads."""

    def __init__(self, index: tantivy.Index, folder: Path) -> None:
        self._folder = folder
        self._schema = index.schema
        self._searcher = index.searcher()
        self._terms: dict[tuple[str, str], KnownTerm | None] = {}
        self._statistics: dict[str, FieldStatistics] = {}

    def extend(self, query: TermQuery, field_name: str, terms: Sequence[str]) -> None:
        """Add the known ones of a text's terms to its query, each once."""
        frequencies = Counter(terms)
        known = {
            term: found
            for term in frequencies
            if (found := self._known(field_name, term)) is not None
        }
        if not known:
            return
        idfs = {term: found.idf for term, found in known.items()}
        shares = self._statistics[field_name].contributions(frequencies, len(terms), idfs)
        query.shares += shares.values()
        query.queries += [known[term].query for term in shares]

    def contributions(
        self, field_name: str, terms: Sequence[str], neighbour_terms: Sequence[str]
    ) -> dict[str, float]:
        """What each term of a text adds to the score of a neighbour."""
        idfs = {
            term: found.idf
            for term in dict.fromkeys(terms)
            if (found := self._known(field_name, term)) is not None
        }
        if not idfs:
            return {}
        statistics = self._statistics[field_name]
        return statistics.contributions(Counter(neighbour_terms), len(neighbour_terms), idfs)

    def nearest(
        self, queries: Sequence[tantivy.Query], k: int, without: Container[int]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Rows and scores of the `k` best documents not in `without`; equal ones by row."""
        import tantivy

        if not queries or not k:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        should = tantivy.Occur.Should
        query = tantivy.Query.boolean_query([(should, part) for part in queries])
        limit = k + len(without) + _TIE_MARGIN
        while True:
            with engine_errors_explained(self._folder):
                hits = self._searcher.search(query, limit, count=False).hits
                values = self._searcher.fast_field_values(ROW, [address for _, address in hits])
            rows = np.array(values, dtype=np.int64)
            scores = np.array([score for score, _ in hits], dtype=np.float32)
            exhausted = len(hits) < limit
            if without:
                kept = ~np.isin(rows, list(without))
                rows, scores = rows[kept], scores[kept]
            best = float(scores[0]) if len(scores) else 0.0
            ranks = np.round(scores / (best * _TIE)) if best > 0 else scores
            # A tie that reaches past the last hit may hide a smaller row.
            if exhausted or (len(ranks) > k and ranks[k - 1] != ranks[-1]):
                break
            limit *= 2
        order = np.lexsort((rows, -ranks))[:k]
        return rows[order], scores[order]

    def _known(self, field_name: str, term: str) -> KnownTerm | None:
        """The term if the index has it; each is looked up once."""
        key = (field_name, term)
        if key in self._terms:
            return self._terms[key]
        import tantivy

        found = None
        with engine_errors_explained(self._folder):
            frequency = self._searcher.doc_freq(field_name, term)
            if frequency:
                query = tantivy.Query.term_query(
                    self._schema, field_name, term, index_option="freq"
                )
                if field_name not in self._statistics:
                    self._ask_statistics(field_name, query)
                statistics = self._statistics.get(field_name)
                if statistics is not None:
                    found = KnownTerm(query, idf(statistics.documents, frequency))
        if len(self._terms) >= _MOST_KNOWN_TERMS:
            self._terms.clear()
        self._terms[key] = found
        return found

    def _ask_statistics(self, field_name: str, query: tantivy.Query) -> None:
        """N and the average length, which the engine tells only when it explains a score.

        A term that only deleted documents had explains nothing; the next one will.
        """
        hits = self._searcher.search(query, 1, count=False).hits
        if hits:
            told = query.explain(self._searcher, hits[0][1]).to_json()
            values = dict(_leaves(json.loads(told)))
            self._statistics[field_name] = FieldStatistics(
                documents=int(values["N, total number of docs"]),
                average_length=values["avgdl, average length of field"],
            )


def _leaves(explanation: dict[str, Any]) -> Iterator[tuple[str, float]]:
    yield explanation["description"], explanation["value"]
    for part in explanation.get("details", ()):
        yield from _leaves(part)
