"""The BM25 index of a collection, on tantivy.

One field per kind of term, so that a representation is a choice of fields. The
index holds the documents that have labels, each under its row. It is a derived
store: it notes the generation it reflects and applies what it has missed from
the database, so a crash costs nothing but the time to catch up.

    indexes/terms-XXXX/          the engine's files and, in labelkin.json, the note
    indexes/.terms-XXXX.write    locked by whoever catches up
    indexes/.terms-XXXX.open     locked, shared, by whoever has the index open
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.atomic import atomic_text
from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError, MissingExtraError
from labelkin.neighbours.engine import (
    KEY,
    ROW,
    IndexDamagedError,
    engine_errors_explained,
    open_index,
)
from labelkin.neighbours.search import BuildProgress
from labelkin.represent.cache import TermCache
from labelkin.represent.representation import KINDS, Representation, kind_names
from labelkin.store.collection import Collection, Generation
from labelkin.store.config import RepresentationSection
from labelkin.store.database import WRITER_PATIENCE_SECONDS
from labelkin.store.folder import folder_errors_explained
from labelkin.store.locks import FileLock, beside

if TYPE_CHECKING:
    import tantivy

logger = logging.getLogger(__name__)

_PREFIX = "terms-"
_NOTE_NAME = "labelkin.json"
_FORMAT_VERSION = 1
_ROWS_A_COMMIT = 100_000
_LINK_ATTEMPTS = 5
# Larger means fewer segments after a build, and faster searches.
_WRITER_BYTES = 256_000_000
_LITTLE_WRITER_BYTES = 30_000_000


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far an index has come: all rows before `next_row`, all removals up to `generation`.

    `pending` is set just before a commit: rows beyond `next_row` that the index
    turns out to have belong to that generation.
    """

    kinds: dict[str, str]
    next_row: int = 0
    generation: int = 0
    token: str = ""
    pending: tuple[int, str] | None = None
    format_version: int = _FORMAT_VERSION

    def reflects(self, generation: Generation) -> bool:
        """Whether the index has all that the collection had then."""
        applied = (self.next_row, self.generation, self.token)
        return applied == (generation.next_row, generation.number, generation.token)


