"""The term engine for batches: postings in memory-mapped arrays, added up query by query.

    indexes/terms-XXXX/labelkin.json     what the index reflects, and which files it consists of
    indexes/terms-XXXX/segment-000001/   a segment (`postings.py`)
    indexes/terms-XXXX/removed-000002/   rows that are in a segment but have been removed

Segments never change. A new list of them takes effect by the atomic rename of
labelkin.json; files that it does not list are deleted. Documents are collected in runs of
a million terms, each a small segment. Adjacent small segments are merged, so that
there are never more than about log₂ of the documents.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from dataclasses import field as dataclass_field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_text
from labelkin.checksums import BlockChecksums, ChecksumError, read_sealed, sealed
from labelkin.compiled import can_load
from labelkin.exceptions import MissingExtraError
from labelkin.neighbours.array_file import Checksums, sync_files, write_arrays
from labelkin.neighbours.engine import POSTINGS, EngineState, IndexedDocument, TermEngine
from labelkin.neighbours.postings import Integers, Segment
from labelkin.neighbours.postings_builder import SegmentBuilder
from labelkin.neighbours.postings_merge import merge_segments
from labelkin.neighbours.postings_searcher import PostingsSearcher
from labelkin.store.derived import StoreDamagedError, StoreState

RECORD_NAME = "labelkin.json"
FORMAT_VERSION = 1
# Terms and documents that are collected in memory, and those that are recorded at a time.
_RUN = 1 << 20
_COMMIT = 1 << 23
# A segment is rewritten when this share of its documents has been removed.
_MOSTLY_REMOVED = 0.25
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
            "engine": POSTINGS,
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
            if content["format_version"] != FORMAT_VERSION or content["engine"] != POSTINGS:
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
        newest = [segment.newest_but(self._removed) for segment in self._listed()]
        return EngineState(record.applied, None, max(newest, default=-1))

    def apply(
        self,
        removed: Iterable[int],
        pages: Iterable[Sequence[IndexedDocument]],
        target: StoreState,
    ) -> None:
        """Write runs, which are merged and recorded every few million terms."""
        _check_installed()
        record = self._record or self._loaded()
        with suppress(OSError):
            self._sweep(record)
        gone = np.fromiter(removed, dtype=np.int64)
        known = [segment.rows[segment.places_of(gone)] for segment in self._listed()]
        self._removed = np.unique(np.concatenate([self._removed, *known]))
        folders = _Folders(self._folder(), record, self._segments)
        builder, collected = SegmentBuilder(self._fields), 0
        try:
            for page in pages:
                for document in page:
                    builder.add(document)
                    if builder.size >= _RUN:
                        collected += builder.size
                        folders.add("segment", builder.write)
                        builder = SegmentBuilder(self._fields)
                if collected + builder.size >= _COMMIT:
                    self._commit(folders, builder, replace(target, next_row=page[-1][0] + 1))
                    builder, collected = SegmentBuilder(self._fields), 0
            self._commit(folders, builder, target)
        except OSError:
            # Leave no part of a segment on a disk that is full; the record may have been replaced.
            with suppress(OSError, ValueError):
                self._sweep(record if self._read_only else Record.read(self._home, self._kinds))
            raise

    def verify(self) -> None:
        """Compare all files with their checksums."""
        self._with_record(lambda record: None)  # noqa: ARG005

    def rows(self) -> Integers:
        """The rows of all documents in the index, ascending."""
        self._loaded()
        rows = np.concatenate([_NO_ROWS, *(segment.rows for segment in self._listed())])
        return np.setdiff1d(rows, self._removed)

    def removed(self) -> int:
        """How many removed documents are in segments."""
        self._loaded()
        return len(self._removed)

    def leftovers(self) -> list[Path]:
        """Folders that the record does not list."""
        return _unlisted(self._home, Record.read(self._home, self._kinds))

    def compact(self) -> bool:
        """Merge all segments into one."""
        record = self._loaded()
        if len(self._removed) or len(record.segments) > 1:
            folders = _Folders(self._folder(), record, self._segments)
            everything = [list(folders.segments)]
            self._record_merged(folders, everything, record.applied, tolerated=0.0)
        return True

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

    def _commit(self, folders: _Folders, builder: SegmentBuilder, state: StoreState) -> None:
        """Write what was collected, merge small segments, and record the result."""
        if builder.size:
            folders.add("segment", builder.write)
        self._record_merged(folders, folders.groups(), state, _MOSTLY_REMOVED)

    def _record_merged(
        self,
        folders: _Folders,
        groups: Iterable[Sequence[str]],
        state: StoreState,
        tolerated: float,
    ) -> None:
        """Merge groups of segments and record the result.

        One that is a group by itself is rewritten if more than a share of it has been removed.
        """
        order: list[str] = []
        for group in groups:
            segments = [folders.segments[name] for name in group]
            dead = [segment.places_of(self._removed) for segment in segments]
            size, gone = sum(map(len, segments)), sum(map(len, dead))
            if len(group) == 1 and gone <= tolerated * size:
                order += group
            elif gone < size:
                order.append(folders.add("segment", partial(merge_segments, segments, dead)))
        folders.keep(order)
        left = [one.rows[one.places_of(self._removed)] for one in folders.segments.values()]
        self._removed = np.concatenate([_NO_ROWS, *left])
        removed = None
        if len(self._removed):
            arrays = {"rows": self._removed}
            name = folders.add("removed", lambda folder: write_arrays(folder, arrays))
            removed = folders.parts.pop(name)
        record = Record(self._kinds, state, tuple(folders.parts.values()), removed, folders.number)
        if not self._read_only:
            folders.sync(record)
            record.write(self._home)
        folders.settle()
        self._record, self._segments = record, dict(folders.segments)
        self._sweep(record)

    def _sweep(self, record: Record) -> None:
        """Delete what the record does not list: merged segments, leftovers of a crash."""
        for path in _unlisted(self._folder(), record):
            shutil.rmtree(path, ignore_errors=True)


def _unlisted(folder: Path, record: Record) -> list[Path]:
    listed = {part.name for part in record.parts}
    return [path for path in folder.iterdir() if path.is_dir() and path.name not in listed]


class _Folders:
    """The folders of an index while it is changed: segments by rows, recorded and new ones."""

    def __init__(self, folder: Path, record: Record, segments: Mapping[str, Segment]) -> None:
        self._folder = folder
        self._new: set[str] = set()
        self.number = record.number
        self.parts = {part.name: part for part in record.segments}
        self.segments = {name: segments[name] for name in self.parts}

    def add(self, kind: str, write: Callable[[Path], Checksums]) -> str:
        """Have a new folder of a kind written; its name."""
        name = f"{kind}-{self.number:06d}"
        self.number += 1
        self._new.add(name)
        self.parts[name] = Part(name, write(self._folder / name))
        if kind == "segment":
            self.segments[name] = Segment.open(self._folder / name)
        return name

    def groups(self) -> list[list[str]]:
        """Adjacent segments that become one: all new ones with those that are not much larger."""
        groups: list[list[str]] = []
        new = [name for name in self.segments if name in self._new]
        for group in [*([name] for name in self.segments if name not in self._new), new]:
            while groups and self._size(groups[-1]) < 2 * self._size(group):
                group = [*groups.pop(), *group]
            groups.append(group)
        return [group for group in groups if group]

    def _size(self, names: Iterable[str]) -> int:
        return sum(len(self.segments[name]) for name in names)

    def keep(self, names: Iterable[str]) -> None:
        """Forget all folders but these, which are the segments by rows."""
        names = list(names)
        self.parts = {name: self.parts[name] for name in names}
        self.segments = {name: self.segments[name] for name in names}

    def sync(self, record: Record) -> None:
        """Have the new folders that a record lists written to the disk."""
        for part in record.parts:
            if part.name in self._new:
                sync_files(self._folder / part.name)

    def settle(self) -> None:
        """Take all folders for recorded ones."""
        self._new.clear()
