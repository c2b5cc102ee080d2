"""The ways from a concept up to the top of its vocabulary."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from typing import Protocol

from labelkin.vocab.concept import Concept

# Broader links can make more ways than anyone has time for; then one shortest way has to do.
_MOST_STEPS = 10_000

# A concept, and the one of its notations on the way if notations say where it is.
_Place = tuple[str, str | None]


class Hierarchy(Protocol):
    """What the ways need of a vocabulary."""

    def concept(self, identifier: str) -> Concept:
        """The concept with exactly this id."""

    def broader(self, identifier: str) -> tuple[str, ...]:
        """Ids of the direct parents."""


def paths_to_top(
    hierarchy: Hierarchy, identifier: str, tops: Container[str], limit: int
) -> list[list[str]]:
    """At most `limit` ways from the top to a concept, as ids; see `Vocabulary.paths`.

    `tops` are the ids at which a way ends even if their concepts have parents.
    """
    if limit <= 0:
        return []
    # Two notations of a concept can lead the same way.
    paths: dict[tuple[str, ...], None] = {}
    for path in _paths(hierarchy, identifier, tops):
        paths[path] = None
        if len(paths) == limit:
            break
    if not paths:
        paths[_shortest(hierarchy, identifier, tops)] = None
    return [list(reversed(path)) for path in paths]


def _paths(
    hierarchy: Hierarchy, identifier: str, tops: Container[str]
) -> Iterator[tuple[str, ...]]:
    """All ways up, first parents first, none through a concept twice."""
    waiting: list[tuple[tuple[str, ...], str | None]] = [((identifier,), None)]
    for _ in range(_MOST_STEPS):
        if not waiting:
            return
        path, place = waiting.pop()
        parents, is_top = _above(hierarchy, (path[-1], place), tops)
        if is_top:
            yield path
        waiting += [((*path, one), where) for one, where in reversed(parents) if one not in path]


def _above(
    hierarchy: Hierarchy, position: _Place, tops: Container[str]
) -> tuple[Sequence[_Place], bool]:
    """What is directly above a concept at a place, and whether that place is at the top.

    A notation that continues one of a parent (C10.228 and C10) leads to that
    parent only, and there to that notation only: otherwise a way would go on
    above another place of the parent.
    """
    identifier, place = position
    concept = hierarchy.concept(identifier)
    parents = [hierarchy.concept(parent) for parent in hierarchy.broader(identifier)]
    continued = {
        parent.id: {_before(one) for one in concept.notations}.intersection(parent.notations)
        for parent in parents
    }
    others: list[_Place] = [(parent.id, None) for parent in parents if not continued[parent.id]]
    above: list[_Place] = []
    is_top = not parents
    for one in concept.notations if place is None else (place,):
        by_place = [parent.id for parent in parents if _before(one) in continued[parent.id]]
        above += [(parent, _before(one)) for parent in by_place]
        # Another notation has a parent, this one has none.
        is_top |= not by_place and any(continued.values()) and not (place and others)
    if not above and not is_top and identifier in tops:
        return [], True
    return above + others, is_top


def _before(notation: str) -> str:
    return notation.rpartition(".")[0]


def _shortest(hierarchy: Hierarchy, identifier: str, tops: Container[str]) -> tuple[str, ...]:
    """A shortest way up by broader links alone."""
    below: dict[str, str | None] = {identifier: None}
    waiting = deque([identifier])
    while waiting and waiting[0] not in tops:
        one = waiting.popleft()
        for parent in hierarchy.broader(one):
            if parent not in below:
                below[parent] = one
                waiting.append(parent)
    path = []
    step: str | None = waiting[0] if waiting else identifier
    while step is not None:
        path.append(step)
        step = below[step]
    return tuple(reversed(path))
