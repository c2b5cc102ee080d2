"""Atomic file writes: a file appears complete or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


# Bytes of a file name, on all usual file systems.
_LONGEST_NAME = 255


class _NamedFile(io.FileIO):
    """A new file whose errors name the file that the user asked for, not a temporary one."""

    def __init__(self, path: Path, shown: Path) -> None:
        self._shown = shown
        with _naming(shown):
            super().__init__(path, "wb")

    def write(self, data: ReadableBuffer, /) -> int:
        with _naming(self._shown):
            return super().write(data)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Raise an OSError of the system (no space left, not permitted) with the name `path`.

    Its notes say what is kept.
    """
    try:
        yield
    except OSError as error:
        named = OSError(error.errno, error.strerror or str(error), str(path))
        if path.is_file():
            named.add_note("the file is as it was before")
        elif not path.exists():
            named.add_note("the file was not written")
        raise named from error


def hidden_beside(path: Path, ending: str) -> Path:
    """A hidden file `.NAME.ENDING` in the folder of `path`, for what belongs to it.

    Where that would be longer than file systems allow, a checksum takes the
    place of the name.
    """
    name = f".{path.name}.{ending}"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        checksum = hashlib.blake2b(os.fsencode(path.name), digest_size=16).hexdigest()
        name = f".{checksum}.{ending}"
    return path.with_name(name)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends without error.

    The content is synced before the rename, so a kill or a power cut leaves
    either the old file or the new one. The new file keeps the old one's mode.
    Symbolic links are followed; a pipe or a device is written to directly. An
    OSError of writing has `path` for its filename.
    """
    shown = path
    if path.exists() and not path.is_file():
        with io.BufferedWriter(_NamedFile(path, shown)) as stream:
            yield stream
        return
    path = path.resolve()
    temporary = hidden_beside(path, f"{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with io.BufferedWriter(_NamedFile(temporary, shown)) as file:
            yield file
            file.flush()
            with _naming(shown):
                os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            temporary.chmod(path.stat().st_mode & 0o7777)
        with _naming(shown):
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def atomic_text(path: Path) -> Iterator[IO[str]]:
    """Like `atomic_file`, for UTF-8 text; gzipped when the name ends in .gz."""
    with atomic_file(path) as file:
        if path.suffix.lower() == ".gz":
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
