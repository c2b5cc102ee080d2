"""Files and folders on disk: emptying, detecting changes, and readable errors."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labelkin.exceptions import CollectionError, CollectionFullError, CollectionReadOnlyError


def empty_folder(folder: Path) -> None:
    """Remove everything in `folder`, but not the folder itself."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def disk_bytes(path: Path) -> int:
    """The size of a file, or of all files in a folder; those that vanish meanwhile do not count."""
    total = 0
    for one in path.rglob("*") if path.is_dir() else [path]:
        with suppress(FileNotFoundError):
            total += one.stat().st_size if one.is_file() else 0
    return total


def file_signature(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever the file is replaced or modified; None if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


@contextmanager
def folder_errors_explained(path: Path) -> Iterator[None]:
    """Turn errors of a full, read-only or forbidden disk into one line."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CollectionFullError(
                f"{path}: the disk is full; nothing stored was lost"
            ) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise CollectionReadOnlyError(f"{path}: {os.strerror(error.errno)}") from error
        raise CollectionError(f"{path}: {error.strerror or error}") from error
