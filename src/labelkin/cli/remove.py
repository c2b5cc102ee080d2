"""`labelkin remove`: documents out of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from labelkin.cli.console import counted, print_error, print_json, print_message
from labelkin.cli.exits import PARTLY_DONE
from labelkin.cli.options import CollectionPath, Json
from labelkin.exceptions import InputError
from labelkin.wording import listed


def remove(
    collection: CollectionPath,
    ids: Annotated[list[str] | None, typer.Argument(help="Ids of documents.")] = None,
    from_file: Annotated[
        Path | None, typer.Option("--from", help="A file with one id per line.")
    ] = None,
    json: Json = False,
) -> None:
    """Remove documents by their ids."""
    from labelkin.corpus.source import Source
    from labelkin.indexer import Indexer

    wanted = list(ids or ())
    if from_file is not None:
        with Source(from_file) as source:
            # Other spaces than these can be part of an id.
            lines = [line.strip(" \t\r\n") for _, line in source.lines()]
        wanted += [line for line in lines if line.strip()]
        if not wanted:
            raise InputError(f"{from_file}: no ids in it; write one id per line")
    if not wanted:
        raise typer.BadParameter("give ids of documents, or a file of them with --from")
    with Indexer.open(collection) as indexer:
        report = indexer.remove(wanted)
        total = indexer.collection.count()
    if json:
        print_json({**asdict(report), "documents": total})
    else:
        removed, left = counted(report.removed, "document"), counted(total, "document")
        print_message(f"Removed {removed}; {left} in the collection.")
    if report.missing:
        many = counted(len(report.missing), "id")
        print_error(
            f"not in the collection: {many}: {_shown(report.missing)}; "
            f"`labelkin corpus convert {collection} -o documents.csv` lists the ids"
        )
        raise typer.Exit(PARTLY_DONE)


def _shown(ids: Sequence[str]) -> str:
    return listed([one if one.strip() else repr(one) for one in ids], 5)
