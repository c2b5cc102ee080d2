"""Evaluates trees bit by bit, compiled by numba; `trees.py` says how."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function
from labelkin.rerank.pairs import Floats

# The number of the lowest bit: a product with this constant has it in its first six bits, in
# another order (a de Bruijn sequence).
_SEQUENCE = 0x03F79D71B4CB0A89
_NUMBERS = np.zeros(64, dtype=np.uint8)
for _number in range(64):
    _NUMBERS[(_SEQUENCE << _number) % (1 << 64) >> 58] = _number


@compile_function()
def add_leaves(
    features: Floats,
    starts: npt.NDArray[np.uint64],
    thresholds: Floats,
    owners: npt.NDArray[np.uint16],
    kept: npt.NDArray[np.uint64],
    missing_right: npt.NDArray[np.bool_],
    leaves: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float64],
) -> None:
    """Set `sums` to the sum of the leaves that each line of features reaches.

    Arguments are those of `Trees.masks`.
    """
    trees = len(leaves)
    left = np.empty(trees, dtype=np.uint64)
    one, shift, sequence = np.uint64(1), np.uint64(58), np.uint64(_SEQUENCE)
    for line in range(len(features)):
        left[:] = ~np.uint64(0)
        for feature in range(len(starts) - 1):
            value = features[line, feature]
            place, end = starts[feature], starts[feature + 1]
            while place < end and thresholds[place] < value:
                left[owners[place]] &= kept[place]
                place += one
            if np.isnan(value):
                while place < end:
                    if missing_right[place]:
                        left[owners[place]] &= kept[place]
                    place += one
        total = 0.0
        for tree in range(trees):
            lowest = left[tree] & (~left[tree] + one)
            total += leaves[tree, _NUMBERS[lowest * sequence >> shift]]
        sums[line] = total
