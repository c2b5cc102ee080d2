"""BM25 by its formula, for scores that the engine does not report.

    score(q, d) = Σ_t idf(t) · (k1 + 1) · tf / (tf + k1 · (1 − b + b · |d| / avgdl))
    idf(t)      = ln(1 + (N − n_t + 0.5) / (n_t + 0.5))

with each query term counted once. The engine keeps the length |d| in one byte,
as Lucene does: exact up to 40, then with four significant bits, rounded down.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

K1 = 1.2
B = 0.75


def _length_table() -> list[int]:
    """The 256 lengths that fit in a byte: 24 free ones, then a tiny float above them."""
    table = list(range(24))
    for code in range(256 - 24):
        bits, shift = code & 7, (code >> 3) - 1
        table.append(24 + (bits if shift < 0 else (bits | 8) << shift))
    return table


LENGTHS = _length_table()


def quantised_length(length: int) -> int:
    """The length that the engine stores: the largest of its 256 that is not greater."""
    return LENGTHS[bisect_right(LENGTHS, length) - 1]


def idf(documents: int, with_term: int) -> float:
    """The inverse document frequency of a term that `with_term` of `documents` contain."""
    return math.log(1 + (documents - with_term + 0.5) / (with_term + 0.5))


def damping(length: float, average_length: float) -> float:
    """What dampens the frequencies of terms in a document; `length` is quantised."""
    return K1 * (1 - B + B * length / (average_length or 1.0))


def term_score(frequency: float, length: float, average_length: float) -> float:
    """The score of a term in a document, without the idf; `length` is quantised."""
    return (K1 + 1) * frequency / (frequency + damping(length, average_length))


@dataclass(frozen=True, slots=True)
class FieldStatistics:
    """The statistics of a field that BM25 needs."""

    documents: int
    average_length: float

    def contributions(
        self, frequencies: Mapping[str, int], length: int, idfs: Mapping[str, float]
    ) -> dict[str, float]:
        """What each term with an idf adds to the score of a document.

        `frequencies` and `length` are the document's; terms it lacks add nothing.
        """
        added = damping(quantised_length(length), self.average_length)
        return {
            term: weight * ((K1 + 1) * frequency / (frequency + added))
            for term, weight in idfs.items()
            if (frequency := frequencies.get(term))
        }
