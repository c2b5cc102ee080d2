"""File locks between processes; the system releases them when a process dies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from labelkin.closing import Closing


class FileLock(Closing):
    """A lock on a file of its own, shared or exclusive.

    In a folder that cannot be written to there may be no file to lock; then
    nobody else can change anything there either, and the lock counts as taken.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        self._kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Whether the lock could be had within `patience` seconds."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            try:
                descriptor = os.open(self._path, os.O_RDONLY)
            except OSError:
                return True
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, self._kind | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return False
                time.sleep(0.02)
            else:
                self._descriptor = descriptor
                return True

    def close(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def beside(folder: Path, kind: str) -> Path:
    """Where the lock of this kind on a folder is: next to it, so that it outlives it."""
    return folder.with_name(f".{folder.name}.{kind}")
