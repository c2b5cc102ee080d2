"""Atomic file writes: a file appears complete or not at all."""

from __future__ import annotations

import gzip
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends without error.

    The content is synced before the rename, so a kill or a power cut leaves
    either the old file or the new one. The new file keeps the old one's mode.
    Symbolic links are followed; a pipe or a device is written to directly.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    path = path.resolve()
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        try:
            opened = temporary.open("wb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        with opened as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def atomic_text(path: Path) -> Iterator[IO[str]]:
    """Like `atomic_file`, for UTF-8 text; gzipped when the name ends in .gz."""
    with atomic_file(path) as file:
        if path.suffix == ".gz":
            # mtime 0 and no name: the same text gives the same bytes.
            with (
                gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
                io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
            ):
                yield text
        else:
            plain = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
            yield plain
            plain.flush()
            plain.detach()


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` durable, where the system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
