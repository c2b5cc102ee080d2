"""The search that a representation's name asks for."""

from __future__ import annotations

from labelkin.exceptions import ConfigError
from labelkin.neighbours.search import NeighbourSearch
from labelkin.represent.encoder import is_encoder
from labelkin.store.collection import Collection


def open_search(collection: Collection, representation: str | None = None) -> NeighbourSearch:
    """A search by terms, by vectors, or by several representations joined with ","."""
    name = representation or collection.config.representation.name
    parts = [part.strip() for part in name.split(",")]
    if not all(parts):
        raise ConfigError(f"the representation {name!r} lacks a name beside a comma")
    if len(parts) > 1:
        from labelkin.neighbours.fused_search import FusedSearch

        return FusedSearch(collection, [open_search(collection, part) for part in parts], parts)
    if is_encoder(parts[0]):
        from labelkin.neighbours.vector_search import VectorSearch

        return VectorSearch(collection, parts[0])
    from labelkin.neighbours.term_search import TermSearch

    return TermSearch(collection, parts[0])
