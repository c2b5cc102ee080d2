"""The term engine for batches: postings in memory-mapped arrays, added up query by query.

    indexes/terms-XXXX/labelkin.json     what the index reflects, and which files it consists of
    indexes/terms-XXXX/segment-000001/   a segment (`postings.py`)
    indexes/terms-XXXX/removed-000002/   rows that are in a segment but have been removed

Segments never change. A new list of them takes effect by the atomic rename of
labelkin.json; files that it does not list are deleted. Adjacent small segments are
merged, so that there are never more than about log₂ of the documents.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Container
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_text
from labelkin.checksums import BlockChecksums, ChecksumError, read_sealed, sealed
from labelkin.compiled import can_load
from labelkin.exceptions import MissingExtraError
from labelkin.neighbours.bm25 import FieldStatistics
from labelkin.neighbours.engine import (
    TIE,
    EngineSearcher,
    EngineState,
    Hits,
    IndexedDocument,
    TermEngine,
    WeightedTerms,
    best_hits,
)
from labelkin.neighbours.postings import (
    Checksums,
    Integers,
    Segment,
    SegmentBuilder,
    merge_segments,
    term_hashes,
    term_key,
    write_arrays,
)
from labelkin.store.derived import StoreDamagedError, StoreState

RECORD_NAME = "labelkin.json"
FORMAT_VERSION = 1
ENGINE_NAME = "postings"
_TOKENS_A_SEGMENT = 2_000_000
# A segment is rewritten when this share of its documents has been removed.
_MOSTLY_REMOVED = 0.25
_KNOWN_TERMS = 400_000
_ROOM = 1024
_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)


def _check_installed() -> None:
    if not can_load():
        raise MissingExtraError("the engine postings needs numba: pip install 'labelkin[bulk]'")


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of arrays, a segment or the removed rows, with the checksums of its files."""

    name: str
    checksums: Checksums

    def verify(self, folder: Path) -> None:
        """Raise ChecksumError if a file is damaged."""
        for file, recorded in self.checksums.items():
            recorded.verify(folder / self.name / file)

    def to_json(self) -> list[Any]:
        """As a JSON value."""
        return [self.name, {file: one.to_json() for file, one in self.checksums.items()}]

    @classmethod
    def from_json(cls, value: Any) -> Part:
        """The inverse of `to_json`."""
        name, checksums = value
        read = {file: BlockChecksums.from_json(one) for file, one in checksums.items()}
        return cls(str(name), read)


@dataclass(frozen=True, slots=True)
class Record:
    """The content of labelkin.json: fields with their versions, and what the index reflects."""

    kinds: dict[str, str]
    applied: StoreState = dataclass_field(default_factory=StoreState)
    segments: tuple[Part, ...] = ()
    removed: Part | None = None
    #: The number of the next folder.
    number: int = 1

    @property
    def parts(self) -> tuple[Part, ...]:
        """All folders that belong to the index."""
        return self.segments if self.removed is None else (*self.segments, self.removed)

    def write(self, folder: Path) -> None:
        """Replace the record in a folder."""
        content = {
            "format_version": FORMAT_VERSION,
            "engine": ENGINE_NAME,
            "kinds": self.kinds,
            **asdict(self.applied),
            "segments": [part.to_json() for part in self.segments],
            "removed": None if self.removed is None else self.removed.to_json(),
            "number": self.number,
        }
        with atomic_text(folder / RECORD_NAME) as file:
            file.write(sealed(content))

    @classmethod
    def read(cls, folder: Path, kinds: Mapping[str, str]) -> Record:
        """The record in a folder, an empty one if there is none; ValueError for a damaged one."""
        try:
            content = read_sealed(folder / RECORD_NAME)
        except FileNotFoundError:
            return cls(dict(kinds))
        try:
            if content["format_version"] != FORMAT_VERSION or content["engine"] != ENGINE_NAME:
                return cls(dict(kinds))
            removed = content["removed"]
            return cls(
                dict(content["kinds"]),
                StoreState(content["generation"], content["token"], content["next_row"]),
                tuple(Part.from_json(part) for part in content["segments"]),
                None if removed is None else Part.from_json(removed),
                int(content["number"]),
            )
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{folder / RECORD_NAME}: {error!r}") from error


