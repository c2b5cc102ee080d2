"""`labelkin compare`: all methods of a collection side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import counted, print_message
from labelkin.cli.exits import exit_after_reading
from labelkin.cli.languages import report_foreign_texts
from labelkin.cli.measures import Measures, parsed_measures
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    LabelSeparator,
    ReadingOptions,
    RepresentationName,
    takes,
)
from labelkin.cli.settings import (
    check_method,
    print_known_documents,
    print_unknown_labels,
    print_unresolved,
)
from labelkin.cli.side_by_side import show_side_by_side
from labelkin.cli.texts import read_labelled
from labelkin.exceptions import MissingExtraError, ModelError

if TYPE_CHECKING:
    from labelkin.corpus import Document
    from labelkin.evaluate import Evaluation
    from labelkin.indexer import Indexer
    from labelkin.scoring.settings import Settings


@takes(ReadingOptions, "reading")
def compare(
    collection: CollectionPath,
    files: CorpusFiles,
    reading: ReadingOptions,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas; the others are compared with the first. Default: all "
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
    from labelkin.evaluate.gold import unknown_labels
    from labelkin.indexer import Indexer

    asked = parsed_measures(measures)
    documents, corpus = read_labelled(files, "compare", format, label_separator, reading)
    with Indexer.open(collection) as indexer:
        names = usable_methods(indexer) if methods is None else _parsed(methods)
        evaluations = compared(indexer, documents, names, representation)
        print_message(f"Compared on {counted(len(documents), 'document')} with labels.")
        print_known_documents(indexer, documents, _settings(indexer, names))
        report_foreign_texts(indexer, documents)
        print_unresolved(unknown_labels(documents, indexer.vocabulary))
    show_side_by_side(evaluations, asked, json)
    exit_after_reading(corpus.report, strict=False)


def usable_methods(indexer: Indexer) -> list[str]:
    """The methods that can be used; prints which are skipped."""
    from labelkin.scoring.methods import METHODS

    states = indexer.info().model_states
    problems = {one["name"]: one["problem"] for one in states if not one["is_usable"]}
    names = []
    for name in indexer.usable_methods():
        method = METHODS[name]
        models = [kind.folder_name for kind in method.required_models()]
        try:
            method.check_installed()
            if damaged := [problems[model] for model in models if model in problems]:
                raise ModelError(damaged[0])
        except (MissingExtraError, ModelError) as error:
            print_message(f"Skipping {name}: {error}")
        else:
            names.append(name)
    return names


def compared(
    indexer: Indexer,
    documents: Sequence[Document],
    names: Sequence[str],
    representation: str | None = None,
) -> dict[str, Evaluation]:
    """Evaluate each method with the settings of labelkin.toml."""
    settings = _settings(indexer, names)
    if any(one.k for one in settings):
        build_with_progress(indexer, representation, settings)
    evaluations = indexer.compare(documents, settings, representation=representation)
    print_unknown_labels(indexer, settings)
    return dict(zip(names, evaluations, strict=True))


def _settings(indexer: Indexer, names: Sequence[str]) -> list[Settings]:
    from labelkin.scoring.settings import Settings

    return [Settings.from_config(indexer.config, name) for name in names]


def _parsed(methods: str) -> list[str]:
    names = list(dict.fromkeys(methods.replace(",", " ").split()))
    if not names:
        raise typer.BadParameter("no method given; name some, separated by commas")
    for name in names:
        check_method(name)
    return names
