"""The open indexes of a collection, shared by its snapshots and by all threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from labelkin.closing import Closing
from labelkin.compiled import can_compile
from labelkin.exceptions import CollectionError, ConfigError
from labelkin.memo import Memo
from labelkin.neighbours.bulk import BulkIndex
from labelkin.neighbours.engine import POSTINGS
from labelkin.neighbours.heading_terms import index_fields
from labelkin.neighbours.search import NeighbourSearch, SearchContext
from labelkin.neighbours.term_index import TermIndex
from labelkin.represent.cache import open_term_cache
from labelkin.represent.encoder import check_encoder_name, is_encoder, open_encoder
from labelkin.represent.representation import make_representation
from labelkin.store.collection import Collection
from labelkin.store.derived import BuildProgress
from labelkin.store.snapshot import Snapshot, Views

if TYPE_CHECKING:
    from labelkin.neighbours.term_search import TermSearch
    from labelkin.neighbours.vector_search import VectorSearch, VectorState


class BulkProvider(Protocol):
    """Does elsewhere what takes long: analyses stored texts, and searches many at a time."""

    def extract(self, snapshot: Snapshot, name: str) -> None:
        """Have the terms of all labelled documents in the collection's cache."""
        ...

    def search(self, snapshot: Snapshot, name: str, here: TermSearch) -> NeighbourSearch:
        """A search by terms that gives what the one `here` gives."""
        ...

    def finish(self) -> None:
        """Delete what was found, once nothing needs it any more."""
        ...


class Indexes(Closing):
    """Opens each index once and gives snapshots their searches.

    Searches that are made while there is a `provider` search large batches through it.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self.context = SearchContext(open_term_cache(collection))
        self._is_closed = False
        self._terms = Memo()
        self._vectors = Memo()
        self._bulk = Memo()
        self.provider: BulkProvider | None = None

    def stop(self) -> None:
        """Have builds under way end soon; they continue when the collection is opened again."""
        self._is_closed = True

    def close(self) -> None:
        """Close all indexes."""
        self._is_closed = True
        self._bulk.clear()
        for memo in (self._terms, self._vectors):
            for key in memo.keys():  # noqa: SIM118 - not a dictionary
                index: TermIndex | VectorState | None = memo.peek(key)
                if index is not None:
                    index.close()
            memo.clear()
        self.context.close()

    def search(self, views: Views, representation: str | None = None) -> NeighbourSearch:
        """The search of a snapshot by a representation, its index brought up to date.

        Representations joined with "," are fused.
        """
        name = representation_name(views.snapshot, representation)
        return views.get(("search", name), lambda views: self._search(views, name))

    def vector_search(self, views: Views, encoder: str) -> VectorSearch:
        """The search of a snapshot by the vectors of an encoder, brought up to date."""
        from labelkin.neighbours.vector_search import VectorSearch

        check_encoder_name(encoder)
        search = self.search(views, encoder)
        if not isinstance(search, VectorSearch):
            raise ConfigError(f"{encoder!r} is no encoder")
        return search

    def encoder_version(self, views: Views, encoder: str) -> str:
        """The version of an encoder as the snapshot uses it; encodes no documents."""
        check_encoder_name(encoder)
        if views.has(("search", encoder)):
            return self.vector_search(views, encoder).version
        return self._vector_state(views.snapshot, encoder).encoder.version

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
        for part in _parts(representation_name(snapshot, representation)):
            if is_encoder(part):
                state = self._vector_state(snapshot, part)
                if relearn:
                    state.encoder.relearn()
                    state = self._vector_state(snapshot, part)
                added = max(added, state.index.catch_up(snapshot, progress))
            else:
                index = self._term_index(snapshot, part)
                if self.provider is not None and index.missing_rows(snapshot):
                    self.provider.extract(snapshot, part)
                added = max(added, index.catch_up(snapshot, progress))
        return added

    def release(self, representation: str) -> None:
        """Forget the vectors of a representation; searches that use them keep them."""
        if self.provider is not None:
            self.provider.finish()
        for key in self._vectors.keys():  # noqa: SIM118 - not a dictionary
            if isinstance(key, tuple) and key[0] in _parts(representation):
                self._vectors.drop(key)

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
        index, bulk = self._term_index(snapshot, parts[0]), self._bulk_index(snapshot, parts[0])
        search = TermSearch(snapshot, self.context, representation, index, bulk)
        if self.provider is not None:
            return self.provider.search(snapshot, parts[0], search)
        return search

    def _term_index(self, snapshot: Snapshot, name: str, engine: str | None = None) -> TermIndex:
        """The index of a representation, on the engine of labelkin.toml or another."""
        representation = make_representation(name, snapshot.config.representation)
        settings = snapshot.config.neighbours
        engine, headings = engine or settings.engine, settings.heading_weight > 0
        self._check_open()
        return self._terms.get(
            (engine, *_index_key(snapshot, name)),
            lambda: TermIndex(
                snapshot,
                representation,
                self.context.cache,
                engine,
                lambda: self._is_closed,
                headings=headings,
            ),
        )

    def _bulk_index(self, snapshot: Snapshot, name: str) -> BulkIndex | None:
        """What searches large batches; None if it is switched off or cannot be used here."""
        settings = snapshot.config.neighbours
        if not settings.bulk or settings.engine == POSTINGS or not can_compile():
            return None
        return self._bulk.get(
            _index_key(snapshot, name),
            lambda: BulkIndex(lambda latest: self._term_index(latest, name, POSTINGS)),
        )

    def _vector_state(self, snapshot: Snapshot, name: str) -> VectorState:
        from labelkin.neighbours.vector_search import VectorState
        from labelkin.neighbours.vector_searcher import load_faiss

        load_faiss()
        key = (name, snapshot.config.dense.model_dump_json())
        self._check_open()
        known: VectorState | None = self._vectors.peek(key)
        if known is not None and not known.encoder.is_current():
            self._vectors.drop(key)
        return self._vectors.get(
            key, lambda: VectorState(snapshot, open_encoder(name, self._collection))
        )

    def _check_open(self) -> None:
        if self._is_closed:
            raise CollectionError(f"{self._collection.path}: the collection is closed")


def _index_key(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    """The fields of a representation with their versions: what an index depends on."""
    representation = make_representation(name, snapshot.config.representation)
    headings = snapshot.config.neighbours.heading_weight > 0
    fields = index_fields(representation, headings=headings)
    return tuple(f"{field} {version}" for field, version in fields.items())


def representation_name(snapshot: Snapshot, asked: str | None) -> str:
    """The representation that was asked for, else that of labelkin.toml."""
    return snapshot.config.representation.name if asked is None else asked


def _parts(name: str) -> list[str]:
    parts = [part.strip() for part in name.split(",")]
    if not name.strip():
        raise ConfigError("the name of the representation is empty; the usual one is stems")
    if not all(parts):
        raise ConfigError(f"the representation {name!r} has an empty name next to a comma")
    return parts
