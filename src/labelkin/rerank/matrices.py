"""Sparse matrices, and saving dataclasses of them as plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
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
    for field in _saved(value):
        part = getattr(value, field.name)
        if hasattr(part, "indptr"):
            for name in _PARTS:
                arrays[f"{field.name}.{name}"] = np.asarray(getattr(part, name))
        else:
            arrays[field.name] = np.asarray(part)
    return arrays


def from_arrays(kind: type[Made], arrays: Mapping[str, npt.NDArray[Any]]) -> Made:
    """The inverse of `to_arrays`; a field that is not there has its default, if it has one."""
    from scipy.sparse import csr_matrix

    values: dict[str, Any] = {}
    for field in _saved(kind):
        if field.name in arrays:
            array = arrays[field.name]
            values[field.name] = array.item() if array.ndim == 0 else array
        elif field.default_factory is MISSING or f"{field.name}.{_PARTS[0]}" in arrays:
            data, indices, starts, shape = (arrays[f"{field.name}.{part}"] for part in _PARTS)
            values[field.name] = csr_matrix((data, indices, starts), shape=tuple(shape.tolist()))
    return kind(**values)


def _saved(value: Any) -> list[Field[Any]]:
    return [one for one in fields(value) if one.metadata.get("saved", True)]


def indicator(matrix: csr_matrix[Any]) -> csr_matrix[Any]:
    """1 for each entry of a matrix."""
    ones = matrix.copy()
    ones.data = np.ones(len(ones.data), dtype=np.float32)
    return ones


def resized(matrix: csr_matrix[Any], rows: int, width: int) -> csr_matrix[Any]:
    """The same entries in a larger matrix."""
    from scipy.sparse import csr_matrix

    starts = np.pad(matrix.indptr, (0, rows - matrix.shape[0]), mode="edge")
    return csr_matrix((matrix.data, matrix.indices, starts), shape=(rows, width))
