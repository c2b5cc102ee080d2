"""`labelkin demo`: a whole collection from nothing, to see how labelkin works."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.add import tell_added
from labelkin.cli.console import print_json, print_table, tell
from labelkin.cli.info import print_info
from labelkin.cli.neighbours import show_neighbours
from labelkin.cli.options import Json
from labelkin.cli.progress import meter
from labelkin.cli.suggest import print_suggestions
from labelkin.cli.texts import PLAIN_TEXT

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer

_TEXTS = (
    "Late blight after wet summers",
    "Oyster beds and storm damage along the coast",
    "Storage of winter wheat in village barns",
)
_SHOWN = 4
_MEASURES = "MiF MiP MiR P@5 nDCG@5 hF predicted"


def demo(
    collection: Annotated[Path, typer.Argument(help="The folder to make.")] = Path("demo"),
    documents: Annotated[int, typer.Option(min=1, help="How many documents to make.")] = 4000,
    held_out: Annotated[
        int, typer.Option(min=1, help="How many more to keep aside, to see how good it is.")
    ] = 300,
    seed: Annotated[int, typer.Option(help="Another seed gives another collection.")] = 0,
    json: Json = False,
) -> None:
    """Make a collection of generated documents, with no network and no data of your own."""
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.indexer import Indexer
    from labelkin.vocab import Vocabulary

    tell(f"Making {collection}: a generated vocabulary and {documents:,} generated documents.")
    vocabulary = Vocabulary(demo_concepts(seed))
    made = demo_documents(documents + held_out, seed)
    with Indexer.create(collection, vocabulary, name="labelkin demo", language="en") as indexer:
        with meter("Adding documents", documents) as progress:
            report = indexer.add(
                islice(made, documents),
                progress=lambda so_far: progress.update(
                    so_far.documents, f"{so_far.documents:,} documents"
                ),
            )
        tell_added(report, indexer.collection.count(), indexer.config.documents.max_characters)
        if json:
            print_json(asdict(indexer.info()))
        else:
            print_info(indexer.info())
            _look_around(indexer)
            _measure(indexer, list(made))


def _look_around(indexer: Indexer) -> None:
    from labelkin.corpus import Document

    texts = [Document(PLAIN_TEXT, text, language="en") for text in _TEXTS]
    tell(f"\nThe documents most similar to {_TEXTS[0]!r}, and the terms that they share:")
    show_neighbours(indexer, iter(texts[:1]), _SHOWN)
    for text, suggestions in zip(texts, indexer.suggest(texts), strict=True):
        tell(f"Headings for {text.title!r}, and who carries them:")
        print_suggestions(text, suggestions[:_SHOWN], "en", explain=False)


def _measure(indexer: Indexer, documents: list[Document]) -> None:
    from labelkin.evaluate import evaluate, parse_measure

    tell(f"How good such headings are, on {len(documents)} documents kept aside:")
    measures = [parse_measure(name) for name in _MEASURES.split()]
    values = evaluate(indexer.evaluate(documents), measures)
    rows = [
        (measure.name, f"{values[measure.name]:.3f}", measure.definition) for measure in measures
    ]
    print_table("", [("measure", False), ("value", True), ("definition", False)], rows)
