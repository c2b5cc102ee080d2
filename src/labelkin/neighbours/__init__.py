"""Finding the most similar indexed documents."""

from __future__ import annotations

from labelkin.neighbours.neighbours import DISTANCES, NO_NEIGHBOUR, Distance, Neighbours
from labelkin.neighbours.search import MatchedTerm, NeighbourSearch

__all__ = [
    "DISTANCES",
    "NO_NEIGHBOUR",
    "Distance",
    "MatchedTerm",
    "NeighbourSearch",
    "Neighbours",
]
