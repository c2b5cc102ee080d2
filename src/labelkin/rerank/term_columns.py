"""Stems and pairs of neighbouring stems as columns of a matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# In how many documents a stem and a pair of stems must occur to be worth a column.
_LEAST_STEMS = 2
_LEAST_PAIRS = 4

Floats = npt.NDArray[np.float32]


class TermColumns:
    """The terms that were frequent enough in some documents, and how telling each is.

    A pair of stems is a term with a space in it.
    """

    def __init__(self, terms: Sequence[str], idf: Floats) -> None:
        self.terms = terms
        self.idf = idf
        self.is_single = np.array([" " not in term for term in terms], dtype=np.bool_)
        self._columns = {term: column for column, term in enumerate(terms)}

    @classmethod
    def learned(cls, documents: Iterable[Sequence[str]], count: int) -> TermColumns:
        """The terms of `count` documents, given as stems in text order."""
        frequencies: Counter[str] = Counter()
        for stems in documents:
            frequencies.update(set(_terms(stems)))
        kept = sorted(
            term
            for term, frequency in frequencies.items()
            if frequency >= (_LEAST_PAIRS if " " in term else _LEAST_STEMS)
        )
        idf = np.log(count / np.array([frequencies[term] for term in kept], dtype=np.float32))
        return cls(kept, idf.astype(np.float32))

    def __len__(self) -> int:
        return len(self.terms)

    def column(self, term: str) -> int | None:
        """The column of a term, None for one that was too rare."""
        return self._columns.get(term)

    def counts(self, documents: Iterable[Sequence[str]]) -> csr_matrix[Any]:
        """How often each document has each term."""
        from scipy.sparse import csr_matrix

        known = self._columns
        starts: list[int] = [0]
        columns: list[int] = []
        counts: list[int] = []
        for stems in documents:
            found = Counter(known[term] for term in _terms(stems) if term in known)
            columns += found.keys()
            counts += found.values()
            starts.append(len(columns))
        matrix = csr_matrix(
            (
                np.array(counts, dtype=np.float32),
                np.array(columns, dtype=np.int32),
                np.array(starts, dtype=np.int64),
            ),
            shape=(len(starts) - 1, len(self)),
        )
        matrix.sort_indices()
        return matrix

    def weighted(self, counts: csr_matrix[Any], *, pairs: bool) -> csr_matrix[Any]:
        """(1 + log count) · idf, each line brought to length 1; with or without pairs of stems."""
        weights = self.idf if pairs else np.where(self.is_single, self.idf, np.float32(0))
        made = counts.copy()
        made.data = (1 + np.log(counts.data)) * weights[counts.indices]
        made.eliminate_zeros()
        return unit_rows(made)


def unit_rows(matrix: csr_matrix[Any]) -> csr_matrix[Any]:
    """The lines of a matrix brought to length 1."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    lengths[lengths == 0] = 1
    matrix.data = (matrix.data / np.repeat(lengths, np.diff(matrix.indptr))).astype(np.float32)
    return matrix


def _terms(stems: Sequence[str]) -> Iterator[str]:
    yield from stems
    for first, second in pairwise(stems):
        yield f"{first} {second}"
