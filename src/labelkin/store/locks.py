"""File locks between processes; the system releases them when a process dies."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from labelkin.closing import Closing
from labelkin.exceptions import CollectionError

_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


class FileLock(Closing):
    """A lock on a file of its own, shared or exclusive.

    A read-only folder may have no file to lock. No process can change anything
    there, so the lock counts as taken.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        self._kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Try to take the lock for `patience` seconds; whether it was taken.

        CollectionError if the file system has no locks: waiting would not help.
        """
        deadline = time.monotonic() + patience
        while (descriptor := self._opened()) is not None:
            try:
                fcntl.flock(descriptor, self._kind | fcntl.LOCK_NB)
                # The last holder may have removed the file; then this lock protects nothing.
                if os.path.samestat(os.fstat(descriptor), self._path.stat()):
                    self._descriptor = descriptor
                    return True
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    os.close(descriptor)
                    raise CollectionError(
                        f"{self._path}: {os.strerror(error.errno)}; the file system there cannot "
                        "lock files: mount it so that it can (Lustre: -o flock), or use another one"
                    ) from error
            os.close(descriptor)
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        return True

    def _opened(self) -> int | None:
        with suppress(OSError):
            return os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):
            return os.open(self._path, os.O_RDONLY)
        return None

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def beside(folder: Path, kind: str) -> Path:
    """The path of a lock on a folder: next to it, so that it survives its removal."""
    return folder.with_name(f".{folder.name}.{kind}")
