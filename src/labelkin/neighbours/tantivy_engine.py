"""The term engine on tantivy.

    indexes/terms-XXXX/    tantivy's files and, in labelkin.json, what they reflect

One field per kind of term, so that a representation is a choice of fields.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import tempfile
import zlib
from collections.abc import Collection as Container
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.checksums import ChecksumError, checksum, read_sealed, sealed
from labelkin.exceptions import CollectionFullError, CollectionReadOnlyError
from labelkin.neighbours.bm25 import FieldStatistics, idf, term_score
from labelkin.neighbours.engine import (
    EngineSearcher,
    EngineState,
    Hits,
    IndexedDocument,
    TermEngine,
    WeightedTerms,
    best_hits,
    tie_ranks,
)
from labelkin.store.derived import StoreDamagedError, StoreState

if TYPE_CHECKING:
    import tantivy

RECORD_NAME = "labelkin.json"
FORMAT_VERSION = 1
_ROW = "row"
_KEY = "key"
_ROWS_A_COMMIT = 100_000
_LINK_ATTEMPTS = 5
# More memory means fewer segments after a build, and faster searches.
_WRITER_BYTES = 256_000_000
_SMALL_WRITER_BYTES = 15_000_000
_SMALL = 1000
_TIE_MARGIN = 8
_CACHED_TERMS = 200_000

_META_NAME = "meta.json"
_MANAGED_NAME = ".managed.json"
_SEGMENT_FILE = re.compile(r"([0-9a-f]{32})(?:\.(\d+))?\.\w+")
# Every segment has a file of each; one from which documents were removed has a list of them, too.
_SEGMENT_PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
# The last bytes of tantivy's files: {"version": …, "crc": …}, its length, and this number.
_MAGIC = 1337
_LONGEST_FOOTER = 1 << 12
_PIECE = 1 << 20

_NO_SPACE = re.compile(r"os error 28|No space left")
_NOT_ALLOWED = re.compile(r"os error (13|30)\b|Permission denied|Read-?only", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Record:
    """The content of labelkin.json: fields with their versions, and what the index reflects.

    `pending` is set just before a commit: rows beyond `next_row` that the index
    turns out to have belong to that generation. `meta` is the checksum of
    meta.json, None while it changes.
    """

    kinds: dict[str, str]
    next_row: int = 0
    generation: int = 0
    token: str = ""
    pending: tuple[int, str] | None = None
    meta: str | None = None
    format_version: int = FORMAT_VERSION

    @property
    def applied(self) -> StoreState:
        """What the index reflects."""
        return StoreState(self.generation, self.token, self.next_row)


def read_record(folder: Path, kinds: Mapping[str, str]) -> Record:
    """The record of the index in `folder`; an empty one if it cannot be used."""
    try:
        content = read_sealed(folder / RECORD_NAME)
        if content["format_version"] != FORMAT_VERSION:
            return Record(dict(kinds))
        if content["pending"] is not None:
            content["pending"] = tuple(content["pending"])
        return Record(**content)
    except (OSError, ValueError, TypeError, KeyError):
        return Record(dict(kinds))


class TantivyEngine(TermEngine):
    """A tantivy index on disk."""

    def __init__(self, folder: Path, fields: Mapping[str, str], *, read_only: bool) -> None:
        self._home = folder
        self._folder = folder
        self._fields = dict(fields)
        self._read_only = read_only
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._index: tantivy.Index | None = None
        self._record = Record(self._fields)
        self._verified: set[tuple[str, int]] = set()

    def close(self) -> None:
        """Close the index; tantivy's files are closed with its last searcher."""
        self._index = None
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def state(self) -> EngineState:
        """What the index reflects; the largest row reveals an interrupted commit."""
        index = self._opened()
        with engine_errors_explained(self._folder):
            searcher = index.searcher()
            newest = _newest(searcher)
        return EngineState(self._record.applied, self._record.pending, newest)

    def apply(
        self,
        removed: Iterable[int],
        pages: Iterable[Sequence[IndexedDocument]],
        target: StoreState,
    ) -> None:
        """Write with one thread, which gives the same index from the same documents."""
        index = self._index if self._index is not None else self._opened()
        waiting = iter(pages)
        first = list(next(waiting, ()))
        heap = _WRITER_BYTES if len(first) >= _SMALL else _SMALL_WRITER_BYTES
        uncommitted = 0
        self._drop_unfinished_removals()
        with engine_errors_explained(self._folder):
            writer = index.writer(heap_size=heap, num_threads=1)
            try:
                for row in removed:
                    writer.delete_documents_by_term(_KEY, str(row))
                for page in chain([first], waiting):
                    for row, terms in page:
                        writer.add_document(_document(row, terms))
                    uncommitted += len(page)
                    if uncommitted >= _ROWS_A_COMMIT:
                        self._commit(writer, replace(target, next_row=page[-1][0] + 1))
                        uncommitted = 0
                self._commit(writer, target)
            finally:
                # Wait for merges before any search: the same history then gives the same scores.
                writer.wait_merging_threads()
            index.reload()
        meta = checksum((self._folder / _META_NAME).read_bytes())
        self._write_record(replace(self._record, meta=meta))

    def _drop_unfinished_removals(self) -> None:
        """Delete the lists of removed documents that a killed commit has left.

        Tantivy numbers them by operations, so the next commit may write one of the same name,
        and refuses to: the whole index would be rebuilt.
        """
        listed = {*_committed_files(self._folder)}
        for path in self._folder.glob("*.del"):
            if _SEGMENT_FILE.fullmatch(path.name) and path not in listed:
                path.unlink(missing_ok=True)

    def unverified_bytes(self) -> int:
        """The files of segments that have not been verified; they never change."""
        return sum(size for _, size in self._unverified())

    def verify(self) -> None:
        """Compare the files with tantivy's own checksums, and meta.json with the recorded one."""
        self._verify_meta()
        self._verify_presence()
        for path, size in self._unverified():
            try:
                _verify_footer(path)
            except FileNotFoundError:
                # Merged into another segment meanwhile.
                continue
            except (OSError, ValueError) as error:
                raise StoreDamagedError(str(error)) from error
            self._verified.add((path.name, size))

    def _unverified(self) -> list[tuple[Path, int]]:
        paths = _committed_files(self._home)
        sized = [(path, path.stat().st_size) for path in paths if path.exists()]
        return [(path, size) for path, size in sized if (path.name, size) not in self._verified]

    def _verify_meta(self) -> None:
        path = self._home / _META_NAME
        before = None
        # Another process may be writing: the record and meta.json change one after the other.
        while (record := read_record(self._home, self._fields)) != before:
            before = record
            try:
                is_same = record.meta in (None, checksum(path.read_bytes()))
            except OSError:
                # Only an index without documents may lack it.
                is_same = not record.next_row
            if is_same:
                return
        if not path.exists():
            raise StoreDamagedError(f"{path}: missing")
        raise StoreDamagedError(str(ChecksumError(path)))

    def _verify_presence(self) -> None:
        """Raise StoreDamagedError if a file is missing of a segment that meta.json lists."""
        before = None
        # Another process may be merging: meta.json changes before the old files are deleted.
        while (deletes := _listed_segments(self._home)) != before:
            before = deletes
            names = [f"{one}.{part}" for one in deletes for part in _SEGMENT_PARTS]
            listed = [(one, number) for one, number in deletes.items() if number is not None]
            names += [f"{one}.{number}.del" for one, number in listed]
            missing = [name for name in names if not (self._home / name).exists()]
            if not missing:
                return
        if missing:
            raise StoreDamagedError(f"{self._home / missing[0]}: missing")

    def rows(self) -> npt.NDArray[np.int64]:
        """The rows of all documents in the index, ascending; read a range of rows at a time."""
        import tantivy

        index = self._opened()
        parts = [np.empty(0, dtype=np.int64)]
        with engine_errors_explained(self._folder):
            searcher = index.searcher()
            for first in range(0, _newest(searcher) + 1, _ROWS_A_COMMIT):
                end = first + _ROWS_A_COMMIT
                query = tantivy.Query.range_query(
                    index.schema, _ROW, tantivy.FieldType.Integer, first, end, include_upper=False
                )
                # One more than there can be: a row that the index holds twice is seen.
                hits = searcher.search(query, _ROWS_A_COMMIT + 1, count=False).hits
                values = searcher.fast_field_values(_ROW, [address for _, address in hits])
                parts.append(np.sort(np.array(values, dtype=np.int64)))
            count = searcher.num_docs
        rows = np.concatenate(parts)
        if len(rows) != count:
            raise StoreDamagedError(f"{self._home}: holds rows several times")
        return rows

    def removed(self) -> int:
        """How many removed documents tantivy's segments hold."""
        deletes = [one.get("deletes") or {} for one in _segments(self._home)]
        return sum(int(one.get("num_deleted_docs", 0)) for one in deletes)

    def take_over(self, other: TermEngine) -> None:
        """Move the other index's files in; its meta.json takes effect by an atomic rename."""
        if not isinstance(other, TantivyEngine):
            raise TypeError("only an index of the same engine can be taken over")
        other._index = self._index = None
        folder, record = self._folder, other._record
        managed = [*_managed_files(folder), *_managed_files(other._folder)]
        for path in _committed_files(other._folder):
            path.replace(folder / path.name)
        with atomic_text(folder / _MANAGED_NAME) as file:
            json.dump(sorted({*managed}), file)
        content = (other._folder / _META_NAME).read_bytes()
        applied = read_record(folder, self._fields)
        pending = (record.generation, record.token)
        self._write_record(replace(applied, pending=pending, meta=None))
        with atomic_file(folder / _META_NAME) as meta:
            meta.write(content)
        self._write_record(replace(record, pending=None, meta=checksum(content)))
        for path in self.leftovers():
            path.unlink(missing_ok=True)

    def leftovers(self) -> list[Path]:
        """Files of segments that meta.json does not list."""
        listed = {*_committed_files(self._home)}
        files = [path for path in self._home.glob("*") if _SEGMENT_FILE.fullmatch(path.name)]
        return [path for path in files if path not in listed]

    def clear(self) -> None:
        """Delete the files and begin with an empty index."""
        self._verified.clear()
        if self._read_only:
            if self._temporary is None:
                self._temporary = _temporary_folder()
            self._folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._record = Record(self._fields)
        self._index = _open_index(self._folder, list(self._fields))

    def searcher(self) -> TantivySearcher:
        """A searcher of what was applied last."""
        index = self._index if self._index is not None else self._opened()
        with engine_errors_explained(self._folder):
            return TantivySearcher(index, self._folder)

    def _opened(self) -> tantivy.Index:
        """The index as it is on disk now; another process may have rebuilt it."""
        if self._read_only:
            return self._open_linked()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._record = read_record(self._folder, self._fields)
        if not (self._folder / _META_NAME).exists():
            # Opening creates an empty index, which must not be taken for what the record says.
            (self._folder / RECORD_NAME).unlink(missing_ok=True)
            self._record = Record(self._fields)
        self._index = _open_index(self._folder, list(self._fields))
        return self._index

    def _open_linked(self) -> tantivy.Index:
        """The index through links in a temporary folder: tantivy wants to write lock files."""
        if self._temporary is None:
            self._temporary = _temporary_folder()
        previous = self._folder
        for _ in range(_LINK_ATTEMPTS):
            self._folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
            try:
                if (self._home / _META_NAME).exists():
                    _link_files(self._home, self._folder)
                self._record = read_record(self._folder, self._fields)
                self._index = _open_index(self._folder, list(self._fields))
                with engine_errors_explained(self._folder):
                    self._index.searcher()
                if previous != self._home:
                    shutil.rmtree(previous, ignore_errors=True)
                return self._index
            except (FileNotFoundError, StoreDamagedError):
                # The owner has merged files. If the index is damaged, start with an empty one.
                continue
        self._folder = Path(tempfile.mkdtemp(dir=self._temporary.name))
        self._record = Record(self._fields)
        self._index = _open_index(self._folder, list(self._fields))
        return self._index

    def _commit(self, writer: tantivy.IndexWriter, state: StoreState) -> None:
        pending = (state.generation, state.token)
        self._write_record(replace(self._record, pending=pending, meta=None))
        writer.commit()
        self._write_record(Record(self._fields, state.next_row, state.generation, state.token))

    def _write_record(self, record: Record) -> None:
        with atomic_text(self._folder / RECORD_NAME) as file:
            file.write(sealed(asdict(record)))
        self._record = record


