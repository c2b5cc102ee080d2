"""Everything that is printed: results to standard output, all else to standard error."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


@cache
def errors() -> Console:
    """The console on standard error."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False)


class ConsoleHandler(logging.Handler):
    """Prints log records as plain lines without breaking a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        level = record.levelname.lower() if record.levelno >= logging.WARNING else "note"
        _line(level, record.getMessage())
        if record.exc_info:
            print_message("".join(traceback.format_exception(*record.exc_info)))


def set_up_logging(verbose: bool) -> None:
    """Send the library's log to standard error."""
    logger = logging.getLogger("labelkin")
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.handlers = [ConsoleHandler()]
    logger.propagate = False


def print_error(message: str) -> None:
    """Print why the command failed."""
    _line("error", message)


def print_message(message: str) -> None:
    """Print a message to standard error; standard output is for results."""
    from rich.text import Text

    errors().print(Text(message))


def _line(level: str, message: str) -> None:
    from rich.text import Text

    style = {"error": "bold red", "warning": "yellow"}.get(level, "dim")
    one_line = " ".join(message.split())
    errors().print(Text.assemble((f"{level}: ", style), one_line))


def print_json(value: Any) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_table(
    title: str, columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]
) -> None:
    """Print a result for people; columns are (heading, is it a number)."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Text(title) if title else None
    table = Table(title=shown, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading, is_number in columns:
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    listed = list(facts)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        typer.echo(f"{name:<{width}}  {value}")


def counted(count: int, noun: str) -> str:
    """`1 document`, `2,000 documents`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bytes_text(count: int) -> str:
    """`1536` → `1.5 KB`."""
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


def seconds_text(seconds: float) -> str:
    """`75.3` → `1 min 15 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
