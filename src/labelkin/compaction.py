"""Gives back what removed documents still take up: `labelkin compact`.

Derived stores keep the rows of removed documents until it is worth dropping them; the
database keeps their pages, the cache their terms. Each part is written anew beside the
old one and takes effect by an atomic rename, as everything that the stores write: readers
keep the files that they have open, and a kill at any moment leaves the old part or the
new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from labelkin.autoencoder.latents import compact_latents
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionReadOnlyError,
    MissingExtraError,
)
from labelkin.leftovers import COMPACTING, find_leftovers
from labelkin.neighbours.engine import NotCompactableError
from labelkin.neighbours.heading_terms import heading_texts, text_kinds
from labelkin.neighbours.term_index import OWN_ENGINES, TermIndex, stored_index
from labelkin.neighbours.vector_file import RECORD_NAME
from labelkin.neighbours.vector_index import compact_vectors
from labelkin.represent.cache import TermCache, open_term_cache, text_checksum
from labelkin.represent.encoder import is_encoder
from labelkin.represent.representation import KINDS, make_representation
from labelkin.store.collection import Collection
from labelkin.store.config import CONFIG_NAME
from labelkin.store.database import DATABASE_NAME
from labelkin.store.folder import disk_bytes, folder_errors_explained
from labelkin.store.locks import FileLock
from labelkin.wording import counted

_GIVEN_BACK = "free pages given back"

# Called with what is compacted, the rows done and the total.
CompactProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class CompactedPart:
    """One part of a collection: its name within the folder, what was dropped, and its sizes.

    `problem` says why nothing was done; it can be done another time.
    """

    part: str
    change: str
    bytes_before: int = 0
    bytes_after: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What was done for each part; parts without anything to drop are left out."""

    path: str
    parts: list[CompactedPart] = field(default_factory=list)

    @property
    def freed(self) -> int:
        """The bytes that were given back."""
        return sum(one.bytes_before - one.bytes_after for one in self.parts)

    @property
    def is_complete(self) -> bool:
        """Whether no part had to be left as it was."""
        return not any(one.problem for one in self.parts)


def compact_collection(
    collection: Collection, progress: CompactProgress | None = None
) -> CompactReport:
    """Drop what removed documents still take up in every store; others may read and write.

    CollectionBusyError if another process is compacting the collection.
    """
    if collection.read_only:
        raise CollectionReadOnlyError(
            f"{collection.path}: the collection cannot be written to; change its permissions"
        )
    with folder_errors_explained(collection.path), FileLock(collection.path / COMPACTING) as lock:
        if not lock.take():
            raise CollectionBusyError(f"{collection.path}: another process is compacting it")
        return _Compaction(collection, progress).run()


