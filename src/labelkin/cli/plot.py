"""`labelkin plot`: pictures of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import print_message
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.languages import heading_language
from labelkin.cli.options import (
    CollectionPath,
    CorpusFormat,
    LabelSeparator,
    Language,
    ReadingOptions,
    named_path,
    takes,
)
from labelkin.cli.outputs import check_output
from labelkin.cli.settings import asked_settings, print_known_documents, print_unresolved
from labelkin.cli.texts import read_labelled
from labelkin.exceptions import FormatError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labelkin.corpus import Document
    from labelkin.indexer import Indexer

app = typer.Typer(no_args_is_help=True, help="Draw what is in a collection, and how good it is.")

Picture = Annotated[
    Path,
    typer.Option(
        "--output", "-o", parser=named_path, help="The picture to write: .png, .svg or .pdf."
    ),
]
LabelledFiles = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILES]...",
        parser=named_path,
        help="Documents with labels. Default: those that the last training held out.",
    ),
]


@app.command()
def frequencies(collection: CollectionPath, output: Picture) -> None:
    """Draw the long tail: how many documents carry each heading, by rank."""
    from labelkin.indexer import Indexer
    from labelkin.plots.drawing import draw_frequencies
    from labelkin.plots.frequencies import heading_frequencies

    _check_picture(output, [collection])
    with Indexer.open(collection) as indexer:
        counted = heading_frequencies(indexer.label_frequencies())
        title = f"Documents per heading: {_name(indexer)}"
    if not counted.headings:
        raise InputError(f"{collection}: no document has a heading yet; see `labelkin add`")
    _write(draw_frequencies(counted, title), output)


@app.command()
@takes(ReadingOptions, "reading")
def reliability(
    collection: CollectionPath,
    reading: ReadingOptions,
    output: Picture,
    files: LabelledFiles = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
) -> None:
    """Draw the reranker's scores against the share of headings that is right."""
    from labelkin.evaluate.gold import unknown_labels
    from labelkin.indexer import Indexer
    from labelkin.plots.drawing import draw_reliability

    _check_picture(output, [collection, *(files or ())])
    documents: list[Document] = []
    corpus = None
    if files:
        documents, corpus = read_labelled(files, "measure", format, label_separator, reading)
    with Indexer.open(collection) as indexer:
        if documents:
            build_with_progress(indexer, None)
        measured = indexer.reliability(documents)
        if documents:
            settings = asked_settings(indexer, "rerank")
            print_known_documents(indexer, documents, [settings])
            if unknown := unknown_labels(documents, indexer.vocabulary):
                print_unresolved(unknown)
        title = f"Reliability of the scores: {_name(indexer)}"
    if measured is None:
        raise InputError(
            f"{collection}: an earlier version trained the reranker and stored no reliability; "
            "give a file of documents with labels, or run `labelkin train`"
        )
    _write(draw_reliability(measured, title), output)
    if corpus is not None:
        exit_after_reading(corpus.report, strict=False)


@app.command()
def latent(collection: CollectionPath, output: Picture, language: Language = None) -> None:
    """Draw a map of the 3,000 most frequent headings, by branch of the vocabulary.

    The label autoencoder places them: headings that often go together are near each other.
    """
    from labelkin.indexer import Indexer
    from labelkin.plots.drawing import draw_latent

    _check_picture(output, [collection])
    with Indexer.open(collection) as indexer:
        latent = indexer.latent_map(language=heading_language(indexer, language))
        title = f"Map of the headings: {_name(indexer)}"
    if not latent.points:
        raise InputError(f"{collection}: no document has a heading that the model knows")
    _write(draw_latent(latent, title), output)


def _check_picture(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse an output that is no picture, and a missing matplotlib, before any work is done."""
    from labelkin.plots.drawing import FORMATS, check_matplotlib

    check_output(output, inputs)
    if output.suffix.lower() not in FORMATS:
        what = f"no format for the extension {output.suffix!r}" if output.suffix else "no extension"
        raise FormatError(f"{output}: {what}; use {', '.join(FORMATS)}")
    check_matplotlib()


def _name(indexer: Indexer) -> str:
    return indexer.config.collection.name or indexer.collection.path.resolve().name


def _write(figure: Any, output: Path) -> None:
    from labelkin.plots.drawing import save_figure

    save_figure(figure, output)
    print_message(f"Wrote {output}.")
