"""Checks every file of a collection, and repairs what can be rebuilt: `labelkin doctor`.

What opening a collection verifies in passing is verified here in full: the
database's own structure, the checksum of every document; label segments, indexes,
vectors, caches and models against their checksums and against the change log; and
what is derived from the documents against the documents: label sets one by one,
indexes and vectors by their rows, latent vectors and cached terms by samples.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from labelkin.autoencoder.latents import verify_latents
from labelkin.autoencoder.model import MODEL_NAME, LabelModel, verify_weights
from labelkin.checksums import is_sealed, verify_trailer
from labelkin.corpus.revision import parse_revision
from labelkin.corpus.text import text_checksum
from labelkin.desk.database import REMEDY
from labelkin.desk.desk import Desk
from labelkin.exceptions import (
    CollectionDamagedError,
    ConfigError,
    LabelkinError,
    MissingExtraError,
)
from labelkin.inspection import LSA_NAME
from labelkin.layout import DESK_NAME
from labelkin.leftovers import CHECKPOINT, find_leftovers
from labelkin.neighbours.engine import ENGINES
from labelkin.neighbours.term_index import StoredIndex, stored_index
from labelkin.neighbours.vector_file import VectorFile
from labelkin.represent.cache import TermCache
from labelkin.represent.representation import KINDS
from labelkin.rerank.model import RERANK_NAME, reranker_info, verify_reranker
from labelkin.store.collection import Collection, check_database_file
from labelkin.store.config import CONFIG_NAME, Config, read_config, write_config
from labelkin.store.database import DATABASE_NAME
from labelkin.store.derived import StoreState
from labelkin.store.label_sets import COLUMN_TYPE
from labelkin.store.locks import FileLock, beside
from labelkin.store.manifest import MANIFEST_NAME, new_manifest, read_manifest, write_manifest
from labelkin.store.models import DESCRIPTION
from labelkin.store.rows import (
    DOCUMENT_COLUMNS,
    ResolvedLabels,
    concept_from_json,
    document_checksum,
    text_from_values,
)
from labelkin.store.snapshot import PinnedReader
from labelkin.wording import counted

_PAGE = 1000
_ROWS = 10_000
# So many documents are looked at where comparing all of them would take as long as a rebuild.
_SAMPLE = 100
_NO_CHECKSUM = "no checksum recorded, an earlier version wrote it; it gets one when next written"
_RESUME = "an unfinished training; `labelkin train {path} --resume` continues it"
_TRAIN = "train again: `labelkin train {path}`"
# A page that cannot be read also looks like damage.
_RESTORE = "if the disk is sound and another run finds the same, restore it from a backup"

State = Literal["sound", "damaged", "no checksum", "repaired", "leftover", "removed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One part of a collection: its name within the folder, and what is wrong with it.

    A leftover of a killed process is no damage; one that was deleted is `removed`.
    `note` says what a sound part holds.
    """

    part: str
    state: State = "sound"
    problem: str = ""
    remedy: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The findings for all parts. `is_complete` is false if damage kept some from being checked."""

    path: str
    findings: list[Finding] = field(default_factory=list)
    is_complete: bool = True

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged, or everything that was is repaired."""
        return self.is_complete and all(one.state != "damaged" for one in self.findings)

    @property
    def problems(self) -> list[Finding]:
        """What is damaged, or was."""
        return [one for one in self.findings if one.state in ("damaged", "repaired")]


def check_collection(path: Path, *, repair: bool = False) -> CheckReport:
    """Check everything in a collection folder; with `repair`, repair what can be rebuilt.

    Nothing else may write to the collection while it is repaired.
    """
    return _Check(Path(path), repair=repair).run()


