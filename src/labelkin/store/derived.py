"""Stores that follow a collection's change log: indexes, vectors, latents, label segments.

The database is the source of truth. A derived store records the generation that
it reflects and applies what it has missed, so a crash costs nothing but the time
to catch up. If the recorded generation is not in the collection's past (a
database restored from a backup) or the files are damaged, it is rebuilt.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from labelkin.closing import Closing
from labelkin.exceptions import CollectionBusyError, CollectionDamagedError, CollectionError
from labelkin.store.database import WRITER_PATIENCE_SECONDS
from labelkin.store.folder import folder_errors_explained
from labelkin.store.locks import FileLock, beside

if TYPE_CHECKING:
    from labelkin.store.reader import Generation, Reader

logger = logging.getLogger(__name__)

BuildProgress = Callable[[int, int], None]


class StoreDamagedError(CollectionDamagedError):
    """A derived store cannot be read; it can be rebuilt from the documents."""


class SnapshotOutdatedError(CollectionError):
    """A derived store is already ahead of the snapshot; the caller takes a newer one."""


class SnapshotDamagedError(SnapshotOutdatedError):
    """A derived store that the snapshot uses is damaged; it is rebuilt for a newer one."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """How far a store has come: all rows before `next_row`, all removals up to `generation`."""

    generation: int = 0
    token: str = ""
    next_row: int = 0

    def reflects(self, generation: Generation) -> bool:
        """Whether the store has all that the collection had then."""
        applied = (self.generation, self.token, self.next_row)
        return applied == (generation.number, generation.token, generation.next_row)

    @classmethod
    def of(cls, generation: Generation, next_row: int | None = None) -> StoreState:
        """The state after applying a generation, or its rows before `next_row`."""
        rows = generation.next_row if next_row is None else next_row
        return cls(generation.number, generation.token, rows)


class DerivedStore(Closing, ABC):
    """Catches up with snapshots, one thread of one process at a time.

    `state` is what the store reflects now. Subclasses read, apply and delete;
    the order of these steps and their failures are handled here.
    """

    #: What messages call the store.
    noun = "index"
    #: How long to wait for another process that writes it, in seconds.
    patience = WRITER_PATIENCE_SECONDS

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = RLock()
        self.state = StoreState()
        #: Damage that was noticed; the store is rebuilt when it is next brought up to date.
        self.damage: str | None = None

    @abstractmethod
    def read_state(self, reader: Reader) -> StoreState:
        """The state on disk; raises StoreDamagedError if it cannot be read."""

    @abstractmethod
    def apply(self, reader: Reader, progress: BuildProgress | None) -> int:
        """Apply what `state` lacks of the reader's generation; the number of new documents.

        Sets `state`, and may set it several times on the way: an interrupted
        build continues there.
        """

    @abstractmethod
    def start_over(self) -> None:
        """Delete everything and begin with an empty store."""

    def close(self) -> None:
        """Close all files."""

    def reflects(self, reader: Reader) -> bool:
        """Whether the store has all that the reader sees, and no damage was noticed."""
        return self.damage is None and self.state.reflects(reader.generation())

    def report_damage(self, reason: str, level: int = logging.ERROR) -> None:
        """Log damage once; the store is rebuilt when it is next brought up to date.

        Damage that shows before anything wrong was served is a warning only.
        """
        if self.damage is None:
            self.damage = reason
            logger.log(level, "%s; rebuilding the %s", reason, self.noun)

    def check_sound(self) -> None:
        """Raise StoreDamagedError if damage was noticed."""
        if self.damage is not None:
            raise StoreDamagedError(self.damage)

    def catch_up(self, reader: Reader, progress: BuildProgress | None = None) -> int:
        """Bring the store to the reader's generation; the number of documents new to it.

        `progress` is called with the number of rows done and the total.
        """
        with self.lock:
            if self.reflects(reader):
                return 0
            if reader.read_only:
                return self.apply_in_memory(reader)
            with self.exclusive(reader), folder_errors_explained(reader.path):
                try:
                    self.check_sound()
                    self.state = self.read_state(reader)
                    self._check_history(reader)
                    added = 0 if self.reflects(reader) else self.apply(reader, progress)
                except StoreDamagedError as error:
                    if self.damage is None:
                        logger.warning("%s; rebuilding the %s", error, self.noun)
                    self.damage = None
                    self.start_over()
                    added = self.apply(reader, progress)
            return added

    def rebuild(self, reader: Reader) -> None:
        """Rebuild a damaged store from the documents."""
        if reader.read_only:
            with self.lock:
                self.damage = None
                self.start_over()
                self.apply(reader, None)
            return
        with self.lock, self.exclusive(reader), folder_errors_explained(reader.path):
            self.damage = None
            self.start_over()
            self.apply(reader, None)

    def apply_in_memory(self, reader: Reader) -> int:
        """Catch up with a collection that cannot be written to, outside its folder."""
        try:
            self.check_sound()
            self.state = self.read_state(reader)
            self._check_history(reader)
        except StoreDamagedError:
            self.damage = None
            self.start_over()
        return 0 if self.reflects(reader) else self.apply(reader, None)

    @contextmanager
    def exclusive(self, reader: Reader) -> Iterator[None]:
        """Keep other processes from writing the store."""
        self.folder.parent.mkdir(exist_ok=True)
        with FileLock(beside(self.folder, "write")) as lock:
            if not lock.take(self.patience):
                raise CollectionBusyError(
                    f"{reader.path}: another process is building the {self.noun}; "
                    "try again when it is done"
                )
            yield

    def _check_history(self, reader: Reader) -> None:
        state = self.state
        if reader.knows(state.generation, state.token):
            return
        if reader.is_outdated(state.generation, state.token):
            raise SnapshotOutdatedError(
                f"{self.folder}: already at generation {state.generation:,}; try again"
            )
        raise StoreDamagedError(
            f"{self.folder}: made from a state that the database does not have "
            "(restored from a backup?)"
        )
