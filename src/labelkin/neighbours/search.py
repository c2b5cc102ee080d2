"""Finding the neighbours of documents in a collection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import NOBODY, Neighbours
from labelkin.store.collection import Collection

MAX_K = 10_000

BuildProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """A term that a text and its neighbour share, and its share of the score."""

    kind: str
    term: str
    share: float


class NeighbourSearch(Closing):
    """Searches a collection; what anyone has changed is seen by the next search."""

    # How far apart a text and its copy may be found.
    _apart = 0.0

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._settings = collection.config.neighbours

    @abstractmethod
    def build(self, progress: BuildProgress | None = None) -> int:
        """Bring the index up to date; the number of documents that were new to it."""

    def relearn(self) -> None:
        """Learn anew from the collection what the representation learns from it, if anything."""

    def search(
        self,
        documents: Sequence[Document],
        k: int | None = None,
        *,
        store_terms: bool = False,
    ) -> Neighbours:
        """The `k` nearest documents of each, nearest first, equal ones by row.

        A document that is in the collection, by its id, is searched leave-one-out:
        it is never its own neighbour. Neighbours with the very same text are
        listed as duplicates. `store_terms` keeps the extracted terms, or the
        vectors, on disk.
        """
        k = self._settings.k if k is None else k
        if not 0 <= k <= MAX_K:
            raise ConfigError(f"k is {k}, which is not between 0 and {MAX_K:,}")
        return self._search(documents, k, store_terms)

    def search_rows(self, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """The neighbours of stored documents, leave-one-out; none for rows that are gone."""
        texts = self._collection.texts_of(rows.tolist())
        gone = Document("", "", language="en")
        return self.search([texts.get(int(row), gone) for row in rows], k)

    @abstractmethod
    def _search(self, documents: Sequence[Document], k: int, store: bool) -> Neighbours: ...

    def matched_terms(
        self,
        document: Document,  # noqa: ARG002 - there are terms in some representations only
        neighbours: Sequence[Document],
        limit: int = 5,  # noqa: ARG002
    ) -> list[list[MatchedTerm]]:
        """For each neighbour the terms that bring it near to `document`, strongest first."""
        return [[] for _ in neighbours]

    def fingerprint(self) -> dict[str, Any]:
        """What neighbours found in the collection as it is now depend on."""
        generation = self._collection.generation()
        return self._fingerprint(generation.number, generation.token)

    def _fingerprint(self, generation: int, token: str) -> dict[str, Any]:
        return {
            "collection": self._collection.manifest.uid,
            "generation": generation,
            "token": token,
        }

    def _prepared(self, documents: Sequence[Document]) -> list[Document]:
        """The documents as they would be stored: not too long, and with a language.

        In a collection with one language, a text that states none is in that
        one: nothing else could be found, and short texts are easily mistaken.
        """
        limit = self._collection.config.documents.max_characters
        expected = self._collection.only_language()
        return [
            self._collection.in_its_language(document.cut(limit), expected)
            for document in documents
        ]

    def _duplicates(
        self, documents: Sequence[Document], neighbours: Neighbours
    ) -> tuple[tuple[str, int], ...]:
        """Pairs of a document and a row that holds the very same text."""
        distances = neighbours.distances("self")
        places = np.argwhere((distances <= self._apart) & (neighbours.rows != NOBODY))
        texts = self._collection.texts_of(
            [int(neighbours.rows[place, rank]) for place, rank in places]
        )
        pairs = [(int(place), int(neighbours.rows[place, rank])) for place, rank in places]
        return tuple(
            (documents[place].id, row)
            for place, row in pairs
            if row in texts and texts[row].text == documents[place].text
        )
