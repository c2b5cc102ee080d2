"""The labelled documents of a collection by their terms: a derived store on a term engine.

indexes/terms-XXXX/          the engine's files
indexes/.terms-XXXX.write    locked by the process that catches up
indexes/.terms-XXXX.open     locked, shared, by every process that has the index open
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from labelkin.checksums import SMALL
from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionError, MissingExtraError
from labelkin.neighbours.engine import (
    ENGINES,
    POSTINGS,
    TANTIVY,
    EngineSearcher,
    IndexedDocument,
    NotCompactableError,
    TermEngine,
)
from labelkin.neighbours.heading_terms import (
    HeadingTerms,
    heading_field,
    index_fields,
    text_kinds,
)
from labelkin.neighbours.tantivy_engine import FORMAT_VERSION, Record, read_record
from labelkin.represent.cache import TermCache
from labelkin.represent.kind import TermKind
from labelkin.represent.representation import KINDS, Representation, kind_names
from labelkin.store.background import verify_later
from labelkin.store.config import Config
from labelkin.store.database import WRITER_PATIENCE_SECONDS
from labelkin.store.derived import (
    BuildProgress,
    DerivedStore,
    SnapshotOutdatedError,
    StoreDamagedError,
    StoreState,
)
from labelkin.store.folder import folder_errors_explained
from labelkin.store.locks import FileLock, beside
from labelkin.store.reader import Reader
from labelkin.wording import counted

logger = logging.getLogger(__name__)

_PREFIX = "terms-"
#: Those whose records `stored_index` can read.
OWN_ENGINES = (TANTIVY, POSTINGS)


class TermIndex(DerivedStore):
    """The documents that have labels, each under its row, with a field per kind of term.

    With `headings`, each kind has a second field for the names of a document's headings.
    """

    def __init__(
        self,
        reader: Reader,
        representation: Representation,
        cache: TermCache,
        engine: str,
        is_stopping: Callable[[], bool] = lambda: False,
        *,
        headings: bool = False,
    ) -> None:
        self._is_stopping = is_stopping
        self._cache = cache
        self._engine_name = engine
        self._own_versions = index_fields(representation, headings=headings)
        self._kinds = representation.kinds
        self._has_headings = headings
        self._searcher: tuple[StoreState, EngineSearcher] | None = None
        self._is_verifying = False
        if not reader.read_only:
            with folder_errors_explained(reader.path):
                (reader.path / "indexes").mkdir(exist_ok=True)
        self._indexes = reader.path / "indexes"
        super().__init__(self._indexes)
        self._use(_versions_at_hand(reader, self._own_versions, engine), reader.read_only)

    def _use(self, versions: Mapping[str, str], read_only: bool) -> None:
        self._versions = dict(versions)
        self.folder = self._indexes / _folder_name(self._versions, self._engine_name)
        open_engine = ENGINES[self._engine_name]
        self._open_lock = FileLock(beside(self.folder, "open"), shared=True)
        with suppress(CollectionError):
            # An index can be read where nothing can be locked.
            self._open_lock.take(WRITER_PATIENCE_SECONDS)
        try:
            self._engine: TermEngine = open_engine(self.folder, self._versions, read_only=read_only)
        except BaseException:
            self._open_lock.close()
            raise
        self.state = StoreState()
        self._searcher = None

    def close(self) -> None:
        """Close the index and release its lock."""
        self._searcher = None
        self._engine.close()
        self._open_lock.close()

    def searcher(self, reader: Reader) -> EngineSearcher:
        """A searcher of exactly the reader's generation."""
        with self.lock:
            self.catch_up(reader)
            if self._searcher is None or self._searcher[0] != self.state:
                self._searcher = (self.state, self._engine.searcher())
            return self._searcher[1]

    def is_recorded(self, reader: Reader) -> bool:
        """Whether the index claims to reflect the reader's generation; opens nothing."""
        return self._recorded().reflects(reader.generation())

    def missing_rows(self, reader: Reader) -> int:
        """About how many rows would be added to bring the index to the reader's generation."""
        state = self._recorded()
        known = state.next_row if reader.knows(state.generation, state.token) else 0
        return max(reader.generation().next_row - known, 0)

    def _recorded(self) -> StoreState:
        with self.lock:
            return self.state if self.state != StoreState() else self._engine.recorded()

    def catch_up(self, reader: Reader, progress: BuildProgress | None = None) -> int:
        """Bring the index to the reader's generation; the number of documents new to it."""
        with self.lock:
            if self.reflects(reader):
                return 0
            if self.state == StoreState():
                with suppress(StoreDamagedError):
                    self.state = self.read_state(reader)
                if self.reflects(reader):
                    return 0
            if self._versions != self._own_versions:
                # An index with more kinds takes longer to update, and they are not needed here.
                self.close()
                self._use(self._own_versions, reader.read_only)
            added = super().catch_up(reader, progress)
            if not reader.read_only:
                self._drop_other_indexes(reader.config)
            return added

    def repaired(self, reader: Reader, broken: EngineSearcher, reason: str) -> EngineSearcher:
        """A searcher after the index has been rebuilt, once for all threads that met the damage."""
        with self.lock:
            if self._searcher is None or self._searcher[1] is broken:
                self.report_damage(reason, logging.WARNING)
                self.rebuild(reader)
                self._searcher = None
            return self.searcher(reader)

    def compact(self, latest: Callable[[], Reader], progress: BuildProgress | None = None) -> int:
        """Bring the index up to date, and drop removed documents from it; how many there were.

        An index that has to be rebuilt for it is rebuilt beside the old one, which others use
        and bring up to date meanwhile. `latest` gives the collection's state.
        NotCompactableError if the engine can do neither.
        """
        with self.lock:
            reader = latest()
            # Another process may be ahead of the reader: then it has brought the index up to date.
            with suppress(SnapshotOutdatedError):
                self.catch_up(reader, progress)
            with self.exclusive(reader), folder_errors_explained(reader.path):
                removed = self._engine.removed()
                if self._engine.compact() or not removed:
                    return removed
                if not self._engine.exchanges_files:
                    raise NotCompactableError(
                        f"{self.folder}: the engine {self._engine_name!r} cannot drop "
                        f"{counted(removed, 'removed document')} from its files"
                    )
            beside_it = beside(self.folder, "compact")
            shutil.rmtree(beside_it, ignore_errors=True)
            other = ENGINES[self._engine_name](beside_it, self._versions, read_only=False)
            try:
                with folder_errors_explained(reader.path):
                    self._fill(other, reader, StoreState(), progress)
                    before = StoreState.of(reader.generation())
                    with self.exclusive(reader):
                        reader = latest()
                        if not before.reflects(reader.generation()):
                            self._fill(other, reader, before, None)
                        self._engine.take_over(other)
                self.state = StoreState()
                self._searcher = None
            finally:
                other.close()
                shutil.rmtree(beside_it, ignore_errors=True)
            return removed

    def rows(self) -> npt.NDArray[np.int64] | None:
        """The rows of all documents in the index, ascending; None if its engine cannot tell."""
        return self._engine.rows()

    def read_state(self, reader: Reader) -> StoreState:
        """The recorded state, corrected if a crash came between a commit and its record."""
        self._verify()
        recorded = self._engine.state()
        state, pending = recorded.applied, recorded.pending
        if recorded.newest < state.next_row:
            return state
        if pending is None or not reader.knows(*pending):
            if pending is not None and reader.is_outdated(*pending):
                raise SnapshotOutdatedError(f"{self.folder}: ahead of the snapshot; try again")
            raise StoreDamagedError(f"{self.folder}: holds documents that the database lacks")
        return replace(state, next_row=recorded.newest + 1)

    def _verify(self) -> None:
        """Verify what is new on disk: now if it is little, else in the background."""
        if self._engine.unverified_bytes() <= SMALL:
            self._engine.verify()
        elif not self._is_verifying:
            self._is_verifying = True
            verify_later(self._verify_all, self.report_damage)

    def _verify_all(self) -> None:
        try:
            self._engine.verify()
        finally:
            self._is_verifying = False

    def apply(self, reader: Reader, progress: BuildProgress | None) -> int:
        """Index the missing documents and remove those that are gone."""
        if reader.read_only:
            logger.warning(
                "%s: the index is not up to date and cannot be written to; using a temporary copy",
                reader.path,
            )
        added = self._fill(self._engine, reader, self.state, progress)
        self.state = StoreState.of(reader.generation())
        return added

    def _fill(
        self, engine: TermEngine, reader: Reader, state: StoreState, progress: BuildProgress | None
    ) -> int:
        """Bring an engine from a state to the reader's; the number of new documents."""
        generation = reader.generation()
        headings = HeadingTerms(self._kinds, self._cache) if self._has_headings else None
        added = 0

        def pages() -> Iterator[list[IndexedDocument]]:
            nonlocal added
            for page in reader.labelled_texts(state.next_row, generation.next_row):
                documents = indexed_documents(reader, page, self._kinds, self._cache, headings)
                if self._is_stopping():
                    raise CollectionError(f"{reader.path}: the collection is closed")
                yield documents
                added += len(page)
                if progress is not None:
                    last = page[-1][0] + 1
                    progress(last - state.next_row, generation.next_row - state.next_row)

        removed = reader.tombstones_between(state.generation, generation.number)
        engine.apply(removed, pages(), StoreState.of(generation))
        return added

    def start_over(self) -> None:
        """Delete the index."""
        self._engine.clear()
        self.state = StoreState()
        self._searcher = None

    def _drop_other_indexes(self, config: Config) -> None:
        """Remove indexes that this one makes superfluous, unless a process has them open.

        These are outdated ones and those of some of its fields, except the
        index of the representation that the settings name.
        """
        named = _named_fields(config)
        for other in self._indexes.glob(f"{_PREFIX}*"):
            record = stored_index(other)
            if record is None or other == self.folder:
                # Itself, or an index of another package's engine or of a later version.
                continue
            kinds = record.kinds
            is_contained = (
                record.engine == self._engine_name
                and kinds.items() <= self._versions.items()
                and set(kinds) not in named
            )
            settings = config.neighbours
            is_unused = record.engine == POSTINGS != settings.engine and not settings.bulk
            if not (is_contained or is_unused or _is_outdated(kinds, config)):
                continue
            with FileLock(beside(other, "open")) as lock:
                if lock.take():
                    shutil.rmtree(other, ignore_errors=True)
                    for kind in ("open", "write"):
                        beside(other, kind).unlink(missing_ok=True)


