"""`labelkin compare`: all methods of a collection side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, tell
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.measures import Measures, parsed_measures
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    RepresentationName,
)
from labelkin.cli.settings import tell_known_documents, tell_unknown_labels
from labelkin.cli.side_by_side import show_side_by_side
from labelkin.exceptions import InputError, MissingExtraError

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.evaluate import Evaluation
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import MethodName, Settings


def compare(
    collection: CollectionPath,
    files: CorpusFiles,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names parted by commas; the others are compared with the first. Default: all "
            "that the collection can use, compared with knn."
        ),
    ] = None,
    measures: Measures = None,
    representation: RepresentationName = None,
    format: CorpusFormat = None,
    label_separator: LabelSeparator = "|",
    json: Json = False,
) -> None:
    """Measure all methods on documents that have labels, side by side with significance."""
    from labelkin.corpus import read_corpus
    from labelkin.indexer import Indexer

    asked = parsed_measures(measures)
    corpus = read_corpus(*files, format=format, label_separator=label_separator)
    documents = [document for document in corpus.documents() if document.labels]
    if not documents:
        raise InputError("no document with labels to compare on")
    with Indexer.open(collection) as indexer:
        names = usable_methods(indexer) if methods is None else _parsed(methods)
        evaluations = compared(indexer, documents, names, representation)
        tell(f"Compared on {counted(len(documents), 'document')} with labels.")
        tell_known_documents(indexer, documents, _settings(indexer, names))
    show_side_by_side(evaluations, asked, json)
    exit_after_reading(corpus.report, strict=False)


def usable_methods(indexer: Indexer) -> list[MethodName]:
    """The methods that can be used here and now; what is not installed is said."""
    names = indexer.usable_methods()
    if "rerank" in names:
        from labelkin.rerank.ranker import check_lightgbm

        try:
            check_lightgbm()
        except MissingExtraError as error:
            tell(f"rerank is left out: {error}")
            names.remove("rerank")
    return names


def compared(
    indexer: Indexer,
    documents: Sequence[Document],
    names: Sequence[MethodName],
    representation: str | None = None,
) -> dict[str, Evaluation]:
    """How each method does, at the settings of labelkin.toml."""
    settings = _settings(indexer, names)
    if any(one.k for one in settings):
        build_with_progress(indexer, representation)
    found = indexer.compare(documents, settings, representation=representation)
    tell_unknown_labels(indexer, settings)
    return dict(zip(names, found, strict=True))


def _settings(indexer: Indexer, names: Sequence[MethodName]) -> list[Settings]:
    from labelkin.scoring.settings import Settings

    return [Settings.from_config(indexer.config, name) for name in names]


def _parsed(methods: str) -> list[MethodName]:
    from labelkin.scoring.settings import METHOD_NAMES

    asked = list(dict.fromkeys(methods.replace(",", " ").split()))
    unknown = [name for name in asked if name not in METHOD_NAMES]
    if unknown or not asked:
        wrong = repr(unknown[0]) if unknown else "without a name"
        raise typer.BadParameter(f"no method {wrong}; known: {', '.join(METHOD_NAMES)}")
    return [known for one in asked for known in METHOD_NAMES if known == one]