class _Check:
    """One pass over a collection."""

    def __init__(self, path: Path, *, repair: bool) -> None:
        self.path = path
        self.repair = repair
        self.findings: list[Finding] = []

    def run(self) -> CheckReport:
        """All findings, those that others depend on first."""
        is_complete = self._check_basics()
        if is_complete:
            try:
                collection = Collection(self.path, read_only=not self.repair)
            except CollectionDamagedError as error:
                self._add_damage(DATABASE_NAME, error, _RESTORE)
                return CheckReport(str(self.path), self.findings, is_complete=False)
            with collection:
                is_complete = self._check_content(collection)
        return CheckReport(str(self.path), self.findings, is_complete)

    def _check_basics(self) -> bool:
        """What is needed to open the collection; False if it cannot be opened."""
        if not (self.path / DATABASE_NAME).is_file():
            # Raises what opening would, unless the manifest is there.
            read_manifest(self.path)
        try:
            check_database_file(self.path / DATABASE_NAME)
        except CollectionDamagedError as error:
            self._add_damage(DATABASE_NAME, error, _RESTORE)
            return False
        manifest = self._check(
            MANIFEST_NAME,
            lambda: read_manifest(self.path),
            "--repair writes a new manifest; what is derived from the documents is kept",
            lambda: write_manifest(new_manifest(), self.path),
            f"a new {MANIFEST_NAME} was written",
        )
        settings = self._check(
            CONFIG_NAME,
            lambda: _check_settings(self.path / CONFIG_NAME),
            f"correct {CONFIG_NAME}, or move it away: defaults are used then",
        )
        if not settings and _is_empty(self.path / CONFIG_NAME):
            remedy = "--repair writes the defaults"
            if self.repair:
                write_config(Config(), self.path / CONFIG_NAME)
                remedy = "the defaults were written"
            state: State = "repaired" if self.repair else "damaged"
            self.findings[-1] = replace(self.findings[-1], state=state, remedy=remedy)
            settings = True
        return manifest and settings

    def _check_content(self, collection: Collection) -> bool:
        """Compare everything with one state of the database: others may write meanwhile."""
        try:
            reader = collection.pinned()
        except (LabelkinError, sqlite3.Error) as error:
            self._add_damage(DATABASE_NAME, error, _RESTORE)
            return False
        with closing(reader):
            if not self._check(DATABASE_NAME, lambda: _check_database(reader), _RESTORE):
                return False
            self._check(
                "labels",
                lambda: _check_segments(collection, reader),
                "--repair rebuilds them from the documents",
                lambda: _rebuild_segments(collection),
                "rebuilt from the documents",
            )
            for kind, check in (("terms", _check_terms), ("vectors", _check_vectors)):
                for folder in sorted((self.path / "indexes").glob(f"{kind}-*")):
                    self._check_index(folder, partial(check, folder, reader))
            self._check_caches(reader)
            self._check_models(reader)
            if (self.path / DESK_NAME).exists():
                self._check(DESK_NAME, lambda: _check_desk(self.path), REMEDY)
        self._check_leftovers(collection)
        return True

    def _check_leftovers(self, collection: Collection) -> None:
        state: State = "removed" if self.repair else "leftover"
        remedy = "" if self.repair else "--repair removes it"
        for leftover in find_leftovers(collection, remove=self.repair):
            part = leftover.path.relative_to(self.path).as_posix()
            # An index that was never finished was listed among the indexes.
            self.findings = [one for one in self.findings if one.part != part]
            self.findings.append(Finding(part, state, leftover.reason, remedy))
        for checkpoint in sorted((self.path / "models").glob(f"*/{CHECKPOINT}")):
            part = checkpoint.relative_to(self.path).as_posix()
            self.findings.append(Finding(part, note=_RESUME.format(path=self.path)))

    def _check_index(self, folder: Path, check: Callable[[], object]) -> None:
        self._check(
            f"indexes/{folder.name}",
            check,
            "--repair deletes it; the next search rebuilds it",
            lambda: _delete(folder),
            "deleted; the next search rebuilds it",
        )

    def _check_caches(self, reader: PinnedReader) -> None:
        cache = self.path / "cache"
        for path in sorted(cache.glob("*")):
            check: Callable[[], object] | None = None
            if path.suffix == ".npz":
                check = partial(_check_zip, path)
            elif path.suffix == ".sqlite":
                check = partial(_check_cached_terms, path, reader)
            elif path.is_dir():
                check = partial(_check_cached_vectors, path)
            if check is not None:
                self._check(
                    f"cache/{path.name}",
                    check,
                    "--repair deletes it; it is filled again",
                    partial(_delete, path),
                    "deleted; it is filled again",
                )

    def _check_models(self, reader: PinnedReader) -> None:
        train = _TRAIN.format(path=self.path)
        folder = self.path / "models" / MODEL_NAME
        if (folder / DESCRIPTION).exists():
            part = f"models/{MODEL_NAME}"
            self._check(part, lambda: _check_autoencoder(folder, reader), train)
        if (folder / "latents.json").exists():
            self._check(
                f"models/{MODEL_NAME}/latents.json",
                lambda: verify_latents(folder, reader),
                "--repair deletes them; they are computed again",
                lambda: _delete_latents(folder),
                "deleted; they are computed again",
            )
        reranker = self.path / "models" / RERANK_NAME
        if (reranker / DESCRIPTION).exists():
            part = f"models/{RERANK_NAME}"
            self._check(part, lambda: _check_reranker(reranker, reader), train)
        lsa = self.path / "models" / LSA_NAME
        if (lsa / DESCRIPTION).exists():
            self._check(
                f"models/{LSA_NAME}",
                lambda: _check_lsa(lsa),
                "--repair deletes it; the next search by lsa fits it again",
                lambda: _delete(lsa),
                "deleted; the next search by lsa fits it again",
            )

    def _check(
        self,
        part: str,
        check: Callable[[], object],
        remedy: str,
        repair: Callable[[], None] | None = None,
        repaired: str = "",
    ) -> bool:
        """Add the finding of one check; whether the part can be used.

        `check` raises if the part is damaged. It returns False if the part has no checksum,
        and may return what there is to say about it.
        """
        try:
            result = check()
        except (LabelkinError, OSError, ValueError, sqlite3.Error) as error:
            if repair is None or not self.repair:
                self._add_damage(part, error, remedy)
                return False
            try:
                repair()
            except (LabelkinError, OSError) as failure:
                self._add_damage(part, error, str(failure))
                return False
            self.findings.append(Finding(part, "repaired", _problem(error), repaired))
            return True
        finding = Finding(part, note=result if isinstance(result, str) else "")
        if result is False:
            finding = Finding(part, "no checksum", _NO_CHECKSUM)
        self.findings.append(finding)
        return True

    def _add_damage(self, part: str, error: Exception, remedy: str) -> None:
        self.findings.append(Finding(part, "damaged", _problem(error), remedy))


