"""`labelkin suggest`: headings for a text, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import print_json, print_table, tell
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.options import (
    BodyText,
    CollectionPath,
    CorpusFormat,
    Exclude,
    FoldBroader,
    Include,
    Json,
    Language,
    Limit,
    MethodName,
    RepresentationName,
    TextFile,
    Threshold,
    TitleText,
    Voters,
)
from labelkin.cli.settings import asked_settings
from labelkin.cli.texts import PLAIN_TEXT, open_texts

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings
    from labelkin.scoring.suggestion import Suggestion

_BATCH = 200
_BAR = 10


def suggest(
    collection: CollectionPath,
    file: TextFile = None,
    title: TitleText = "",
    text: BodyText = "",
    k: Voters = None,
    limit: Limit = None,
    threshold: Threshold = None,
    include: Include = None,
    exclude: Exclude = None,
    fold_broader: FoldBroader = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="List the documents or words that speak for each heading."),
    ] = False,
    method: MethodName = None,
    representation: RepresentationName = None,
    language: Language = "en",
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Suggest headings by what similar documents carry or the text names, with the evidence."""
    from labelkin.indexer import Indexer

    with (
        open_texts(file, title, text, format) as (documents, corpus),
        Indexer.open(collection) as indexer,
    ):
        settings = asked_settings(
            indexer.config,
            method,
            k=k,
            limit=limit,
            threshold=threshold,
            include=include,
            exclude=exclude,
        )
        if settings.k:
            build_with_progress(indexer, representation)
        found = _suggested(indexer, documents, settings, representation, fold_broader)
        if json:
            print_json([_as_json(*pair, language) for pair in found])
        else:
            for document, suggestions in found:
                print_suggestions(document, suggestions, language, explain)
    if corpus is not None:
        exit_after_reading(corpus.report, strict=False)


def _suggested(
    indexer: Indexer,
    documents: Iterator[Document],
    settings: Settings,
    representation: str | None,
    fold: bool,
) -> Iterator[tuple[Document, list[Suggestion]]]:
    while batch := list(islice(documents, _BATCH)):
        yield from zip(
            batch,
            indexer.suggest(batch, settings=settings, representation=representation, fold=fold),
            strict=True,
        )


def print_suggestions(
    document: Document, suggestions: list[Suggestion], language: str, explain: bool
) -> None:
    """Print one document's headings as a table, with the evidence."""
    heading = "" if document.id == PLAIN_TEXT else f"{document.id}  {document.title}"
    if not suggestions:
        tell(f"{heading or 'The text'}: no heading can be suggested.")
        return
    rows = []
    for suggestion in suggestions:
        bar = "█" * round(suggestion.score * _BAR)
        name = suggestion.concept.name(language)
        reason = suggestion.reason_in(language)
        rows.append((name, bar, f"{suggestion.score:.2f}", reason))
        if explain:
            rows += [
                (
                    f"    {carrier.id}",
                    "",
                    f"{carrier.distance:.2f}",
                    carrier.title if carrier.carries else f"({carrier.share:.0%}) {carrier.title}",
                )
                for carrier in suggestion.carriers
            ]
            rows += [("", "", f"{naming.count} ×", naming.reason) for naming in suggestion.named]
    columns = [("heading", False), ("", False), ("score", True), ("evidence", False)]
    print_table(heading, columns, rows)
    typer.echo()


def _as_json(document: Document, suggestions: list[Suggestion], language: str) -> dict[str, Any]:
    return {
        "id": document.id or None,
        "title": document.title,
        "suggestions": [
            {
                "id": suggestion.concept.id,
                "name": suggestion.concept.name(language),
                "score": round(suggestion.score, 6),
                "rank": suggestion.rank,
                "evidence": {
                    "votes": suggestion.votes,
                    "neighbours": suggestion.neighbours,
                    "carriers": [
                        {
                            "id": carrier.id,
                            "title": carrier.title,
                            "distance": round(carrier.distance, 6),
                            "share": round(carrier.share, 6),
                            "carries": carrier.carries,
                        }
                        for carrier in suggestion.carriers
                    ],
                    "inferred_from": [
                        {"id": concept.id, "name": concept.name(language)}
                        for concept in suggestion.inferred_from
                    ],
                    "named": [asdict(naming) for naming in suggestion.named],
                },
            }
            for suggestion in suggestions
        ],
    }
