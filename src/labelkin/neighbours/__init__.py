"""Finding the most similar indexed documents."""

from __future__ import annotations

from labelkin.neighbours.neighbours import DISTANCES, NOBODY, Distance, Neighbours
from labelkin.neighbours.open import open_search
from labelkin.neighbours.search import MatchedTerm, NeighbourSearch

__all__ = [
    "DISTANCES",
    "NOBODY",
    "Distance",
    "MatchedTerm",
    "NeighbourSearch",
    "Neighbours",
    "open_search",
]
