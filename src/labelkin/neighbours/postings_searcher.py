"""Searching segments of postings: a batch of queries is added up by compiled code."""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from threading import Lock

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.bm25 import K1, FieldStatistics
from labelkin.neighbours.engine import TIE, EngineSearcher, Hits, TermStatistics, WeightedTerms
from labelkin.neighbours.postings import Integers, Segment, term_hashes, term_key
from labelkin.store.derived import StoreDamagedError

_KNOWN_TERMS = 400_000
_ROOM = 1024
# Queries that are searched together; each has memory for `k` scores.
_BATCH = 64
# No term adds more to a score, before weight and idf.
_HIGHEST_IMPACT = 1.001 * (K1 + 1)
# tantivy reports numbers of documents as float32, which is exact below this.
_MOST_COUNTED = 1 << 24
_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)
_NO_SCORES = np.zeros(0, dtype=np.float32)
# Documents and scores, those of a query from one start to the next.
Candidates = tuple[Integers, npt.NDArray[np.float32], Integers]


class PostingsSearcher(EngineSearcher):
    """Adds up the postings of each query's terms and takes the best documents."""

    def __init__(
        self,
        segments: Sequence[Segment],
        removed: Integers,
        fields: Sequence[str],
        statistics: TermStatistics | None = None,
    ) -> None:
        self._segments = segments
        self._removed_rows = removed
        self._fields = fields
        self._other = statistics
        self._rows = np.concatenate([_NO_ROWS, *(segment.rows for segment in segments)])
        self._bases = np.cumsum([0, *(len(segment) for segment in segments)]).tolist()
        self._removed = [segment.places_of(removed) for segment in segments]
        self._lock = Lock()
        self._statistics: dict[str, FieldStatistics] = {}
        self._known = _KnownTerms(fields, len(segments))
        self._tables: list[npt.NDArray[np.float32]] | None = None
        #: Whether a search has met postings that cannot be right.
        self.is_damaged = False

    def scored_like(self, other: TermStatistics) -> PostingsSearcher:
        """The same documents, scored with the statistics of another engine's searcher.

        Engines differ in how long documents that were removed count; with the same
        statistics they give the same scores.
        """
        return PostingsSearcher(self._segments, self._removed_rows, self._fields, other)

    def statistics(self, field: str) -> FieldStatistics:
        """Removed documents count until their segment is merged."""
        if self._other is not None:
            return self._other.statistics(field)
        with self._lock:
            return self._own_statistics(field)

    def _own_statistics(self, field: str) -> FieldStatistics:
        if field not in self._statistics:
            documents = len(self._rows)
            number = self._fields.index(field)
            length = sum(int(segment.lengths[number]) for segment in self._segments)
            self._statistics[field] = FieldStatistics(documents, length / max(documents, 1))
        return self._statistics[field]

    def document_frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        """Removed documents count until their segment is merged."""
        if self._other is not None and not self._counts_like(self._other, field):
            return self._other.document_frequencies(field, terms)
        with self._lock:
            self._forget()
            slots = self._knowing(field, terms).slots[field]
            places = np.array([slots[term] for term in terms], dtype=np.int64)
            frequencies: list[int] = self._known.frequencies[places].tolist()
        return frequencies

    def _counts_like(self, other: TermStatistics, field: str) -> bool:
        """Whether another engine's index is sure to have the same documents, and no others.

        Then neither has any that were removed, because both have all that were not.
        """
        documents = other.statistics(field).documents
        return not len(self._removed_rows) and documents == len(self._rows) < _MOST_COUNTED

    def nearest(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        """Some queries at a time; numba releases the GIL meanwhile."""
        hits: list[Hits] = []
        for start in range(0, len(queries), _BATCH):
            part = slice(start, start + _BATCH)
            hits += self._nearest(queries[part], k, excluded[part])
        return hits

    def candidates(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        """For each query all documents that may be among the `k` best of several indexes.

        Beyond the `k` best of this one, these are documents whose scores count as equal to
        theirs if another index has a document with a higher score (`engine.best_hits`).
        """
        hits: list[Hits] = []
        for start in range(0, len(queries), _BATCH):
            part = slice(start, start + _BATCH)
            (places, scores, starts), margins = self._found(queries[part], k, excluded[part])
            for margin, (first, end) in zip(margins, pairwise(starts.tolist()), strict=True):
                near, values = self._rows[places[first:end]], scores[first:end]
                if len(values) > k:
                    lowest = np.partition(values, -k)[-k] - margin
                    near, values = near[values >= lowest], values[values >= lowest]
                hits.append((near, values))
        return hits

    def _nearest(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        from labelkin.neighbours.postings_kernel import best_candidates

        found, _ = self._found(queries, k, excluded)
        places, scores, starts = best_candidates(found, max(k, 1), TIE)
        near, bounds = self._rows[places], starts.tolist()
        return [(near[first:end], scores[first:end]) for first, end in pairwise(bounds)]

    def _found(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> tuple[Candidates, npt.NDArray[np.float64]]:
        """The candidates of each query, and how far scores may be apart that count as equal."""
        found = (_NO_ROWS, _NO_SCORES, np.zeros(len(queries) + 1, dtype=np.int64))
        if not k or not len(self._rows):
            return found, np.zeros(len(queries))
        from labelkin.neighbours.postings_kernel import add_candidates

        begins, ends, weights, starts = self._asked(queries)
        totals = np.concatenate(([0.0], np.cumsum(np.abs(weights), dtype=np.float64)))
        margins = 2 * TIE * _HIGHEST_IMPACT * np.diff(totals[starts])
        heaps = np.zeros((len(queries), k), dtype=np.float32)
        rows = np.fromiter(chain.from_iterable(excluded), dtype=np.int64)
        owners = np.repeat(np.arange(len(queries)), list(map(len, excluded)))
        tables = self._impact_tables()
        for place, segment in enumerate(self._segments):
            without, without_starts = _places_by_query(segment, rows, owners, len(queries))
            is_right, found = add_candidates(
                begins[place],
                ends[place],
                weights,
                starts,
                segment.documents,
                segment.impacts,
                tables[place],
                self._bases[place],
                len(segment),
                self._removed[place],
                without,
                without_starts,
                margins,
                heaps,
                found,
            )
            if not is_right:
                self.is_damaged = True
                raise StoreDamagedError("postings of documents that are not there")
        return found, margins

    def _asked(
        self, queries: Sequence[WeightedTerms]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.float32], Integers]:
        """Where the postings of all terms begin and end in each segment, weights with idf.

        The last array has where the terms of each query begin among all.
        """
        sizes = [sum(map(len, query.values())) for query in queries]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        weights = [
            weight for query in queries for terms in query.values() for weight in terms.values()
        ]
        with self._lock:
            try:
                slots = self._slots(queries)
            except KeyError:
                self._forget()
                for field in self._fields:
                    asked = set[str]().union(*(query.get(field, ()) for query in queries))
                    self._knowing(field, asked)
                slots = self._slots(queries)
            known = self._known
            begins, ends = (np.take(one, slots, axis=1) for one in (known.begins, known.ends))
            return begins, ends, np.array(weights, dtype=np.float32) * known.idfs[slots], starts

    def _slots(self, queries: Sequence[WeightedTerms]) -> Integers:
        """Where all terms of the queries are among the known ones; KeyError if one is not."""
        slots: list[int] = []
        for query in queries:
            for field, terms in query.items():
                slots += map(self._known.slots[field].__getitem__, terms)
        return np.array(slots, dtype=np.int64)

    def _forget(self) -> None:
        """Drop the known terms if there are too many."""
        if len(self._known) > _KNOWN_TERMS:
            self._known = _KnownTerms(self._fields, len(self._segments))

    def _knowing(self, field: str, terms: Iterable[str]) -> _KnownTerms:
        """The known terms, with these of a field."""
        from labelkin.neighbours.postings_kernel import find_terms

        new = list(set(terms).difference(self._known.slots[field]))
        if not new:
            return self._known
        number = self._fields.index(field)
        keys = [term_key(number, term) for term in new]
        hashes = term_hashes(keys)
        key_ends = np.cumsum([len(key) for key in keys])
        joined = np.frombuffer(b"".join(keys), dtype=np.uint8)
        begins = np.zeros((len(self._segments), len(new)), dtype=np.uint64)
        ends = np.zeros_like(begins)
        for place, segment in enumerate(self._segments):
            found = find_terms(
                segment.hashes, segment.ends, segment.names, hashes, key_ends, joined
            )
            there = found >= 0
            begins[place, there] = segment.starts[found[there]]
            ends[place, there] = segment.starts[found[there] + 1]
        frequencies = (ends - begins).sum(axis=0).astype(np.int64)
        if self._other is None:
            documents = self._own_statistics(field).documents
            counted = frequencies
        else:
            documents = self._other.statistics(field).documents
            counted = frequencies
            if not self._counts_like(self._other, field):
                asked = self._other.document_frequencies(field, new)
                counted = np.array(asked, dtype=np.int64)
        idfs = np.log1p((documents - counted + 0.5) / (counted + 0.5))
        self._known.add(field, new, begins, ends, frequencies, idfs)
        return self._known

    def _impact_tables(self) -> list[npt.NDArray[np.float32]]:
        statistics = [self.statistics(field) for field in self._fields]
        with self._lock:
            if self._tables is None:
                self._tables = [segment.impact_table(statistics) for segment in self._segments]
            return self._tables


def _places_by_query(
    segment: Segment, rows: Integers, owners: Integers, queries: int
) -> tuple[Integers, Integers]:
    """Where the rows that belong to each query are in a segment, and where each query's begin."""
    places, there = segment.located(rows)
    places, owners = places[there], owners[there]
    order = np.lexsort((places, owners))
    return places[order], np.searchsorted(owners, np.arange(queries + 1))


class _KnownTerms:
    """Terms that have been asked for: their postings in each segment, and their idf.

    `slots` says where in the arrays each term of a field is; the arrays have room for more.
    """

    def __init__(self, fields: Sequence[str], segments: int) -> None:
        self.slots: dict[str, dict[str, int]] = {field: {} for field in fields}
        self.begins = np.zeros((segments, _ROOM), dtype=np.uint64)
        self.ends = np.zeros((segments, _ROOM), dtype=np.uint64)
        self.frequencies = np.zeros(_ROOM, dtype=np.int64)
        self.idfs = np.zeros(_ROOM, dtype=np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(
        self,
        field: str,
        terms: Sequence[str],
        begins: npt.NDArray[np.uint64],
        ends: npt.NDArray[np.uint64],
        frequencies: Integers,
        idfs: npt.NDArray[np.float64],
    ) -> None:
        """Add new terms of a field."""
        part = slice(self._count, self._count + len(terms))
        if part.stop > len(self.idfs):
            more = max(part.stop - len(self.idfs), len(self.idfs))
            self.begins = np.pad(self.begins, ((0, 0), (0, more)))
            self.ends = np.pad(self.ends, ((0, 0), (0, more)))
            self.frequencies = np.pad(self.frequencies, (0, more))
            self.idfs = np.pad(self.idfs, (0, more))
        self.slots[field].update(zip(terms, range(part.start, part.stop), strict=True))
        self.begins[:, part], self.ends[:, part] = begins, ends
        self.frequencies[part], self.idfs[part] = frequencies, idfs
        self._count = part.stop
