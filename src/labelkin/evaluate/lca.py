"""The graphs of lowest common ancestors that the LCA measures compare.

Kosmopoulos et al. 2015 (see `hierarchical`) link every gold label to the
predicted label that is nearest through a common ancestor, and every predicted
label to a gold one. These ancestors are selected, those with most labels first,
until each label is linked. The gold graph holds shortest paths from gold labels
up to them, the predicted graph those from predicted labels.

The maximum distance is that of HEMKit, the authors' tool: labels without a
common ancestor within that distance of both meet at the root. On its small
example HEMKit prints the same figures; on the 100 documents of tests/reference
LCA-P, LCA-R and LCA-F differ from HEMKit's by up to 0.0020, and by up to 0.0037
with a maximum distance of 4. This is not an independent check: the definition
leaves open how far labels reach and what counts as linked, and we chose the
reading closest to these same figures among very many, so the difference may be
larger elsewhere. Of equal ancestors, partners and paths we select those with
the lowest number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from labelkin.evaluate.hierarchy import Hierarchy

# The side (0 gold, 1 predicted) and the node of a label.
Label = tuple[int, int]


class Ancestors:
    """The ancestors of nodes with their distances, cached.

    Labels meet at ancestors up to `reach` levels above both.
    """

    def __init__(self, hierarchy: Hierarchy, reach: int) -> None:
        self._hierarchy = hierarchy
        self._reach = reach
        self._known: dict[int, dict[int, int]] = {}
        self.root = hierarchy.root

    def of(self, node: int) -> dict[int, int]:
        """A node and its ancestors, each with its shortest distance."""
        if node not in self._known:
            # There cannot be more levels than nodes, and the root is the last node.
            self._known[node] = self._hierarchy.distances(node, levels=self.root)
        return self._known[node]

    def near(self, node: int) -> dict[int, int]:
        """The ancestors within reach, each with its shortest distance."""
        return {
            ancestor: distance
            for ancestor, distance in self.of(node).items()
            if distance <= self._reach
        }

    def path(self, node: int, ancestor: int) -> set[int]:
        """A shortest path, both ends included."""
        nodes = {node}
        for left in reversed(range(self.of(node)[ancestor])):
            parents = self._hierarchy.above(node)
            node = min(parent for parent in parents if self.of(parent).get(ancestor) == left)
            nodes.add(node)
        return nodes


def lca_graphs(
    gold: Iterable[int], predicted: Iterable[int], ancestors: Ancestors
) -> tuple[set[int], set[int]]:
    """The nodes of the gold and of the predicted graph of one document."""
    graphs = {*gold}, {*predicted}
    nearest: dict[int, set[Label]] = defaultdict(set)
    linked: dict[int, set[Label]] = defaultdict(set)
    for side in (0, 1):
        others = _OtherSide(graphs[1 - side], ancestors)
        for node in graphs[side]:
            for ancestor, partners in others.links(node).items():
                nearest[ancestor].add((side, node))
                linked[ancestor] |= {(side, node), *((1 - side, partner) for partner in partners)}
    unlinked: set[Label] = set().union(*linked.values())
    for ancestor in sorted(linked, key=lambda node: (-len(linked[node]), node)):
        if not unlinked:
            break
        unlinked -= linked[ancestor]
        for side, node in _labels_with_path(nearest[ancestor], linked[ancestor]):
            graphs[side].update(ancestors.path(node, ancestor))
    return graphs


class _OtherSide:
    """The labels that a label of one side is linked to."""

    def __init__(self, nodes: Iterable[int], ancestors: Ancestors) -> None:
        self._nodes = {*nodes}
        self._ancestors = ancestors
        self._least: dict[int, int] = {}
        for node in self._nodes:
            for ancestor, distance in ancestors.near(node).items():
                self._least[ancestor] = min(distance, self._least.get(ancestor, distance))

    def links(self, node: int) -> dict[int, set[int]]:
        """The ancestors through which `node` is nearest to these labels, with its partners."""
        if not self._nodes:
            return {}
        lengths = {
            ancestor: distance + self._least[ancestor]
            for ancestor, distance in self._ancestors.near(node).items()
            if ancestor in self._least
        }
        if not lengths:
            return {self._ancestors.root: self._nodes}
        shortest = min(lengths.values())
        return {
            ancestor: self._partners(ancestor)
            for ancestor, length in lengths.items()
            if length == shortest
        }

    def _partners(self, ancestor: int) -> set[int]:
        """The labels that are nearest to an ancestor."""
        least = self._least[ancestor]
        return {node for node in self._nodes if self._ancestors.of(node).get(ancestor) == least}


def _labels_with_path(nearest: set[Label], linked: set[Label]) -> set[Label]:
    """The labels that need a path to an ancestor: those nearest through it, and one per side."""
    one_per_side = {
        min(label for label in linked if label[0] == side)
        for side in (0, 1)
        if not any(label[0] == side for label in nearest)
    }
    return nearest | one_per_side
