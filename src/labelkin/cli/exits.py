"""Exit codes that scripts can rely on, and the one place where errors become lines.

0  done
1  failed: bad input, nothing that could be read, a collection that cannot be used
2  wrong usage: unknown option, missing argument
3  done in part: a file was damaged, an id was not there, or --strict and a skipped record
4  try again: another process is writing
130  interrupted
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from labelkin.cli.console import print_error
from labelkin.exceptions import CollectionBusyError, LabelkinError

if TYPE_CHECKING:
    from labelkin.corpus import ReadReport

logger = logging.getLogger(__name__)

FAILED = 1
PARTLY_DONE = 3
TRY_AGAIN = 4
INTERRUPTED = 130


class ErrorsAsLines(TyperGroup):
    """A command group whose errors are one line on standard error, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn what it raises into a line and an exit code."""
        try:
            return super().invoke(ctx)
        except CollectionBusyError as error:
            print_error(str(error))
            raise typer.Exit(TRY_AGAIN) from error
        except LabelkinError as error:
            print_error(str(error))
            raise typer.Exit(FAILED) from error
        except KeyboardInterrupt as error:
            usual = "interrupted; stored data is kept. Run the same command again to continue"
            print_error(str(error) or usual)
            raise typer.Exit(INTERRUPTED) from error
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The reader of our output has closed the pipe (`labelkin … | head`): not an error.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(0) from error
            place = f"{error.filename}: " if error.filename else ""
            print_error(f"{place}{error.strerror or error}")
            raise typer.Exit(FAILED) from error
        except Exception as error:
            if isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "exit_code"):
                raise
            logger.debug("traceback", exc_info=True)
            print_error(
                f"this should not happen ({type(error).__name__}: {error}); "
                "please report it with the output of the same command with `labelkin --verbose …`"
            )
            raise typer.Exit(FAILED) from error


def exit_after_reading(report: ReadReport, strict: bool) -> None:
    """Exit with FAILED or PARTLY_DONE if not all of the input could be read."""
    nothing = not report.read and not report.deletions
    nothing = nothing and bool(report.skipped or report.files_damaged or report.files_refused)
    if nothing or (report.files and len(report.files_refused) == report.files):
        raise typer.Exit(FAILED)
    if report.files_refused or report.files_damaged or (strict and report.skipped):
        raise typer.Exit(PARTLY_DONE)