class PostingsEngine(TermEngine):
    """An index of postings on disk."""

    def __init__(self, folder: Path, fields: Mapping[str, str], *, read_only: bool) -> None:
        self._home = folder
        self._kinds = dict(fields)
        self._fields = sorted(fields)
        self._read_only = read_only
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._record: Record | None = None
        self._segments: dict[str, Segment] = {}
        self._removed = _NO_ROWS
        self._verified: dict[str, Part] = {}

    def close(self) -> None:
        """Release the files; searchers keep what they use."""
        self._record = None
        self._segments = {}
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def recorded(self) -> StoreState:
        """What the record says; opens no segment."""
        try:
            return Record.read(self._home, self._kinds).applied
        except (OSError, ValueError):
            return StoreState()

    def state(self) -> EngineState:
        """What the index on disk reflects."""
        record = self._loaded()
        newest = -1
        for segment in self._listed():
            left = np.setdiff1d(segment.rows, self._removed, assume_unique=True)
            newest = max(newest, int(left.max(initial=-1)))
        return EngineState(record.applied, None, newest)

    def apply(
        self,
        removed: Iterable[int],
        pages: Iterable[Sequence[IndexedDocument]],
        target: StoreState,
    ) -> None:
        """Write a segment every two million terms, and record it."""
        _check_installed()
        record = self._record or self._loaded()
        with suppress(OSError):
            self._sweep(record)
        gone = np.fromiter(removed, dtype=np.int64)
        known = [segment.rows[segment.places_of(gone)] for segment in self._listed()]
        self._removed = np.unique(np.concatenate([self._removed, *known]))
        builder = SegmentBuilder(self._fields)
        try:
            for page in pages:
                builder.add(page)
                if builder.tokens >= _TOKENS_A_SEGMENT:
                    self._commit(builder, replace(target, next_row=page[-1][0] + 1))
                    builder = SegmentBuilder(self._fields)
            self._commit(builder, target)
        except OSError:
            # Leave no part of a segment on a disk that is full.
            with suppress(OSError):
                self._sweep(self._record or record)
            raise

    def verify(self) -> None:
        """Compare all files with their checksums."""
        self._with_record(lambda record: None)  # noqa: ARG005

    def clear(self) -> None:
        """Delete the files and begin with an empty index."""
        self._segments, self._removed = {}, _NO_ROWS
        self._record = Record(self._kinds)
        if not self._read_only:
            shutil.rmtree(self._home, ignore_errors=True)

    def searcher(self) -> PostingsSearcher:
        """A searcher of what was applied last."""
        _check_installed()
        if self._record is None:
            self._loaded()
        return PostingsSearcher(self._listed(), self._removed, self._fields)

    def _listed(self) -> list[Segment]:
        """The segments in the order of their rows."""
        record = self._record
        return [self._segments[part.name] for part in record.segments] if record else []

    def _loaded(self) -> Record:
        """The index as it is on disk now; another process may have changed it."""
        self._with_record(self._open)
        return self._record or Record(self._kinds)

    def _open(self, record: Record) -> None:
        known = self._record.segments if self._record is not None else ()
        segments = {
            part.name: self._segments[part.name]
            if part in known
            else Segment.open(self._home / part.name)
            for part in record.segments
        }
        rows = _NO_ROWS
        if record.removed is not None:
            rows = np.load(self._home / record.removed.name / "rows.npy")
        self._record, self._segments, self._removed = record, segments, rows

    def _with_record(self, use: Callable[[Record], None]) -> None:
        """Use the record on disk and its files, which are verified before.

        Compiled code has to trust them. If a file is missing because another process has merged
        segments meanwhile, begins again with the new record.
        """
        record = before = None
        while True:
            try:
                before, record = record, Record.read(self._home, self._kinds)
                for part in record.parts:
                    if self._verified.get(part.name) != part:
                        part.verify(self._home)
                        self._verified[part.name] = part
                use(record)
                return
            except FileNotFoundError as error:
                if record == before:
                    raise StoreDamagedError(f"{error.filename}: missing") from error
            except (OSError, ValueError) as error:
                place = "" if isinstance(error, ChecksumError) else f"{self._home}: "
                raise StoreDamagedError(f"{place}{error}") from error

    def _folder(self) -> Path:
        """Where new files go: outside of a collection that cannot be written to."""
        if not self._read_only:
            self._home.mkdir(parents=True, exist_ok=True)
            return self._home
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(
                prefix="labelkin-", ignore_cleanup_errors=True
            )
        return Path(self._temporary.name)

    def _commit(self, builder: SegmentBuilder, state: StoreState) -> None:
        """Write what was collected, merge small segments, and record the result."""
        record = self._record or Record(self._kinds)
        folder, number = self._folder(), record.number
        parts = {part.name: part for part in record.segments}

        def add(name: str, checksums: Checksums) -> None:
            parts[name] = Part(name, checksums)
            self._segments[name] = Segment.open(folder / name)

        if len(builder):
            name = f"segment-{number:06d}"
            add(name, builder.write(folder / name))
            number += 1
        order: list[str] = []
        for group in self._groups(parts):
            if len(group) == 1 and not self._is_mostly_removed(group[0]):
                order += group
                continue
            segments = [self._segments[name] for name in group]
            dead = [np.isin(segment.rows, self._removed) for segment in segments]
            if not all(gone.all() for gone in dead):
                name = f"segment-{number:06d}"
                add(name, merge_segments(segments, dead, folder / name))
                number += 1
                order.append(name)
        self._segments = {name: self._segments[name] for name in order}
        rows = [_NO_ROWS, *(segment.rows for segment in self._segments.values())]
        self._removed = np.intersect1d(self._removed, np.concatenate(rows), assume_unique=True)
        removed = None
        if len(self._removed):
            name = f"removed-{number:06d}"
            removed = Part(name, write_arrays(folder / name, {"rows": self._removed}))
            number += 1
        segments_listed = tuple(parts[name] for name in order)
        self._record = Record(self._kinds, state, segments_listed, removed, number)
        if not self._read_only:
            self._record.write(folder)
        self._sweep(self._record)

    def _groups(self, names: Iterable[str]) -> list[list[str]]:
        """Adjacent segments that become one: a new one with those that are not much larger."""
        groups: list[list[str]] = []
        for name in names:
            group = [name]
            while groups and self._size(groups[-1]) < 2 * self._size(group):
                group = groups.pop() + group
            groups.append(group)
        return groups

    def _size(self, names: Iterable[str]) -> int:
        return sum(len(self._segments[name]) for name in names)

    def _is_mostly_removed(self, name: str) -> bool:
        segment = self._segments[name]
        return len(segment.places_of(self._removed)) > _MOSTLY_REMOVED * len(segment)

    def _sweep(self, record: Record) -> None:
        """Delete what the record does not list: merged segments, leftovers of a crash."""
        listed = {part.name for part in record.parts}
        for path in self._folder().iterdir():
            if path.is_dir() and path.name not in listed:
                shutil.rmtree(path, ignore_errors=True)


