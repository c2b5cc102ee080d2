"""The `labelkin` command."""

from __future__ import annotations

from typing import Annotated

import typer

from labelkin import __version__
from labelkin.cli.console import set_up_logging
from labelkin.cli.verbs import VerbGroup, Verbose

app = typer.Typer(
    cls=VerbGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Subject headings for documents, learned from documents that are already indexed.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"labelkin {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    verbose: Verbose = False,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    set_up_logging(verbose)


def main() -> None:
    """Run the command."""
    app()
