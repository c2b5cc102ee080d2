"""`labelkin backup`: a consistent copy of a collection while others write."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from labelkin.cli.console import bytes_text, counted, print_json, print_message
from labelkin.cli.options import CollectionPath, Json
from labelkin.cli.progress import meter


def backup(
    collection: CollectionPath,
    target: Annotated[
        Path, typer.Argument(help="A new folder, or a new file that ends in .tar or .tar.gz.")
    ],
    without_indexes: Annotated[
        bool,
        typer.Option(
            "--without-indexes",
            help="Leave out what can be rebuilt from the documents: indexes, vectors, caches.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Copy a collection while others use it; the copy is verified and opens as a collection."""
    from labelkin.indexer import Indexer

    with Indexer.open(collection, read_only=True) as indexer, meter("Copying", 0) as bar:
        report = indexer.backup(
            target,
            indexes=not without_indexes,
            progress=lambda done, total: bar.update(done, f"{done:,} of {total:,} pages"),
        )
    if json:
        print_json(asdict(report))
        return
    for part, reason in report.left_out.items():
        if not without_indexes:
            print_message(f"{part}: {reason}")
    documents = counted(report.documents, "document")
    print_message(f"Copied {documents} to {target}: {bytes_text(report.bytes)}, verified.")
