"""Finding neighbours by several representations at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.corpus.document import Document
from labelkin.neighbours.fusion import fuse
from labelkin.neighbours.neighbours import Neighbours
from labelkin.neighbours.search import MatchedTerm, NeighbourSearch, SearchContext
from labelkin.represent.texts import Texts
from labelkin.store.derived import BuildProgress
from labelkin.store.snapshot import Snapshot


class FusedSearch(NeighbourSearch):
    """Searches by each representation and fuses the lists, as `[fusion]` says."""

    def __init__(
        self, snapshot: Snapshot, context: SearchContext, searches: Sequence[NeighbourSearch]
    ) -> None:
        super().__init__(snapshot, context)
        self.searches = tuple(searches)
        self._fusion = snapshot.config.fusion

    @property
    def batch(self) -> int:
        """The largest of the searches' own."""
        return max(search.batch for search in self.searches)

    def expect(self, queries: int, progress: BuildProgress | None = None) -> bool:
        """Prepare each of the searches."""
        decisions = [search.expect(queries, progress) for search in self.searches]
        return any(decisions)

    def decide(self, is_bulk: bool) -> None:
        """The same for each of the searches."""
        for search in self.searches:
            search.decide(is_bulk)

    def parts(self, texts: Texts, k: int) -> list[Neighbours]:
        """The neighbours by each representation, at the depth that fusion needs."""
        depth = max(k, self._fusion.depth)
        return [search.search(texts, depth) for search in self.searches]

    def matched_terms(
        self, document: Document, neighbours: Mapping[int, Document], limit: int = 5
    ) -> list[list[MatchedTerm]]:
        """The terms of the first representation that has any."""
        for search in self.searches:
            matched = search.matched_terms(document, neighbours, limit)
            if any(matched):
                return matched
        return [[] for _ in neighbours]

    def search_rows(self, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """The neighbours of stored documents, leave-one-out; none for rows that are gone."""
        depth = max(k, self._fusion.depth)
        return self._fused([search.search_rows(rows, depth) for search in self.searches], k)

    def _search(self, texts: Texts, k: int) -> Neighbours:
        return self._fused(self.parts(texts, k), k)

    def _fused(self, parts: Sequence[Neighbours], k: int) -> Neighbours:
        fusion = self._fusion
        return fuse(parts, k, fusion.weights, fusion.method, fusion.rank_constant)

    def _duplicates(
        self,
        documents: Sequence[Document],  # noqa: ARG002
        neighbours: Neighbours,
    ) -> tuple[tuple[str, int], ...]:
        return neighbours.duplicates

    def _fingerprint(self) -> dict[str, Any]:
        return {
            "representation": [search.fingerprint() for search in self.searches],
            "engine": f"fused by {self._fusion.method}",
            "fusion": self._fusion.model_dump(),
        }
