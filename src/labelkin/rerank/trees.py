"""Gradient-boosted trees as arrays: reads LightGBM's text, and predicts without LightGBM.

Importing LightGBM takes longer than a suggestion, and for batches there are faster
ways. `_walked` goes down all trees at once, with NumPy. Where compiled code pays,
`tree_kernel.py` evaluates trees of at most 64 leaves as QuickScorer does (Lucchese et
al., 2015): each has a bit per leaf. A node whose condition is false clears the bits of its left
subtree, and the lowest bit that is left is the leaf that a walk would have reached.
Where many nodes of a feature are false, most of their bits are cleared together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.rerank.pairs import Floats, Integers

# LightGBM's decision types: whether missing values go left, and which values are missing.
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_NAN = 1, 2, 8
_MISSING_ZERO = 4
_MOST_LEAVES = 64
_MOST_TREES = 1 << 16
_ALL_LEAVES = (1 << 64) - 1
# Candidates that go down the trees together.
_CHUNK = 256


Masks = tuple[
    npt.NDArray[np.uint64],
    Floats,
    npt.NDArray[np.uint16],
    npt.NDArray[np.uint64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.float64],
]


@dataclass(frozen=True, eq=False)
class Trees:
    """The nodes of all trees one after another, and their leaves.

    A child that is negative is the leaf −1 − child. `roots` has the first node of each
    tree, or its only leaf in the same way. A value goes left if it is not above the
    threshold, a missing one if `missing_left`.
    """

    roots: Integers
    features: Integers
    thresholds: Floats
    missing_left: npt.NDArray[np.bool_]
    left: Integers
    right: Integers
    leaves: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refuse nodes that do not make up trees, which compiled code does not check."""
        nodes = np.arange(len(self.features))
        same_size = (self.thresholds, self.missing_left, self.left, self.right)
        if any(array.shape != nodes.shape for array in same_size):
            raise ValueError("trees whose nodes have several sizes")
        for children, after in ((self.left, nodes), (self.right, nodes), (self.roots, -1)):
            is_node = children >= 0
            if (
                (children >= len(nodes)).any()
                or (children < -len(self.leaves)).any()
                or (is_node & (children <= after)).any()
            ):
                raise ValueError("trees with a node that leads nowhere or back")
        # One root or branch leads to each node, which is in the tree of the last root before it.
        roots = self.roots[self.roots >= 0]
        children, parents = np.concatenate((self.left, self.right)), np.tile(nodes, 2)
        parents, children = parents[children >= 0], children[children >= 0]
        trees = np.searchsorted(roots, nodes, side="right")
        if (
            not np.array_equal(np.sort(np.concatenate((roots, children))), nodes)
            or (np.diff(roots) < 0).any()
            or (trees[parents] != trees[children]).any()
        ):
            raise ValueError("trees with a node of no tree or of several")
        if len(nodes) and self.features.min() < 0:
            raise ValueError("trees with a feature below 0")

    @classmethod
    def parse(cls, text: str) -> Trees:
        """The trees in a model that LightGBM wrote; ValueError for a kind that is not known."""
        head, blocks = _blocks(text)
        if "\nobjective=binary sigmoid:1\n" not in head + "\n":
            raise ValueError("trees of another objective than log loss")
        parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in _PARTS}
        roots, nodes, leaves = [], 0, 0
        for values in blocks:
            if values["num_cat"] != "0" or values.get("is_linear", "0") != "0":
                raise ValueError("trees with categories or linear leaves")
            count = int(values["num_leaves"])
            roots.append(nodes if count > 1 else -1 - leaves)
            for name, kind in _PARTS.items():
                part = np.array(values.get(name, "").split(), dtype=kind)
                if name.endswith("_child"):
                    part = np.where(part < 0, part - leaves, part + nodes)
                parts[name].append(part)
            nodes, leaves = nodes + count - 1, leaves + count
        nothing = np.zeros(0)
        joined = {name: np.concatenate([nothing, *of_all]) for name, of_all in parts.items()}
        decisions = joined["decision_type"].astype(np.int64)
        if (decisions & (_CATEGORICAL | _MISSING_ZERO)).any():
            raise ValueError("trees with categories, or where 0 is missing")
        thresholds = joined["threshold"].astype(np.float64)
        # NaN counts as 0 where LightGBM has seen none.
        zero_left = thresholds >= 0
        is_known = decisions & _MISSING_NAN == 0
        return cls(
            np.array(roots, dtype=np.int64),
            joined["split_feature"].astype(np.int64),
            _not_above(thresholds),
            np.where(is_known, zero_left, decisions & _DEFAULT_LEFT > 0),
            joined["left_child"].astype(np.int64),
            joined["right_child"].astype(np.int64),
            joined["leaf_value"].astype(np.float64),
        )

    def scores(self, features: Floats) -> npt.NDArray[np.float64]:
        """A raw score in [0, 1] per line of features, as LightGBM gives it."""
        features = np.ascontiguousarray(features)
        sums = np.empty(len(features), dtype=np.float64)
        for start in range(0, len(features), _CHUNK):
            part = slice(start, start + _CHUNK)
            sums[part] = self._walked(features[part])
        return _probabilities(sums)

    def batch_scores(self, features: Floats) -> npt.NDArray[np.float64]:
        """The same, by compiled code."""
        from labelkin.rerank.tree_kernel import add_leaves

        masks = self.masks
        if masks is None:
            return self.scores(features)
        sums = np.empty(len(features), dtype=np.float64)
        add_leaves(np.ascontiguousarray(features), *masks, sums)
        return _probabilities(sums)

    def _walked(self, features: Floats) -> npt.NDArray[np.float64]:
        """The sum of the leaves that each line reaches."""
        count, trees = len(features), len(self.roots)
        at = np.tile(self.roots, count)
        lines = np.repeat(np.arange(count), trees)
        walking = np.flatnonzero(at >= 0)
        flat, width = features.ravel(), features.shape[1]
        while len(walking):
            nodes = at[walking]
            values = flat[lines[walking] * width + self.features[nodes]]
            goes_left = (values <= self.thresholds[nodes]) | (
                np.isnan(values) & self.missing_left[nodes]
            )
            reached = np.where(goes_left, self.left[nodes], self.right[nodes])
            at[walking] = reached
            walking = walking[reached >= 0]
        sums: npt.NDArray[np.float64] = self.leaves[-1 - at].reshape(count, trees).sum(axis=1)
        return sums

    @cached_property
    def masks(self) -> Masks | None:
        """The arguments of the compiled code; None for too many trees or leaves.

        Where the nodes of each feature begin, then for all nodes by feature and threshold:
        threshold, tree, the leaves that are left if the condition is false, whether a missing
        value makes it false. Last, the leaves of each tree from left to right.
        """
        if len(self.roots) > _MOST_TREES:
            return None
        leaves = np.zeros((len(self.roots), _MOST_LEAVES))
        kept = np.zeros(len(self.features), dtype=np.uint64)
        owners = np.zeros(len(self.features), dtype=np.uint16)
        for tree, root in enumerate(self.roots.tolist()):
            ordered: list[int] = []
            for node, first, middle in self._spans(root, ordered):
                kept[node] = _ALL_LEAVES & ~((1 << middle) - (1 << first))
                owners[node] = tree
            if len(ordered) > _MOST_LEAVES:
                return None
            leaves[tree, : len(ordered)] = self.leaves[ordered]
        order = np.lexsort((self.thresholds, self.features))
        width = self.features.max(initial=-1) + 1
        starts = np.searchsorted(self.features[order], np.arange(width + 1)).astype(np.uint64)
        missing_right = ~self.missing_left[order]
        return starts, self.thresholds[order], owners[order], kept[order], missing_right, leaves

    def _spans(self, place: int, ordered: list[int]) -> Iterator[tuple[int, int, int]]:
        """For each node from `place` down the first leaf of its left subtree, and the one after it.

        Leaves are counted from left to right and added to `ordered`.
        """
        if place < 0:
            ordered.append(-1 - place)
            return
        first = len(ordered)
        yield from self._spans(int(self.left[place]), ordered)
        yield place, first, len(ordered)
        yield from self._spans(int(self.right[place]), ordered)


