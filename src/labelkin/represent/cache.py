"""Extracted terms on disk, so that no text is analysed twice.

Terms are kept by a digest of the text and its language, so that a document is
found again under any id, in the collection or in a file. Everything in the
cache can be made anew: a damaged file is dropped, and from a folder that cannot
be written to it is only read.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from labelkin.corpus.document import Document
from labelkin.represent.kind import Analysis, TermKind
from labelkin.store.collection import Collection

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
_KEPT_AT_ONCE = 128
_SWITCH_ATTEMPTS = 100


class TermCache:
    """The terms of texts that were analysed before."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._connection: sqlite3.Connection | None = None
        self._numbers: dict[tuple[str, str], int] = {}
        try:
            self._connection = self._open()
        except (sqlite3.Error, OSError) as error:
            self._give_up(error)

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def terms(
        self, kinds: Sequence[TermKind], documents: Sequence[Document], *, store: bool = True
    ) -> dict[str, list[list[str]]]:
        """For each kind the terms of each document; with `store`, new ones are kept.

        Kinds that come from the same analysis are extracted together, and kept
        as they get ready: an interruption costs no more than a batch.
        """
        digests = [text_digest(document) for document in documents]
        found: dict[str, dict[bytes, list[str]]] = {kind.name: {} for kind in kinds}
        try:
            for kind in kinds:
                found[kind.name] = self._look_up(kind, digests)
        except sqlite3.Error as error:
            self._give_up(error)
        analyses: dict[Analysis, list[TermKind]] = {}
        for kind in kinds:
            if any(digest not in found[kind.name] for digest in digests):
                analyses.setdefault(kind.analysis, []).append(kind)
        for analysis, together in analyses.items():
            missing = {
                digest: document
                for digest, document in zip(digests, documents, strict=True)
                if any(digest not in found[kind.name] for kind in together)
            }
            ready = analysis.analyse(list(missing.values()), [kind.name for kind in together])
            pairs = zip(missing, ready, strict=True)
            while batch := list(islice(pairs, _KEPT_AT_ONCE)):
                for place, kind in enumerate(together):
                    fresh = {digest: terms[place] for digest, terms in batch}
                    found[kind.name].update(fresh)
                    if store:
                        self._keep(kind, fresh)
        return {name: [by_text[digest] for digest in digests] for name, by_text in found.items()}

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
        """The file as it is; None where it cannot be read without writing beside it."""
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
            found = self._connection.execute(
                "SELECT number FROM kinds WHERE name = ? AND version = ?", key
            ).fetchone()
            if found is not None:
                (self._numbers[key],) = found
        return self._numbers.get(key)

    def _look_up(self, kind: TermKind, digests: list[bytes]) -> dict[bytes, list[str]]:
        found: dict[bytes, list[str]] = {}
        number = self._number(kind)
        if self._connection is None or number is None:
            return found
        for start in range(0, len(digests), _LOOKUP):
            page = digests[start : start + _LOOKUP]
            marks = ", ".join("?" * len(page))
            rows = self._connection.execute(
                f"SELECT text, terms FROM terms WHERE kind = ? AND text IN ({marks})",
                (number, *page),
            )
            for digest, blob in rows:
                # What cannot be read is extracted again.
                with suppress(zlib.error, UnicodeDecodeError):
                    found[digest] = zlib.decompress(blob).decode("utf-8").split()
        return found

    def _keep(self, kind: TermKind, fresh: dict[bytes, list[str]]) -> None:
        number = None if self._read_only else self._number(kind)
        if self._connection is None or number is None:
            return
        rows = [
            (number, digest, zlib.compress(" ".join(terms).encode("utf-8"), 1))
            for digest, terms in fresh.items()
        ]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO terms VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Go on without; a file that is no cache any more is removed for the next time."""
        logger.warning("%s: %s; terms are not cached", self._path, error)
        self.close()
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) and not self._read_only:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def open_term_cache(collection: Collection) -> TermCache:
    """The cache of a collection."""
    return TermCache(
        collection.path / "cache" / "terms.sqlite", read_only=collection.database.read_only
    )


def _use_log(connection: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; the switch does not wait for others by itself."""
    for attempt in range(_SWITCH_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == _SWITCH_ATTEMPTS - 1:
                raise
            time.sleep(0.05)
        else:
            return


def text_digest(document: Document) -> bytes:
    """What a text is known by in caches, whatever its document's id."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (document.language or "", document.title, document.text):
        digest.update(part.encode("utf-8", "replace") + b"\x00")
    return digest.digest()
