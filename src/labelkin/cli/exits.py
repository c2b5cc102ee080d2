"""Exit codes that scripts can rely on, and the one place where errors become lines.

0  done
1  failed: bad input, nothing that could be read, a collection that cannot be used
2  wrong usage: unknown option, missing argument
3  done in part: a file was damaged, an id was not there, or --strict and a skipped record
4  try again: another process is writing
130  interrupted
141  the reader of our output has closed the pipe (`labelkin … | head`), as for other Unix tools
143  terminated (SIGTERM); what is stored is kept, unfinished files are removed
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from labelkin.cli.console import FULL_DISK, prepare_streams, print_error, visible
from labelkin.exceptions import CollectionBusyError, LabelkinError

if TYPE_CHECKING:
    from labelkin.corpus import ReadReport

logger = logging.getLogger(__name__)

FAILED = 1
PARTLY_DONE = 3
TRY_AGAIN = 4
INTERRUPTED = 130
CLOSED_PIPE = 141
TERMINATED = 143

_DASHES = "; put -- before ids and names that begin with a dash"


class TerminatedError(KeyboardInterrupt):
    """The process has been told to end."""


@contextmanager
def _terminated_cleanly() -> Iterator[None]:
    """Let SIGTERM unwind the command, so that unfinished files are removed.

    A second signal ends the process at once, and so does the first one in the
    processes that the command has forked.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    process = os.getpid()

    def terminate(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != process:
            os.kill(os.getpid(), number)
        raise TerminatedError(
            "terminated; stored data is kept. Run the same command again to continue"
        )

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class ErrorsAsLines(TyperGroup):
    """A command group whose errors are one line on standard error, never a traceback."""

    def main(self, *args: Any, **rest: Any) -> Any:
        """Run the command, and print all of its output before the interpreter ends."""
        prepare_streams()
        try:
            with _terminated_cleanly():
                done = super().main(*args, **rest)
        except SystemExit as error:
            if error.code:
                # The error has been printed; no second one for the rest of the output.
                _discard_output()
                raise
            _flush()
            raise
        _flush()
        return done

    def make_context(self, *args: Any, **rest: Any) -> Any:
        """Parse the options before the verb; `--help` prints here."""
        with _errors_as_lines():
            return super().make_context(*args, **rest)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; turn what it raises into a line and an exit code."""
        with _errors_as_lines():
            return super().invoke(ctx)


@contextmanager
def _errors_as_lines() -> Iterator[None]:
    try:
        try:
            yield
        except BrokenPipeError:
            raise
        except (Exception, KeyboardInterrupt) as error:
            code = _reported(error)
            if code is None:
                raise
            _close_what_was_open(error)
            raise typer.Exit(code) from error
        except SystemExit as error:
            # Rich exits like this when it prints help to a closed pipe.
            if isinstance(error.__context__, BrokenPipeError):
                raise BrokenPipeError from error
            raise
    except BrokenPipeError as error:
        _discard_output()
        raise typer.Exit(CLOSED_PIPE) from error


def _close_what_was_open(error: BaseException) -> None:
    """Free what the frames of an error hold: readers that were not finished close their files."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__


def _reported(error: BaseException) -> int | None:
    """Print the line of an error; returns the exit code, None for those that click prints."""
    if isinstance(error, LabelkinError):
        print_error(str(error))
        return TRY_AGAIN if isinstance(error, CollectionBusyError) else FAILED
    if isinstance(error, KeyboardInterrupt):
        usual = "interrupted; stored data is kept. Run the same command again to continue"
        print_error(str(error) or usual)
        return TERMINATED if isinstance(error, TerminatedError) else INTERRUPTED
    if isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "exit_code"):
        if isinstance(message := getattr(error, "message", None), str):
            # Usage errors repeat what was typed, or what the shell found in a folder.
            hint = _DASHES if type(error).__name__ == "NoSuchOption" else ""
            error.message = visible(message) + hint  # type: ignore[attr-defined]
        return None
    if isinstance(error, OSError):
        print_error(_described(error))
        return FAILED
    logger.debug("traceback", exc_info=True)
    print_error(
        f"this should not happen ({type(error).__name__}: {error}); "
        "please report it with the output of the same command with --verbose"
    )
    return FAILED


def _described(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    reason = error.strerror or str(error)
    if not error.filename and error.errno == errno.ENOENT and not _has_current_folder():
        return "the current folder has been removed; change to another one"
    kept = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    hint = "; make room and run the same command again" if error.errno in FULL_DISK else ""
    return f"{place}{reason}{kept}{hint}"


def _has_current_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _flush() -> None:
    """Print what is still buffered; exit with an error if that fails."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        sys.exit(CLOSED_PIPE)
    except OSError as error:
        _discard_output()
        print_error(f"standard output: {error.strerror or error}; the output is incomplete")
        sys.exit(FAILED)


def _discard_output() -> None:
    """Let what is still buffered go nowhere: the interpreter prints it when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
                continue
            os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def exit_after_reading(report: ReadReport, strict: bool) -> None:
    """Exit with FAILED or PARTLY_DONE if not all of the input could be read."""
    nothing = not report.documents and not report.deletions
    nothing = nothing and bool(report.skipped or report.files_damaged or report.files_refused)
    if nothing or (report.files and len(report.files_refused) == report.files):
        raise typer.Exit(FAILED)
    if report.files_refused or report.files_damaged or (strict and report.skipped):
        raise typer.Exit(PARTLY_DONE)