def _problem(error: Exception) -> str:
    """The message as one line, without the remedy, which findings have apart."""
    text = error.problem if isinstance(error, LabelkinError) else str(error)
    return " ".join(text.split())


def _check_settings(path: Path) -> None:
    if _is_empty(path):
        raise ConfigError(f"{path}: {'empty' if path.exists() else 'missing'}")
    read_config(path)


def _is_empty(path: Path) -> bool:
    return not path.exists() or not path.read_bytes().strip()


def _check_database(reader: PinnedReader) -> None:
    """SQLite's own check, the documents' checksums, concepts, rows, tombstones and editions."""
    for (line,) in reader.query("PRAGMA integrity_check(1)"):
        if line != "ok":
            raise CollectionDamagedError(f"{DATABASE_NAME}: {line}")
    generation = reader.generation()
    live = np.zeros(generation.next_row, dtype=np.bool_)
    for row, problem in _documents(reader, generation.next_column):
        if problem:
            raise CollectionDamagedError(f"{DATABASE_NAME}: the document in row {row} {problem}")
        if row >= len(live):
            raise CollectionDamagedError(f"{DATABASE_NAME}: row {row} is not in the change log")
        live[row] = True
    tombstones = reader.tombstones()
    if len(tombstones) and (tombstones[-1] >= len(live) or live[tombstones].any()):
        raise CollectionDamagedError(f"{DATABASE_NAME}: a tombstone belongs to no removed document")
    if int(live.sum()) + len(tombstones) != len(live):
        raise CollectionDamagedError(f"{DATABASE_NAME}: documents are missing, without a tombstone")
    _check_concepts(reader, generation.next_column)
    _check_moves(reader)
    _check_editions(reader)