class PostingsSearcher(EngineSearcher):
    """Adds up the postings of each query's terms and takes the best documents."""

    def __init__(
        self,
        segments: Sequence[Segment],
        removed: Integers,
        fields: Sequence[str],
        statistics: EngineSearcher | None = None,
    ) -> None:
        self._segments = segments
        self._removed_rows = removed
        self._fields = fields
        self._other = statistics
        self._rows = np.concatenate([_NO_ROWS, *(segment.rows for segment in segments)])
        self._bases = np.cumsum([0, *(len(segment) for segment in segments)]).tolist()
        self._removed = self._places(removed)
        self._lock = Lock()
        self._statistics: dict[str, FieldStatistics] = {}
        self._known = _KnownTerms(fields, len(segments))
        self._tables: list[npt.NDArray[np.float32]] | None = None
        #: Whether a search has met postings that cannot be right.
        self.is_damaged = False

    def scored_like(self, other: EngineSearcher) -> PostingsSearcher:
        """The same documents, scored with the statistics of another engine's searcher.

        Engines differ in how long documents that were removed count; with the same
        statistics they give the same scores.
        """
        return PostingsSearcher(self._segments, self._removed_rows, self._fields, other)

    def statistics(self, field: str) -> FieldStatistics:
        """Removed documents count until their segment is merged."""
        if self._other is not None:
            return self._other.statistics(field)
        with self._lock:
            return self._own_statistics(field)

    def _own_statistics(self, field: str) -> FieldStatistics:
        if field not in self._statistics:
            documents = len(self._rows)
            number = self._fields.index(field)
            length = sum(int(segment.lengths[number]) for segment in self._segments)
            self._statistics[field] = FieldStatistics(documents, length / max(documents, 1))
        return self._statistics[field]

    def document_frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        """Removed documents count until their segment is merged."""
        if self._other is not None:
            return self._other.document_frequencies(field, terms)
        with self._lock:
            known = self._knowing([{field: dict.fromkeys(terms, 1.0)}])
            slots = known.slots[field]
            return [int(known.frequencies[slots[term]]) for term in terms]

    def nearest(
        self, queries: Sequence[WeightedTerms], k: int, excluded: Sequence[Container[int]]
    ) -> list[Hits]:
        """One query after another; numba releases the GIL meanwhile."""
        from labelkin.neighbours.postings_kernel import add_postings, best_places

        nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        if not k or not len(self._rows):
            return [nothing] * len(queries)
        begins, ends, weights, starts = self._asked(queries)
        tables = self._impact_tables()
        scores = np.empty(len(self._rows), dtype=np.float32)
        hits = []
        for number, without in enumerate(excluded):
            asked = slice(starts[number], starts[number + 1])
            scores.fill(0)
            for place, segment in enumerate(self._segments):
                if not add_postings(
                    begins[place, asked],
                    ends[place, asked],
                    weights[asked],
                    segment.documents,
                    segment.impacts,
                    tables[place],
                    scores[self._bases[place] : self._bases[place + 1]],
                ):
                    self.is_damaged = True
                    raise StoreDamagedError("postings of documents that are not there")
            scores[self._removed] = 0
            if without:
                scores[self._places(np.fromiter(without, dtype=np.int64))] = 0
            places = best_places(scores, k, TIE)
            hits.append(best_hits(self._rows[places], scores[places], k))
        return hits

    def _places(self, rows: Integers) -> Integers:
        """Where some rows are among all documents; those that are not there are left out."""
        parts = (
            base + segment.places_of(rows)
            for base, segment in zip(self._bases, self._segments, strict=False)
        )
        return np.concatenate([_NO_ROWS, *parts])

    def _asked(
        self, queries: Sequence[WeightedTerms]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.float32], Integers]:
        """Where the postings of all terms begin and end in each segment, weights with idf.

        The last array has where the terms of each query begin among all.
        """
        sizes = [sum(map(len, query.values())) for query in queries]
        starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        slots = np.empty(starts[-1], dtype=np.int64)
        weights = np.empty(starts[-1], dtype=np.float32)
        with self._lock:
            known = self._knowing(queries)
            for query, start in zip(queries, starts.tolist(), strict=False):
                for field, terms in query.items():
                    part = slice(start, start + len(terms))
                    slots[part] = list(map(known.slots[field].__getitem__, terms))
                    weights[part] = list(terms.values())
                    start = part.stop
            begins, ends = (np.take(one, slots, axis=1) for one in (known.begins, known.ends))
            return begins, ends, weights * known.idfs[slots], starts

    def _knowing(self, queries: Sequence[WeightedTerms]) -> _KnownTerms:
        """The known terms with all of the queries'."""
        if len(self._known) > _KNOWN_TERMS:
            self._known = _KnownTerms(self._fields, len(self._segments))
        for number, field in enumerate(self._fields):
            asked = set[str]().union(*(query.get(field, ()) for query in queries))
            new = list(asked.difference(self._known.slots[field]))
            if not new:
                continue
            keys = [term_key(number, term) for term in new]
            hashes = term_hashes(keys)
            begins = np.zeros((len(self._segments), len(new)), dtype=np.uint64)
            ends = np.zeros_like(begins)
            for place, segment in enumerate(self._segments):
                terms = segment.find(keys, hashes)
                there = terms >= 0
                begins[place, there] = segment.starts[terms[there]]
                ends[place, there] = segment.starts[terms[there] + 1]
            frequencies = (ends - begins).sum(axis=0).astype(np.int64)
            if self._other is None:
                documents = self._own_statistics(field).documents
                counted = frequencies
            else:
                documents = self._other.statistics(field).documents
                counted = np.array(self._other.document_frequencies(field, new), dtype=np.int64)
            idfs = np.log1p((documents - counted + 0.5) / (counted + 0.5))
            self._known.add(field, new, begins, ends, frequencies, idfs)
        return self._known

    def _impact_tables(self) -> list[npt.NDArray[np.float32]]:
        statistics = [self.statistics(field) for field in self._fields]
        with self._lock:
            if self._tables is None:
                self._tables = [segment.impact_table(statistics) for segment in self._segments]
            return self._tables


