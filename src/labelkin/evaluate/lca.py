"""Graphs of lowest common ancestors, which the LCA measures compare.

Kosmopoulos et al. 2015 (see `hierarchical`) link every gold label to the
predicted label that is nearest through a common ancestor, and every predicted
label to a gold one. The gold graph holds the shortest paths from the gold
labels to these ancestors, the predicted graph those from the predicted labels.
Of equally near ancestors and equally short paths those are taken that keep the
graphs small, by a choice that is greedy and always the same.

HEMKit prints the same figures for a small example. On the 100 documents of
tests/reference its LCA-P, LCA-R and LCA-F differ by up to 0.0072, and by up to
0.0281 (LCA-F: 0.0044) with a maximum distance of 4. Which of equal ancestors
and paths are taken, and that a label without a common ancestor within reach
brings all its ancestors, are choices of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from labelkin.evaluate.hierarchy import Hierarchy

Nodes = frozenset[int]


class Ancestors:
    """The ancestors of nodes with their distances, up to some levels; remembered."""

    def __init__(self, hierarchy: Hierarchy, levels: int) -> None:
        self._hierarchy = hierarchy
        self._levels = levels
        self._known: dict[int, dict[int, int]] = {}

    def of(self, node: int) -> dict[int, int]:
        """A node and its ancestors, each with its shortest distance."""
        if node not in self._known:
            self._known[node] = self._hierarchy.distances(node, self._levels)
        return self._known[node]

    def nearest(self, nodes: Iterable[int]) -> dict[int, int]:
        """All ancestors of some nodes, each with its distance from the nearest of them."""
        found: dict[int, int] = {}
        for node in nodes:
            for ancestor, distance in self.of(node).items():
                if distance < found.get(ancestor, distance + 1):
                    found[ancestor] = distance
        return found

    def path(self, node: int, ancestor: int, *preferred: set[int]) -> set[int]:
        """A shortest path, both ends included, through preferred nodes where there is a choice."""
        nodes = {node}
        for left in reversed(range(self.of(node)[ancestor])):
            steps = [
                parent
                for parent in self._hierarchy.above(node)
                if self.of(parent).get(ancestor) == left
            ]
            node = min(steps, key=lambda step: ([step not in some for some in preferred], step))
            nodes.add(node)
        return nodes


def lca_graphs(gold: Nodes, predicted: Nodes, ancestors: Ancestors) -> tuple[set[int], set[int]]:
    """The nodes of the gold and of the predicted graph of one document.

    A label that is on both sides is its own lowest common ancestor. One that
    shares no ancestor within reach with the other side stands with all of its
    ancestors within reach, as in hP and hR.
    """
    graphs = set(gold), set(predicted)
    sides = gold, predicted
    nearest = [ancestors.nearest(side) for side in sides]
    apart = sorted(gold ^ predicted)
    candidates = {label: _lowest(ancestors.of(label), nearest[label in gold]) for label in apart}
    chosen = _chosen(candidates, gold & predicted)
    for label in apart:
        own, other = (0, 1) if label in gold else (1, 0)
        if label not in chosen:
            graphs[own].update(ancestors.of(label))
            continue
        ancestor = chosen[label]
        distance = nearest[other][ancestor]
        partners = [one for one in sides[other] if ancestors.of(one).get(ancestor) == distance]
        partner = min(partners, key=lambda one: (chosen.get(one) != ancestor, one))
        for side, end in ((own, label), (other, partner)):
            graphs[side].update(ancestors.path(end, ancestor, graphs[side], graphs[1 - side]))
    return graphs


def _lowest(mine: Mapping[int, int], others: Mapping[int, int]) -> Nodes:
    """The common ancestors by which a label is nearest to the other side."""
    lengths = {node: mine[node] + others[node] for node in mine if node in others}
    shortest = min(lengths.values(), default=0)
    return frozenset(node for node, length in lengths.items() if length == shortest)


def _chosen(candidates: Mapping[int, Nodes], common: Nodes) -> dict[int, int]:
    """One ancestor for each label that has any: few in all, those without alternative first."""
    taken = {*common}
    for options in candidates.values():
        if len(options) == 1:
            taken |= options
    waiting = [options for options in candidates.values() if options and not options & taken]
    while waiting:
        taken.add(_most_serving(Counter(node for options in waiting for node in options)))
        waiting = [options for options in waiting if not options & taken]
    serves = Counter(node for options in candidates.values() for node in options & taken)
    return {
        label: _most_serving({node: serves[node] for node in options & taken})
        for label, options in candidates.items()
        if options
    }


def _most_serving(counts: Mapping[int, int]) -> int:
    return min(counts, key=lambda node: (-counts[node], node))
