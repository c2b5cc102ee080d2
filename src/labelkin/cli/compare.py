"""`labelkin compare-representations`: which representation finds the best neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from labelkin.cli.build import build_with_progress
from labelkin.cli.console import print_json, print_table, tell
from labelkin.cli.options import CollectionPath, CorpusFiles, CorpusFormat, Json

if TYPE_CHECKING:
    from labelkin.evaluate.comparison import Comparison

_REPRESENTATIONS = "stems lemmas nps deps ners keywords multi all lsa wordllama".split()
_MEASURES = "MiF,MiP,MiR,P@5,P@10,nDCG@5,nDCG@10"


def compare_representations(
    collection: CollectionPath,
    files: CorpusFiles,
    representation: Annotated[
        list[str] | None,
        typer.Option(help="One to compare; repeatable. Default: all that are installed."),
    ] = None,
    measures: Annotated[str, typer.Option(help="Measures, parted by commas.")] = _MEASURES,
    format: CorpusFormat = None,
    json: Json = False,
) -> None:
    """Measure basic k-NN by each representation and k, on documents that have labels."""
    from labelkin.corpus import read_corpus
    from labelkin.evaluate import parse_measure
    from labelkin.evaluate.sweep import KS
    from labelkin.exceptions import InputError, MissingExtraError
    from labelkin.indexer import Indexer

    asked = [parse_measure(name.strip()) for name in measures.split(",")]
    documents = [d for d in read_corpus(*files, format=format).documents() if d.labels]
    if not documents:
        raise InputError("no document with labels to compare on")
    found: list[Comparison] = []
    with Indexer.open(collection) as indexer:
        for name in representation or _REPRESENTATIONS:
            try:
                build_with_progress(indexer, name)
            except MissingExtraError as error:
                if representation:
                    raise
                tell(f"{name} is left out: {error}")
                continue
            found += indexer.compare_representations(documents, [name], asked, KS)
    if json:
        print_json(
            [{"representation": one.representation, "k": one.k, **one.values} for one in found]
        )
        return
    columns = [("representation", False), ("k", True), *((m.name, True) for m in asked)]
    rows = [
        [one.representation, str(one.k), *(f"{value:.4f}" for value in one.values.values())]
        for one in found
    ]
    print_table("", columns, rows)
