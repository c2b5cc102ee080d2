"""A collection: one folder with a vocabulary, indexed documents and everything derived from them.

    NAME/
      manifest.json       format version and identity
      labelkin.toml       settings
      documents.sqlite    documents, vocabulary, change log: the source of truth
      labels/             label sets by row, memory-mapped
      indexes/ models/    built indexes and trained models
      desk.sqlite         work lists and verdicts, see `labelkin.desk`

Everything but the databases and the settings can be rebuilt from them.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from labelkin.closing import Closing
from labelkin.corpus.text import text_checksum
from labelkin.exceptions import (
    CollectionBusyError,
    CollectionDamagedError,
    CollectionError,
    CollectionExistsError,
    CollectionFullError,
)
from labelkin.layout import DATABASE_NAME, LABELS_NAME, is_collection
from labelkin.store.config import CONFIG_NAME, Config, WatchedConfig, write_config
from labelkin.store.database import LATER_COLUMNS, TEXT_INDEX, Database
from labelkin.store.derived import SnapshotOutdatedError
from labelkin.store.folder import disk_bytes, empty_folder, folder_errors_explained
from labelkin.store.label_sets import LabelSegments, LabelSets, Rows
from labelkin.store.manifest import (
    new_manifest,
    read_manifest,
    write_manifest,
)
from labelkin.store.reader import Generation, Reader
from labelkin.store.rows import concept_to_json
from labelkin.store.snapshot import PinnedReader, Snapshot
from labelkin.store.vocabulary_state import VocabularyState
from labelkin.vocab.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_COMPACTING_ATTEMPTS = 3


def check_database_file(path: Path) -> None:
    """Raise CollectionDamagedError if there is no database, or an empty file in its place."""
    reason = "missing"
    if path.is_file():
        if path.stat().st_size:
            return
        reason = "empty"
    raise CollectionDamagedError(
        f"{path}: {reason}; it held the documents and the vocabulary: restore it from a backup, or "
        f"move {path.parent} away and index the documents again (labelkin init, labelkin add)"
    )


class Collection(Reader, Closing):
    """An open collection folder. Reads the latest state; threads may share it.

    Reads that must all see the same state use a `snapshot`.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.manifest = read_manifest(path)
        self._config = WatchedConfig(path / CONFIG_NAME)
        check_database_file(path / DATABASE_NAME)
        self.database = Database(path / DATABASE_NAME, read_only=read_only)
        self.read_only = self.database.read_only
        self.segments = LabelSegments(path / LABELS_NAME)
        self._lock = Lock()
        self._vocabulary_state: VocabularyState | None = None
        if not self.read_only:
            # If it cannot be done now, readers cope without; the next writer has to do it.
            with suppress(CollectionBusyError, CollectionFullError):
                self.upgrade()

    def upgrade(self) -> None:
        """Add what documents stored by an earlier version lack: columns, checksums of texts."""
        if self._lacking_columns():
            with self.database.transaction() as connection:
                # Another process may have added them meanwhile.
                for name in self._lacking_columns():
                    column = f"{name} {LATER_COLUMNS[name]}"
                    connection.execute(f"ALTER TABLE documents ADD COLUMN {column}")
                    if name == "text_checksum":
                        connection.execute(TEXT_INDEX)
        if self._has_text_checksums():
            return
        logger.info("%s: adding checksums of the texts, once", self.path)
        # Page by page: others can write meanwhile, and the log stays short.
        for page in self.text_pages("text_checksum IS NULL"):
            with self.database.transaction() as connection:
                connection.executemany(
                    "UPDATE documents SET text_checksum = ? WHERE row = ?",
                    ((text_checksum(document.text), row) for row, document in page),
                )

    @classmethod
    def create(cls, path: Path, vocabulary: Vocabulary, config: Config) -> Collection:
        """Create a collection at `path`, which must not exist or be an empty folder.

        A new folder is filled under a temporary name and then renamed; in an
        existing folder the manifest is written last. A crash leaves a complete
        collection or none.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            if (path / DATABASE_NAME).is_file():
                # Documents whose manifest is lost: the error says how to recover them.
                read_manifest(path)
            raise CollectionExistsError(f"{path}: already exists; choose another name or remove it")
        if path.is_symlink() and not path.exists():
            raise CollectionExistsError(
                f"{path}: a link that leads nowhere; choose another name or remove it"
            )
        with folder_errors_explained(path):
            folder = path.resolve()
            if not _is_utf8(folder):
                raise CollectionError(
                    f"{path}: the name is not valid UTF-8, which indexes need; choose another name"
                )
            for parent in folder.parents:
                if is_collection(parent):
                    raise CollectionExistsError(
                        f"{path}: inside the collection {parent}; choose a place outside of it"
                    )
            if not path.exists():
                folder = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
                folder.mkdir(parents=True)
            try:
                cls._fill(folder, vocabulary, config)
                if not path.exists():
                    folder.replace(path)
            except BaseException:
                empty_folder(folder)
                if not path.exists():
                    folder.rmdir()
                raise
        return cls(path)

    @staticmethod
    def _fill(folder: Path, vocabulary: Vocabulary, config: Config) -> None:
        for name in (LABELS_NAME, "indexes", "models"):
            (folder / name).mkdir()
        write_config(config, folder / CONFIG_NAME)
        database = Database.create(folder / DATABASE_NAME)
        try:
            with database.transaction() as connection:
                connection.executemany(
                    "INSERT INTO concepts VALUES (?, ?, ?)",
                    (
                        (column, concept.id, concept_to_json(concept))
                        for column, concept in enumerate(vocabulary)
                    ),
                )
                connection.execute("UPDATE changes SET next_column = ?", (len(vocabulary),))
        finally:
            database.close()
        write_manifest(new_manifest(), folder)

    def close(self) -> None:
        """Close all files."""
        self.database.close()
        self.segments.close()
        self._vocabulary_state = None

    @property
    def config(self) -> Config:  # type: ignore[override]
        """The settings in labelkin.toml, read again when the file has changed."""
        return self._config.current()

    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self.database.query(statement, values)

    def generation(self) -> Generation:
        """The latest committed state."""
        return self.latest_generation()

    def snapshot(self, previous: Snapshot | None = None) -> Snapshot:
        """The current state, unaffected by later writes; reuses what `previous` has loaded."""
        snapshot = Snapshot(self, previous)
        if self.segments.damage is not None and not self.read_only:
            # The snapshot has read its label sets from the database; later ones need not.
            try:
                self.flush_label_sets()
            except CollectionError as error:
                logger.warning("%s; reading label sets from the database", error)
        return snapshot

    def pinned(self) -> PinnedReader:
        """The current state of the database alone: no label segment is opened or repaired."""
        return PinnedReader(self)

    @property
    def vocabulary_state(self) -> VocabularyState:
        """The vocabulary of the latest generation."""
        return self.vocabulary_state_of(self)

    def vocabulary_state_of(self, reader: Reader) -> VocabularyState:
        """The vocabulary that `reader` sees; the same object for the same vocabulary."""
        width = reader.generation().next_column
        key = self._vocabulary_key(reader, width)
        with self._lock:
            current = self._vocabulary_state
            if current is None or current.key != key:
                is_later = current is not None and current.key == self._vocabulary_key(
                    reader, current.width
                )
                current = VocabularyState(key, width, current if is_later else None)
                self._vocabulary_state = current
            return current

    def _vocabulary_key(self, reader: Reader, width: int) -> str:
        return f"{self.manifest.uid} {width} {reader.vocabulary_token(width)}"

    def label_sets(self) -> LabelSets:
        """The label sets of every row up to the latest generation."""
        return self.segments.label_sets(self)

    def tombstones(self) -> Rows:
        """Rows of removed and replaced documents, ascending."""
        return self._read_tombstones()

    def pending_rows(self) -> int:
        """Rows whose label sets are not in a segment yet."""
        return self.generation().next_row - self.segments.end(self)

    def flush_label_sets(self) -> None:
        """Write the label sets of the newest rows into segments."""
        with self.database.transaction(), folder_errors_explained(self.path):
            self.segments.catch_up(self)

    def compact_label_sets(self) -> bool:
        """Merge the label segments, without the labels of removed documents; whether it helped.

        Others can write until the new files are complete. If what they write comes in between
        again and again, they wait.
        """
        for _ in range(_COMPACTING_ATTEMPTS):
            with (
                suppress(SnapshotOutdatedError),
                folder_errors_explained(self.path),
                closing(self.pinned()) as reader,
            ):
                compacted = self.segments.compacted(reader)
                if compacted is None:
                    return False
                with self.database.transaction():
                    if self.segments.publish(compacted):
                        return True
        with self.database.transaction(), folder_errors_explained(self.path):
            compacted = self.segments.compacted(self)
            return compacted is not None and self.segments.publish(compacted)

    def disk_bytes(self) -> int:
        """The size of all files in the folder."""
        return disk_bytes(self.path)


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
