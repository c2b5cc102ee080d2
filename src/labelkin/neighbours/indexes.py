"""The open indexes of a collection, shared by its snapshots and by all threads."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING

from labelkin.closing import Closing
from labelkin.exceptions import ConfigError
from labelkin.neighbours.search import NeighbourSearch, SearchContext
from labelkin.neighbours.term_index import TermIndex
from labelkin.represent.cache import open_term_cache
from labelkin.represent.encoder import is_encoder, open_encoder
from labelkin.represent.representation import make_representation
from labelkin.store.collection import Collection
from labelkin.store.derived import BuildProgress
from labelkin.store.snapshot import Snapshot, Views

if TYPE_CHECKING:
    from labelkin.neighbours.vector_search import VectorState


class Indexes(Closing):
    """Opens each index once and gives snapshots their searches."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.context = SearchContext(open_term_cache(collection))
        self._lock = RLock()
        self._terms: dict[tuple[str, ...], TermIndex] = {}
        self._vectors: dict[tuple[str, str], VectorState] = {}

    def close(self) -> None:
        """Close all indexes."""
        with self._lock:
            for index in self._terms.values():
                index.close()
            for state in self._vectors.values():
                state.close()
            self._terms.clear()
            self._vectors.clear()
        self.context.close()

    def search(self, views: Views, representation: str | None = None) -> NeighbourSearch:
        """The search of a snapshot by a representation, its index brought up to date.

        Representations joined with "," are fused.
        """
        name = representation or views.snapshot.config.representation.name
        return views.get(("search", name), lambda: self._search(views, name))

    def build(
        self,
        snapshot: Snapshot,
        representation: str | None = None,
        *,
        relearn: bool = False,
        progress: BuildProgress | None = None,
    ) -> int:
        """Bring the indexes of a representation up to date; how many documents were new."""
        added = 0
        for part in _parts(representation or snapshot.config.representation.name):
            if is_encoder(part):
                state = self._vector_state(snapshot, part)
                if relearn:
                    state.encoder.relearn()
                    state = self._vector_state(snapshot, part)
                added = max(added, state.index.catch_up(snapshot, progress))
            else:
                added = max(added, self._term_index(snapshot, part).catch_up(snapshot, progress))
        return added

    def release(self, representation: str) -> None:
        """Close vectors that are not needed any more; they are reopened when asked for."""
        with self._lock:
            for key in [key for key in self._vectors if key[0] in _parts(representation)]:
                self._vectors.pop(key).close()

    def _search(self, views: Views, name: str) -> NeighbourSearch:
        snapshot = views.snapshot
        parts = _parts(name)
        if len(parts) > 1:
            from labelkin.neighbours.fused_search import FusedSearch

            searches = [self.search(views, part) for part in parts]
            return FusedSearch(snapshot, self.context, searches)
        self.context.threads = snapshot.config.neighbours.threads
        if is_encoder(parts[0]):
            from labelkin.neighbours.vector_search import VectorSearch

            return VectorSearch(snapshot, self.context, self._vector_state(snapshot, parts[0]))
        from labelkin.neighbours.term_search import TermSearch

        representation = make_representation(parts[0], snapshot.config.representation)
        index = self._term_index(snapshot, parts[0])
        return TermSearch(snapshot, self.context, representation, index)

    def _term_index(self, snapshot: Snapshot, name: str) -> TermIndex:
        representation = make_representation(name, snapshot.config.representation)
        engine = snapshot.config.neighbours.engine
        key = (
            engine,
            *(f"{kind} {version}" for kind, version in representation.versions().items()),
        )
        with self._lock:
            if key not in self._terms:
                index = TermIndex(snapshot, representation, self.context.cache, engine)
                self._terms[key] = index
            return self._terms[key]

    def _vector_state(self, snapshot: Snapshot, name: str) -> VectorState:
        from labelkin.neighbours.vector_search import VectorState
        from labelkin.neighbours.vector_searcher import load_faiss

        load_faiss()
        key = (name, snapshot.config.dense.model_dump_json())
        with self._lock:
            state = self._vectors.get(key)
            if state is not None and not state.encoder.is_current():
                self._vectors.pop(key).close()
                state = None
            if state is None:
                encoder = open_encoder(name, self._collection)
                state = self._vectors[key] = VectorState(snapshot, encoder)
            return state


def _parts(name: str) -> list[str]:
    parts = [part.strip() for part in name.split(",")]
    if not all(parts):
        raise ConfigError(f"the representation {name!r} has an empty name next to a comma")
    return parts
