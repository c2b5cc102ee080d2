"""`labelkin init`: a new collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelkin.cli.console import counted, print_json, print_message
from labelkin.cli.options import Force, Json, NewFolder, VocabularyFormat, VocabularyLanguage


def init(
    collection: NewFolder,
    vocab: Annotated[
        Path | None,
        typer.Option(
            help="Vocabulary: MeSH descriptor XML, SKOS in any RDF syntax, or a table. "
            "Without one, the labels of documents become the vocabulary."
        ),
    ] = None,
    vocab_format: VocabularyFormat = None,
    vocab_language: VocabularyLanguage = "en",
    language: Annotated[
        str, typer.Option(help="Language of documents that do not state one; auto detects it.")
    ] = "auto",
    name: Annotated[str, typer.Option(help="A name for the collection.")] = "",
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Settings to begin with: paper finds neighbours and lets them vote as the paper "
            "does. Default: what has measured best."
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Create an empty collection, with or without a vocabulary."""
    from labelkin.indexer import Indexer
    from labelkin.vocab import read_vocabulary

    vocabulary = (
        read_vocabulary(vocab, vocab_format, vocab_language, force=force) if vocab else None
    )
    with Indexer.create(
        collection, vocabulary, name=name, language=language, recipe=recipe
    ) as indexer:
        concepts = len(indexer.vocabulary)
    if json:
        print_json({"collection": str(collection), "concepts": concepts})
    elif vocabulary is None:
        print_message(f"Made {collection}; the labels of its documents will become the vocabulary.")
    else:
        print_message(f"Made {collection} with {counted(concepts, 'concept')}.")
