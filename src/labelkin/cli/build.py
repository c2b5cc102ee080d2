"""`labelkin build`: the index that neighbours are found with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.cluster import OnMaster, opened_cluster
from labelkin.cli.console import counted, print_json, print_message, seconds_text
from labelkin.cli.options import CollectionPath, Json, RepresentationName
from labelkin.cli.progress import meter
from labelkin.exceptions import (
    CollectionReadOnlyError,
    InputError,
    MissingExtraError,
    ModelError,
    ModelNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings

# If one of these has labels, the others need not be looked at.
_FIRST_ROWS = 100


def build(
    collection: CollectionPath,
    representation: RepresentationName = None,
    relearn: Annotated[
        bool, typer.Option("--relearn", help="Fit lsa to the collection as it is now.")
    ] = False,
    on: OnMaster = None,
    json: Json = False,
) -> None:
    """Bring the index up to date now, not with the next search."""
    from labelkin.indexer import Indexer

    started = time.monotonic()
    with Indexer.open(collection) as indexer:
        if indexer.collection.read_only:
            raise CollectionReadOnlyError(
                f"{collection}: the collection cannot be written to; change its permissions, or "
                "build a copy of it"
            )
        if on is not None:
            _extract_on(indexer, on, representation)
        added = build_with_progress(indexer, representation, relearn=relearn)
        if representation is None:
            added = max(added, _build_for_reranker(indexer))
        kinds = indexer.info().indexes
    seconds = time.monotonic() - started
    if json:
        print_json({"added": added, "indexes": kinds, "seconds": seconds})
    elif added:
        new = counted(added, "new document")
        print_message(f"Indexed {new} by {', '.join(kinds)} in {seconds_text(seconds)}.")
    else:
        print_message("Nothing to do: all documents with labels are indexed.")


def _extract_on(indexer: Indexer, master: str, representation: str | None) -> None:
    """Have a cluster extract the terms of all labelled documents for the collection's cache."""
    from labelkin.cluster.analysis import extract_on_cluster
    from labelkin.cluster.search import term_representation

    name = representation or indexer.config.representation.name
    term_representation(name, indexer.config.representation)
    cache = indexer.runtime.indexes.context.cache
    with opened_cluster(indexer, master) as cluster:
        count = extract_on_cluster(
            cluster.session, cluster.workspace, indexer.snapshot(), name, cache, cluster.show
        )
    print_message(f"Took the terms of {counted(count, 'document')} from the cluster.")


def _build_for_reranker(indexer: Indexer) -> int:
    """Bring the vectors that the reranker uses up to date; says so if that is not possible."""
    from labelkin.represent.encoder import encoder_version
    from labelkin.rerank.model import RERANK_NAME, reranker_info

    folder = indexer.runtime.models.folder / RERANK_NAME
    try:
        info = reranker_info(folder)
        info.check_encoder(folder, lambda name: encoder_version(name, indexer.collection))
        if info.encoder_name:
            return build_with_progress(indexer, info.encoder_name)
    except ModelNotFoundError:
        pass
    except (ModelError, MissingExtraError) as error:
        print_message(f"Skipping the vectors of the reranker: {error}")
    return 0


def nothing_to_find(indexer: Indexer) -> str:
    """Why no text can have neighbours in this collection; empty if it can."""
    documents = indexer.collection.count()
    if not documents:
        return "The collection has no documents yet"
    label_sets = indexer.collection.label_sets()
    first = range(min(label_sets.rows, _FIRST_ROWS))
    if not any(len(label_sets.columns(row)) for row in first) and not label_sets.sizes().any():
        return f"None of the {counted(documents, 'document')} has headings"
    return ""


def check_neighbours(indexer: Indexer) -> None:
    """Raise InputError if no text can have neighbours, which every figure would depend on."""
    if reason := nothing_to_find(indexer):
        raise InputError(
            f"{indexer.collection.path}: {reason[0].lower()}{reason[1:]}; add documents that have "
            "some"
        )


def build_with_progress(
    indexer: Indexer,
    representation: str | None,
    settings: Sequence[Settings] = (),
    *,
    relearn: bool = False,
) -> int:
    """Bring the index up to date under a progress bar; warns if there is nothing to find.

    A representation that the methods of `settings` cannot use is refused before.
    """
    indexer.check_representation(settings, representation)
    if reason := nothing_to_find(indexer):
        print_message(f"{reason}, so nothing will be found.")
    with meter("Indexing", indexer.collection.generation().next_row) as bar:
        return indexer.build(
            representation,
            relearn=relearn,
            progress=lambda done, _: bar.update(done, counted(done, "document")),
        )


def expect_with_progress(indexer: Indexer, representation: str | None, queries: int) -> bool:
    """Whether so many queries are worth the index for batches, which is then built."""
    with meter("Indexing for batches", indexer.collection.generation().next_row) as bar:
        return indexer.search(representation).expect(
            queries, lambda done, _: bar.update(done, counted(done, "document"))
        )
