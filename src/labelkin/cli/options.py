"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CollectionPath = Annotated[Path, typer.Argument(metavar="COLLECTION", help="A collection folder.")]
CorpusFiles = Annotated[
    list[Path],
    typer.Argument(metavar="FILES...", help="Corpus files, gzipped or not; - is standard input."),
]
CorpusFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="bioasq, pubmed, jsonl, csv, tsv, annif-tsv, annif-jsonl or annif-folder. "
        "Default: recognised by content and extension.",
    ),
]
LabelSeparator = Annotated[
    str, typer.Option(help="What parts the labels in one cell of a CSV or TSV file.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 3 if a record was skipped.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
RepresentationName = Annotated[
    str | None,
    typer.Option(
        "--representation", help="Kinds of terms, joined with +. Default: as labelkin.toml says."
    ),
]
Language = Annotated[str, typer.Option(help="Language of heading names.")]