def _documents(reader: PinnedReader, width: int) -> Iterator[tuple[int, str]]:
    """The row of every document, and what is wrong with it."""
    after = -1
    columns = reader.stored_columns(f"{DOCUMENT_COLUMNS}, text_checksum")
    while page := reader.query(
        f"SELECT {columns}, digest, row FROM documents WHERE row > ? ORDER BY row LIMIT ?",
        (after, _PAGE),
    ):
        for *values, text, digest, row in page:
            problem = ""
            if document_checksum(tuple(values)) != digest:
                problem = "does not match its checksum"
            elif text not in (None, text_checksum(text_from_values(tuple(values[:5])).text)):
                problem = "has a text that does not match its checksum"
            elif values[-1] is not None and parse_revision(values[-1]) != values[-1]:
                problem = f"has the revision {values[-1]!r}, neither a date nor a version number"
            elif not _are_columns(values[6], width):
                problem = "has labels that are not in the vocabulary"
            yield row, problem
        after = page[-1][-1]


def _are_columns(labels: bytes, width: int) -> bool:
    """Whether stored labels are columns of the vocabulary."""
    if len(labels) % COLUMN_TYPE.itemsize:
        return False
    columns = np.frombuffer(labels, dtype=COLUMN_TYPE)
    return not len(columns) or bool(columns.min() >= 0 and columns.max() < width)


def _check_concepts(reader: PinnedReader, width: int) -> None:
    count = 0
    for start in range(0, width, _PAGE):
        for column, identifier, text in reader.query(
            'SELECT "column", id, concept FROM concepts WHERE "column" >= ? AND "column" < ?',
            (start, start + _PAGE),
        ):
            count += 1
            if not _is_concept(text, identifier):
                raise CollectionDamagedError(
                    f"{DATABASE_NAME}: the concept in column {column} cannot be read"
                )
    if count != width:
        raise CollectionDamagedError(f"{DATABASE_NAME}: {width - count} concepts are missing")


def _is_concept(text: str, identifier: str | None) -> bool:
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        return concept_from_json(text).id == identifier
    return False


def _check_moves(reader: PinnedReader) -> None:
    """Where documents were before, and when sources have deleted records."""
    tables = {name for (name,) in reader.query("SELECT name FROM sqlite_master")}
    next_row = reader.generation().next_row
    for table in {"moves", "former_rows"} & tables:
        if reader.query(
            f"SELECT 1 FROM {table} WHERE former >= row OR row >= ? LIMIT 1", (next_row,)
        ):
            raise CollectionDamagedError(f"{DATABASE_NAME}: {table} has no earlier row")
    if "deletions" not in tables:
        return
    for identifier, revision in reader.query("SELECT id, revision FROM deletions"):
        if parse_revision(revision) != revision:
            raise CollectionDamagedError(
                f"{DATABASE_NAME}: the deletion of {identifier!r} has the revision {revision!r}"
            )


def _check_editions(reader: PinnedReader) -> None:
    """The editions of the vocabulary, and what undoing the last update needs, if there was one."""
    if not reader.query("SELECT 1 FROM sqlite_master WHERE name = 'editions'"):
        return
    generation = reader.generation()
    if reader.query(
        "SELECT 1 FROM editions WHERE generation NOT IN (SELECT generation FROM changes) LIMIT 1"
    ):
        raise CollectionDamagedError(f"{DATABASE_NAME}: an edition is not in the change log")
    if reader.query("SELECT 1 FROM sqlite_master WHERE name = 'revivals'") and reader.query(
        'SELECT 1 FROM revivals WHERE "column" >= ? '
        "OR generation NOT IN (SELECT generation FROM changes) LIMIT 1",
        (generation.next_column,),
    ):
        raise CollectionDamagedError(f"{DATABASE_NAME}: a revived concept is not in the change log")
    for column, text, identifier in reader.query(
        'SELECT "column", former.concept, id FROM former_concepts AS former '
        'LEFT JOIN concepts USING ("column")'
    ):
        if identifier is None or (text is not None and not _is_concept(text, identifier)):
            raise CollectionDamagedError(
                f"{DATABASE_NAME}: the former concept in column {column} cannot be read"
            )
    if any(column >= generation.next_column for column, _ in reader.former_names()):
        raise CollectionDamagedError(f"{DATABASE_NAME}: a former name belongs to no concept")
    rows = reader.rows_with_former_labels().tolist()
    for start in range(0, len(rows), _PAGE):
        for row, labels in reader.former_labels(rows[start : start + _PAGE]).items():
            is_whole = False
            with suppress(ValueError, TypeError, IndexError, AttributeError):
                ResolvedLabels.stored(*labels)
                is_whole = _are_columns(labels[0], generation.next_column)
            if not is_whole or row >= generation.next_row:
                raise CollectionDamagedError(
                    f"{DATABASE_NAME}: the former labels of row {row} cannot be read"
                )


