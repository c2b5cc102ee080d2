"""`labelkin demo`: a whole collection from nothing, to see how labelkin works."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from labelkin.cli.add import tell_added
from labelkin.cli.console import print_json, tell
from labelkin.cli.info import print_info
from labelkin.cli.neighbours import show_neighbours
from labelkin.cli.options import Json
from labelkin.cli.progress import meter
from labelkin.cli.texts import PLAIN_TEXT

_TEXT = "Late blight after wet summers"
_SHOWN = 4


def demo(
    collection: Annotated[Path, typer.Argument(help="The folder to make.")] = Path("demo"),
    documents: Annotated[int, typer.Option(min=1, help="How many documents to make.")] = 4000,
    seed: Annotated[int, typer.Option(help="Another seed gives another collection.")] = 0,
    json: Json = False,
) -> None:
    """Make a collection of generated documents, with no network and no data of your own."""
    from labelkin.corpus import Document
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.indexer import Indexer
    from labelkin.vocab import Vocabulary

    tell(f"Making {collection}: a generated vocabulary and {documents:,} generated documents.")
    vocabulary = Vocabulary(demo_concepts(seed))
    with Indexer.create(collection, vocabulary, name="labelkin demo", language="en") as indexer:
        with meter("Adding documents", documents) as progress:
            report = indexer.add(
                demo_documents(documents, seed),
                progress=lambda so_far: progress.update(
                    so_far.documents, f"{so_far.documents:,} documents"
                ),
            )
        tell_added(report, indexer.collection.count(), indexer.config.documents.max_characters)
        if json:
            print_json(asdict(indexer.info()))
            return
        print_info(indexer.info())
        tell(f"\nThe documents most similar to {_TEXT!r}, and the terms that they share:")
        show_neighbours(indexer, iter([Document(PLAIN_TEXT, _TEXT, language="en")]), _SHOWN)
