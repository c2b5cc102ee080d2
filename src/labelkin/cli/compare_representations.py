"""`labelkin compare-representations`: which representation finds the best neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress, check_neighbours
from labelkin.cli.console import print_json, print_message, print_table
from labelkin.cli.options import (
    CollectionPath,
    CorpusFiles,
    CorpusFormat,
    Json,
    ReadingOptions,
    takes,
)
from labelkin.cli.texts import read_labelled

if TYPE_CHECKING:
    from labelkin.evaluate.comparison import Comparison
    from labelkin.store.config import RepresentationSection

_REPRESENTATIONS = "stems lemmas nps deps ners keywords multi all lsa wordllama".split()
_MEASURES = "MiF,MiP,MiR,P@5,P@10,nDCG@5,nDCG@10"


@takes(ReadingOptions, "reading")
def compare_representations(
    collection: CollectionPath,
    files: CorpusFiles,
    reading: ReadingOptions,
    representation: Annotated[
        list[str] | None,
        typer.Option(help="One to compare; repeatable. Default: all that are installed."),
    ] = None,
    measures: Annotated[str, typer.Option(help="Measures, separated by commas.")] = _MEASURES,
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Measure basic k-NN by each representation and k, on documents that have labels."""
    from labelkin.evaluate import parse_measure
    from labelkin.evaluate.sweep import KS
    from labelkin.exceptions import MissingExtraError
    from labelkin.indexer import Indexer

    asked = [parse_measure(name.strip()) for name in measures.split(",")]
    documents, _ = read_labelled(files, "compare", format, reading=reading)
    comparisons: list[Comparison] = []
    with Indexer.open(collection) as indexer:
        check_neighbours(indexer)
        names: list[str] = []
        kinds: set[str] = set()
        for name in dict.fromkeys(representation or _REPRESENTATIONS):
            try:
                kinds |= _term_kinds(name, indexer.config.representation)
            except MissingExtraError as error:
                if representation:
                    raise
                print_message(f"Skipping {name}: {error}")
            else:
                names.append(name)
        if kinds:
            # One index, and one analysis of each text, for all of them.
            build_with_progress(indexer, "+".join(sorted(kinds)))
        for name in names:
            try:
                build_with_progress(indexer, name)
            except MissingExtraError as error:
                if representation:
                    raise
                print_message(f"Skipping {name}: {error}")
                continue
            comparisons += indexer.compare_representations(documents, [name], asked, KS)
            indexer.release(name)
    if json:
        print_json(
            [
                {"representation": one.representation, "k": one.k, **one.values}
                for one in comparisons
            ]
        )
        return
    columns = [("representation", False), ("k", True), *((m.name, True) for m in asked)]
    rows = [
        [one.representation, str(one.k), *(f"{value:.4f}" for value in one.values.values())]
        for one in comparisons
    ]
    print_table("", columns, rows)


def _term_kinds(name: str, settings: RepresentationSection) -> set[str]:
    """The kinds of terms that a representation uses; raises if one is not installed."""
    from labelkin.represent import make_representation
    from labelkin.represent.encoder import is_encoder

    parts = [part.strip() for part in name.split(",")]
    by_terms = [part for part in parts if not is_encoder(part)]
    return {kind for part in by_terms for kind in make_representation(part, settings).versions()}
