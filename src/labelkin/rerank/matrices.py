"""Values made of arrays and sparse matrices, as plain arrays and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_PARTS = ("data", "indices", "indptr", "shape")
Made = TypeVar("Made")


def to_arrays(value: Any) -> dict[str, npt.NDArray[Any]]:
    """The fields of a dataclass of numbers, arrays and sparse matrices, as plain arrays."""
    found: dict[str, npt.NDArray[Any]] = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if hasattr(part, "indptr"):
            for name in _PARTS:
                found[f"{field.name}.{name}"] = np.asarray(getattr(part, name))
        else:
            found[field.name] = np.asarray(part)
    return found


def from_arrays(kind: type[Made], arrays: Mapping[str, npt.NDArray[Any]]) -> Made:
    """What `to_arrays` gave, as a value of its kind again."""
    from scipy.sparse import csr_matrix

    values: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in arrays:
            array = arrays[field.name]
            values[field.name] = array.item() if array.ndim == 0 else array
        else:
            data, indices, starts, shape = (arrays[f"{field.name}.{part}"] for part in _PARTS)
            values[field.name] = csr_matrix((data, indices, starts), shape=tuple(shape.tolist()))
    return kind(**values)


def resized(matrix: csr_matrix[Any], rows: int, width: int) -> csr_matrix[Any]:
    """The same entries with more room."""
    from scipy.sparse import csr_matrix

    starts = np.pad(matrix.indptr, (0, rows - matrix.shape[0]), mode="edge")
    return csr_matrix((matrix.data, matrix.indices, starts), shape=(rows, width))
