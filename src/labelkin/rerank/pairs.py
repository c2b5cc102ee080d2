"""Pairs of document and heading: the candidates that are scored, and looking values up for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin import compiled

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.rerank.matrices import HalfMatrix

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

# Documents from which on it pays to load compiled code.
_WORTH_COMPILING = 100
# Documents processed at a time.
_CHUNK = 200


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct pairs by document, then column, for `count` documents and `width` columns.

    A key is document × width + column; keys ascend.
    """

    keys: Integers
    count: int
    width: int

    @classmethod
    def union(cls, parts: Sequence[Integers], count: int, width: int) -> Pairs:
        """All pairs whose keys are in any of the parts."""
        keys = np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
        return cls(keys, count, width)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def documents(self) -> Integers:
        """The document of each pair."""
        return self.keys // self.width

    @cached_property
    def columns(self) -> Integers:
        """The column of each pair."""
        return self.keys % self.width

    @cached_property
    def starts(self) -> Integers:
        """Where the pairs of each document begin, and the end."""
        return np.searchsorted(self.documents, np.arange(self.count + 1))

    def places_in(self, keys: Integers) -> Integers:
        """Where each pair is among ascending `keys`, −1 where it is not."""
        if len(keys) == 0:
            return np.full(len(self), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(keys, self.keys), len(keys) - 1)
        return np.where(keys[places] == self.keys, places, -1)

    def values(self, keys: Integers, values: npt.NDArray[Any], missing: float = 0.0) -> Floats:
        """The value of each pair among values given by ascending `keys`."""
        return self.at(self.places_in(keys), values, missing)

    def at(self, places: Integers, values: npt.NDArray[Any], missing: float = 0.0) -> Floats:
        """The values at some places, `missing` where the place is −1."""
        selected = np.full(len(self), missing, dtype=np.float32)
        is_there = places >= 0
        selected[is_there] = values[places[is_there]]
        return selected

    def entries(self, matrix: csr_matrix[Any], missing: float = 0.0) -> Floats:
        """The entry of each pair in a matrix of documents × columns."""
        return self.values(*matrix_keys(matrix, self.width), missing)

    def product(self, left: csr_matrix[Any], right: csr_matrix[Any]) -> Floats:
        """The entry of each pair in left · right, where left has a line per document."""
        _check_shapes(left, right)
        if pays_compiling(self.count):
            from labelkin.rerank.pair_kernel import product_entries

            entries = np.zeros(len(self), dtype=np.float32)
            sums = np.zeros(right.shape[1], dtype=np.result_type(left.dtype, right.dtype))
            given = (self.starts, self.columns, sums, entries)
            product_entries(arrays_of(left), arrays_of(right), *given)
            return entries
        parts = [np.zeros(0, dtype=np.float32)]
        for first in range(0, self.count, _CHUNK):
            last = min(first + _CHUNK, self.count)
            span = slice(self.starts[first], self.starts[last])
            part = Pairs(self.keys[span] - first * self.width, last - first, self.width)
            parts.append(part.entries((left[first:last] @ right).tocsr()))
        return np.concatenate(parts)

    def matrix(self, values: npt.NDArray[Any], mask: npt.NDArray[np.bool_]) -> csr_matrix[Any]:
        """The values where the mask is true, as a matrix of documents × columns."""
        from scipy.sparse import csr_matrix

        places = (self.documents[mask], self.columns[mask])
        return csr_matrix((values[mask].astype(np.float32), places), shape=(self.count, self.width))

    def ranks(self, values: npt.NDArray[Any]) -> Floats:
        """The rank of each value within its document, from 0 for the highest."""
        if pays_compiling(self.count):
            from labelkin.rerank.pair_kernel import rank_values

            ranked = np.empty(len(self), dtype=np.float32)
            rank_values(self.starts, values, ranked)
            return ranked
        order = np.lexsort((-values, self.documents))
        ranks = np.empty(len(self), dtype=np.float32)
        ranks[order] = np.arange(len(self)) - self.starts[self.documents[order]]
        return ranks


def pays_compiling(documents: int) -> bool:
    """Whether to use `pair_kernel` for so many documents."""
    return compiled.pays(documents, _WORTH_COMPILING)


def arrays_of(matrix: csr_matrix[Any]) -> tuple[Integers, npt.NDArray[np.uint32], Floats]:
    """A matrix as compiled code takes it."""
    return (
        matrix.indptr.astype(np.int64, copy=False),
        matrix.indices.astype(np.int32, copy=False).view(np.uint32),
        matrix.data,
    )


def _check_shapes(left: csr_matrix[Any], right: csr_matrix[Any] | HalfMatrix) -> None:
    """Compiled code does not check them."""
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"matrices of {left.shape} and {right.shape} have no product")


def best_entries(
    left: csr_matrix[Any], right: csr_matrix[Any], count: int, shifts: Floats | None = None
) -> tuple[Integers, Floats]:
    """The columns of the highest entries in each line of left · right, ascending, and these.

    `shifts` are added to the columns. Compiled: see `pays_compiling`.
    """
    from labelkin.rerank.pair_kernel import best_sums

    _check_shapes(left, right)
    if shifts is None:
        shifts = np.zeros(right.shape[1], dtype=np.float32)
    places, values = _best_of(left, right, count)
    best_sums(arrays_of(left), arrays_of(right), shifts, places, values)
    return places, values


def best_half_entries(
    left: csr_matrix[Any], right: HalfMatrix, count: int, shifts: Floats
) -> tuple[Integers, Floats]:
    """The same for a right matrix in half precision."""
    from labelkin.rerank.pair_kernel import best_half_sums

    _check_shapes(left, right)
    places, values = _best_of(left, right, count)
    halves = (right.starts, right.places, right.halves.view(np.uint16))
    best_half_sums(arrays_of(left), halves, _singles(), shifts, places, values)
    return places, values


def _best_of(left: Any, right: Any, count: int) -> tuple[Integers, Floats]:
    shape = (left.shape[0], min(count, right.shape[1]))
    return np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.float32)


@cache
def _singles() -> Floats:
    """All numbers of half precision in single precision, by their bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def matrix_keys(matrix: csr_matrix[Any], width: int) -> tuple[Integers, npt.NDArray[Any]]:
    """The ascending keys of a matrix's entries, and the entries."""
    if not matrix.has_sorted_indices:
        matrix = matrix.sorted_indices()
    documents = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return documents * width + matrix.indices, matrix.data


def best_keys(keys: Integers, values: npt.NDArray[Any], width: int, limit: int) -> Integers:
    """Of ascending keys those with the `limit` highest values of each document."""
    count = int(keys[-1]) // width + 1 if len(keys) else 0
    best: Integers = keys[Pairs(keys, count, width).ranks(values) < limit]
    return best