class _Compaction:
    """One pass over a collection."""

    def __init__(self, collection: Collection, progress: CompactProgress | None) -> None:
        self._collection = collection
        self._path = collection.path
        self._progress = progress
        self._report = CompactReport(str(collection.path))

    def run(self) -> CompactReport:
        """Compact one part after another; one that is in use or damaged is left as it is."""
        self._remove_leftovers()
        self._compact("labels", self._label_segments)
        with closing(open_term_cache(self._collection)) as cache:
            for folder in sorted((self._path / "indexes").glob("[!.]*")):
                part = f"indexes/{folder.name}"
                if folder.name.startswith("vectors-"):
                    self._compact(part, partial(self._vectors, folder))
                else:
                    self._compact(part, partial(self._terms, folder, cache))
            for one in sorted((self._path / "models").glob("*/latents.json")):
                part = one.parent.relative_to(self._path).as_posix()
                self._compact(part, partial(self._latents, one.parent))
            self._compact("cache/terms.sqlite", partial(self._cached_terms, cache))
        self._compact(DATABASE_NAME, self._database)
        return self._report

    def _compact(self, part: str, work: Callable[[], str]) -> None:
        """Do one part; `work` says what it has dropped, and nothing if there was nothing."""
        before = disk_bytes(self._path / part)
        change = problem = ""
        try:
            change = work()
        except (CollectionBusyError, CollectionDamagedError, MissingExtraError) as error:
            problem = str(error)
        after = disk_bytes(self._path / part)
        if change or problem or after < before:
            if not change and not problem:
                change = _GIVEN_BACK if part.endswith(".sqlite") else "merged"
            one = CompactedPart(part, change, before, after, problem)
            self._report.parts.append(one)

    def _remove_leftovers(self) -> None:
        for leftover in find_leftovers(self._collection, remove=True, is_compacting=True):
            part = leftover.path.relative_to(self._path).as_posix()
            self._report.parts.append(CompactedPart(part, leftover.reason, leftover.bytes))

    def _label_segments(self) -> str:
        is_changed = self._collection.compact_label_sets()
        return "merged, without the labels of removed documents" if is_changed else ""

    def _terms(self, folder: Path, cache: TermCache) -> str:
        record = stored_index(folder)
        if record is None:
            return self._foreign_terms(folder, cache)
        kinds = text_kinds(record.kinds)
        names = "+".join(sorted(kinds))
        change = self._index(folder, cache, names, record.engine, len(record.kinds) > len(kinds))
        # None: of former versions; the next build removes it.
        return change or ""

    def _foreign_terms(self, folder: Path, cache: TermCache) -> str:
        """Compact the index of another package's engine, if the settings name it."""
        is_index = folder.is_dir() and folder.name.startswith("terms-")
        if not is_index or (folder / RECORD_NAME).exists():
            # Not labelkin's, or a damaged index of one of its own engines.
            return ""
        config = self._collection.config
        engine = config.neighbours.engine
        for names in config.representation.name.split(","):
            if engine not in OWN_ENGINES and not is_encoder(names.strip()):
                headings = config.neighbours.heading_weight > 0
                change = self._index(folder, cache, names, engine, headings)
                if change is not None:
                    return change
        return f"skipped: not an index of the engine {engine!r}, which {CONFIG_NAME} names"

    def _index(
        self, folder: Path, cache: TermCache, names: str, engine: str, headings: bool
    ) -> str | None:
        """Compact the index with these kinds of terms; None if it is not in this folder."""
        snapshot = self._collection.snapshot()
        index = TermIndex(
            snapshot,
            make_representation(names, snapshot.config.representation),
            cache,
            engine,
            headings=headings,
        )
        # SQLite's log can only grow while an old state is read.
        del snapshot
        with index:
            if index.folder != folder:
                return None
            try:
                return _dropped(index.compact(self._collection.snapshot, self._shown(folder.name)))
            except NotCompactableError as error:
                return f"skipped: {error}"

    def _vectors(self, folder: Path) -> str:
        with closing(self._collection.pinned()) as reader:
            return _dropped(compact_vectors(folder, reader))

    def _latents(self, folder: Path) -> str:
        with closing(self._collection.pinned()) as reader:
            return _dropped(compact_latents(folder, reader))

    def _cached_terms(self, cache: TermCache) -> str:
        versions = {}
        for kind, make in KINDS.items():
            # Without the model of a kind, nobody knows whether its terms are of another one.
            with suppress(MissingExtraError):
                versions[kind] = make(kind, self._collection.config.representation).version
        dropped = cache.compact(self._texts, versions)
        return f"the terms of {counted(dropped, 'text')} dropped" if dropped else ""

    def _texts(self) -> Iterator[bytes]:
        """The checksums of all texts that an index may need: documents and headings' names."""
        snapshot, show = self._collection.snapshot(), self._shown("cached terms")
        total = snapshot.generation().next_row
        for page in snapshot.text_pages():
            yield from (text_checksum(document) for _, document in page)
            show(page[-1][0] + 1, total)
        used = np.flatnonzero(snapshot.label_frequencies()).tolist()
        yield from (text_checksum(text) for text in heading_texts(snapshot, used))

    def _database(self) -> str:
        self._collection.database.shrink()
        return ""

    def _shown(self, part: str) -> Callable[[int, int], None]:
        def show(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(part, done, total)

        return show


def _dropped(count: int) -> str:
    return f"{counted(count, 'removed document')} dropped" if count else ""
