"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def named_path(typed: str | Path) -> Path:
    """A path that was typed; refuses an empty name, which Python takes for the current folder.

    Defaults come here as they are.
    """
    name = str(typed)
    if not name:
        raise typer.BadParameter("the name is empty; is a variable of your script not set?")
    if "\0" in name:
        raise typer.BadParameter("no file can have a NUL character in its name")
    return Path(name)


CollectionPath = Annotated[
    Path,
    typer.Argument(metavar="COLLECTION", parser=named_path, help="A collection folder."),
]
NewFolder = Annotated[
    Path,
    typer.Argument(metavar="COLLECTION", parser=named_path, help="The folder to create."),
]
TextFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        parser=named_path,
        help="A corpus file or a plain text; - is standard input.",
    ),
]
TitleText = Annotated[str | None, typer.Option("--title", help="Title of the text.")]
BodyText = Annotated[str | None, typer.Option("--text", help="The text itself.")]
CorpusFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILES...",
        parser=named_path,
        help="Corpus files, compressed or not, or folders of them; - is standard input.",
    ),
]
CorpusFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="bioasq, pubmed, jsonl, csv, tsv, annif-tsv, annif-jsonl or annif-folder. "
        "Default: detected from content and extension.",
    ),
]
LabelSeparator = Annotated[
    str, typer.Option(help="What separates the labels in one cell of a CSV or TSV file.")
]
Glob = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN", help="Of a folder, only files like this (`*.xml.gz`); repeatable."
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Of a folder, no files like this; repeatable."),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Read files although they do not look like what is expected."),
]
KeepUnknown = Annotated[
    bool | None,
    typer.Option(
        "--keep-unknown/--report-unknown",
        help="Turn labels that the vocabulary lacks into new concepts, or list and ignore "
        "them. Default: as labelkin.toml says.",
        show_default=False,
    ),
]
TakeOlder = Annotated[
    bool,
    typer.Option("--take-older", help="Store records also if a newer revision is stored."),
]
UnresolvedFile = Annotated[
    Path | None,
    typer.Option(help="Write all unresolved labels with their counts to this TSV file."),
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
    "mix-ranked do both, lexical suggests headings that the text names and needs no documents, "
    "rerank combines all of these and more. "
    "Default: as labelkin.toml says."
)
MethodName = Annotated[str | None, typer.Option("--method", help=_METHODS)]
MethodNames = Annotated[
    list[str] | None,
    typer.Option("--method", help=f"{_METHODS} Repeat it to compare methods."),
]
Language = Annotated[
    str | None,
    typer.Option(help="Language of heading names, or all. Default: as labelkin.toml says."),
]
VocabularyFormat = Annotated[
    str | None, typer.Option(help="mesh-xml, skos or table. Default: detected.")
]
VocabularyLanguage = Annotated[
    str, typer.Option(help="Language of heading names that do not state one.")
]
Voters = Annotated[
    int | None, typer.Option("-k", min=1, max=10_000, help="How many neighbours vote.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Suggest this many headings, whatever the count.")
]
Threshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Suggest no heading with a lower score.")
]
Accept = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="The precision of headings that rerank marks as `accept`."),
]
Review = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="The precision of headings that rerank shows, accepted ones included.",
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        help="Only this concept with all below it, notation, scheme or group; repeatable."
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(help="Not this concept with all below it, notation, scheme or group; repeatable."),
]
FoldBroader = Annotated[
    bool, typer.Option("--fold-broader", help="Leave out headings that narrower ones imply.")
]


@dataclass(frozen=True)
class ReadingOptions:
    """The options of verbs that read corpora: what counts as one."""

    glob: Glob = None
    ignore: Ignore = None
    force: Force = False

    def arguments(self) -> dict[str, Any]:
        """The same as arguments of `read_corpus`."""
        return {"glob": self.glob or (), "ignore": self.ignore or (), "force": self.force}


@dataclass(frozen=True)
class StoringOptions(ReadingOptions):
    """The options of verbs that store the records of a corpus."""

    format: CorpusFormat = None
    label_separator: LabelSeparator = "|"
    keep_unknown: KeepUnknown = None
    take_older: TakeOlder = False
    unresolved: UnresolvedFile = None
    strict: Strict = False
    json: Json = False


@dataclass(frozen=True)
class SuggestionOptions:
    """The options that `suggest` and `annotate` share."""

    k: Voters = None
    limit: Limit = None
    threshold: Threshold = None
    accept: Accept = None
    review: Review = None
    include: Include = None
    exclude: Exclude = None
    fold_broader: FoldBroader = False
    method: MethodName = None
    representation: RepresentationName = None
    language: Language = None


def takes(options: type[Any], name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of a dataclass, and pass them as one argument."""
    hints = get_type_hints(options, include_extras=True)
    expanded = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
        for one in fields(options)
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = get_type_hints(command, include_extras=True)
        parameters = []
        for parameter in signature(command).parameters.values():
            if parameter.name == name:
                parameters += expanded
            else:
                annotation = own[parameter.name]
                kind = Parameter.KEYWORD_ONLY
                parameters.append(parameter.replace(kind=kind, annotation=annotation))

        @wraps(command)
        def run(**values: Any) -> None:
            given = {one.name: values.pop(one.name) for one in expanded}
            command(**values, **{name: options(**given)})

        run.__signature__ = signature(command).replace(  # type: ignore[attr-defined]
            parameters=parameters, return_annotation=None
        )
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate
