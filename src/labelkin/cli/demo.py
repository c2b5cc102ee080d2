"""`labelkin demo`: a whole collection from nothing, to see how labelkin works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.add import tell_added
from labelkin.cli.console import print_json, tell
from labelkin.cli.info import print_info
from labelkin.cli.neighbours import show_neighbours
from labelkin.cli.options import Json
from labelkin.cli.progress import meter
from labelkin.cli.side_by_side import show_side_by_side
from labelkin.cli.suggest import print_suggestions
from labelkin.cli.texts import PLAIN_TEXT
from labelkin.cli.train import print_report, train_with_progress

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.evaluate import Evaluation
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import MethodName

_TEXTS = (
    "Late blight after wet summers",
    "Oyster beds and storm damage along the coast",
    "Storage of winter wheat in village barns",
)
_SHOWN = 4
_EPOCHS = 20
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
            _measure(indexer, list(made), _train(indexer, seed))


def _look_around(indexer: Indexer) -> None:
    from labelkin.corpus import Document

    texts = [Document(PLAIN_TEXT, text, language="en") for text in _TEXTS]
    tell(f"\nThe documents most similar to {_TEXTS[0]!r}, and the terms that they share:")
    show_neighbours(indexer, iter(texts[:1]), _SHOWN)
    for text, suggestions in zip(texts, indexer.suggest(texts), strict=True):
        tell(f"Headings for {text.title!r}, and who carries them:")
        print_suggestions(text, suggestions[:_SHOWN], "en", explain=False)


def _train(indexer: Indexer, seed: int) -> Sequence[MethodName]:
    """Train the label autoencoder, where that is possible; the methods that can be compared."""
    from labelkin.exceptions import MissingExtraError
    from labelkin.labels.training_settings import TrainingSettings
    from labelkin.scoring.settings import METHOD_NAMES

    tell("Training a label autoencoder on the headings of these documents:")
    try:
        report = train_with_progress(indexer, TrainingSettings(epochs=_EPOCHS, seed=seed))
    except MissingExtraError as error:
        tell(f"Left out: {error}")
        return ("knn",)
    if report is not None:
        print_report(report)
    return METHOD_NAMES


def _measure(indexer: Indexer, documents: list[Document], methods: Sequence[MethodName]) -> None:
    from labelkin.evaluate import parse_measure
    from labelkin.scoring.settings import Settings

    tell(f"\nHow good the methods are, on {len(documents)} documents kept aside:")
    measures = [parse_measure(name) for name in _MEASURES.split()]
    settings = [Settings.from_config(indexer.config, method) for method in methods]
    found = indexer.compare(documents, settings)
    evaluations: dict[str, Evaluation] = dict(zip(methods, found, strict=True))
    show_side_by_side(evaluations, measures, json=False)