def _check_segments(collection: Collection, reader: PinnedReader) -> bool:
    folder = collection.segments.folder
    if folder.exists() and not folder.is_dir():
        raise CollectionDamagedError(f"{folder}: not a folder")
    return collection.segments.verify(reader)


def _rebuild_segments(collection: Collection) -> None:
    folder = collection.segments.folder
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        folder.mkdir()
    collection.segments.start_over()
    collection.flush_label_sets()


def _knows(reader: PinnedReader, generation: int, token: str) -> bool:
    """Whether the database has had this state, also if it reached it during the check."""
    return reader.knows(generation, token) or reader.is_outdated(generation, token)


def _compared(
    folder: Path, rows: npt.NDArray[np.int64], state: StoreState, reader: PinnedReader, gone: int
) -> str:
    """What a store holds; CollectionDamagedError if its rows are not those of the database.

    `gone` is the generation up to which it has dropped removed documents.
    """
    end = min(state.next_row, reader.generation().next_row)
    labelled = _labelled_rows(reader, end)
    stored = rows[rows < end]
    since = np.array(reader.removed_since(), dtype=np.int64)
    known = np.array(reader.tombstones_between(gone, reader.generation().number), dtype=np.int64)
    missing = len(np.setdiff1d(labelled, np.concatenate((stored, since))))
    excess = len(rows) - len(np.unique(rows))
    excess += len(np.setdiff1d(stored, np.concatenate((labelled, known))))
    if missing or excess:
        raise CollectionDamagedError(
            f"{folder}: not the documents of the database: {missing:,} are missing, "
            f"{excess:,} too many"
        )
    present = len(np.intersect1d(stored, labelled))
    text = counted(present, "document")
    if removed := len(stored) - present:
        text += f" and {removed:,} removed"
    if behind := reader.generation().next_row - end:
        text += f", {counted(behind, 'row')} behind the database"
    return text


def _labelled_rows(reader: PinnedReader, end: int) -> npt.NDArray[np.int64]:
    """The rows before `end` of documents with labels, ascending; read some at a time."""
    statement = "SELECT row FROM documents WHERE row >= ? AND row < ? AND length(labels) > 0"
    parts = [np.empty(0, dtype=np.int64)]
    for first in range(0, end, _ROWS):
        page = reader.query(statement, (first, min(first + _ROWS, end)))
        parts.append(np.fromiter((row for (row,) in page), np.int64, len(page)))
    return np.sort(np.concatenate(parts))


def _check_terms(folder: Path, reader: PinnedReader) -> str:
    if not (folder / "labelkin.json").exists():
        # Nothing was committed yet.
        return ""
    record = stored_index(folder)
    if record is None:
        if not any(folder.glob("meta.json")) and not any(folder.glob("segment-*")):
            # An index of another package's engine.
            return ""
        raise CollectionDamagedError(f"{folder / 'labelkin.json'}: cannot be read")
    rows, applied = _opened_rows(folder, record)
    while not applied.next_row and (latest := stored_index(folder)) and latest.applied.next_row:
        # Files that cannot be read are opened as an empty index, which another process may have
        # filled since.
        if latest == record:
            raise CollectionDamagedError(f"{folder}: its files cannot be read")
        record = latest
        rows, applied = _opened_rows(folder, record)
    if applied.next_row and not _knows(reader, applied.generation, applied.token):
        raise CollectionDamagedError(
            f"{folder}: built from a state that the database does not have"
        )
    return "" if rows is None else _compared(folder, rows, applied, reader, applied.generation)


def _opened_rows(
    folder: Path, record: StoredIndex
) -> tuple[npt.NDArray[np.int64] | None, StoreState]:
    """The rows in a verified index, if its engine can tell, and the state that they belong to."""
    with ENGINES[record.engine](folder, record.kinds, read_only=True) as engine:
        engine.verify()
        rows, applied, before = None, record.applied, None
        # Another process may be writing: rows and record belong together if neither changes.
        while before != applied:
            before, rows, applied = applied, engine.rows(), engine.state().applied
    return rows, applied


