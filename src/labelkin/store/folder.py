"""Folders on disk: emptying them, and their errors as one line."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labelkin.exceptions import CollectionError, CollectionFullError, CollectionReadOnlyError


def empty_folder(folder: Path) -> None:
    """Remove everything in `folder`, but not the folder itself."""
    for entry in folder.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


@contextmanager
def folder_errors_explained(path: Path) -> Iterator[None]:
    """A full, read-only or forbidden disk as one line."""
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
