"""Texts as queries for a term engine: weighted terms, and what the text itself would score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labelkin.neighbours.bm25 import FieldStatistics, idf
from labelkin.neighbours.engine import TermStatistics
from labelkin.neighbours.heading_terms import field_kind, heading_field
from labelkin.represent.representation import Representation
from labelkin.represent.texts import PreparedTexts
from labelkin.store.config import NeighboursSection


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


class TermQueries:
    """Makes queries of texts."""

    def __init__(self, representation: Representation, settings: NeighboursSection) -> None:
        self._representation = representation
        self._settings = settings

    def of(self, texts: PreparedTexts, numbers: TermStatistics, most: int) -> list[TermQuery]:
        """The query of each text, with at most so many terms."""
        queries = [TermQuery({}, {}) for _ in texts.documents]
        terms, weights = texts.terms(self._representation.kinds), self._term_weights(texts)
        for kind, of_all in terms.items():
            known = self._known_terms(kind, set().union(*weights[kind]), numbers)
            for query, of_text, weight in zip(queries, of_all, weights[kind], strict=True):
                known.add_to(query, of_text, weight)
        return [query.strongest(most) for query in queries]

    def _known_terms(self, kind: str, terms: set[str], numbers: TermStatistics) -> _BatchTerms:
        """What the index knows of the terms of a batch."""
        idfs = term_idfs(numbers, kind, terms)
        heading_weight, in_headings = self._settings.heading_weight, dict[str, float]()
        everywhere = idfs
        if heading_weight:
            field = heading_field(kind)
            in_headings = term_idfs(numbers, field, terms)
            if in_headings:
                unknown = idf(numbers.statistics(field).documents, 0)
                everywhere = {**dict.fromkeys(in_headings, unknown), **idfs}
        statistics = numbers.statistics(kind)
        return _BatchTerms(kind, idfs, everywhere, heading_weight, in_headings, statistics)

    def _term_weights(self, texts: PreparedTexts) -> dict[str, list[dict[str, float]]]:
        """For each kind the weight of each term of each text."""
        kinds = self._representation.kinds
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


def term_idfs(numbers: TermStatistics, field: str, terms: Iterable[str]) -> dict[str, float]:
    """The idf of each of these different terms that the index has."""
    distinct = list(terms)
    frequencies = numbers.document_frequencies(field, distinct)
    documents = numbers.statistics(field).documents
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
