"""The BM25 index of a collection, on tantivy.

One field per kind of term, so that a representation is a choice of fields. The
index holds the documents that have labels, each under its row. It is a derived
store: it remembers the generation it reflects and applies what it has missed
from the database, so a crash costs nothing but the time to catch up.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from labelkin.atomic import atomic_text
from labelkin.corpus.document import Document
from labelkin.exceptions import CollectionBusyError
from labelkin.represent.cache import TermCache
from labelkin.represent.kind import TermKind
from labelkin.represent.representation import Representation
from labelkin.store.collection import Collection, Generation, folder_errors_explained
from labelkin.store.database import WRITER_PATIENCE_SECONDS

if TYPE_CHECKING:
    import tantivy

logger = logging.getLogger(__name__)

ROW = "row"
KEY = "key"
_PREFIX = "terms-"
_STATE_NAME = "labelkin.json"
_FORMAT_VERSION = 1
_ROWS_A_COMMIT = 100_000
# Larger means fewer segments after a build, and faster searches.
_WRITER_BYTES = 256_000_000
_LITTLE_WRITER_BYTES = 30_000_000

BuildProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far an index has come: all rows before `next_row`, all removals up to `generation`."""

    kinds: dict[str, str]
    next_row: int = 0
    generation: int = 0
    token: str = ""
    format_version: int = _FORMAT_VERSION


class TermIndex:
    """The documents of a collection by their terms."""

    def __init__(
        self, collection: Collection, representation: Representation, cache: TermCache
    ) -> None:
        self._collection = collection
        self._cache = cache
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.kinds = _kinds_to_index(collection, representation)
        self._versions = {kind.name: kind.version for kind in self.kinds}
        self.folder = collection.path / "indexes" / _folder_name(self._versions)
        self.state = _read_state(self.folder, self._versions)
        self.index = self._open()

    def close(self) -> None:
        """Let go of the files."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def is_behind(self) -> bool:
        """Whether the database has changes that the index has not."""
        generation = self._collection.generation()
        applied = (self.state.next_row, self.state.generation, self.state.token)
        return applied != (generation.next_row, generation.number, generation.token)

    def catch_up(self, progress: BuildProgress | None = None) -> int:
        """Apply what the database has and the index has not; the number of new documents.

        Commits as it goes, so that an interrupted build goes on where it was.
        `progress` hears how many rows are done, of how many.
        """
        if not self.is_behind():
            return 0
        if self._collection.database.read_only and self._temporary is None:
            # Its owner may have brought it up to date meanwhile.
            self.index = self._open()
            if not self.is_behind():
                return 0
        with self._writing() as generation:
            added = self._remove_and_add(generation, progress)
        self._drop_other_indexes()
        return added

    def _open(self) -> tantivy.Index:
        self.state = _read_state(self.folder, self._versions)
        if self._collection.database.read_only and self.is_behind():
            self._move_to_temporary_copy()
        with folder_errors_explained(self._collection.path):
            self.folder.mkdir(parents=True, exist_ok=True)
            index = _open(self.folder, list(self._versions))
        self.state = _read_state(self.folder, self._versions)
        return index

    def _remove_and_add(self, generation: Generation, progress: BuildProgress | None) -> int:
        todo = generation.next_row - self.state.next_row
        done = IndexState(self._versions, generation.next_row, generation.number, generation.token)
        done = IndexState(self._versions, generation.next_row, generation.number, generation.token)
        heap = _WRITER_BYTES if todo > 1000 else _LITTLE_WRITER_BYTES
        # One thread gives the same order, and so the same index, every time.
        writer = self.index.writer(heap_size=heap, num_threads=1)
        try:
            for row in self._collection.tombstones_since(self.state.generation):
                writer.delete_documents_by_term(KEY, str(row))
            first, added, uncommitted = self.state.next_row, 0, 0
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
        writer.commit()
        self.state = state
        with atomic_text(self.folder / _STATE_NAME) as file:
            json.dump(asdict(self.state), file)

    def _documents(self, page: Sequence[tuple[int, Document]]) -> Iterator[tantivy.Document]:
        import tantivy

        texts = [document for _, document in page]
        terms = {kind.name: self._cache.terms(kind, texts) for kind in self.kinds}
        for number, (row, _) in enumerate(page):
            document = tantivy.Document()
            document.add_integer(ROW, row)
            document.add_text(KEY, str(row))
            for name, of_all in terms.items():
                document.add_text(name, " ".join(of_all[number]))
            yield document

    @contextmanager
    def _writing(self) -> Iterator[Generation]:
        """Hold the index's own lock, with the state that its last holder left."""
        deadline = time.monotonic() + WRITER_PATIENCE_SECONDS
        lock = self.folder.with_name(f".{self.folder.name}.lock")
        with folder_errors_explained(self._collection.path), lock.open("w") as file:
            while not _lock(file.fileno()):
                if time.monotonic() > deadline:
                    raise CollectionBusyError(
                        f"{self._collection.path}: another process is building the index; "
                        "try again when it is done"
                    )
                time.sleep(0.05)
            self.index.reload()
            self.state = self._state_on_disk()
            if not self._collection.knows(self.state.generation, self.state.token):
                # The database was put back from a backup and has gone another way since.
                self.index, self.state = self._start_over(), IndexState(self._versions)
            yield self._collection.generation()

    def _start_over(self) -> tantivy.Index:
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        return _open(self.folder, list(self._versions))

    def _state_on_disk(self) -> IndexState:
        """The state as written, put right if a crash came between a commit and its note."""
        import tantivy

        state = _read_state(self.folder, self._versions)
        searcher = self.index.searcher()
        if searcher.num_docs:
            newest = searcher.search(
                tantivy.Query.all_query(), 1, count=False, order_by_field=ROW
            ).hits[0][0]
            if newest >= state.next_row:
                return replace(state, next_row=int(newest) + 1)
        return state

    def _move_to_temporary_copy(self) -> None:
        """A collection that cannot be written to is caught up with elsewhere."""
        self._temporary = tempfile.TemporaryDirectory(prefix="labelkin-")
        copy = Path(self._temporary.name) / self.folder.name
        if self.folder.is_dir():
            shutil.copytree(self.folder, copy)
        logger.warning(
            "%s: the index is not up to date and cannot be written to; using a temporary copy",
            self._collection.path,
        )
        self.folder = copy

    def _drop_other_indexes(self) -> None:
        """Remove indexes that this one makes superfluous."""
        if self._temporary is None:
            for other in self.folder.parent.glob(f"{_PREFIX}*"):
                if other != self.folder:
                    shutil.rmtree(other, ignore_errors=True)


