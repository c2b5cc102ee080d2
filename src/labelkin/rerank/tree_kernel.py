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


# The nodes of a step: those of one feature, whose bits are cleared at once if all are false.
_STEP = 64
# The table of what each step leaves should stay in the cache: with many trees, steps are longer.
_MOST_ENTRIES = 1 << 20


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
    trees, width = len(leaves), len(starts) - 1
    left = np.empty(trees, dtype=np.uint64)
    one, shift, sequence = np.uint64(1), np.uint64(58), np.uint64(_SEQUENCE)
    # What the first nodes of a feature leave together, for each full step of nodes.
    size = np.uint64(max(_STEP, len(thresholds) * trees // _MOST_ENTRIES))
    steps = np.empty((len(thresholds) // size, trees), dtype=np.uint64)
    first_steps = np.empty(width, dtype=np.uint64)
    count = 0
    for feature in range(width):
        first_steps[feature] = count
        left[:] = ~np.uint64(0)
        for place in range(starts[feature], starts[feature + 1]):
            left[owners[place]] &= kept[place]
            if (place + one - starts[feature]) % size == 0:
                steps[count] = left
                count += 1
    for line in range(len(features)):
        left[:] = ~np.uint64(0)
        for feature in range(width):
            value = features[line, feature]
            place, end = starts[feature], starts[feature + 1]
            step = first_steps[feature]
            while place + size <= end and thresholds[place + size - one] < value:
                place += size
                step += one
            if step > first_steps[feature]:
                together = steps[step - one]
                for tree in range(trees):
                    left[tree] &= together[tree]
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