class TantivySearcher(EngineSearcher):
    """A tantivy searcher, which sees one commit for as long as it lives."""

    def __init__(self, index: tantivy.Index, folder: Path) -> None:
        self._folder = folder
        self._schema = index.schema
        self._searcher = index.searcher()
        self._lock = Lock()
        self._queries: dict[tuple[str, str], tantivy.Query] = {}
        self._statistics: dict[str, FieldStatistics] = {}

    def statistics(self, field: str) -> FieldStatistics:
        """Zeros for a field that no document has."""
        with self._lock:
            known = self._statistics.get(field)
        if known is None:
            with engine_errors_explained(self._folder):
                frequent = self._searcher.terms_with_prefix(field, "", limit=5)
                terms = [term for term, _ in frequent]
                self._read_statistics(field, terms, self._frequencies(field, terms))
            with self._lock:
                known = self._statistics.get(field)
        return known or FieldStatistics(0, 0.0)

    def document_frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        """Removed documents count until their segment is merged."""
        with engine_errors_explained(self._folder):
            frequencies = self._frequencies(field, terms)
            with self._lock:
                is_known = field in self._statistics
            if not is_known:
                self._read_statistics(field, terms, frequencies)
        return frequencies

    def _frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        return [self._searcher.doc_freq(field, term) for term in terms]

    def nearest(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        """One OR query of term queries each; tantivy releases the GIL while it searches."""
        return [
            self._nearest(query, k, without)
            for query, without in zip(queries, excluded, strict=True)
        ]

    def _nearest(self, weighted: WeightedTerms, k: int, without: Container[int]) -> Hits:
        import tantivy

        should = tantivy.Occur.Should
        parts = [
            (should, self._term_query(field, term, weight))
            for field, terms in weighted.items()
            for term, weight in terms.items()
        ]
        if not parts or not k:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        query = tantivy.Query.boolean_query(parts)
        limit = k + len(without) + _TIE_MARGIN
        while True:
            with engine_errors_explained(self._folder):
                hits = self._searcher.search(query, limit, count=False).hits
                values = self._searcher.fast_field_values(_ROW, [address for _, address in hits])
            rows = np.array(values, dtype=np.int64)
            scores = np.array([score for score, _ in hits], dtype=np.float32)
            is_exhausted = len(hits) < limit
            if without:
                kept = ~np.isin(rows, list(without))
                rows, scores = rows[kept], scores[kept]
            ranks = tie_ranks(scores)
            # A tie that reaches past the last hit may hide a smaller row.
            if is_exhausted or (len(ranks) > k and ranks[k - 1] != ranks[-1]):
                break
            limit *= 2
        return best_hits(rows, scores, k)

    def _term_query(self, field: str, term: str, weight: float) -> tantivy.Query:
        import tantivy

        key = (field, term)
        query = self._queries.get(key)
        if query is None:
            query = tantivy.Query.term_query(self._schema, field, term, index_option="freq")
            with self._lock:
                if len(self._queries) >= _CACHED_TERMS:
                    self._queries.clear()
                self._queries[key] = query
        return query if weight == 1.0 else tantivy.Query.boost_query(query, weight)

    def _read_statistics(
        self, field: str, terms: Sequence[str], frequencies: Sequence[int]
    ) -> None:
        """Read the statistics that tantivy scores with, from the explanation of a score.

        They are checked against the score itself. A term that only removed
        documents have gives no explanation, so the next term is tried.
        """
        for term, frequency in zip(terms, frequencies, strict=True):
            if not frequency:
                continue
            query = self._term_query(field, term, 1.0)
            hits = self._searcher.search(query, 1, count=False).hits
            if not hits:
                continue
            score, address = hits[0]
            values = _numbers(json.loads(query.explain(self._searcher, address).to_json()))
            statistics = FieldStatistics(int(values["N"]), values["avgdl"])
            expected = idf(statistics.documents, frequency) * term_score(
                values["freq"], values["dl"], statistics.average_length
            )
            if abs(expected - score) > 1e-3 * score:
                raise StoreDamagedError(f"{self._folder}: tantivy's statistics cannot be read")
            with self._lock:
                self._statistics[field] = statistics
            return


@contextmanager
def engine_errors_explained(folder: Path) -> Iterator[None]:
    """Tell a full disk from damage: tantivy raises ValueError for everything."""
    try:
        yield
    except ValueError as error:
        reason = " ".join(str(error).split())
        if _NO_SPACE.search(reason):
            message = "the disk is full; nothing stored was lost"
            raise CollectionFullError(f"{folder}: {message}") from error
        if _NOT_ALLOWED.search(reason):
            raise CollectionReadOnlyError(f"{folder}: the index cannot be written to") from error
        raise StoreDamagedError(f"{folder}: {reason[:200]}") from error


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="labelkin-", ignore_cleanup_errors=True)