def indexed_documents(
    reader: Reader,
    page: Sequence[tuple[int, Document]],
    kinds: Sequence[TermKind],
    cache: TermCache,
    headings: HeadingTerms | None,
) -> list[IndexedDocument]:
    """Rows and texts as an engine indexes them: their terms by field."""
    terms = cache.terms(kinds, [document for _, document in page])
    if headings is not None:
        of_headings = headings.of(reader, page)
        terms |= {heading_field(kind): of_all for kind, of_all in of_headings.items()}
    return [
        (row, {name: of_all[place] for name, of_all in terms.items()})
        for place, (row, _) in enumerate(page)
    ]


@dataclass(frozen=True, slots=True)
class StoredIndex:
    """What the folder of an index says: its engine, fields with versions, what it reflects."""

    engine: str
    kinds: dict[str, str]
    applied: StoreState


def stored_index(folder: Path) -> StoredIndex | None:
    """What the index in a folder is; None if its record cannot be read."""
    record = read_record(folder, {})
    if record.kinds:
        return StoredIndex(TANTIVY, record.kinds, record.applied)
    from labelkin.neighbours.postings_engine import Record as PostingsRecord

    with suppress(OSError, ValueError):
        postings = PostingsRecord.read(folder, {})
        if postings.kinds:
            return StoredIndex(POSTINGS, postings.kinds, postings.applied)
    return None


