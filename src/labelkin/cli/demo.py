"""`labelkin demo`: a whole collection from nothing, to see how labelkin works."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.add import print_added
from labelkin.cli.compare_methods import compared, usable_methods
from labelkin.cli.console import counted, print_facts, print_json, print_message, print_table
from labelkin.cli.options import Json, NewFolder
from labelkin.cli.progress import meter
from labelkin.cli.side_by_side import show_side_by_side
from labelkin.cli.suggest import print_suggestions
from labelkin.cli.texts import PLAIN_TEXT

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer

TEXTS = (
    "Late blight after wet summers",
    "Oyster beds and storm damage along the coast",
    "Storage of winter wheat in village barns",
)
_SIDE_BY_SIDE = TEXTS[2]
_SHOWN = 4
MEASURES = {
    "MiF": "one figure for MiP and MiR (their harmonic mean)",
    "MiP": "precision: the share of the suggested headings that are right",
    "MiR": "recall: the share of the right headings that are suggested",
    "P@5": "the share of right headings among a document's first five",
    "nDCG@5": "the same, but the first of the five count most",
    "hF": "like MiF, but headings close to the right ones count in part",
    "predicted": "how many headings a document gets",
}


def demo(
    collection: NewFolder = Path("demo"),
    documents: Annotated[int, typer.Option(min=1, help="How many documents to generate.")] = 4000,
    held_out: Annotated[
        int, typer.Option(min=1, help="How many more to hold out for the evaluation.")
    ] = 300,
    seed: Annotated[
        int, typer.Option(min=0, max=2**31 - 1, help="Another seed gives another collection.")
    ] = 0,
    json: Json = False,
) -> None:
    """Create a collection of generated documents; needs no network and no data."""
    from labelkin.demo import demo_concepts, demo_documents
    from labelkin.indexer import Indexer
    from labelkin.vocab import Vocabulary

    vocabulary = Vocabulary(demo_concepts(seed))
    made = demo_documents(documents + held_out, seed)
    with Indexer.create(collection, vocabulary, name="labelkin demo", language="en") as indexer:
        print_message(
            f"Making {collection}: a generated vocabulary and {counted(documents, 'document')}."
        )
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
            _train(indexer, seed)
            methods = usable_methods(indexer)
            _show_suggestions(indexer)
            _show_methods(indexer, methods)
            _measure(indexer, list(made), methods)
            _say_goodbye(collection)


def _train(indexer: Indexer, seed: int) -> None:
    """Train every model whose extra is installed."""
    from labelkin.autoencoder.training_settings import TrainingSettings
    from labelkin.cli.training_output import TrainingOutput, print_outcome
    from labelkin.exceptions import MissingExtraError, TrainingError
    from labelkin.rerank.settings import RerankTrainingSettings

    with closing(TrainingOutput(indexer.config.rerank, show=False)) as output:
        try:
            report = indexer.train(
                label_ae=TrainingSettings(seed=seed),
                rerank=RerankTrainingSettings(seed=seed),
                observer=output,
            )
        except (MissingExtraError, TrainingError) as error:
            print_message(f"Nothing can be trained: {error}")
            return
    print_outcome(report)


def _show_suggestions(indexer: Indexer) -> None:
    """What the default method suggests for some texts, with the evidence."""
    texts = [_text(title) for title in TEXTS]
    method = indexer.config.suggest.method
    print_message("")
    for text, suggestions in zip(texts, indexer.suggest(texts, explain=True), strict=True):
        print_message(f"Headings for {text.title!r}, by {method}:\n")
        print_suggestions(text, suggestions[:_SHOWN], "en", explain=True)


def _show_methods(indexer: Indexer, methods: Sequence[str]) -> None:
    """The first headings of one text by every method."""
    from labelkin.scoring.settings import Settings

    print_message(f"Headings for {_SIDE_BY_SIDE!r}, by each method:")
    rows = []
    for method in methods:
        settings = Settings.from_config(indexer.config, method)
        (suggestions,) = indexer.suggest([_text(_SIDE_BY_SIDE)], settings=settings)
        headings = (f"{one.concept.name('en')} {one.score:.2f}" for one in suggestions[:_SHOWN])
        rows.append((method, "; ".join(headings) or "none"))
    print_table("", [("method", False), ("headings and scores", False)], rows)


def _text(title: str) -> Document:
    from labelkin.corpus import Document

    return Document(PLAIN_TEXT, title, language="en")


def _measure(indexer: Indexer, documents: list[Document], methods: Sequence[str]) -> None:
    from labelkin.evaluate import parse_measure

    print_message(f"\nHow good the methods are, on {counted(len(documents), 'document')} held out:")
    measures = [parse_measure(name) for name in MEASURES]
    show_side_by_side(compared(indexer, documents, methods), measures, json=False)
    print_facts(MEASURES.items())


def _say_goodbye(collection: Path) -> None:
    """What to type next: on the command line, and for the page in a browser."""
    from labelkin.serve.settings import TOKEN_VARIABLE

    program, folder = _program(), shlex.quote(str(collection))
    print_message(f"\nYour turn: {program} suggest {folder} --title 'Your own text' --explain")
    print_message(
        f"In a browser: {TOKEN_VARIABLE}=demo {program} serve {folder}, then http://127.0.0.1:8080 "
        "(the token to save is demo)"
    )


def _program() -> str:
    """The command as it was called, if the shell does not find it by its name."""
    called, known = Path(sys.argv[0]), shutil.which("labelkin")
    if called.name == "__main__.py":
        return "python -m labelkin"
    is_found = known is not None and Path(known).resolve() == called.resolve()
    return shlex.quote(sys.argv[0]) if called.name == "labelkin" and not is_found else "labelkin"
