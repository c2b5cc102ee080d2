"""The folder that driver and executors share: what a job reads and writes."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from labelkin.closing import Closing
from labelkin.exceptions import CollectionBusyError, CollectionReadOnlyError
from labelkin.store.collection import Collection
from labelkin.store.folder import folder_errors_explained
from labelkin.store.locks import FileLock

_NAME = ".cluster"
# The folders of kinds that depend on settings or versions, a digest of which ends their names.
_BY_SETTINGS = f"*-{'[0-9a-f]' * 8}"
# At the least: jobs of several settings may take turns.
_KEPT_SECONDS = 7 * 24 * 3600
_DELETED = ".part"


class Workspace(Closing):
    """The workspace of a collection; one job at a time uses it.

    Everything in it can be computed again. Names in it are digests of what an entry was
    computed from, so an entry is right for as long as something asks for it by its name.
    """

    def __init__(self, collection: Collection) -> None:
        self.settings = collection.config.cluster
        if self.settings.folder:
            folder = Path(self.settings.folder).absolute() / collection.manifest.uid
        elif collection.read_only:
            raise CollectionReadOnlyError(
                f"{collection.path}: the collection cannot be written to; name a folder for the "
                "cluster in labelkin.toml ([cluster] folder)"
            )
        else:
            folder = collection.path.resolve() / "cache" / _NAME
        self.folder = folder
        with folder_errors_explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._unused_since: float | None = None
        self._lock = FileLock(folder / ".lock")
        if not self._lock.take():
            raise CollectionBusyError(
                f"{folder}: another job on a cluster uses it; try again later"
            )

    def close(self) -> None:
        """Let other jobs use it."""
        if self._unused_since is not None:
            with suppress(OSError):
                self._sweep_unused(min(self._unused_since, time.time() - _KEPT_SECONDS))
            self._unused_since = None
        self._lock.close()

    def part(self, kind: str) -> Path:
        """The folder for entries of a kind."""
        folder = self.folder / kind
        with folder_errors_explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            # When it was last used.
            os.utime(folder)
        return folder

    def delete_unused(self, since: float) -> None:
        """When this job ends, delete what depends on settings that no job has used since then.

        What was used within a week stays.
        """
        self._unused_since = since

    def _sweep_unused(self, since: float) -> None:
        for folder in self.folder.glob(_BY_SETTINGS):
            if folder.stat().st_mtime < since:
                _delete(folder)
        for left in self.folder.glob(f".*{_DELETED}"):
            shutil.rmtree(left, ignore_errors=True)

    def sweep(self, kind: str, kept: Iterable[Path] = ()) -> None:
        """Delete the entries of a kind but some."""
        names = {path.name for path in kept}
        folder = self.folder / kind
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name in names:
                continue
            if path.is_dir():
                _delete(path)
            else:
                path.unlink(missing_ok=True)


def _delete(folder: Path) -> None:
    """Delete a folder, which is whole under its name even if this is interrupted."""
    doomed = folder.with_name(f".{secrets.token_hex(8)}{_DELETED}")
    with suppress(OSError):
        folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
