"""Sparse matrices, and saving dataclasses of them as plain arrays.

Matrices of a saved model are memory-mapped. Whatever reads all entries of one reads its
file, so signals multiply by its rows and leave the rest alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_PARTS = ("data", "indices", "indptr", "shape")
Made = TypeVar("Made")


def to_arrays(value: Any) -> dict[str, npt.NDArray[Any]]:
    """The fields of a dataclass of numbers, arrays and sparse matrices, as plain arrays."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if hasattr(part, "indptr"):
            arrays |= matrix_arrays(field.name, part)
        else:
            arrays[field.name] = np.asarray(part)
    return arrays


def from_arrays(kind: type[Made], arrays: Mapping[str, npt.NDArray[Any]]) -> Made:
    """The inverse of `to_arrays`; a field that is not there has its default, if it has one."""
    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in arrays:
            array = arrays[field.name]
            values[field.name] = array.item() if array.ndim == 0 else array
        elif field.default_factory is MISSING or f"{field.name}.{_PARTS[0]}" in arrays:
            values[field.name] = matrix_of(arrays, field.name)
    return kind(**values)


def matrix_arrays(name: str, matrix: csr_matrix[Any]) -> dict[str, npt.NDArray[Any]]:
    """A matrix as plain arrays whose names begin with its own."""
    return {f"{name}.{part}": np.asarray(getattr(matrix, part)) for part in _PARTS}


def matrix_of(arrays: Mapping[str, npt.NDArray[Any]], name: str) -> csr_matrix[Any]:
    """The inverse of `matrix_arrays`; the arrays are shared."""
    data, indices, starts, shape = (arrays[f"{name}.{part}"] for part in _PARTS)
    return _assembled(data, indices, starts, tuple(shape.tolist()))


def _assembled(
    data: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    starts: npt.NDArray[Any],
    shape: tuple[int, ...],
) -> csr_matrix[Any]:
    """A matrix of these arrays as they are: SciPy's constructor could read or convert them."""
    from scipy.sparse import csr_matrix

    rows, width = shape
    matrix: csr_matrix[Any] = csr_matrix((rows, width), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, starts
    return matrix


@dataclass(frozen=True, eq=False)
class HalfMatrix:
    """A sparse matrix by rows, in half precision: row i has `halves[starts[i]:starts[i + 1]]`.

    `places` are their columns, of which there are `width`. SciPy knows no half precision.
    """

    starts: npt.NDArray[np.int64]
    places: npt.NDArray[np.unsignedinteger[Any]]
    halves: npt.NDArray[np.float16]
    width: int

    @classmethod
    def of(cls, matrix: csr_matrix[Any]) -> HalfMatrix:
        """A matrix with its entries rounded."""
        width = matrix.shape[1]
        return cls(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.uint16 if width <= 1 << 16 else np.uint32),
            matrix.data.astype(np.float16),
            width,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return len(self.starts) - 1, self.width

    def rows(self, rows: npt.NDArray[np.integer[Any]]) -> csr_matrix[Any]:
        """Some rows in single precision."""
        from scipy.sparse import csr_matrix

        lengths = self.starts[rows + 1] - self.starts[rows]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        inside = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return csr_matrix(
            (self.halves[inside].astype(np.float32), self.places[inside].astype(np.int32), starts),
            shape=(len(rows), self.width),
        )

    def product(self, left: csr_matrix[Any]) -> csr_matrix[Any]:
        """The product of another matrix with this one, in single precision."""
        from scipy.sparse import csr_matrix

        used, places = np.unique(left.indices, return_inverse=True)
        few = csr_matrix((left.data, places, left.indptr), shape=(left.shape[0], len(used)))
        product: csr_matrix[Any] = few @ self.rows(used)
        return product


def with_data(matrix: csr_matrix[Any], data: npt.NDArray[Any]) -> csr_matrix[Any]:
    """Other entries at the same places, which are shared."""
    return _assembled(data, matrix.indices, matrix.indptr, matrix.shape)


def indicator(matrix: csr_matrix[Any]) -> csr_matrix[Any]:
    """1 for each entry of a matrix."""
    ones = matrix.copy()
    ones.data = np.ones(len(ones.data), dtype=np.float32)
    return ones


def resized(matrix: csr_matrix[Any], rows: int, width: int) -> csr_matrix[Any]:
    """The same entries in a larger matrix, which shares them."""
    starts = np.pad(matrix.indptr, (0, rows - matrix.shape[0]), mode="edge")
    return _assembled(matrix.data, matrix.indices, starts, (rows, width))
