"""The graph of broader labels for hierarchical measures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.vocab.cycles import cycles_at_top


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Parents of every node, in a directed graph with a dummy root.

    Nodes below `labels` are label columns; later nodes are only ancestors of
    labels (concepts that are not labels themselves). The last node is the dummy
    root, the parent of all nodes without another and of cycles with nothing above.
    """

    labels: int
    starts: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]

    @property
    def root(self) -> int:
        """The dummy root above all parentless nodes."""
        return len(self.starts) - 2

    def above(self, node: int) -> list[int]:
        """The parents of a node; none for the root."""
        parents: list[int] = self.parents[self.starts[node] : self.starts[node + 1]].tolist()
        return parents

    def distances(self, node: int, levels: int) -> dict[int, int]:
        """A node and its ancestors up to `levels` above, each with its shortest distance."""
        distances = {node: 0}
        frontier = [node]
        for level in range(1, levels + 1):
            if not frontier:
                break
            reached: list[int] = []
            for below in frontier:
                for parent in self.above(below):
                    if parent not in distances:
                        distances[parent] = level
                        reached.append(parent)
            frontier = reached
        return distances

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[int, int]], labels: int) -> Hierarchy:
        """A hierarchy from pairs (parent, child); duplicates count once, links to itself never."""
        edges = np.unique(np.array(list(pairs), dtype=np.int64).reshape(-1, 2), axis=0)
        root = max(labels, int(edges.max()) + 1 if len(edges) else 0)
        edges = edges[edges[:, 0] != edges[:, 1]]
        orphans = np.concatenate(
            (np.setdiff1d(np.arange(root), edges[:, 1]), _in_top_cycles(edges, root))
        )
        to_root = np.stack((np.full(len(orphans), root), orphans), axis=1)
        edges = np.concatenate((edges, to_root))
        edges = edges[np.argsort(edges[:, 1], kind="stable")]
        counts = np.bincount(edges[:, 1], minlength=root + 1)
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return cls(labels, starts, edges[:, 0])


def _in_top_cycles(edges: npt.NDArray[np.int64], nodes: int) -> npt.NDArray[np.int64]:
    """The nodes in cycles with nothing above them, which would not reach the root."""
    parents: list[list[int]] = [[] for _ in range(nodes)]
    for parent, child in edges.tolist():
        parents[child].append(parent)
    return np.array([node for group in cycles_at_top(parents) for node in group], dtype=np.int64)
