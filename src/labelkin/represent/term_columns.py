"""Stems, or all words, and pairs of neighbouring ones as columns of a matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.memo import Memo
from labelkin.represent.kind import TermKind
from labelkin.represent.stems import Stems, stemmer, words_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# What a word of the title begins with, where it is told from the same word elsewhere.
_TITLE = "^"
# What words of a title count beside all words of a text.
_TITLE_WEIGHT = np.float32(0.7)
_CENTURIES = ("19", "20")
# Documents whose terms are counted at a time.
_CHUNK = 500
# Terms from which on looking them up by hash pays: the hashes of all terms have to be made.
_WORTH_HASHING = 20_000

Floats = npt.NDArray[np.float32]


@lru_cache(maxsize=1)
def STEMS() -> TermKind:  # noqa: N802 - a constant, made when first needed
    """The kind of terms that the reranker counts, whatever the representation is."""
    stems = Stems()
    return TermKind("stems", stems.version, stems)


def wording_of(documents: Iterable[Document]) -> list[list[str]]:
    """All words of each document in text order, stemmed, and those of the title once more.

    Unlike `stems`, stop words are kept, and numbers as their kind: they tell
    ages, sexes and kinds of study.
    """
    return [_wording(document) for document in documents]


def _wording(document: Document) -> list[str]:
    rest = "\n".join((document.body, *document.fields.values()))
    snowball = stemmer(document.language or "en")
    title, body = (
        [_number_kind(word) if word.isdigit() else word for word in words_of(text)]
        for text in (document.title, rest)
    )
    if snowball is not None:
        title, body = snowball.stems(title), snowball.stems(body)
    return [*title, *body, *(_TITLE + word for word in title)]


def _number_kind(number: str) -> str:
    """How many digits a number has, or that it is a year."""
    digits = len(number)
    return "#year" if digits == 4 and number.startswith(_CENTURIES) else f"#{digits}"


class TermColumns:
    """The terms that were frequent enough in some documents, and their idf.

    A pair of words is a term with a space in it; terms of the title begin with a
    circumflex where they are told apart. Terms are sorted, and kept as one text
    (`names`, a line each): a few are looked up by bisection, which needs no
    preparation, many by their 64-bit hash: a table of strings would take ten times
    the memory.
    """

    def __init__(self, names: bytes, idf: Floats) -> None:
        self.names = names
        self.idf = idf
        text = np.frombuffer(names, dtype=np.uint8)
        ends = np.flatnonzero(text == ord("\n"))
        self._ends = np.append(ends, len(text)) if len(idf) else ends[:0]
        if len(self._ends) != len(idf):
            raise ValueError(f"{len(self._ends)} terms with {len(idf)} weights")
        self._starts = np.concatenate(([0], self._ends[:-1] + 1)) if len(idf) else ends[:0]
        spaces = np.flatnonzero(text == ord(" "))
        self.is_single = np.diff(np.searchsorted(spaces, np.append(self._starts, len(text)))) == 0
        self._has_pairs = not self.is_single.all()
        self._in_title = text[self._starts] == ord(_TITLE) if len(text) else self.is_single
        self._looked_up = 0
        self._memo = Memo()

    @classmethod
    def of(cls, terms: Iterable[str], idf: Floats) -> TermColumns:
        """The columns of sorted terms."""
        return cls("\n".join(terms).encode("utf-8"), idf)

    @property
    def terms(self) -> list[str]:
        """All terms in the order of their columns."""
        return self.names.decode("utf-8").split("\n") if len(self) else []

    @classmethod
    def counted(
        cls,
        documents: Iterable[Sequence[str]],
        count: int,
        *,
        at_least: int = 2,
        pairs_at_least: int = 4,
        most: int | None = None,
    ) -> tuple[TermColumns, list[str]]:
        """The terms of `count` documents, given as words in text order; also as a list.

        A word, or a pair of words, must be in so many documents to get a column; of
        more than `most`, the most frequent ones get one.
        """
        frequencies: Counter[str] = Counter()
        for stems in documents:
            frequencies.update(set(_terms(stems, pairs=True)))
        kept = sorted(
            term
            for term, frequency in frequencies.items()
            if frequency >= (pairs_at_least if " " in term else at_least)
        )
        if most is not None and len(kept) > most:
            kept = sorted(sorted(kept, key=lambda term: -frequencies[term])[:most])
        idf = np.log(count / np.array([frequencies[term] for term in kept], dtype=np.float32))
        return cls.of(kept, idf.astype(np.float32)), kept

    def __len__(self) -> int:
        return len(self.idf)

    def columns(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """The column of each term, −1 for those that were too rare."""
        if len(self) == 0 or not terms:
            return np.full(len(terms), -1, dtype=np.int64)
        self._looked_up += len(terms)
        if self._looked_up < _WORTH_HASHING:
            known = {term: self._bisected(term) for term in set(terms)}
            return np.array([known[term] for term in terms], dtype=np.int64)
        ordered, order = self._memo.get("hashes", self._hashed)
        hashes = np.fromiter(map(hash, terms), dtype=np.int64, count=len(terms))
        places = np.minimum(np.searchsorted(ordered, hashes), len(self) - 1)
        return np.where(ordered[places] == hashes, order[places], -1)

    def _hashed(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The hashes of all terms, ascending, and their columns."""
        hashes = np.fromiter(map(hash, self.terms), dtype=np.int64, count=len(self))
        order = np.argsort(hashes).astype(np.int32)
        return hashes[order], order

    def _bisected(self, term: str) -> int:
        wanted, starts, ends = term.encode("utf-8", "surrogatepass"), self._starts, self._ends
        low, high = 0, len(starts)
        while low < high:
            middle = (low + high) // 2
            name = self.names[starts[middle] : ends[middle]]
            if name == wanted:
                return middle
            if name < wanted:
                low = middle + 1
            else:
                high = middle
        return -1

    def counts(self, documents: Iterable[Sequence[str]]) -> csr_matrix[Any]:
        """How often each document has each term."""
        from scipy.sparse import csr_matrix

        lengths: list[npt.NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        columns, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        width, waiting = max(len(self), 1), iter(documents)
        while chunk := [_terms(stems, pairs=self._has_pairs) for stems in islice(waiting, _CHUNK)]:
            known = self.columns(list(chain.from_iterable(chunk)))
            keys = np.repeat(np.arange(len(chunk)), list(map(len, chunk))) * width + known
            distinct, times = np.unique(keys[known >= 0], return_counts=True)
            lengths.append(np.bincount(distinct // width, minlength=len(chunk)))
            columns.append(distinct % width)
            counts.append(times)
        starts = np.cumsum(np.concatenate(lengths))
        return csr_matrix(
            (
                np.concatenate(counts).astype(np.float32),
                np.concatenate(columns).astype(np.int32),
                starts,
            ),
            shape=(len(starts) - 1, len(self)),
        )

    def weighted(self, counts: csr_matrix[Any], *, pairs: bool) -> csr_matrix[Any]:
        """(1 + log count) · idf, each line scaled to length 1; with or without pairs of words.

        Terms of the title, where they are told apart, are scaled by themselves.
        """
        weights = self.idf if pairs else np.where(self.is_single, self.idf, np.float32(0))
        weighted = counts.copy()
        weighted.data = (1 + np.log(counts.data)) * weights[counts.indices]
        weighted.eliminate_zeros()
        if not self._in_title.any():
            return unit_rows(weighted)
        lines = np.repeat(np.arange(weighted.shape[0]), np.diff(weighted.indptr))
        parts = 2 * lines + self._in_title[weighted.indices]
        lengths = np.sqrt(np.bincount(parts, weighted.data**2, 2 * weighted.shape[0]))
        scale = np.where(self._in_title[weighted.indices], _TITLE_WEIGHT, np.float32(1))
        weighted.data = (weighted.data / lengths[parts] * scale).astype(np.float32)
        return weighted


def unit_rows(matrix: csr_matrix[Any]) -> csr_matrix[Any]:
    """Scale the lines of a matrix to length 1, in place."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    lengths[lengths == 0] = 1
    matrix.data = (matrix.data / np.repeat(lengths, np.diff(matrix.indptr))).astype(np.float32)
    return matrix


def _terms(stems: Sequence[str], *, pairs: bool) -> Sequence[str]:
    return [*stems, *map(" ".join, pairwise(stems))] if pairs else stems
