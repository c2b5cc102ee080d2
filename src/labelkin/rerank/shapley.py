"""What each feature adds to the score of a candidate: Shapley values of trees, without LightGBM.

The values are those of TreeSHAP (Lundberg et al., 2018): a feature that is left out sends
a candidate down both branches, in proportion to the training candidates there. Of a leaf
whose path splits on the features j, feature i gets

    leaf · (o_i − z_i) · ∫₀¹ ∏_{j≠i} (t·o_j + (1−t)·z_j) dt

where o_j is 1 if the candidate follows the path wherever it splits on j, else 0, and z_j
is the share of training candidates that do. The integrand is a polynomial, so a
Gauss-Legendre sum with few points is exact. As in Linear TreeSHAP (Yu et al., 2022), the
products of all leaves below a branch are added up before they are used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.rerank.pairs import Floats, Integers
from labelkin.rerank.trees import Covers, Trees

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Branches:
    """The branches of all trees, two per node: 2 · node goes left, 2 · node + 1 right.

    `shares` are the z of their paths, as far as they split on the same feature; `before` is
    the last branch above that does, or −1. `base` is the mean score of training candidates.
    """

    trees: Trees
    shares: Doubles
    before: Integers
    points: Doubles
    weights: Doubles
    base: float

    @classmethod
    def of(cls, trees: Trees, covers: Covers) -> Branches:
        """From trees, and from how many training candidates came to each node and leaf."""
        shares = np.ones(2 * len(trees.features))
        before = np.full(2 * len(trees.features), -1, dtype=np.int64)
        base, longest = 0.0, 1
        for root in trees.roots.tolist():
            if root < 0:
                base += float(trees.leaves[-1 - root])
                continue
            whole = covers.at(root)
            waiting: list[tuple[int, dict[int, int]]] = [(root, {})]
            while waiting:
                node, path = waiting.pop()
                feature = int(trees.features[node])
                above = path.get(feature, -1)
                for side, child in enumerate((int(trees.left[node]), int(trees.right[node]))):
                    branch = 2 * node + side
                    share = covers.at(child) / covers.at(node)
                    shares[branch] = share * (shares[above] if above >= 0 else 1.0)
                    before[branch] = above
                    if child < 0:
                        base += float(trees.leaves[-1 - child]) * covers.at(child) / whole
                        longest = max(longest, len(path.keys() | {feature}))
                    else:
                        waiting.append((child, {**path, feature: branch}))
        # n points are exact up to the degree 2n − 1; the degree is that of the others' product.
        points, weights = np.polynomial.legendre.leggauss((longest + 1) // 2)
        return cls(trees, shares, before, (points + 1) / 2, weights / 2, base)

    def contributions(self, features: Floats, width: int) -> Doubles:
        """What each of `width` features adds to the log odds; the last column is `base`."""
        from labelkin.rerank.shapley_kernel import add_contributions

        trees = self.trees
        contributions = np.zeros((len(features), width + 1))
        contributions[:, -1] = self.base
        add_contributions(
            np.ascontiguousarray(features),
            trees.roots,
            trees.features,
            trees.thresholds,
            trees.missing_left,
            trees.left,
            trees.right,
            trees.leaves,
            self.shares,
            self.before,
            self.points,
            self.weights,
            contributions,
        )
        return contributions
