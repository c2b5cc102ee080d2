"""Finding neighbours by several representations at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.neighbours.fusion import fuse
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.search import BuildProgress, MatchedTerm, NeighbourSearch
from labelkin.store.collection import Collection


class FusedSearch(NeighbourSearch):
    """Searches by each representation and fuses what they find, as `[fusion]` says."""

    def __init__(
        self, collection: Collection, searches: Sequence[NeighbourSearch], names: Sequence[str]
    ) -> None:
        super().__init__(collection)
        self.searches = tuple(searches)
        self.names = tuple(names)

    def close(self) -> None:
        """Let go of the files."""
        for search in self.searches:
            search.close()

    def build(self, progress: BuildProgress | None = None) -> int:
        """Bring all indexes up to date; the most documents that were new to one of them."""
        return max(search.build(progress) for search in self.searches)

    def relearn(self) -> None:
        """Have each representation learn anew."""
        for search in self.searches:
            search.relearn()

    def parts(
        self, documents: Sequence[Document], k: int, *, store_terms: bool = False
    ) -> list[Neighbours]:
        """What each representation finds, deep enough to be fused."""
        depth = max(k, self._collection.config.fusion.depth)
        return [
            search.search(documents, depth, store_terms=store_terms) for search in self.searches
        ]

    def matched_terms(
        self, document: Document, neighbours: Sequence[Document], limit: int = 5
    ) -> list[list[MatchedTerm]]:
        """The terms of the first representation that has any."""
        for search in self.searches:
            found = search.matched_terms(document, neighbours, limit)
            if any(found):
                return found
        return [[] for _ in neighbours]

    def search_rows(self, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """The neighbours of stored documents, leave-one-out; none for rows that are gone."""
        depth = max(k, self._collection.config.fusion.depth)
        return self._fused([search.search_rows(rows, depth) for search in self.searches], k)

    def _search(self, documents: Sequence[Document], k: int, store: bool) -> Neighbours:
        return self._fused(self.parts(documents, k, store_terms=store), k)

    def _fused(self, parts: Sequence[Neighbours], k: int) -> Neighbours:
        settings = self._collection.config.fusion
        fused = fuse(parts, k, settings.weights, settings.method, settings.rank_constant)
        found_in = parts[0].fingerprint
        fingerprint = self._fingerprint(found_in["generation"], found_in["token"])
        return replace(fused, fingerprint=fingerprint)

    def _fingerprint(self, generation: int, token: str) -> dict[str, Any]:
        settings = self._collection.config.fusion
        return {
            **super()._fingerprint(generation, token),
            "representation": [search._fingerprint(generation, token) for search in self.searches],
            "engine": f"fused by {settings.method}",
            "fusion": settings.model_dump(),
        }