def indexed_kinds(collection: Collection) -> list[str]:
    """Names of the kinds of terms that are indexed, for people."""
    names: set[str] = set()
    for state in _states(collection):
        names.update(state.kinds)
    return sorted(names)


def _kinds_to_index(collection: Collection, wanted: Representation) -> tuple[TermKind, ...]:
    """The kinds that are wanted, and those that are indexed already and still current."""
    from labelkin.represent.representation import make_representation

    kinds = {kind.name: kind for kind in wanted.kinds}
    for state in _states(collection):
        for name, version in state.kinds.items():
            if name not in kinds:
                (kind,) = make_representation(name, collection.config.representation).kinds
                if kind.version == version:
                    kinds[name] = kind
    return tuple(kinds[name] for name in sorted(kinds))


def _states(collection: Collection) -> list[IndexState]:
    found = []
    for folder in sorted((collection.path / "indexes").glob(f"{_PREFIX}*")):
        try:
            content = json.loads((folder / _STATE_NAME).read_text(encoding="utf-8"))
            found.append(IndexState(**content))
        except (OSError, ValueError, TypeError):
            continue
    return found


def _read_state(folder: Path, kinds: dict[str, str]) -> IndexState:
    try:
        content = json.loads((folder / _STATE_NAME).read_text(encoding="utf-8"))
        return IndexState(**content)
    except (OSError, ValueError, TypeError):
        return IndexState(kinds)


def _folder_name(versions: dict[str, str]) -> str:
    content = json.dumps([_FORMAT_VERSION, versions], sort_keys=True)
    return _PREFIX + hashlib.blake2b(content.encode(), digest_size=4).hexdigest()


def _open(folder: Path, fields: Sequence[str]) -> tantivy.Index:
    """The index in `folder`, or an empty one; a damaged one is made anew."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Signed: an unsigned fast field brings the indexing thread down.
    builder.add_integer_field(ROW, fast=True, indexed=True)
    # A string: deleting by a number deletes nothing.
    builder.add_text_field(KEY, tokenizer_name="raw", index_option="basic")
    for field in fields:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    try:
        return tantivy.Index(schema, path=str(folder))
    except ValueError as error:
        logger.warning("%s: %s; the index is built anew", folder, error)
        shutil.rmtree(folder)
        folder.mkdir()
        return tantivy.Index(schema, path=str(folder))


def _lock(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
