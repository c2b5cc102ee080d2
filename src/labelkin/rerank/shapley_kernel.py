"""Shapley values of trees, compiled by numba; `shapley.py` has the formula."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function
from labelkin.rerank.pairs import Floats, Integers


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
    count = len(points)
    ends = np.empty(len(roots), dtype=np.int64)
    end, most = len(split), 0
    for tree in range(len(roots) - 1, -1, -1):
        ends[tree] = end
        if roots[tree] >= 0:
            most = max(most, end - roots[tree])
            end = roots[tree]
    # Of the nodes of one tree: products of the path, and sums over the leaves below.
    products = np.empty((most, count))
    sums = np.empty((most, count))
    parents = np.empty(most, dtype=np.int64)
    # Of its branches: the factor of a feature, its inverse times o − z, and o.
    factors = np.empty((2 * most, count))
    slopes = np.empty((2 * most, count))
    follows = np.empty(2 * most, dtype=np.bool_)
    path = np.empty(count)
    for line in range(len(features)):
        for tree in range(len(roots)):
            first = roots[tree]
            if first < 0:
                continue
            products[0, :] = 1.0
            for node in range(first, ends[tree]):
                here = node - first
                sums[here, :] = 0.0
                feature = split[node]
                value = features[line, feature]
                goes_left = missing_left[node] if np.isnan(value) else value <= thresholds[node]
                for side in range(2):
                    branch = 2 * here + side
                    share = shares[2 * node + side]
                    above = before[2 * node + side] - 2 * first
                    has_above = before[2 * node + side] >= 0
                    o = goes_left == (side == 0) and (not has_above or follows[above])
                    follows[branch] = o
                    for q in range(count):
                        factor = (1.0 - points[q]) * share
                        slope = -share
                        if o:
                            factor += points[q]
                            slope += 1.0
                        factors[branch, q] = factor
                        slopes[branch, q] = slope / factor
                        path[q] = products[here, q] * factor
                    if has_above:
                        for q in range(count):
                            path[q] /= factors[above, q]
                    child = left[node] if side == 0 else right[node]
                    if child >= 0:
                        parents[child - first] = branch
                        products[child - first, :] = path
                        continue
                    leaf = leaves[-1 - child]
                    added = 0.0
                    for q in range(count):
                        path[q] *= leaf
                        sums[here, q] += path[q]
                        slope = slopes[branch, q]
                        if has_above:
                            slope -= slopes[above, q]
                        added += weights[q] * path[q] * slope
                    contributions[line, feature] += added
            for node in range(ends[tree] - 1, first, -1):
                here = node - first
                branch = parents[here]
                parent = branch // 2
                above = before[2 * first + branch] - 2 * first
                has_above = before[2 * first + branch] >= 0
                added = 0.0
                for q in range(count):
                    slope = slopes[branch, q]
                    if has_above:
                        slope -= slopes[above, q]
                    added += weights[q] * sums[here, q] * slope
                    sums[parent, q] += sums[here, q]
                contributions[line, split[first + parent]] += added