@dataclass(frozen=True, eq=False)
class Covers:
    """How many training candidates came to each node and leaf of trees."""

    nodes: Integers
    leaves: Integers

    @classmethod
    def parse(cls, text: str) -> Covers:
        """Those in a model that LightGBM wrote, in the order of `Trees`."""
        nodes: list[str] = []
        leaves: list[str] = []
        for values in _blocks(text)[1]:
            nodes += values.get("internal_count", "").split()
            # A tree without nodes may have no count.
            leaves += values.get("leaf_count", "").split() or ["1"]
        return cls(np.array(nodes, dtype=np.int64), np.array(leaves, dtype=np.int64))

    def at(self, place: int) -> int:
        """That of a node, or of the leaf −1 − place; at least 1."""
        return max(int(self.nodes[place] if place >= 0 else self.leaves[-1 - place]), 1)


def _blocks(text: str) -> tuple[str, Iterator[dict[str, str]]]:
    """What stands before the trees, and the values of each tree by name."""
    head, *blocks = text.partition("\nend of trees")[0].split("\nTree=")
    lines = ((line.partition("=") for line in block.split("\n")) for block in blocks)
    return head, ({name: value for name, _, value in of_tree} for of_tree in lines)


_PARTS = {
    "split_feature": np.int64,
    "threshold": np.float64,
    "decision_type": np.int64,
    "left_child": np.int64,
    "right_child": np.int64,
    "leaf_value": np.float64,
}


def _not_above(thresholds: npt.NDArray[np.float64]) -> Floats:
    """The largest numbers in single precision that are not above: features have that too."""
    rounded = thresholds.astype(np.float32)
    return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _probabilities(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-sums)))
