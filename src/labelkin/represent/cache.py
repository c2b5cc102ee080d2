"""Extracted terms on disk, so that no text is analysed twice.

Terms are stored by a checksum of the text and its language, so the id of a
document does not matter, nor whether it is in the collection. The cache can be
rebuilt: a damaged file is deleted. In a read-only folder it is only read.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import RLock

from labelkin.corpus.document import Document
from labelkin.represent.kind import Analysis, TermKind
from labelkin.store.database import shrink
from labelkin.store.reader import Reader

logger = logging.getLogger(__name__)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS terms (
    kind INTEGER NOT NULL, text BLOB NOT NULL, terms BLOB NOT NULL, PRIMARY KEY (kind, text)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS kinds (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, UNIQUE (name, version)
);
"""
_LOOKUP = 500
_STORED_AT_ONCE = 128
_SWITCH_ATTEMPTS = 100
# The file is rewritten if so many of its entries are dropped.
_WORTH_REWRITING = 0.1


class TermCache:
    """The terms of texts that have been analysed before."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._numbers: dict[tuple[str, str], int] = {}
        try:
            self._connection = self._open()
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def terms(
        self, kinds: Sequence[TermKind], documents: Sequence[Document], *, store: bool = True
    ) -> dict[str, list[list[str]]]:
        """For each kind the terms of each document; with `store`, new ones are cached.

        Kinds from the same analysis are extracted together and stored in
        batches: an interruption loses at most one batch.
        """
        checksums = [text_checksum(document) for document in documents]
        terms: dict[str, dict[bytes, list[str]]] = {kind.name: {} for kind in kinds}
        with self._lock:
            try:
                for kind in kinds:
                    terms[kind.name] = self._look_up(kind, checksums)
            except sqlite3.Error as error:
                self._give_up(error)
        analyses: dict[Analysis, list[TermKind]] = {}
        for kind in kinds:
            if any(checksum not in terms[kind.name] for checksum in checksums):
                analyses.setdefault(kind.analysis, []).append(kind)
        for analysis, together in analyses.items():
            missing = {
                checksum: document
                for checksum, document in zip(checksums, documents, strict=True)
                if any(checksum not in terms[kind.name] for kind in together)
            }
            ready = analysis.analyse(list(missing.values()), [kind.name for kind in together])
            pairs = zip(missing, ready, strict=True)
            while batch := list(islice(pairs, _STORED_AT_ONCE)):
                for place, kind in enumerate(together):
                    extracted = {checksum: by_kind[place] for checksum, by_kind in batch}
                    terms[kind.name].update(extracted)
                    if store:
                        with self._lock:
                            self._store(kind, extracted)
        return {
            name: [by_text[checksum] for checksum in checksums] for name, by_text in terms.items()
        }

    def add(self, kind: TermKind, terms: Mapping[bytes, Sequence[str]]) -> None:
        """Store terms that were extracted elsewhere, by the checksums of their texts."""
        with self._lock:
            self._store(kind, terms)

    def verify(self, kinds: Sequence[TermKind], documents: Sequence[Document]) -> int:
        """How many terms were compared with those of `documents`; ValueError if some differ."""
        compared = 0
        checksums = [text_checksum(document) for document in documents]
        for kind in kinds:
            with self._lock:
                cached = self._look_up(kind, checksums)
            stored = [
                (document, cached[checksum])
                for document, checksum in zip(documents, checksums, strict=True)
                if checksum in cached
            ]
            extracted = kind.analysis.analyse([document for document, _ in stored], [kind.name])
            for (document, terms), (expected,) in zip(stored, extracted, strict=True):
                if terms != list(expected):
                    raise ValueError(
                        f"{self._path}: the {kind.name} of {document.id} are not those of its text"
                    )
            compared += len(stored)
        return compared

    def compact(self, texts: Callable[[], Iterable[bytes]], versions: Mapping[str, str]) -> int:
        """Drop the terms of all texts but some, and of former kinds; how many entries there were.

        `texts` gives the checksums of the texts to keep, `versions` those of the kinds that are
        known. What others store meanwhile stays: only texts that were there before `texts` is
        called are dropped, a few at a time.
        """
        with self._lock:
            connection = self._connection
            if connection is None or self._read_only:
                return 0
            try:
                dropped = _drop_former_kinds(connection, versions)
                dropped += _drop_all_but(connection, texts)
                (left,) = connection.execute("SELECT count(*) FROM terms").fetchone()
                # Checksums are spread evenly: dropped entries empty no page.
                shrink(connection, is_sparse=dropped > _WORTH_REWRITING * (left + dropped))
            except sqlite3.DatabaseError as error:
                self._give_up(error)
                return 0
            return dropped

    def _open(self) -> sqlite3.Connection | None:
        if self._read_only:
            return self._open_for_reading()
        self._path.parent.mkdir(exist_ok=True)
        connection = sqlite3.connect(
            self._path, timeout=30, isolation_level=None, check_same_thread=False
        )
        try:
            _use_log(connection)
            connection.execute("PRAGMA synchronous = OFF")
            connection.executescript(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_for_reading(self) -> sqlite3.Connection | None:
        """A read-only connection; None if SQLite would have to write to open the file."""
        if not self._path.exists():
            return None
        address = f"{self._path.absolute().as_uri()}?mode=ro"
        connection = sqlite3.connect(
            address, uri=True, timeout=30, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT count(*) FROM kinds")
        except sqlite3.Error:
            connection.close()
            return None
        return connection

    def _number(self, kind: TermKind) -> int | None:
        key = (kind.name, kind.version)
        if key not in self._numbers and self._connection is not None:
            if not self._read_only:
                self._connection.execute(
                    "INSERT OR IGNORE INTO kinds (name, version) VALUES (?, ?)", key
                )
            row = self._connection.execute(
                "SELECT number FROM kinds WHERE name = ? AND version = ?", key
            ).fetchone()
            if row is not None:
                (self._numbers[key],) = row
        return self._numbers.get(key)

    def _look_up(self, kind: TermKind, checksums: list[bytes]) -> dict[bytes, list[str]]:
        terms: dict[bytes, list[str]] = {}
        number = self._number(kind)
        if self._connection is None or number is None:
            return terms
        for start in range(0, len(checksums), _LOOKUP):
            page = checksums[start : start + _LOOKUP]
            marks = ", ".join("?" * len(page))
            rows = self._connection.execute(
                f"SELECT text, terms FROM terms WHERE kind = ? AND text IN ({marks})",
                (number, *page),
            )
            for checksum, blob in rows:
                # Damaged entries are extracted again.
                with suppress(zlib.error, UnicodeDecodeError):
                    terms[checksum] = zlib.decompress(blob).decode("utf-8").split()
        return terms

    def _store(self, kind: TermKind, extracted: Mapping[bytes, Sequence[str]]) -> None:
        number = None if self._read_only else self._number(kind)
        if self._connection is None or number is None:
            return
        rows = [
            (number, checksum, zlib.compress(" ".join(terms).encode("utf-8"), 1))
            for checksum, terms in extracted.items()
        ]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO terms VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Continue without the cache; delete a damaged file so that it is rebuilt."""
        logger.warning("%s: %s; terms are not cached", self._path, error)
        self._close()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) and not self._read_only:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def open_term_cache(reader: Reader) -> TermCache:
    """The cache of a collection."""
    return TermCache(reader.path / "cache" / "terms.sqlite", read_only=reader.read_only)


