"""Arguments and options that several verbs share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Method(StrEnum):
    """The methods that can be asked for."""

    KNN = "knn"
    LABEL_AE = "label-ae"
    MIX = "mix"
    MIX_RANKED = "mix-ranked"
    LEXICAL = "lexical"
    RERANK = "rerank"


CollectionPath = Annotated[Path, typer.Argument(metavar="COLLECTION", help="A collection folder.")]
TextFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A corpus file or a plain text; - is standard input."),
]
TitleText = Annotated[str, typer.Option("--title", help="Title of the text.")]
BodyText = Annotated[str, typer.Option("--text", help="The text itself.")]
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
        "--representation",
        help="Kinds of terms joined with +, an encoder, or several of these joined with commas. "
        "Default: as labelkin.toml says.",
    ),
]
_METHODS = (
    "knn lets neighbours vote, label-ae decodes their average in the latent space, mix and "
    "mix-ranked do both, lexical gives headings that the text names and needs no documents, "
    "rerank weighs all of these and more. "
    "Default: as labelkin.toml says."
)
MethodName = Annotated[Method | None, typer.Option("--method", help=_METHODS)]
MethodNames = Annotated[
    list[Method] | None,
    typer.Option("--method", help=f"{_METHODS} Repeat it to see methods side by side."),
]
Language = Annotated[str, typer.Option(help="Language of heading names.")]
Voters = Annotated[int | None, typer.Option("-k", min=1, max=10_000, help="How many vote.")]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Give this many headings, whatever the count says.")
]
Threshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Give no heading with a lower score.")
]
Accept = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="rerank marks headings as `accept` that are right this often."),
]
Review = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="rerank gives headings that are right this often, the accepted among them.",
    ),
]
Include = Annotated[
    list[str] | None, typer.Option(help="Only this concept, branch or scheme; repeatable.")
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Not this concept, branch or scheme; repeatable.")
]
FoldBroader = Annotated[
    bool, typer.Option("--fold-broader", help="Leave out headings that narrower ones imply.")
]