def _check_vectors(folder: Path, reader: PinnedReader) -> bool | str:
    vectors = VectorFile(folder, np.int64)
    has_checksum = vectors.verify()
    record = vectors.record()
    if record and not _knows(reader, int(record["generation"]), str(record["token"])):
        raise CollectionDamagedError(
            f"{folder}: built from a state that the database does not have"
        )
    for path in folder.glob("*.faiss"):
        # Another process may have replaced it.
        with suppress(FileNotFoundError):
            has_checksum = verify_trailer(path) and has_checksum
    stored = vectors.read()
    record = stored.record
    text = ""
    if record:
        state = StoreState(int(record["generation"]), "", int(record["next_row"]))
        text = _compared(folder, np.asarray(stored.keys), state, reader, gone=-1)
    return text if has_checksum else False


def _check_cached_vectors(folder: Path) -> bool:
    return VectorFile(folder, np.dtype("V16")).verify()


def _check_desk(folder: Path) -> None:
    with Desk(folder, read_only=True) as desk:
        desk.verify()


def _check_zip(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except zipfile.BadZipFile as error:
        raise CollectionDamagedError(f"{path}: {error}") from error
    if damaged is not None:
        raise CollectionDamagedError(f"{path}: {damaged} is damaged")


def _check_cached_terms(path: Path, reader: PinnedReader) -> str:
    """SQLite's own check, and some terms against those of the documents."""
    _check_cache(path)
    if path != reader.path / "cache" / "terms.sqlite":
        return ""
    kinds = []
    for name, make in KINDS.items():
        with suppress(MissingExtraError):
            kinds.append(make(name, reader.config.representation))
    rows = np.linspace(0, max(reader.generation().next_row - 1, 0), _SAMPLE).astype(np.int64)
    documents = list(reader.texts_of(np.unique(rows).tolist()).values())
    with closing(TermCache(path, read_only=True)) as cache:
        compared = cache.verify(kinds, documents)
    return f"the terms of {counted(compared, 'text')} compared" if compared else ""


def _check_cache(path: Path) -> None:
    try:
        _check_sqlite(path, "mode=ro")
    except sqlite3.OperationalError:
        # On a read-only file system, SQLite cannot open a file that has had a write-ahead log.
        if os.access(path.parent, os.W_OK):
            raise
        log = path.with_name(f"{path.name}-wal")
        if not log.exists() or not log.stat().st_size:
            _check_sqlite(path, "mode=ro&immutable=1")


def _check_sqlite(path: Path, parameters: str) -> None:
    address = f"file:{quote(str(path.absolute()))}?{parameters}"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        for (line,) in connection.execute("PRAGMA integrity_check(1)"):
            if line != "ok":
                raise CollectionDamagedError(f"{path}: {line}")


def _check_autoencoder(folder: Path, reader: PinnedReader) -> bool:
    model = LabelModel.load(folder)
    verify_weights(folder / f"weights-{model.checksum}.safetensors")
    if not {*model.info.labels} & {*reader.columns_by_id()}:
        raise CollectionDamagedError(f"{folder}: it knows no heading of this vocabulary")
    return is_sealed(folder / DESCRIPTION)


def _check_reranker(folder: Path, reader: PinnedReader) -> bool:
    verify_reranker(folder)
    state = reranker_info(folder).state
    if not _knows(reader, state["generation"], state["token"]):
        raise CollectionDamagedError(f"{folder}: trained on a state that the database lacks")
    return is_sealed(folder / DESCRIPTION)


def _check_lsa(folder: Path) -> None:
    from labelkin.represent.lsa import LsaModel

    if LsaModel.load(folder) is None:
        raise CollectionDamagedError(f"{folder}: damaged, or of another format")


def _delete(path: Path) -> None:
    """Delete a folder or file that can be rebuilt, unless another process has it open."""
    if not path.is_dir():
        for one in path.parent.glob(f"{path.name}*"):
            one.unlink(missing_ok=True)
        return
    with FileLock(beside(path, "open")) as lock:
        if not lock.take():
            raise CollectionDamagedError(
                f"{path}: another process has it open; close it and repeat the check"
            )
        shutil.rmtree(path, ignore_errors=True)


def _delete_latents(folder: Path) -> None:
    (folder / "latents.json").unlink(missing_ok=True)
    for path in folder.glob("latents-*.f16"):
        path.unlink(missing_ok=True)
