"""Cycles of broader links: concepts that are, step by step, broader than themselves."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

Parents = Sequence[Sequence[int]]


def cycles(parents: Parents) -> list[list[int]]:
    """Groups of nodes that lie on common cycles, each ascending; a node may be its own parent.

    `parents` holds the parents of each node.
    """
    rest = _not_above_others(parents, _not_below_others(parents))
    if not rest:
        return []
    import numpy as np
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    nodes = sorted(rest)
    places = {node: place for place, node in enumerate(nodes)}
    pairs = np.array(
        [(places[node], places[one]) for node in nodes for one in parents[node] if one in rest]
    )
    ones = np.ones(len(pairs), dtype=np.int8)
    links = coo_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(len(nodes), len(nodes)))
    _, numbers = connected_components(links.tocsr(), directed=True, connection="strong")
    groups: dict[int, list[int]] = {}
    for node, number in zip(nodes, numbers.tolist(), strict=True):
        groups.setdefault(number, []).append(node)
    found = (group for group in groups.values() if len(group) > 1 or group[0] in parents[group[0]])
    return sorted(found)


def cycles_at_top(parents: Parents) -> list[list[int]]:
    """The cycles with nothing above them: what lies below is reached from no other node."""
    groups = [(group, set(group)) for group in cycles(parents)]
    return [
        group
        for group, members in groups
        if all(parent in members for node in group for parent in parents[node])
    ]


def shortest_cycle(parents: Parents, node: int) -> list[int]:
    """A shortest way from a node on a cycle up to itself; the node stands at both ends."""
    came_from: dict[int, int] = {}
    pending = deque([node])
    while pending:
        below = pending.popleft()
        for parent in parents[below]:
            if parent == node:
                way = [node, below]
                while way[-1] != node:
                    way.append(came_from[way[-1]])
                return list(reversed(way))
            if parent not in came_from:
                came_from[parent] = below
                pending.append(parent)
    raise ValueError(f"node {node} is on no cycle")


def _not_below_others(parents: Parents) -> set[int]:
    """The nodes that are left after parentless ones are removed again and again."""
    children: list[list[int]] = [[] for _ in parents]
    for node, above in enumerate(parents):
        for parent in above:
            children[parent].append(node)
    return _peeled(children, [len(above) for above in parents], range(len(parents)))


def _not_above_others(parents: Parents, nodes: set[int]) -> set[int]:
    """The nodes that are left after childless ones are removed again and again."""
    counts = [0] * len(parents)
    for node in nodes:
        for parent in parents[node]:
            counts[parent] += 1
    return _peeled(parents, counts, nodes)


def _peeled(following: Parents, counts: list[int], nodes: Sequence[int] | set[int]) -> set[int]:
    rest = set(nodes)
    pending = [node for node in rest if not counts[node]]
    while pending:
        node = pending.pop()
        rest.discard(node)
        for other in following[node]:
            counts[other] -= 1
            if not counts[other] and other in rest:
                pending.append(other)
    return rest
