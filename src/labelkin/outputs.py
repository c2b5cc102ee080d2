"""What all written files have in common: the format by extension, cells that are safe to open."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from labelkin.exceptions import FormatError

# Other packings can be read, not written.
_PACKINGS = (".7z", ".br", ".bz2", ".lz4", ".lzma", ".xz", ".z", ".zip", ".zst")
# A spreadsheet takes a cell that begins like this for a formula, and runs it.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARD = "'"
# The headers of the CSV files that labelkin writes; further columns of a corpus follow.
CORPUS_COLUMNS = ("id", "title", "abstract", "labels", "language")
ANNOTATION_COLUMNS = ("id", "rank", "label", "name", "score", "band", "title")
NEIGHBOUR_COLUMNS = (
    *("id", "title", "rank"),
    *("neighbour", "neighbour_title", "distance", "score", "terms"),
)


def output_format(
    path: Path,
    asked: str | None,
    by_extension: Mapping[str, str],
    known: Collection[str],
    *,
    option: str = "--to",
) -> str:
    """The format to write `path` in: the one asked for, else that of the extension.

    `by_extension` maps extensions (`.csv`) to formats. `.gz` after an extension
    is ignored; case does not matter. Standard output, pipes and devices have no
    extension and get the first format of `by_extension`. Any other extension is
    a FormatError that lists the known ones; an empty `option` means that no
    option can name the format.
    """
    name = path.name.lower()
    extensions = ", ".join(by_extension)
    if path.is_dir():
        raise FormatError(f"{path}: a folder; name a file in it")
    if name.endswith(_PACKINGS):
        raise FormatError(
            f"{path}: cannot write {Path(name).suffix} files; use .gz, or {extensions} alone"
        )
    if asked is not None:
        if asked not in known:
            raise FormatError(f"no output format {asked!r}; known: {', '.join(known)}")
        return asked
    if is_stream(path):
        return next(iter(by_extension.values()))
    extension = Path(name.removesuffix(".gz")).suffix
    if extension not in by_extension:
        what = f"no format for the extension {extension!r}" if extension else "no extension"
        hint = f", or name the format with {option} ({', '.join(known)})" if option else ""
        raise FormatError(f"{path}: {what}; use {extensions}{hint}")
    return by_extension[extension]


def is_stream(path: Path) -> bool:
    """Whether `path` is `-` (standard output), a pipe or a device: nothing that has a format."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def guarded(cell: str) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula.

    An apostrophe before the cell makes it text (OWASP, CSV injection);
    `unguarded` removes it again.
    """
    return _GUARD + cell if _FORMULA.match(cell) else cell


def unguarded(cell: str) -> str:
    """The cell that `guarded` was given; only for files that labelkin wrote (`is_guarded`)."""
    return cell[1:] if cell.startswith(_GUARD) and _FORMULA.match(cell) else cell


def is_guarded(header: Sequence[str]) -> bool:
    """Whether a CSV file with this header is one of labelkin's, so that its cells are guarded.

    In files of other programs an apostrophe is part of the text.
    """
    columns = tuple(header)
    is_corpus = columns[: len(CORPUS_COLUMNS)] == CORPUS_COLUMNS
    return is_corpus or columns in (ANNOTATION_COLUMNS, NEIGHBOUR_COLUMNS)