def _open_index(folder: Path, fields: Sequence[str]) -> tantivy.Index:
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Signed: an unsigned fast field crashes the indexing thread.
    builder.add_integer_field(_ROW, fast=True, indexed=True)
    # A string: deleting by a number deletes nothing.
    builder.add_text_field(_KEY, tokenizer_name="raw", index_option="basic")
    for field in fields:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="freq")
    with engine_errors_explained(folder):
        return tantivy.Index(builder.build(), path=str(folder))


def _newest(searcher: tantivy.Searcher) -> int:
    """The largest row of an index, -1 if it is empty."""
    import tantivy

    if not searcher.num_docs:
        return -1
    every = tantivy.Query.all_query()
    return int(searcher.search(every, 1, count=False, order_by_field=_ROW).hits[0][0])


def _document(row: int, terms: Mapping[str, Sequence[str]]) -> tantivy.Document:
    import tantivy

    document = tantivy.Document()
    document.add_integer(_ROW, row)
    document.add_text(_KEY, str(row))
    for field, of_field in terms.items():
        document.add_text(field, " ".join(of_field))
    return document


def _link_files(home: Path, folder: Path) -> None:
    """Copy files that change, link the others; the record first: it must not claim too much."""
    for name in (RECORD_NAME, _META_NAME, _MANAGED_NAME):
        if (home / name).exists():
            shutil.copyfile(home / name, folder / name)
    for path in home.iterdir():
        if not (folder / path.name).exists() and path.suffix != ".lock":
            (folder / path.name).symlink_to(path.absolute())


