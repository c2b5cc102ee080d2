"""`labelkin suggest`: headings for a text, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
    Json,
    Language,
    Method,
    MethodName,
    RepresentationName,
    TextFile,
    TitleText,
)
from labelkin.cli.texts import PLAIN_TEXT, open_texts

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.knn import KnnSettings
    from labelkin.scoring.suggestion import Suggestion

_BATCH = 200
_BAR = 10


def suggest(
    collection: CollectionPath,
    file: TextFile = None,
    title: TitleText = "",
    text: BodyText = "",
    k: Annotated[int | None, typer.Option("-k", min=1, max=10_000, help="How many vote.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Give this many headings, whatever the count says.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="Give no heading with a lower score.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(help="Only this concept, branch or scheme; repeatable.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Not this concept, branch or scheme; repeatable.")
    ] = None,
    fold_broader: Annotated[
        bool, typer.Option("--fold-broader", help="Leave out headings that narrower ones imply.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="List the documents that carry each heading.")
    ] = False,
    method: MethodName = Method.KNN,  # noqa: ARG001 - the only one so far
    representation: RepresentationName = None,
    language: Language = "en",
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Suggest headings by the votes of the most similar documents, with the evidence."""
    from labelkin.indexer import Indexer
    from labelkin.scoring.knn import KnnSettings

    with (
        open_texts(file, title, text, format) as (documents, corpus),
        Indexer.open(collection) as indexer,
    ):
        settings = _changed(KnnSettings.from_config(indexer.config), k, limit, threshold)
        settings = replace(
            settings,
            include=tuple(include) if include else settings.include,
            exclude=(*settings.exclude, *(exclude or ())),
        )
        build_with_progress(indexer, representation)
        found = _suggested(indexer, documents, settings, representation, fold_broader)
        if json:
            print_json([_as_json(*pair, language) for pair in found])
        else:
            for document, suggestions in found:
                print_suggestions(document, suggestions, language, explain)
    if corpus is not None:
        exit_after_reading(corpus.report, strict=False)


def _changed(
    settings: KnnSettings, k: int | None, limit: int | None, threshold: float | None
) -> KnnSettings:
    if k is not None:
        settings = replace(settings, k=k)
    if threshold is not None:
        settings = replace(settings, threshold=threshold)
    return settings if limit is None else replace(settings, limit=limit, count=None)


def _suggested(
    indexer: Indexer,
    documents: Iterator[Document],
    settings: KnnSettings,
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
        rows.append((name, bar, f"{suggestion.score:.2f}", suggestion.reason))
        if explain:
            rows += [
                (f"    {carrier.id}", "", f"{carrier.distance:.2f}", carrier.title)
                for carrier in suggestion.carriers
            ]
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
                    "votes": len(suggestion.carriers),
                    "neighbours": suggestion.neighbours,
                    "carriers": [
                        {
                            "id": carrier.id,
                            "title": carrier.title,
                            "distance": round(carrier.distance, 6),
                            "share": round(carrier.share, 6),
                        }
                        for carrier in suggestion.carriers
                    ],
                },
            }
            for suggestion in suggestions
        ],
    }
