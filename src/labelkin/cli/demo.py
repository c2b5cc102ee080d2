"""`labelkin demo`: a whole collection from nothing, to see how labelkin works."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.add import print_added
from labelkin.cli.compare_methods import compared, usable_methods
from labelkin.cli.console import print_json, print_message
from labelkin.cli.info import print_info
from labelkin.cli.neighbours import show_neighbours
from labelkin.cli.options import Json
from labelkin.cli.progress import meter
from labelkin.cli.side_by_side import show_side_by_side
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
_EPOCHS = 20
_MEASURES = "MiF MiP MiR P@5 nDCG@5 hF predicted"


def demo(
    collection: Annotated[Path, typer.Argument(help="The folder to create.")] = Path("demo"),
    documents: Annotated[int, typer.Option(min=1, help="How many documents to generate.")] = 4000,
    held_out: Annotated[
        int, typer.Option(min=1, help="How many more to hold out for the evaluation.")
    ] = 300,
    seed: Annotated[int, typer.Option(help="Another seed gives another collection.")] = 0,
    json: Json = False,
) -> None:
    """Create a collection of generated documents; needs no network and no data."""
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.indexer import Indexer
    from labelkin.vocab import Vocabulary

    print_message(
        f"Making {collection}: a generated vocabulary and {documents:,} generated documents."
    )
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
        print_added(report, indexer.collection.count(), indexer.config.documents.max_characters)
        if json:
            print_json(asdict(indexer.info()))
        else:
            print_info(indexer.info())
            _show_examples(indexer)
            _train(indexer, seed)
            methods = usable_methods(indexer)
            _show_reranked(indexer, methods)
            _measure(indexer, list(made), methods)


def _show_examples(indexer: Indexer) -> None:
    from labelkin.corpus import Document

    texts = [Document(PLAIN_TEXT, text, language="en") for text in _TEXTS]
    print_message(f"\nThe documents most similar to {_TEXTS[0]!r}, and the terms that they share:")
    show_neighbours(indexer, iter(texts[:1]), _SHOWN)
    for text, suggestions in zip(texts, indexer.suggest(texts), strict=True):
        print_message(f"Headings for {text.title!r}, and the documents behind them:")
        print_suggestions(text, suggestions[:_SHOWN], "en", explain=False)


def _train(indexer: Indexer, seed: int) -> None:
    """Train every model whose extra is installed."""
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.cli.training_output import TrainingOutput, print_outcome
    from labelkin.exceptions import MissingExtraError
    from labelkin.rerank.settings import RerankTrainingSettings

    with closing(TrainingOutput(indexer.config.rerank)) as output:
        try:
            report = indexer.train(
                label_ae=TrainingSettings(epochs=_EPOCHS, seed=seed),
                rerank=RerankTrainingSettings(seed=seed),
                observer=output,
            )
        except MissingExtraError as error:
            print_message(f"Nothing can be trained: {error}")
            return
    print_outcome(report)


def _show_reranked(indexer: Indexer, methods: Sequence[str]) -> None:
    from labelkin.corpus import Document
    from labelkin.scoring.settings import Settings

    if "rerank" in methods:
        text = Document(PLAIN_TEXT, _TEXTS[-1], language="en")
        (suggestions,) = indexer.suggest(
            [text], settings=Settings.from_config(indexer.config, "rerank")
        )
        print_message(f"\nHeadings for {text.title!r} again, by all signals:")
        print_suggestions(text, suggestions, "en", explain=False)


def _measure(indexer: Indexer, documents: list[Document], methods: Sequence[str]) -> None:
    from labelkin.evaluate import parse_measure

    print_message(f"How good the methods are, on {len(documents)} held-out documents:")
    measures = [parse_measure(name) for name in _MEASURES.split()]
    show_side_by_side(compared(indexer, documents, methods), measures, json=False)
