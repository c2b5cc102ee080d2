"""Finding the neighbours of documents in one generation of a collection."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.corpus.document import Document
from labelkin.exceptions import ConfigError
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.represent.cache import TermCache
from labelkin.represent.texts import Texts
from labelkin.store.derived import BuildProgress
from labelkin.store.snapshot import Snapshot

MAX_K = 10_000
_BATCH = 1000
# The kind of a matched term that is in the name of a neighbour's heading.
IN_HEADINGS = "headings"

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class MatchedTerm:
    """A term that a text and its neighbour share, and its share of the score.

    The kind is IN_HEADINGS for a term that the neighbour has in the name of a heading.
    """

    kind: str
    term: str
    share: float


class SearchContext(Closing):
    """What all searches of a collection share: the cache of terms and a pool of threads."""

    def __init__(self, cache: TermCache) -> None:
        self.cache = cache
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self.threads = 0
        self._is_closed = False

    def close(self) -> None:
        """Close the cache and end the threads."""
        with self._lock:
            self._is_closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        self.cache.close()

    def mapped(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterable[Result]:
        """Apply `work` to all items, in several threads if there are several items."""
        if len(items) < 2:
            return map(work, items)
        with self._lock:
            if self._is_closed:
                return map(work, items)
            if self._pool is None:
                threads = self.threads or os.cpu_count() or 1
                self._pool = ThreadPoolExecutor(threads, thread_name_prefix="labelkin-search")
            # Submitted under the lock, so that `close` waits for it.
            return self._pool.map(work, items)


def without_state(fingerprint: Any) -> Any:
    """A fingerprint of neighbours without the collection and its generation."""
    if isinstance(fingerprint, Mapping):
        return {
            key: without_state(value)
            for key, value in fingerprint.items()
            if key not in ("collection", "generation", "token")
        }
    if isinstance(fingerprint, list):
        return [without_state(one) for one in fingerprint]
    return fingerprint


def representation_names(fingerprint: Mapping[str, Any]) -> str:
    """The representation in a fingerprint, as `--representation` takes it."""
    parts = fingerprint.get("representation", {})
    if isinstance(parts, list):
        return ",".join(representation_names(part) for part in parts)
    return "+".join(parts)


class NeighbourSearch(ABC):
    """Searches one snapshot of a collection. Threads may share it."""

    # The largest distance between a text and its copy.
    _apart = 0.0

    def __init__(self, snapshot: Snapshot, context: SearchContext) -> None:
        self.snapshot = snapshot
        self.context = context
        self._settings = snapshot.config.neighbours

    @property
    def batch(self) -> int:
        """How many stored texts are best searched at a time."""
        return _BATCH

    def texts(
        self,
        documents: Sequence[Document],
        *,
        store_terms: bool = False,
        without_copies: bool = False,
    ) -> Texts:
        """Documents to search with; several searches of the same texts share their terms."""
        return Texts(
            self.snapshot,
            documents,
            self.context.cache,
            store_terms=store_terms,
            without_copies=without_copies,
        )

    def search(self, texts: Texts, k: int | None = None) -> Neighbours:
        """The `k` nearest documents of each text, nearest first, equal ones by row.

        A document that is in the collection, by its id, is searched
        leave-one-out: it is never its own neighbour. Neighbours with exactly
        the same text are listed as duplicates, or excluded if the texts are
        `without_copies`.
        """
        k = self._settings.k if k is None else k
        if not 0 <= k <= MAX_K:
            raise ConfigError(f"k is {k}, which is not between 0 and {MAX_K:,}")
        neighbours = self._search(texts, k)
        return replace(
            neighbours,
            fingerprint=self.fingerprint(),
            duplicates=self._duplicates(texts.prepared, neighbours),
        )

    def expect(self, queries: int, progress: BuildProgress | None = None) -> bool:  # noqa: ARG002
        """Prepare for this number of texts in all; whether the engine for batches is worth it."""
        return False

    def decide(self, is_bulk: bool) -> None:  # noqa: B027 - most have one engine only
        """Use the engine for batches for all batches, or for none."""

    def search_rows(self, rows: npt.NDArray[np.int64], k: int) -> Neighbours:
        """The neighbours of stored documents, leave-one-out; none for rows that are gone.

        Documents with exactly the same text are no neighbours either.
        """
        return self.search(self.texts(self._stored(rows), without_copies=True), k)

    def _stored(self, rows: npt.NDArray[np.int64]) -> list[Document]:
        texts = self.snapshot.texts_of(rows.tolist())
        gone = Document("", "", language="en")
        return [texts.get(int(row), gone) for row in rows]

    @abstractmethod
    def _search(self, texts: Texts, k: int) -> Neighbours: ...

    def matched_terms(
        self,
        document: Document,  # noqa: ARG002 - only some representations have terms
        neighbours: Mapping[int, Document],
        limit: int = 5,  # noqa: ARG002
    ) -> list[list[MatchedTerm]]:
        """For each neighbour the terms that it shares with `document`, strongest first.

        `neighbours` are texts by row.
        """
        return [[] for _ in neighbours]

    def fingerprint(self) -> dict[str, Any]:
        """What neighbours found here depend on."""
        generation = self.snapshot.generation()
        return {
            "collection": self.snapshot.manifest.uid,
            "generation": generation.number,
            "token": generation.token,
            **self._fingerprint(),
        }

    def settings_fingerprint(self) -> dict[str, Any]:
        """What neighbours depend on besides the documents: representation, versions, engine."""
        fingerprint: dict[str, Any] = without_state(self._fingerprint())
        return fingerprint

    @abstractmethod
    def _fingerprint(self) -> dict[str, Any]: ...

    def _duplicates(
        self, documents: Sequence[Document], neighbours: Neighbours
    ) -> tuple[tuple[str, int], ...]:
        """Pairs of a document and a row that holds exactly the same text."""
        distances = neighbours.distances("self")
        places = np.argwhere((distances <= self._apart) & (neighbours.rows != NO_NEIGHBOUR))
        if not len(places):
            return ()
        pairs = [(int(place), int(neighbours.rows[place, rank])) for place, rank in places]
        texts = self.snapshot.texts_of([row for _, row in pairs])
        return tuple(
            (documents[place].id, row)
            for place, row in pairs
            if row in texts and texts[row].text == documents[place].text
        )