def _drop_former_kinds(connection: sqlite3.Connection, versions: Mapping[str, str]) -> int:
    """Drop the terms of kinds that have another version now; how many entries there were."""
    kinds = connection.execute("SELECT number, name, version FROM kinds").fetchall()
    dropped = 0
    for number, name, version in kinds:
        if versions.get(name, version) == version:
            continue
        statement = (
            "DELETE FROM terms WHERE kind = :kind AND text IN "
            "(SELECT text FROM terms WHERE kind = :kind LIMIT :most)"
        )
        values = {"kind": number, "most": _LOOKUP}
        while count := connection.execute(statement, values).rowcount:
            dropped += count
    return dropped


def _drop_all_but(connection: sqlite3.Connection, texts: Callable[[], Iterable[bytes]]) -> int:
    """Drop the terms of all texts but some; how many entries there were."""
    connection.execute("CREATE TEMP TABLE unwanted (text BLOB PRIMARY KEY) WITHOUT ROWID")
    try:
        connection.execute("INSERT INTO unwanted SELECT DISTINCT text FROM terms")
        wanted = ((text,) for text in texts())
        connection.executemany("DELETE FROM unwanted WHERE text = ?", wanted)
        dropped = 0
        while page := connection.execute(
            "SELECT text FROM unwanted LIMIT ?", (_LOOKUP,)
        ).fetchall():
            marks = ", ".join("?" * len(page))
            values = [text for (text,) in page]
            for (number,) in connection.execute("SELECT number FROM kinds").fetchall():
                statement = f"DELETE FROM terms WHERE kind = ? AND text IN ({marks})"
                dropped += connection.execute(statement, (number, *values)).rowcount
            connection.execute(f"DELETE FROM unwanted WHERE text IN ({marks})", values)
        return dropped
    finally:
        connection.execute("DROP TABLE temp.unwanted")


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; SQLite's timeout does not apply to the switch."""
    for attempt in range(_SWITCH_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == _SWITCH_ATTEMPTS - 1:
                raise
            time.sleep(0.05)
        else:
            return


def text_checksum(document: Document) -> bytes:
    """The key of a text in caches, whatever its document's id."""
    checksum = hashlib.blake2b(digest_size=16)
    for part in (document.language or "", document.title, document.text):
        checksum.update(part.encode("utf-8", "replace") + b"\x00")
    return checksum.digest()
