"""`labelkin build`: the index that neighbours are found with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.console import counted, print_json, print_message, seconds_text
from labelkin.cli.options import CollectionPath, Json, RepresentationName
from labelkin.cli.progress import meter
from labelkin.exceptions import CollectionReadOnlyError, InputError, ModelError

if TYPE_CHECKING:
    from labelkin.indexer import Indexer

# If one of these has labels, the others need not be looked at.
_FIRST_ROWS = 100


def build(
    collection: CollectionPath,
    representation: RepresentationName = None,
    relearn: Annotated[
        bool, typer.Option("--relearn", help="Fit lsa to the collection as it is now.")
    ] = False,
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
        added = build_with_progress(indexer, representation, relearn=relearn)
        if representation is None and (encoder := _encoder_of_reranker(indexer)):
            added = max(added, build_with_progress(indexer, encoder))
        kinds = indexer.info().indexes
    seconds = time.monotonic() - started
    if json:
        print_json({"added": added, "indexes": kinds, "seconds": seconds})
    elif added:
        new = counted(added, "new document")
        print_message(f"Indexed {new} by {', '.join(kinds)} in {seconds_text(seconds)}.")
    else:
        print_message("Nothing to do: all documents with labels are indexed.")


def _encoder_of_reranker(indexer: Indexer) -> str:
    """The encoder whose vectors the reranker uses; empty without one."""
    from labelkin.rerank.model import RERANK_NAME, reranker_info

    try:
        return reranker_info(indexer.runtime.models.folder / RERANK_NAME).encoder_name
    except ModelError:
        return ""


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
    indexer: Indexer, representation: str | None, *, relearn: bool = False
) -> int:
    """Bring the index up to date under a progress bar; warns if there is nothing to find."""
    if reason := nothing_to_find(indexer):
        print_message(f"{reason}, so nothing will be found.")
    with meter("Indexing", indexer.collection.generation().next_row) as bar:
        return indexer.build(
            representation,
            relearn=relearn,
            progress=lambda done, _: bar.update(done, counted(done, "document")),
        )