def _segments(folder: Path) -> list[dict[str, Any]]:
    """The segments that meta.json lists."""
    try:
        content = json.loads((folder / _META_NAME).read_text(encoding="utf-8"))
        return list(content["segments"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        # Not "none": the files of segments that are not listed count as leftovers.
        raise StoreDamagedError(f"{folder / _META_NAME}: {error}") from error


def _managed_files(folder: Path) -> list[str]:
    """The files that tantivy may delete when they are not needed any more."""
    with suppress(OSError, ValueError):
        return [str(name) for name in json.loads((folder / _MANAGED_NAME).read_bytes())]
    return []


def _listed_segments(folder: Path) -> dict[str, int | None]:
    """The segments that meta.json lists, and which list of removed documents belongs to each."""
    try:
        return {
            one["segment_id"].replace("-", ""): (one["deletes"] or {}).get("opstamp")
            for one in _segments(folder)
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreDamagedError(f"{folder / _META_NAME}: {error}") from error


def _committed_files(folder: Path) -> list[Path]:
    """The files of the segments that meta.json lists; a writer may not have finished others."""
    deletes = _listed_segments(folder)
    paths = []
    for path in folder.glob("*"):
        match = _SEGMENT_FILE.fullmatch(path.name)
        if match and match[1] in deletes and match[2] in (None, str(deletes[match[1]])):
            paths.append(path)
    return paths


def _verify_footer(path: Path) -> None:
    """Compare a file of tantivy with the CRC-32 in its footer; ChecksumError if they differ."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        length, magic = struct.unpack("<II", file.read(8).rjust(8, b"\0"))
        end = size - 8 - length
        if magic != _MAGIC or length > _LONGEST_FOOTER or end < 0:
            raise ChecksumError(path)
        file.seek(end)
        try:
            recorded = json.loads(file.read(length))["crc"]
        except (ValueError, KeyError, TypeError) as error:
            raise ChecksumError(path) from error
        file.seek(0)
        found = 0
        while end and (piece := file.read(min(end, _PIECE))):
            found = zlib.crc32(piece, found)
            end -= len(piece)
    if found != recorded:
        raise ChecksumError(path)


def _numbers(explanation: dict[str, Any]) -> dict[str, float]:
    """The numbers in an explanation by the symbol that begins their description."""
    symbol = str(explanation["description"]).partition(",")[0]
    numbers = {symbol: float(explanation["value"])}
    for part in explanation.get("details") or ():
        numbers |= _numbers(part)
    return numbers