class _KnownTerms:
    """Terms that have been asked for: their postings in each segment, and their idf.

    `slots` says where in the arrays each term of a field is; the arrays have room for more.
    """

    def __init__(self, fields: Sequence[str], segments: int) -> None:
        self.slots: dict[str, dict[str, int]] = {field: {} for field in fields}
        self.begins = np.zeros((segments, _ROOM), dtype=np.uint64)
        self.ends = np.zeros((segments, _ROOM), dtype=np.uint64)
        self.frequencies = np.zeros(_ROOM, dtype=np.int64)
        self.idfs = np.zeros(_ROOM, dtype=np.float32)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(
        self,
        field: str,
        terms: Sequence[str],
        begins: npt.NDArray[np.uint64],
        ends: npt.NDArray[np.uint64],
        frequencies: Integers,
        idfs: npt.NDArray[np.float64],
    ) -> None:
        """Add new terms of a field."""
        part = slice(self._count, self._count + len(terms))
        if part.stop > len(self.idfs):
            more = max(part.stop - len(self.idfs), len(self.idfs))
            self.begins = np.pad(self.begins, ((0, 0), (0, more)))
            self.ends = np.pad(self.ends, ((0, 0), (0, more)))
            self.frequencies = np.pad(self.frequencies, (0, more))
            self.idfs = np.pad(self.idfs, (0, more))
        self.slots[field].update(zip(terms, range(part.start, part.stop), strict=True))
        self.begins[:, part], self.ends[:, part] = begins, ends
        self.frequencies[part], self.idfs[part] = frequencies, idfs
        self._count = part.stop
