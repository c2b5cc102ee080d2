"""The `labelkin` command."""

from __future__ import annotations

from typing import Annotated

import typer

from labelkin import __version__
from labelkin.cli import corpus, vocab
from labelkin.cli.add import add
from labelkin.cli.annotate import annotate
from labelkin.cli.build import build
from labelkin.cli.compare import compare_representations
from labelkin.cli.console import set_up_logging
from labelkin.cli.demo import demo
from labelkin.cli.evaluation import evaluate, score
from labelkin.cli.exits import ErrorsAsLines
from labelkin.cli.info import info
from labelkin.cli.init import init
from labelkin.cli.neighbours import neighbours
from labelkin.cli.remove import remove
from labelkin.cli.suggest import suggest
from labelkin.cli.tune import tune

app = typer.Typer(
    cls=ErrorsAsLines,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Subject headings for documents, learned from documents that are already indexed.",
)
for verb in (init, add, remove, info, build, neighbours, suggest, annotate, tune):
    app.command()(verb)
app.command("eval")(evaluate)
app.command()(score)
app.command()(compare_representations)
app.add_typer(vocab.app, name="vocab")
app.add_typer(corpus.app, name="corpus")
app.command()(demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelkin {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell more.")] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    set_up_logging(verbose)


def main() -> None:
    """Entry point of the command."""
    app()