class TermIndex:
    """The documents of a collection by their terms."""

    def __init__(
        self, collection: Collection, representation: Representation, cache: TermCache
    ) -> None:
        self._collection = collection
        self._cache = cache
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.kinds = representation.kinds
        self._own_versions = representation.versions()
        if not collection.database.read_only:
            with folder_errors_explained(collection.path):
                (collection.path / "indexes").mkdir(exist_ok=True)
        self._use(_kinds_at_hand(collection, self._own_versions))

    def _use(self, versions: dict[str, str]) -> None:
        self._versions = versions
        self._home = self._collection.path / "indexes" / _folder_name(versions)
        self.folder = self._home
        self._open_lock = FileLock(beside(self._home, "open"), shared=True)
        self._open_lock.take(WRITER_PATIENCE_SECONDS)
        self.index, self.state = self._open()

    def _use_own(self) -> None:
        """Leave an index of more kinds, which take time to keep up and nobody asks for here."""
        if self._versions != self._own_versions:
            self.close()
            self._use(self._own_versions)

    def close(self) -> None:
        """Let go of the files."""
        self._open_lock.close()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def is_behind(self) -> bool:
        """Whether the database has changes that the index has not."""
        return not self.state.reflects(self._collection.generation())

    def catch_up(self, progress: BuildProgress | None = None) -> int:
        """Apply what the database has and the index has not; the number of new documents.

        Commits as it goes, so that an interrupted build goes on where it was.
        `progress` hears how many rows are done, of how many.
        """
        if not self.is_behind():
            return 0
        self._use_own()
        if self._collection.database.read_only:
            # Its owner may have brought it up to date meanwhile.
            self.index, self.state = self._open()
            if not self.is_behind():
                return 0
            logger.warning(
                "%s: the index is not up to date and cannot be written to; using a temporary copy",
                self._collection.path,
            )
        with self._writing() as generation, folder_errors_explained(self._collection.path):
            try:
                added = self._apply(generation, progress)
            except IndexDamagedError as error:
                logger.warning("%s; the index is built anew", error)
                self.index, self.state = self._start_over()
                added = self._apply(generation, progress)
        self._drop_other_indexes()
        return added

    def rebuild(self) -> None:
        """Make the index anew from the documents, because it turned out to be damaged."""
        self._use_own()
        with self._writing() as generation, folder_errors_explained(self._collection.path):
            self.index, self.state = self._start_over()
            self._apply(generation, None)

    def _open(self) -> tuple[tantivy.Index, IndexState]:
        if self._collection.database.read_only:
            return self._open_linked()
        with folder_errors_explained(self._collection.path):
            self.folder.mkdir(exist_ok=True)
            state = _read_note(self.folder, self._versions)
            try:
                return open_index(self.folder, list(self._versions)), state
            except IndexDamagedError as error:
                with self._write_lock():
                    logger.warning("%s; the index is built anew", error)
                    return self._start_over()

    def _open_linked(self) -> tuple[tantivy.Index, IndexState]:
        """The index through links in a temporary folder: the engine wants to write lock files."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(
                prefix="labelkin-", ignore_cleanup_errors=True
            )
        for _ in range(_LINK_ATTEMPTS):
            self.folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
            try:
                if (self._home / "meta.json").exists():
                    _link_files(self._home, self.folder)
                state = _read_note(self.folder, self._versions)
                index = open_index(self.folder, list(self._versions))
                with engine_errors_explained(self.folder):
                    index.searcher()
                return index, state
            except (FileNotFoundError, IndexDamagedError):
                # Its owner merged files while we looked; if it is damaged, start from nothing.
                continue
        self.folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
        return open_index(self.folder, list(self._versions)), IndexState(self._versions)

    @contextmanager
    def _write_lock(self) -> Iterator[None]:
        with FileLock(beside(self.folder, "write")) as lock:
            if not lock.take(WRITER_PATIENCE_SECONDS):
                raise CollectionBusyError(
                    f"{self._collection.path}: another process is building the index; "
                    "try again when it is done"
                )
            yield

    @contextmanager
    def _writing(self) -> Iterator[Generation]:
        """Hold the index's own lock, with the state that its last holder left."""
        with self._write_lock():
            try:
                self.state = self._state_on_disk()
            except IndexDamagedError as error:
                logger.warning("%s; the index is built anew", error)
                self.index, self.state = self._start_over()
            yield self._collection.generation()

    def _state_on_disk(self) -> IndexState:
        """The state as noted, put right if a crash came between a commit and its note.

        Raises IndexDamagedError where the index holds what the database does not know.
        """
        import tantivy

        state = _read_note(self.folder, self._versions)
        with engine_errors_explained(self.folder):
            if not (self.folder / "meta.json").exists():
                raise IndexDamagedError(f"{self.folder}: the index is gone")
            # Opened anew: someone may have started over in the same place.
            self.index = open_index(self.folder, list(self._versions))
            searcher = self.index.searcher()
            newest = -1
            if searcher.num_docs:
                every = tantivy.Query.all_query()
                hits = searcher.search(every, 1, count=False, order_by_field=ROW).hits
                newest = int(hits[0][0])
        known = self._collection.knows(state.generation, state.token)
        if newest >= state.next_row:
            known = known and state.pending is not None and self._collection.knows(*state.pending)
            state = replace(state, next_row=newest + 1)
        if not known:
            raise IndexDamagedError(f"{self.folder}: the database has gone another way")
        return state

    def _start_over(self) -> tuple[tantivy.Index, IndexState]:
        with folder_errors_explained(self._collection.path):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(exist_ok=True)
        return open_index(self.folder, list(self._versions)), IndexState(self._versions)

    def _apply(self, generation: Generation, progress: BuildProgress | None) -> int:
        first = self.state.next_row
        todo = generation.next_row - first
        done = IndexState(self._versions, generation.next_row, generation.number, generation.token)
        heap = _WRITER_BYTES if todo > 1000 else _LITTLE_WRITER_BYTES
        added = uncommitted = 0
        with engine_errors_explained(self.folder):
            # One thread gives the same order, and so the same index, every time.
            writer = self.index.writer(heap_size=heap, num_threads=1)
            try:
                for row in self._collection.tombstones_since(self.state.generation):
                    writer.delete_documents_by_term(KEY, str(row))
                for page in self._collection.labelled_texts(first, generation.next_row):
                    for document in self._documents(page):
                        writer.add_document(document)
                    added += len(page)
                    uncommitted += len(page)
                    if uncommitted >= _ROWS_A_COMMIT:
                        self._commit(writer, replace(done, next_row=page[-1][0] + 1))
                        uncommitted = 0
                    if progress is not None:
                        progress(page[-1][0] + 1 - first, todo)
                self._commit(writer, done)
            finally:
                writer.wait_merging_threads()
            self.index.reload()
        return added

    def _commit(self, writer: tantivy.IndexWriter, state: IndexState) -> None:
        self._note(replace(self.state, pending=(state.generation, state.token)))
        writer.commit()
        self._note(state)

    def _note(self, state: IndexState) -> None:
        with atomic_text(self.folder / _NOTE_NAME) as file:
            json.dump(asdict(state), file)
        self.state = state

    def _documents(self, page: Sequence[tuple[int, Document]]) -> Iterator[tantivy.Document]:
        import tantivy

        texts = [document for _, document in page]
        terms = self._cache.terms(self.kinds, texts)
        for number, (row, _) in enumerate(page):
            document = tantivy.Document()
            document.add_integer(ROW, row)
            document.add_text(KEY, str(row))
            for name, of_all in terms.items():
                document.add_text(name, " ".join(of_all[number]))
            yield document

    def _drop_other_indexes(self) -> None:
        """Remove indexes that this one makes superfluous, unless someone has them open.

        These are outdated ones and those of some of its kinds, but for the
        index of the representation that the settings name.
        """
        if self._temporary is not None:
            return
        settings = self._collection.config.representation
        for other in self._home.parent.glob(f"{_PREFIX}*"):
            kinds = _read_note(other, {}).kinds
            named = set(kinds) in [kind_names(part) for part in settings.name.split(",")]
            contained = kinds.items() <= self._versions.items() and not named
            if other == self._home or not (contained or _is_outdated(kinds, settings)):
                continue
            with FileLock(beside(other, "open")) as lock:
                if lock.take():
                    shutil.rmtree(other, ignore_errors=True)
                    for kind in ("open", "write"):
                        beside(other, kind).unlink(missing_ok=True)


