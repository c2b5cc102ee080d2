"""Where a command may write: never into a collection, never over its own input."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

import typer

from labelkin.atomic import atomic_text
from labelkin.cli.console import data_to_standard_output
from labelkin.exceptions import InputError
from labelkin.layout import is_collection

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def is_standard_output(output: Path) -> bool:
    """Whether `output` is a name of standard output."""
    return str(output) in _STANDARD_OUTPUT


def open_output(output: Path) -> AbstractContextManager[IO[str]]:
    """A text file that appears complete or not at all, or standard output."""
    return data_to_standard_output() if is_standard_output(output) else atomic_text(output)


def table_cell(text: str) -> str:
    """A cell of a TSV file: one line without tabs, and no formula to a spreadsheet."""
    from labelkin.outputs import guarded

    return guarded(" ".join(text.split()))


def check_table(output: Path, inputs: Iterable[Path], *, option: str, results: bool) -> None:
    """Refuse an output of `option` that is not TSV, or standard output if it has `results`."""
    from labelkin.outputs import output_format

    if is_standard_output(output):
        if results:
            raise typer.BadParameter(
                f"{option} and the results cannot both go to standard output; name a file"
            )
        return
    check_output(output, inputs)
    output_format(output, None, {".tsv": "tsv", ".txt": "tsv"}, ["tsv"], option="")


def check_output(output: Path, inputs: Iterable[Path] = (), *, folder: bool = False) -> None:
    """Refuse an output that would destroy something or cannot be written; InputError says why.

    Called before any work is done. `inputs` are the files and folders that the
    command reads, collections included. `folder` means that the output is a
    folder of files, which need not exist. Links are followed.
    """
    if not folder and str(output) in _STANDARD_OUTPUT:
        return
    _check_name(output)
    place = output.resolve()
    _check_collections(output, place)
    _check_inputs(output, place, [path for path in inputs if str(path) != "-"])
    if folder:
        if output.exists() and not output.is_dir():
            raise InputError(f"{output}: a file; name a folder for the output")
        place = next(parent for parent in (place, *place.parents) if parent.exists())
        if not os.access(place, os.W_OK | os.X_OK):
            raise InputError(f"{output}: {place} cannot be written to; name another folder")
        return
    if output.is_dir():
        raise InputError(f"{output}: a folder; name a file in it")
    if not place.parent.is_dir():
        missing = place.parent if output.parent.is_dir() else output.parent
        raise InputError(f"{output}: there is no folder {missing}; create it first")
    if output.exists() and not os.access(output, os.W_OK):
        raise InputError(f"{output}: the file cannot be written to; name another one")
    is_replaced = not output.exists() or output.is_file()
    if is_replaced and not os.access(place.parent, os.W_OK | os.X_OK):
        raise InputError(f"{output}: the folder {place.parent} cannot be written to")


def _check_name(output: Path) -> None:
    """Refuse names that no file can have."""
    try:
        output.stat()
    except OSError as error:
        reasons = {
            errno.ENAMETOOLONG: "the name is too long",
            errno.ELOOP: "a link that leads to itself",
        }
        if reason := reasons.get(error.errno or 0):
            raise InputError(f"{output}: {reason}; name another file") from error


def _check_collections(output: Path, place: Path) -> None:
    for folder in (place, *place.parents):
        if is_collection(folder):
            raise InputError(
                f"{output}: inside the collection {folder}, which only labelkin itself writes; "
                "name a file elsewhere"
            )


def _check_inputs(output: Path, place: Path, inputs: list[Path]) -> None:
    for path in inputs:
        if _is_same(output, path):
            raise InputError(f"{output}: an input of this command; write to another file")
        if path.is_dir() and path.resolve() in place.parents:
            raise InputError(f"{output}: inside the input {path}; write to another folder")
    if _is_standard_input(output):
        raise InputError(f"{output}: the standard input of this command; write to another file")


def _is_same(output: Path, path: Path) -> bool:
    """Whether both are one file, by any name; devices such as /dev/null can be both."""
    return output.exists() and path.is_file() and output.samefile(path)


def _is_standard_input(output: Path) -> bool:
    if str(output) in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        return True
    try:
        given, wanted = os.fstat(sys.stdin.fileno()), output.stat()
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISREG(given.st_mode) and os.path.samestat(given, wanted)
