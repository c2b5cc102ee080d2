"""Shapley values of trees, compiled by numba; `shapley.py` has the formula."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function
from labelkin.rerank.pairs import Floats, Integers

# Lines of features that go through the trees together: the arrays for more do not fit the cache.
_LINES = 16


@compile_function()
def add_contributions(
    features: Floats,
    roots: Integers,
    split: Integers,
    thresholds: Floats,
    missing_left: npt.NDArray[np.bool_],
    left: Integers,
    right: Integers,
    leaves: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    before: Integers,
    points: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    contributions: npt.NDArray[np.float64],
) -> None:
    """Add what each feature contributes to the columns of `contributions`.

    The arguments before it are those of `Trees` and of `Branches`. Nodes come after their
    parents, and those of a tree before those of the next.
    """
    # Loops are vectorised only if they write to one array and read from few.
    ends = np.empty(len(roots), dtype=np.int64)
    end, most = len(split), 0
    for tree in range(len(roots) - 1, -1, -1):
        ends[tree] = end
        if roots[tree] >= 0:
            most = max(most, end - roots[tree])
            end = roots[tree]
    # The branch that leads to each node of one tree.
    parents = np.empty(most, dtype=np.int64)
    for start in range(0, len(features), _LINES):
        lines = min(_LINES, len(features) - start)
        # What follows has an entry for each point and line, those of the first point first.
        width = len(points) * lines
        t, weight = np.repeat(points, lines), np.repeat(weights, lines)
        rest = 1.0 - t
        # Of the nodes of one tree: products of the path, and sums over the leaves below.
        products = np.empty((most, width))
        sums = np.empty((most, width))
        # Of its branches: o, the inverse of a feature's factor, and that times o − z.
        follows = np.empty((2 * most, width))
        inverses = np.empty((2 * most, width))
        slopes = np.empty((2 * most, width))
        # Of one node and one branch.
        turns = np.empty((2, width))
        factor = np.empty(width)
        path = np.empty(width)
        added = np.zeros((contributions.shape[1], width))
        for tree in range(len(roots)):
            first = roots[tree]
            if first < 0:
                continue
            products[0, :] = 1.0
            for node in range(first, ends[tree]):
                here = node - first
                for line in range(lines):
                    value = features[start + line, split[node]]
                    goes_left = missing_left[node] if np.isnan(value) else value <= thresholds[node]
                    turns[0, line] = 1.0 if goes_left else 0.0
                for i in range(lines, width):
                    turns[0, i] = turns[0, i - lines]
                for i in range(width):
                    turns[1, i] = 1.0 - turns[0, i]
                product, total, gain = products[here], sums[here], added[split[node]]
                total[:] = 0.0
                for side in range(2):
                    branch = 2 * here + side
                    turn, share = turns[side], shares[2 * node + side]
                    above = before[2 * node + side] - 2 * first
                    o, inverse, slope = follows[branch], inverses[branch], slopes[branch]
                    child = left[node] if side == 0 else right[node]
                    leaf = leaves[-1 - child] if child < 0 else 1.0
                    if above < 0:
                        o[:] = turn
                    else:
                        o_above = follows[above]
                        for i in range(width):
                            o[i] = turn[i] * o_above[i]
                    for i in range(width):
                        factor[i] = rest[i] * share + t[i] * o[i]
                    for i in range(width):
                        inverse[i] = 1.0 / factor[i]
                    for i in range(width):
                        slope[i] = (o[i] - share) * inverse[i]
                    for i in range(width):
                        path[i] = leaf * product[i] * factor[i]
                    if above >= 0:
                        inverse_above = inverses[above]
                        for i in range(width):
                            path[i] *= inverse_above[i]
                    if child >= 0:
                        parents[child - first] = branch
                        products[child - first, :] = path
                        continue
                    for i in range(width):
                        total[i] += path[i]
                    for i in range(width):
                        gain[i] += weight[i] * path[i] * slope[i]
                    if above >= 0:
                        slope_above = slopes[above]
                        for i in range(width):
                            gain[i] -= weight[i] * path[i] * slope_above[i]
            for node in range(ends[tree] - 1, first, -1):
                branch = parents[node - first]
                above = before[2 * first + branch] - 2 * first
                total, below = sums[branch // 2], sums[node - first]
                slope, gain = slopes[branch], added[split[first + branch // 2]]
                for i in range(width):
                    total[i] += below[i]
                for i in range(width):
                    gain[i] += weight[i] * below[i] * slope[i]
                if above >= 0:
                    slope_above = slopes[above]
                    for i in range(width):
                        gain[i] -= weight[i] * below[i] * slope_above[i]
        for feature in range(len(added)):
            for i in range(width):
                contributions[start + i % lines, feature] += added[feature, i]