def indexed_kinds(collection: Collection) -> list[str]:
    """Names of the kinds of terms that are indexed, for people."""
    return sorted({name for state in _states(collection) for name in state.kinds})


def _kinds_at_hand(collection: Collection, wanted: dict[str, str]) -> dict[str, str]:
    """Kinds and versions of the index to search in: an up-to-date one of more, for want of one."""
    generation = collection.generation()
    states = _states(collection)
    if any(state.kinds == wanted for state in states):
        return wanted
    more = (state for state in states if wanted.items() <= state.kinds.items())
    return next((state.kinds for state in more if state.reflects(generation)), wanted)


def _is_outdated(kinds: dict[str, str], settings: RepresentationSection) -> bool:
    """Whether a kind is made otherwise by now; one whose model is gone may come back."""
    for name, version in kinds.items():
        if name not in KINDS:
            return True
        with suppress(MissingExtraError):
            if KINDS[name](name, settings).version != version:
                return True
    return False


def _states(collection: Collection) -> list[IndexState]:
    folders = sorted((collection.path / "indexes").glob(f"{_PREFIX}*"))
    found = [_read_note(folder, {}) for folder in folders]
    return [state for state in found if state.kinds]


def _read_note(folder: Path, kinds: dict[str, str]) -> IndexState:
    """What the index notes of itself; the state of an empty one where it notes nothing usable."""
    try:
        content = json.loads((folder / _NOTE_NAME).read_text(encoding="utf-8"))
        if content["format_version"] != _FORMAT_VERSION:
            return IndexState(kinds)
        if content["pending"] is not None:
            content["pending"] = tuple(content["pending"])
        return IndexState(**content)
    except (OSError, ValueError, TypeError, KeyError):
        return IndexState(kinds)


def _link_files(home: Path, folder: Path) -> None:
    """Copy what changes and link what does not; the note first, so that it claims no more."""
    for name in (_NOTE_NAME, "meta.json", ".managed.json"):
        if (home / name).exists():
            shutil.copyfile(home / name, folder / name)
    for path in home.iterdir():
        if not (folder / path.name).exists() and path.suffix != ".lock":
            (folder / path.name).symlink_to(path.absolute())


def _folder_name(versions: dict[str, str]) -> str:
    content = json.dumps([_FORMAT_VERSION, versions], sort_keys=True)
    return _PREFIX + hashlib.blake2b(content.encode(), digest_size=4).hexdigest()
