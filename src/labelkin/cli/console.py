"""Everything that is printed: results to standard output, all else to standard error.

Whatever the data hold, a terminal gets no control or direction characters
(`visible`), and an output encoding that lacks a character gets a stand-in.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import logging
import os
import re
import shutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from labelkin import wording

if TYPE_CHECKING:
    from rich.console import Console

counted = wording.counted

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DEGRADE = "labelkin"
# Narrower terminals wrap the lines themselves: one letter per line helps nobody.
_NARROWEST = 40

# A message longer than this loses its middle.
_LONGEST_MESSAGE = 1000
# Controls (C0, DEL, C1) except tab and line feed, lone surrogates, and characters that
# change the direction of text or hide in it. Joiners (U+200C, U+200D) belong to the
# spelling of Persian, Hindi and others, and stay.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# Stand-ins for encodings without the character; others become an escape such as \u0142.
_STAND_INS = {
    "█": "#", "–": "-", "—": "-", "−": "-", "…": "...", "×": "x", "·": ".", "•": "*", "→": "->",
    "≥": ">=", "≤": "<=", "’": "'", "‘": "'", "“": '"', "”": '"', "\u202f": " ", "\u00a0": " ",
}  # fmt: skip


def visible(text: str) -> str:
    r"""`text` with control and direction characters as escapes, such as `\x1b` and `\u202e`."""
    text = text.replace("\r\n", "\n")
    return _UNSAFE.sub(lambda found: _escape(found.group()), text)


def _escape(character: str) -> str:
    if character.isascii():
        return f"\\x{ord(character):02x}"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def _degraded(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace what an encoding cannot express; never fails."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wanted = error.object[error.start : error.end]
    return "".join(_STAND_INS.get(one) or _escape(one) for one in wanted), error.end


codecs.register_error(_DEGRADE, _degraded)


def prepare_streams() -> None:
    """Let standard output and standard error degrade characters that their encoding lacks.

    A stream that the caller has closed (`>&-`, `<&-`) leads nowhere, and not into
    the next file that is opened.
    """
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_DEGRADE)


@cache
def errors() -> Console:
    """The console on standard error."""
    return _console()(stderr=True, soft_wrap=True, highlight=False)


@cache
def _console() -> type[Console]:
    """Rich's console, which leaves a closed pipe to `cli.exits`."""
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return PipedConsole


def terminal_width() -> int:
    """The number of cells that a line can have; a very narrow terminal wraps lines."""
    return max(_console()().width, _NARROWEST)


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

    lines = (
        line if len(line) <= _LONGEST_MESSAGE else wording.shortened(line, _LONGEST_MESSAGE)
        for line in message.split("\n")
    )
    errors().print(Text(visible("\n".join(lines))))


def _line(level: str, message: str) -> None:
    from rich.text import Text

    style = {"error": "bold red", "warning": "yellow"}.get(level, "dim")
    one_line = visible(wording.shortened(message, _LONGEST_MESSAGE))
    errors().print(Text.assemble((f"{level}: ", style), one_line))


@contextmanager
def _named_output() -> Iterator[None]:
    """Name standard output in the error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_DISK or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, "standard output") from error


def print_json(value: Any) -> None:
    """Print a result for programs.

    Control and direction characters are escaped, and everything but ASCII if
    the encoding of standard output lacks a character: the value is the same.
    """
    text = json.dumps(value, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2)
    _write(_UNSAFE.sub(_json_escape, text))


def _json_escape(found: re.Match[str]) -> str:
    return "\\u007f" if found.group() == "\x7f" else json.dumps(found.group())[1:-1]


def print_line(text: str = "") -> None:
    """Print a line of a result for people."""
    _write(visible(text))


def _write(text: str) -> None:
    # typer.echo would write UTF-8 to a stream that takes ASCII only.
    with _named_output():
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


@contextmanager
def data_to_standard_output() -> Iterator[IO[str]]:
    """Standard output for the content of a file: UTF-8 as it is, but visible on a terminal."""
    with _named_output():
        if sys.stdout.isatty():
            yield cast("IO[str]", _VisibleStream())
            return
        sys.stdout.flush()
        stream = io.TextIOWrapper(typer.get_binary_stream("stdout"), "utf-8", newline="\n")
        try:
            yield stream
        finally:
            stream.detach()


class _VisibleStream(io.TextIOBase):
    def write(self, text: str, /) -> int:
        sys.stdout.write(visible(text))
        return len(text)


def copy_to_standard_output(path: Path) -> None:
    """Print a file as it is; a text is made visible on a terminal."""
    with path.open("rb") as file, _named_output():
        head = file.read(2)
        file.seek(0)
        if sys.stdout.isatty() and head not in (b"PK", b"\x1f\x8b"):
            for line in io.TextIOWrapper(file, "utf-8", errors="replace", newline="\n"):
                sys.stdout.write(visible(line))
        else:
            shutil.copyfileobj(file, typer.get_binary_stream("stdout"))


def print_table(
    title: str, columns: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]]
) -> None:
    """Print a result for people; columns are (heading, is it a number)."""
    from rich.table import Table
    from rich.text import Text

    shown = Text(visible(title)) if title else None
    table = Table(title=shown, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading, is_number in columns:
        table.add_column(
            Text(visible(heading)), justify="right" if is_number else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))
    with _named_output():
        _console()(highlight=False, width=terminal_width()).print(table)


def _cell(text: str) -> str:
    """A cell as it will be printed, so that columns are as wide as what is in them."""
    encoding = sys.stdout.encoding or "utf-8"
    return visible(text).encode(encoding, _DEGRADE).decode(encoding)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line."""
    listed = list(facts)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        print_line(f"{name:<{width}}  {wording.shortened(value, _LONGEST_MESSAGE)}")


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
