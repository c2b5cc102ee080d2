"""An immutable view of a collection: one generation, whatever is written meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import CollectionBusyError, LabelkinError
from labelkin.memo import Memo
from labelkin.store.config import Config
from labelkin.store.derived import SnapshotOutdatedError
from labelkin.store.label_sets import LabelSets, Rows
from labelkin.store.reader import Generation, Reader
from labelkin.store.vocabulary_state import VocabularyState

if TYPE_CHECKING:
    from labelkin.store.collection import Collection

logger = logging.getLogger(__name__)

View = TypeVar("View")


class PinnedReader(Reader):
    """One moment of the database, in a read transaction of its own.

    Any number of threads may read it. The transaction ends with `close`, or when
    nothing refers to the reader any more.
    """

    config: Config

    def __init__(self, collection: Collection) -> None:
        self.path = collection.path
        self.manifest = collection.manifest
        self.read_only = collection.read_only
        self.config = collection.config
        self._database = collection.database
        self._segments = collection.segments
        self._connection = collection.database.pinned()
        self.close = finalize(self, self._connection.close)
        self._generation = self.latest_generation()
        self._vocabulary_state = collection.vocabulary_state_of(self)

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement selects."""
        with self._database.errors_explained():
            return self._connection.query(statement, values)

    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.query(statement, values)

    def generation(self) -> Generation:
        """The state that is read."""
        return self._generation

    @property
    def vocabulary_state(self) -> VocabularyState:
        """The vocabulary of this generation."""
        return self._vocabulary_state

    def label_sets(self) -> LabelSets:
        """The label sets of every row."""
        return self._segments.label_sets(self)

    def tombstones(self) -> Rows:
        """Rows of removed and replaced documents, ascending."""
        return self._read_tombstones()

    def is_outdated(self, generation: int, token: str) -> bool:
        """Whether the collection has reached this generation since the reader was opened."""
        if generation <= self._generation.number:
            return False
        entries = self._database.query(
            "SELECT token FROM changes WHERE generation = ?", (generation,)
        )
        return bool(entries) and str(entries[0][0]) == token

    def removed_since(self) -> list[int]:
        """Rows that have been removed since the reader was opened."""
        rows = self._database.query(
            "SELECT row FROM tombstones WHERE generation > ?", (self._generation.number,)
        )
        return [row for (row,) in rows]


@dataclass(frozen=True, eq=False)
class ChangesSince:
    """How many documents are new and gone, and how many of the new ones carry each label."""

    added: int
    removed: int
    label_frequencies: npt.NDArray[np.int64]


class Snapshot(PinnedReader):
    """Generation, settings, vocabulary, label sets and tombstones of one moment."""

    def __init__(self, collection: Collection, previous: Snapshot | None = None) -> None:
        super().__init__(collection)
        self._values = Memo()
        if previous is not None:
            self._reuse(previous)
        self._label_sets = collection.segments.label_sets(self)
        #: Tells whether damage of the label segments was noticed since.
        self.segment_damages = collection.segments.damages

    def label_sets(self) -> LabelSets:
        """The label sets of every row."""
        return self._label_sets

    def tombstones(self) -> Rows:
        """Rows of removed and replaced documents, ascending."""
        return self._values.get("tombstones", self._read_tombstones)

    def label_frequencies(self) -> npt.NDArray[np.int64]:
        """How many documents carry the label of each column; counted once, not writable."""

        def count() -> npt.NDArray[np.int64]:
            width = self._generation.next_column
            counts = self._label_sets.frequencies(width, self.tombstones())
            counts.setflags(write=False)
            return counts

        return self._values.get("label frequencies", count)

    def changes_since(self, generation: int) -> ChangesSince:
        """What has changed since a generation; counted once."""

        def count() -> ChangesSince:
            new, gone = self.documents_since(generation)
            counts = self._label_sets.counts(new, self._generation.next_column)
            counts.setflags(write=False)
            return ChangesSince(len(new), len(gone), counts)

        return self._values.get(("changes since", generation), count)

    def count(self) -> int:
        """How many documents there are."""
        return self._generation.next_row - len(self.tombstones())

    def only_language(self) -> str | None:
        """The language that all documents share, None if there are several."""
        return self._values.get("language", super().only_language)

    def languages(self) -> dict[str | None, int]:
        """How many documents each language has, the most frequent first. Do not change it."""
        return self._values.get("languages", super().languages)

    def _reuse(self, previous: Snapshot) -> None:
        """Take over the tombstones that `previous` has read, and add the new ones."""
        before: Rows | None = previous._values.peek("tombstones")
        number = previous._generation.number
        if before is None or not self.knows(number, previous._generation.token):
            return
        new = self.tombstones_between(number, self._generation.number)
        tombstones = before
        if new:
            tombstones = np.sort(np.concatenate((before, np.array(new, dtype=np.int64))))
        self._values.put("tombstones", tombstones)


class Views:
    """The searches and decoders of one snapshot, each created once and shared.

    The snapshot does not refer to its views, so it is released with its last user.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._views = Memo()
        self._makers: dict[Hashable, Callable[[Views], Any]] = {}

    def get(self, key: Hashable, make: Callable[[Views], View]) -> View:
        """The view with this key, from `make` the first time.

        `make` is called again with later views, so it must not refer to these.
        """
        view = self._views.get(key, lambda: make(self))
        self._makers[key] = make
        return view

    def has(self, key: Hashable) -> bool:
        """Whether a view has been made."""
        return self._views.peek(key) is not None

    def used(self) -> list[Hashable]:
        """The keys that have been asked for."""
        return list(self._makers)

    def drop(self, key: Hashable) -> None:
        """Drop a view; the next `get` makes it again."""
        self._makers.pop(key, None)
        self._views.drop(key)

    def renew(self, views: Views) -> None:
        """Make for `views` what has been asked for here, so that requests need not wait for it.

        A view that cannot be made is left to the requests that need it.
        """
        for key, make in list(self._makers.items()):
            try:
                views._views.get(key, partial(make, views))
            except (SnapshotOutdatedError, CollectionBusyError):
                raise
            except LabelkinError as error:
                logger.warning("%s", error)
