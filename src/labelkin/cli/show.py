"""`labelkin show`: one document of a collection, and the documents nearest to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import print_facts, print_json, print_line, print_message, print_table
from labelkin.cli.languages import heading_language
from labelkin.cli.options import CollectionPath, Json, Language, RepresentationName
from labelkin.exceptions import InputError

if TYPE_CHECKING:
    from labelkin.messages import NeighbourMessage, StoredDocumentMessage


def show(
    collection: CollectionPath,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The id of a document.")],
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, max=10_000, help="How many of the nearest.")
    ] = 5,
    representation: RepresentationName = None,
    language: Language = None,
    json: Json = False,
) -> None:
    """Show a stored document: its text, its headings, and the documents nearest to it."""
    from labelkin.indexer import Indexer
    from labelkin.messages import StoredDocumentMessage, as_json

    with Indexer.open(collection) as indexer:
        shown_in = heading_language(indexer, language)
        if neighbours and indexer.document(identifier) is not None:
            build_with_progress(indexer, representation)
        stored = indexer.show(identifier, neighbours, representation=representation)
    if stored is None:
        raise InputError(
            f"no document {identifier!r} in {collection}; "
            f"`labelkin corpus convert {collection} -o documents.csv` lists the ids"
        )
    message = StoredDocumentMessage.from_stored(stored, shown_in)
    if json:
        print_json(as_json(message))
        return
    _print_document(message)
    if message.neighbours:
        _print_neighbours(message.neighbours)
    elif neighbours:
        print_message("No other labelled document shares a term with it.")


def _print_document(document: StoredDocumentMessage) -> None:
    facts = {
        "Id": document.id,
        "Title": document.title,
        "Language": document.language,
        "Revision": document.revision,
    }
    facts |= {
        name: str(value)
        for name, value in document.metadata.items()
        if isinstance(value, str | int | float)
    }
    print_facts((name, value) for name, value in facts.items() if value)
    for text in (document.body, *(f"{name}: {text}" for name, text in document.fields.items())):
        if text:
            print_line()
            print_line(text)
    print_line()
    if not document.labels:
        print_line("No headings.")
        return
    rows = [
        (
            label.id,
            label.name,
            ", ".join(
                mark
                for mark, applies in (
                    ("major", label.major),
                    ("not in the vocabulary", not label.resolved),
                )
                if applies
            ),
        )
        for label in document.labels
    ]
    print_table("", [("heading", False), ("name", False), ("", False)], rows)


def _print_neighbours(neighbours: list[NeighbourMessage]) -> None:
    rows = [
        (f"{one.distance:.3f}", one.id, one.title, ", ".join(h.name for h in one.headings))
        for one in neighbours
    ]
    print_line()
    columns = [("distance", True), ("id", False), ("title", False), ("headings", False)]
    print_table("", columns, rows)