def indexed_kinds(reader: Reader) -> list[str]:
    """Names of the kinds of terms that are indexed."""
    records = map(stored_index, (reader.path / "indexes").glob(f"{_PREFIX}*"))
    return sorted({name for record in records if record for name in text_kinds(record.kinds)})


def _versions_at_hand(reader: Reader, wanted: dict[str, str], engine: str) -> dict[str, str]:
    """Kinds and versions of the index to use: exactly these, or an up-to-date one with more."""
    records = _records(reader)
    if engine != TANTIVY or any(record.kinds == wanted for record in records):
        return wanted
    generation = reader.generation()
    for record in records:
        if wanted.items() <= record.kinds.items() and record.applied.reflects(generation):
            return record.kinds
    return wanted


def _named_fields(config: Config) -> list[set[str]]:
    """The fields of the indexes that labelkin.toml asks for."""
    named = [kind_names(part) for part in config.representation.name.split(",")]
    if config.neighbours.heading_weight:
        return [kinds | {heading_field(kind) for kind in kinds} for kinds in named]
    return named


def _is_outdated(fields: dict[str, str], config: Config) -> bool:
    """Whether the version of a field has changed, or nothing searches in its headings any more.

    A kind whose model is missing is kept.
    """
    kinds = text_kinds(fields)
    if not kinds <= KINDS.keys():
        return True
    has_headings = len(fields) > len(kinds)
    if has_headings and not config.neighbours.heading_weight:
        return True
    for kind in kinds:
        with suppress(MissingExtraError):
            representation = Representation(kind, (KINDS[kind](kind, config.representation),))
            current = index_fields(representation, headings=has_headings)
            if not current.items() <= fields.items():
                return True
    return False


def _records(reader: Reader) -> list[Record]:
    folders = sorted((reader.path / "indexes").glob(f"{_PREFIX}*"))
    records = [read_record(folder, {}) for folder in folders]
    return [record for record in records if record.kinds]


def _folder_name(versions: Mapping[str, str], engine: str) -> str:
    named = [] if engine == TANTIVY else [engine]
    content = json.dumps([FORMAT_VERSION, dict(versions), *named], sort_keys=True)
    return _PREFIX + hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
