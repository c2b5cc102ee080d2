"""`labelkin suggest`: headings for a text, with the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import (
    print_json,
    print_line,
    print_message,
    print_table,
    terminal_width,
)
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.explanation import cut, explained
from labelkin.cli.languages import ForeignTexts, heading_language
from labelkin.cli.options import (
    BodyText,
    CollectionPath,
    CorpusFormat,
    Json,
    ReadingOptions,
    SuggestionOptions,
    TextFile,
    TitleText,
    takes,
)
from labelkin.cli.settings import suggestion_settings
from labelkin.cli.texts import PLAIN_TEXT, open_texts

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings
    from labelkin.scoring.suggestion import Suggestion

_BATCH = 200
_BAR = 10


@takes(ReadingOptions, "reading")
@takes(SuggestionOptions, "asked")
def suggest(
    collection: CollectionPath,
    asked: SuggestionOptions,
    reading: ReadingOptions,
    file: TextFile = None,
    title: TitleText = None,
    text: BodyText = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also show headings below the review bar of rerank.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="List the documents, words and signals behind each heading.",
        ),
    ] = False,
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Suggest headings from similar documents and the text's own words, with the evidence."""
    from labelkin.indexer import Indexer

    with (
        open_texts(file, title, text, format, reading) as (documents, corpus),
        Indexer.open(collection) as indexer,
    ):
        settings = suggestion_settings(indexer, asked)
        language = heading_language(indexer, asked.language)
        foreign = ForeignTexts(indexer)
        if settings.k:
            build_with_progress(indexer, asked.representation, [settings])
        answered = _suggested(indexer, foreign.watched(documents), settings, asked, explain=explain)
        if json:
            print_json([_as_json(*pair, language) for pair in answered])
        else:
            for document, suggestions in answered:
                print_suggestions(document, suggestions, language, explain, everything)
        foreign.report()
    if corpus is not None:
        exit_after_reading(corpus.report, strict=False)


def _suggested(
    indexer: Indexer,
    documents: Iterator[Document],
    settings: Settings,
    asked: SuggestionOptions,
    *,
    explain: bool,
) -> Iterator[tuple[Document, list[Suggestion]]]:
    while batch := list(islice(documents, _BATCH)):
        suggestions = indexer.suggest(
            batch,
            settings=settings,
            representation=asked.representation,
            fold=asked.fold_broader,
            explain=explain,
        )
        yield from zip(batch, suggestions, strict=True)


def print_suggestions(
    document: Document,
    suggestions: list[Suggestion],
    language: str,
    explain: bool,
    everything: bool = False,
) -> None:
    """Print one document's headings with the evidence: as a table, or explained in blocks.

    Headings below the review bar are only counted, unless `everything` is shown.
    """
    heading = "" if document.id == PLAIN_TEXT else f"{document.id}  {document.title}"
    shown = [one for one in suggestions if everything or one.band != "hidden"]
    if not suggestions:
        print_message(f"{heading or 'The text'}: no heading can be suggested.")
        return
    if shown and explain:
        _print_explained(heading, shown, language)
    elif shown:
        _print_table(heading, shown, language)
    if hidden := len(suggestions) - len(shown):
        more = f"{hidden:,} more" if shown else f"{heading or 'The text'}: {hidden:,}"
        noun = "heading" if hidden == 1 else "headings"
        them = "it" if hidden == 1 else "them"
        print_message(f"{more} {noun} below the review bar; --all shows {them}.")


def _print_table(heading: str, shown: list[Suggestion], language: str) -> None:
    rows = [_row(suggestion, language) for suggestion in shown]
    columns = [("heading", False), ("", False), ("score", True), ("band", False)]
    if all(one.band is None for one in shown):
        columns.pop()
        rows = [(*row[:3], row[4]) for row in rows]
    print_table(heading, [*columns, ("evidence", False)], rows)
    print_line()


def _print_explained(heading: str, shown: list[Suggestion], language: str) -> None:
    """A short block of lines per heading."""
    width = terminal_width()
    if heading:
        print_line(cut(" ".join(heading.split()), width))
        print_line()
    for suggestion in shown:
        for line in explained(suggestion, language, width):
            print_line(line)
        print_line()


def _row(suggestion: Suggestion, language: str) -> tuple[str, ...]:
    """Heading, bar, score, band and evidence."""
    bar = "█" * round(suggestion.score * _BAR)
    name = suggestion.concept.name(language)
    score = f"{suggestion.score:.2f}"
    return (name, bar, score, suggestion.band or "", suggestion.reason_in(language))


def _as_json(document: Document, suggestions: list[Suggestion], language: str) -> dict[str, Any]:
    from labelkin.messages import DocumentSuggestions, SuggestionMessage, as_json

    return as_json(
        DocumentSuggestions(
            id=document.id or None,
            title=document.title,
            suggestions=[SuggestionMessage.from_suggestion(one, language) for one in suggestions],
        )
    )
