"""Weighted sums of the rows of a table in half precision, compiled by numba.

Half precision has no type in numba. A number's bits, shifted to where single precision
has them, are the number divided by 2¹¹², for the smallest ones too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function

_SCALE = np.float32(2.0**112)
_SIGN, _REST = np.uint32(0x8000), np.uint32(0x7FFF)
_SIGN_SHIFT, _SHIFT = np.uint32(16), np.uint32(13)


@compile_function()
def add_rows(
    starts: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float32],
    halves: npt.NDArray[np.uint16],
    sums: npt.NDArray[np.float32],
) -> None:
    """Add to each line of `sums` the rows that a line of a sparse matrix names, by weight.

    `halves` are the bits of the table. Rows are added in the order of the matrix, as SciPy
    does.
    """
    bits = np.empty(halves.shape[1], dtype=np.uint32)
    singles = bits.view(np.float32)
    for line in range(len(sums)):
        for place in range(starts[line], starts[line + 1]):
            row, weight = rows[place], weights[place]
            for column in range(len(bits)):
                half = np.uint32(halves[row, column])
                bits[column] = ((half & _SIGN) << _SIGN_SHIFT) | ((half & _REST) << _SHIFT)
            for column in range(len(bits)):
                sums[line, column] += weight * (singles[column] * _SCALE)
