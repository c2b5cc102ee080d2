"""`labelkin verdicts`: what indexers have decided, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from labelkin.cli.console import counted, print_json, print_message
from labelkin.cli.options import CollectionPath, Json
from labelkin.cli.outputs import check_output, is_standard_output, open_output


def verdicts(
    collection: CollectionPath,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write: .jsonl (a document per line, for `labelkin eval`) or .csv (a "
            "row per verdict), optionally followed by .gz; - is standard output.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="jsonl or csv, whatever the extension. Default: by the extension."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also decisions that a later one has replaced.")
    ] = False,
    json: Json = False,
) -> None:
    """Export the verdicts that indexers have given in the service: evaluation data."""
    from labelkin.desk.files import WRITERS, decisions_format
    from labelkin.indexer import Indexer

    if json and is_standard_output(output):
        raise typer.BadParameter("--json and the verdicts cannot both go to standard output")
    check_output(output, [collection])
    writer = WRITERS[decisions_format(output, to)]
    with Indexer.open(collection) as indexer, open_output(output) as file:
        written = writer(indexer.verdicts(every=every), file)
    if json:
        print_json({"output": str(output), "decisions": written})
    else:
        where = "standard output" if is_standard_output(output) else output
        print_message(f"Wrote {counted(written, 'decision')} to {where}.")
