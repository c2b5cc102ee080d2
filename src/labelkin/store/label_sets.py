"""Label sets of all rows, as append-only memory-mapped segments.

A segment is two arrays: the vocabulary columns of its rows one after another,
and where each row starts. Segments never change; a new list of them takes
effect by the atomic rename of the manifest. The newest rows may not be in a
segment yet: they are read from the database into memory. `compact` merges all
segments without the labels of removed documents; a suffix in the name tells
the new files from those of the same rows that readers may have open.
"""

from __future__ import annotations

import logging
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text
from labelkin.checksums import (
    SMALL,
    BlockChecksums,
    ChecksumError,
    ChecksumWriter,
    read_sealed,
    sealed,
    write_array_header,
)
from labelkin.store.background import verify_later
from labelkin.store.derived import (
    BuildProgress,
    DerivedStore,
    SnapshotOutdatedError,
    StoreDamagedError,
    StoreState,
)
from labelkin.store.locks import beside

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.store.reader import Reader

logger = logging.getLogger(__name__)

COLUMN_TYPE = np.dtype("<i4")
START_TYPE = np.dtype("<i8")
_MANIFEST_NAME = "manifest.json"
_FORMAT_VERSION = 1
_OPEN_ATTEMPTS = 5
_HISTORY = 1000
_CHUNK = 1 << 20
_COUNTED = 1 << 16
_SEGMENT_ROWS = 50_000
_COMPARED = 10_000

Columns = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]
# Where a segment begins and ends and, if it was compacted, its suffix.
_Span = tuple[int, int] | tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Segment:
    """Label sets of the rows `first` to `end` (exclusive)."""

    first: int
    starts: npt.NDArray[np.int64]
    columns: Columns
    inode: int = 0
    suffix: str = ""

    @property
    def span(self) -> _Span:
        """The segment as the manifest lists it."""
        span = (self.first, self.end)
        return (*span, self.suffix) if self.suffix else span

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.first + len(self.starts) - 1

    @classmethod
    def from_sets(cls, first: int, sets: Sequence[Columns]) -> Segment:
        """A segment in memory."""
        lengths = np.array([len(columns) for columns in sets], dtype=START_TYPE)
        blob = b"".join(columns.astype(COLUMN_TYPE, copy=False).tobytes() for columns in sets)
        return cls.from_bytes(first, lengths, blob)

    @classmethod
    def from_bytes(cls, first: int, lengths: npt.NDArray[np.int64], blob: bytes) -> Segment:
        """A segment in memory: how many columns each row has, and all columns."""
        starts = np.zeros(len(lengths) + 1, dtype=START_TYPE)
        np.cumsum(lengths, out=starts[1:])
        return cls(first, starts, np.frombuffer(blob, dtype=COLUMN_TYPE))

    def without(self, rows: Rows) -> Segment:
        """The segment in memory, with no labels in some rows, which are ascending."""
        begin, end = np.searchsorted(rows, (self.first, self.end))
        lengths = np.diff(self.starts)
        is_kept = np.ones(len(lengths), dtype=np.bool_)
        is_kept[rows[begin:end] - self.first] = False
        starts = np.zeros(len(lengths) + 1, dtype=START_TYPE)
        np.cumsum(np.where(is_kept, lengths, 0), out=starts[1:])
        return Segment(self.first, starts, self.columns[np.repeat(is_kept, lengths)])

    def before(self, end: int) -> Segment:
        """The part of the segment before the row `end`."""
        if end >= self.end:
            return self
        starts = self.starts[: max(end - self.first, 0) + 1]
        return replace(self, starts=starts, columns=self.columns[: starts[-1]], suffix="")

    def after(self, first: int) -> Segment:
        """The part of the segment from the row `first` on."""
        if first <= self.first:
            return self
        starts = self.starts[first - self.first :]
        return Segment(first, starts - starts[0], self.columns[starts[0] :])


class LabelSets:
    """The label sets of one generation: rows → vocabulary columns."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self.segments = [segment for segment in segments if segment.end > segment.first]
        self._firsts = np.array([segment.first for segment in self.segments], dtype=np.int64)

    @property
    def rows(self) -> int:
        """How many rows there are, tombstoned ones included."""
        return self.segments[-1].end if self.segments else 0

    def columns(self, row: int) -> Columns:
        """The label set of one row."""
        segment = self.segments[int(np.searchsorted(self._firsts, row, side="right")) - 1]
        start, end = segment.starts[row - segment.first : row - segment.first + 2]
        return np.asarray(segment.columns[start:end])

    def matrix(self, rows: Rows, width: int) -> csr_matrix[np.float32]:
        """The label sets of `rows` as a 0/1 matrix with `width` columns."""
        from scipy.sparse import csr_matrix

        starts, columns = self.gather(rows)
        ones = np.ones(len(columns), dtype=np.float32)
        return csr_matrix((ones, columns, starts), shape=(len(starts) - 1, width))

    def gather(self, rows: Rows) -> tuple[npt.NDArray[np.int64], Columns]:
        """The label sets of `rows` one after another, and where each begins."""
        rows = np.asarray(rows, dtype=np.int64)
        begins, lengths, owners = self._spans(rows)
        starts = np.concatenate(([0], np.cumsum(lengths)))
        # The place of every label within its segment: a ragged arange.
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - begins, lengths)
        columns = np.empty(starts[-1], dtype=COLUMN_TYPE)
        label_owners = np.repeat(owners, lengths)
        for number in set(owners.tolist()):
            mine = label_owners == number
            columns[mine] = self.segments[number].columns[places[mine]]
        return starts, columns

    def _spans(
        self, rows: Rows
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where each row's labels begin in its segment, how many there are, and the segment."""
        lengths = np.zeros(len(rows), dtype=np.int64)
        begins = np.zeros(len(rows), dtype=np.int64)
        owners = np.searchsorted(self._firsts, rows, side="right") - 1
        for number in set(owners.tolist()):
            segment = self.segments[number]
            mine = owners == number
            local = rows[mine] - segment.first
            begins[mine] = segment.starts[local]
            lengths[mine] = segment.starts[local + 1] - begins[mine]
        return begins, lengths, owners

    def sizes(self) -> npt.NDArray[np.int64]:
        """How many labels each row has."""
        if not self.segments:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.diff(segment.starts) for segment in self.segments])

    def sizes_of(self, rows: Rows) -> npt.NDArray[np.int64]:
        """How many labels each of `rows` has."""
        return self._spans(rows)[1]

    def rows_with(self, wanted: npt.NDArray[np.bool_]) -> Rows:
        """The rows with a column for which `wanted` is true, ascending."""
        rows = [np.zeros(0, dtype=np.int64)]
        for segment in self.segments:
            for start in range(0, len(segment.columns), _CHUNK):
                places = start + np.flatnonzero(wanted[segment.columns[start : start + _CHUNK]])
                rows.append(segment.first + np.searchsorted(segment.starts, places, "right") - 1)
        return np.unique(np.concatenate(rows))

    def frequencies(self, width: int, dropped: Rows) -> npt.NDArray[np.int64]:
        """How often each column occurs, rows in `dropped` left out; a segment at a time."""
        counts = np.zeros(width, dtype=np.int64)
        for segment in self.segments:
            for start in range(0, len(segment.columns), _CHUNK):
                part = segment.columns[start : start + _CHUNK]
                counts += np.bincount(part, minlength=width)
        return counts - self.counts(dropped[dropped < self.rows], width)

    def counts(self, rows: Rows, width: int) -> npt.NDArray[np.int64]:
        """How often each column occurs in `rows`; some of them at a time."""
        counts = np.zeros(width, dtype=np.int64)
        for start in range(0, len(rows), _COUNTED):
            _, part = self.gather(rows[start : start + _COUNTED])
            counts += np.bincount(part, minlength=width)
        return counts


@dataclass(frozen=True, slots=True)
class Milestone:
    """A state of the database that the segments reflect up to `next_row`."""

    generation: int
    token: str
    next_row: int


@dataclass(frozen=True, slots=True)
class CompactedSegment:
    """One segment in place of several, in files that no manifest lists yet."""

    replaced: list[_Span]
    span: _Span
    checksums: dict[str, Any]
    #: The last state before which removed documents had their labels.
    milestone: Milestone
    last_removal: int


class LabelSegments(DerivedStore):
    """The segments of a collection on disk.

    The caller of `catch_up` holds the database's write transaction, which is
    the lock of the segments as well.
    """

    noun = "label segments"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._latest: tuple[tuple[int, int], list[Segment], list[Milestone]] | None = None
        #: How often damage was noticed; label sets that were mapped before may be wrong.
        self.damages = 0

    def close(self) -> None:
        """Release the memory-mapped files."""
        self._latest = None

    def label_sets(self, reader: Reader) -> LabelSets:
        """The label sets of every row that `reader` sees; the newest rows are read from it."""
        segments = self.load(reader)
        return LabelSets([*segments, _read_segment(reader, _end(segments))])

    def report_damage(self, reason: str, level: int = logging.ERROR) -> None:
        """Log damage once; until the segments are rebuilt, the database is read instead."""
        self.damages += self.damage is None
        super().report_damage(reason, level)

    def end(self, reader: Reader) -> int:
        """The first row that is in no segment yet."""
        return _end(self.load(reader))

    @contextmanager
    def exclusive(self, reader: Reader) -> Iterator[None]:  # noqa: ARG002
        """Nothing to lock: the caller holds the write transaction."""
        yield

    def read_state(self, reader: Reader) -> StoreState:
        """The last milestone that the reader knows."""
        milestone = self._milestone(reader, _history(self._manifest_or_nothing()))
        if milestone is None:
            generation = reader.generation()
            return StoreState(generation.number, generation.token, 0)
        return StoreState(milestone.generation, milestone.token, milestone.next_row)

    def apply(self, reader: Reader, progress: BuildProgress | None) -> int:  # noqa: ARG002
        """Write the label sets of the rows that are in no segment yet."""
        generation = reader.generation()
        first = _end(self.load(reader))
        self.check_sound()
        for start in range(first, generation.next_row, _SEGMENT_ROWS):
            end = min(start + _SEGMENT_ROWS, generation.next_row)
            milestone = Milestone(generation.number, generation.token, end)
            self.save(self.load(reader), _read_segment(reader, start, end), milestone)
        self.state = StoreState.of(generation)
        return generation.next_row - first

    def start_over(self) -> None:
        """Delete all segments; label sets are read from the database until the next flush."""
        for path in self.folder.glob("*"):
            path.unlink(missing_ok=True)
        self._latest = None
        self.damage = None

    def load(self, reader: Reader) -> list[Segment]:
        """The segments as far as they reflect the state that `reader` sees.

        A restored database, or a snapshot of an earlier state, knows only some
        of the milestones. Damaged segments are skipped: the database has their rows.
        """
        for _ in range(_OPEN_ATTEMPTS if self.damage is None else 0):
            try:
                segments, history = self._mapped()
                milestone = self._milestone(reader, history)
                end = milestone.next_row if milestone else 0
                return [segment.before(end) for segment in segments if segment.first < end]
            except FileNotFoundError:
                # A writer merged segments after the manifest was read.
                continue
            except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
                place = "" if isinstance(error, ChecksumError) else f"{self.folder}: "
                self.report_damage(f"{place}{error}", logging.WARNING)
                break
        return []

    def verify(self, reader: Reader) -> bool:
        """Raise StoreDamagedError if a file is damaged, or differs from the database.

        Returns whether checksums are recorded for all files. Other processes may write
        meanwhile: rows later than the reader's state have nothing to be compared with.
        """
        before: dict[str, Any] | None = None
        manifest: dict[str, Any] = {}
        while True:
            try:
                manifest = self._manifest()
                return self._verify_listed(reader, manifest)
            except FileNotFoundError as error:
                if manifest == before:
                    raise StoreDamagedError(f"{error.filename}: missing") from error
                # A writer may have merged segments after the manifest was read.
                before = manifest
            except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
                place = "" if isinstance(error, ChecksumError) else f"{self.folder}: "
                raise StoreDamagedError(f"{place}{error}") from error

    def _verify_listed(self, reader: Reader, manifest: Mapping[str, Any]) -> bool:
        checksums = manifest.get("checksums", {})
        paths = [path for span in _spans(manifest) for path in self._paths(*span)]
        for path in paths:
            if path.name in checksums:
                BlockChecksums.from_json(checksums[path.name]).verify(path)
        history = _history(manifest)
        milestone = self._milestone(reader, history)
        is_later = any(reader.is_outdated(past.generation, past.token) for past in history)
        if paths and milestone is None and not is_later:
            raise StoreDamagedError(
                f"{self.folder}: built from a state that the database does not have "
                "(restored from a backup?)"
            )
        end = milestone.next_row if milestone else 0
        expected = 0
        for segment in (self._map(span, {}) for span in _spans(manifest)):
            if segment.first != expected:
                raise StoreDamagedError(f"{self.folder}: no segment begins with row {expected}")
            expected = segment.end
            if segment.first < end:
                self._compare(reader, segment.before(end))
        return all(path.name in checksums for path in paths)

    def _compare(self, reader: Reader, segment: Segment) -> None:
        for start in range(segment.first, segment.end, _COMPARED):
            for row, blob in reader.stored_label_sets(start, min(start + _COMPARED, segment.end)):
                begin, end = segment.starts[row - segment.first : row - segment.first + 2]
                if segment.columns[begin:end].tobytes() != blob:
                    raise StoreDamagedError(
                        f"{self.folder}: the label set of row {row} is not that of the database"
                    )

    def _mapped(self) -> tuple[list[Segment], list[Milestone]]:
        """All segments and milestones that the manifest lists, mapped once per manifest."""
        try:
            status = (self.folder / _MANIFEST_NAME).stat()
        except FileNotFoundError:
            return [], []
        signature = (status.st_mtime_ns, status.st_ino)
        latest = self._latest
        if latest is None or latest[0] != signature:
            manifest = self._manifest()
            mapped = {one.span: one for one in latest[1]} if latest else {}
            segments = []
            for span in _spans(manifest):
                # Files are never changed, so those of the last manifest are still right, unless
                # everything was deleted meanwhile.
                known = mapped.get(span) if self._is_same_file(span, mapped) else None
                segments.append(known or self._map(span, manifest.get("checksums", {})))
            latest = self._latest = (signature, segments, _history(manifest))
        return latest[1], latest[2]

    def _is_same_file(self, span: _Span, mapped: Mapping[_Span, Segment]) -> bool:
        segment = mapped.get(span)
        status = self._paths(*span)[1].stat()
        return segment is not None and segment.inode == status.st_ino

    def _map(self, span: _Span, checksums: Mapping[str, Any]) -> Segment:
        first, end, *suffix = span
        starts_path, columns_path = self._paths(*span)
        for path in (starts_path, columns_path):
            if path.name in checksums:
                recorded = BlockChecksums.from_json(checksums[path.name])
                if path.stat().st_size != recorded.size:
                    raise ChecksumError(path)
                if recorded.size <= SMALL:
                    recorded.verify(path)
                else:
                    verify_later(partial(recorded.verify, path), self.report_damage)
        starts = np.load(starts_path, mmap_mode="r", allow_pickle=False)
        columns = np.load(columns_path, mmap_mode="r", allow_pickle=False)
        if len(starts) != end - first + 1 or starts[-1] != len(columns):
            raise ValueError(f"{columns_path.name} is damaged")
        return Segment(first, starts, columns, columns_path.stat().st_ino, "".join(suffix))

    def _milestone(self, reader: Reader, history: Sequence[Milestone]) -> Milestone | None:
        """The last milestone in the reader's past."""
        return next(
            (past for past in reversed(history) if reader.knows(past.generation, past.token)), None
        )

    def save(self, known: list[Segment], new: Segment, milestone: Milestone) -> None:
        """Append `new` to `known`. The caller holds the writer lock.

        Adjacent smaller segments are merged, so that the number of segments
        stays logarithmic, and each row is rewritten a logarithmic number of times.
        """
        self.folder.mkdir(exist_ok=True)
        groups = [[segment] for segment in known if segment.end > segment.first]
        if new.end > new.first:
            tail = [new]
            while groups and _rows(groups[-1]) < 2 * _rows(tail):
                tail = groups.pop() + tail
            groups.append(tail)
        manifest = self._manifest_or_nothing()
        checksums: dict[str, Any] = {}
        for group in groups:
            checksums |= self._saved(group, manifest.get("checksums", {}))
        spans = [group[0].span if len(group) == 1 else _joined(group) for group in groups]
        history = [past for past in _history(manifest) if past.generation < milestone.generation]
        self._record(spans, [*history[-_HISTORY:], milestone], checksums)

    def _record(
        self, spans: Sequence[_Span], history: Iterable[Milestone], checksums: Mapping[str, Any]
    ) -> None:
        """Replace the manifest, and delete the files that the new one does not list."""
        manifest = {
            "format_version": _FORMAT_VERSION,
            "segments": spans,
            "history": [astuple(past) for past in history],
            "checksums": checksums,
        }
        with atomic_text(self.folder / _MANIFEST_NAME) as file:
            file.write(sealed(manifest))
        self._sweep(spans)

    def compacted(self, reader: Reader) -> CompactedSegment | None:
        """Write all segments as one, without the labels of documents that are removed.

        None if that would change nothing, SnapshotOutdatedError if others have written since
        the reader's state. The files are beside the folder until `publish` lists them; nobody
        is kept from writing meanwhile.
        """
        self.discard_compacted()
        segments = self.load(reader)
        self.check_sound()
        dead = reader.tombstones()
        dead = dead[dead < _end(segments)]
        is_waste = bool(LabelSets(segments).sizes_of(dead).any())
        if not segments or (len(segments) == 1 and not is_waste):
            return None
        listed = self._manifest()
        replaced = _spans(listed)[: len(segments)]
        if replaced != [segment.span for segment in segments]:
            # The last segment reaches beyond the reader's state, or was replaced just now.
            raise SnapshotOutdatedError(f"{self.folder}: other segments meanwhile; try again")
        self._verify_mapped(segments, listed.get("checksums", {}))
        span = (*_joined(segments), secrets.token_hex(4))
        folder = self._compacted_folder
        folder.mkdir()
        paths = [folder / path.name for path in self._paths(*span)]
        checksums = _write_segments(segments, paths, dead)
        generation = reader.generation()
        milestone = Milestone(generation.number, generation.token, _end(segments))
        return CompactedSegment(replaced, span, checksums, milestone, reader.last_removal())

    def publish(self, compacted: CompactedSegment) -> bool:
        """List a compacted segment; False if those it replaces are not there any more.

        The caller holds the writer lock. A reader of a state before the last removal finds no
        milestone that it knows, and reads label sets from the database.
        """
        manifest = self._manifest()
        spans = _spans(manifest)
        count = len(compacted.replaced)
        if spans[:count] != compacted.replaced:
            return False
        for path in self._paths(*compacted.span):
            (self._compacted_folder / path.name).replace(path)
        spans = [compacted.span, *spans[count:]]
        names = {path.name for span in spans for path in self._paths(*span)}
        known = {**manifest.get("checksums", {}), **compacted.checksums}
        since = compacted.last_removal
        history = {past.generation: past for past in _history(manifest) if past.generation >= since}
        history.setdefault(compacted.milestone.generation, compacted.milestone)
        checksums = {name: one for name, one in known.items() if name in names}
        self._record(spans, [past for _, past in sorted(history.items())], checksums)
        self.discard_compacted()
        return True

    def discard_compacted(self) -> None:
        """Delete files that a compaction has left behind."""
        shutil.rmtree(self._compacted_folder, ignore_errors=True)

    def leftovers(self) -> list[Path]:
        """Segments that the manifest does not list; one that is being written is not listed yet.

        An empty list if the manifest cannot be read.
        """
        try:
            unlisted = self._unlisted(_spans(self._manifest()))
        except (OSError, ValueError, KeyError, TypeError):
            return []
        return [path for path in unlisted if path.suffix == ".npy"]

    @property
    def _compacted_folder(self) -> Path:
        return beside(self.folder, "compact")

    def _saved(self, group: Sequence[Segment], known: Mapping[str, Any]) -> dict[str, Any]:
        """Write adjacent segments as one, unless it is on disk already; checksums by file."""
        if len(group) == 1 and isinstance(group[0].columns, np.memmap):
            paths = self._paths(*group[0].span)
            if paths[1].exists():
                return {
                    path.name: known.get(path.name) or BlockChecksums.of_file(path).to_json()
                    for path in paths
                }
        self._verify_mapped(group, known)
        return _write_segments(group, self._paths(*_joined(group)))

    def _verify_mapped(self, group: Sequence[Segment], known: Mapping[str, Any]) -> None:
        """Verify segments before they are merged: a new checksum must not cover old damage."""
        for segment in group:
            for path in self._paths(*segment.span):
                if isinstance(segment.columns, np.memmap) and path.name in known:
                    try:
                        BlockChecksums.from_json(known[path.name]).verify(path)
                    except (ValueError, OSError) as error:
                        raise StoreDamagedError(str(error)) from error

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / _MANIFEST_NAME
        if not path.exists():
            return {"segments": [], "history": []}
        manifest = read_sealed(path)
        if manifest["format_version"] != _FORMAT_VERSION:
            raise ValueError(f"format {manifest['format_version']} is not known")
        return manifest

    def _manifest_or_nothing(self) -> dict[str, Any]:
        try:
            return self._manifest()
        except (OSError, ValueError, KeyError, TypeError):
            return {"segments": [], "history": []}

    def _paths(self, first: int, end: int, suffix: str = "") -> tuple[Path, Path]:
        stem = f"{first:012d}-{end:012d}" + (f".{suffix}" if suffix else "")
        return self.folder / f"{stem}.starts.npy", self.folder / f"{stem}.columns.npy"

    def _sweep(self, spans: Sequence[_Span]) -> None:
        """Delete files that the manifest does not list: merged segments, leftovers of a crash."""
        for path in self._unlisted(spans):
            path.unlink(missing_ok=True)

    def _unlisted(self, spans: Sequence[_Span]) -> list[Path]:
        listed = {path for span in spans for path in self._paths(*span)}
        files = self.folder.iterdir()
        return [path for path in files if path not in listed and path.name != _MANIFEST_NAME]


def _end(segments: Sequence[Segment]) -> int:
    return segments[-1].end if segments else 0


def _read_segment(reader: Reader, first: int, end: int | None = None) -> Segment:
    """The label sets of some rows, from the database; removed rows have none."""
    end = reader.generation().next_row if end is None else end
    lengths = np.zeros(max(end - first, 0), dtype=np.int64)
    blobs = []
    for row, blob in reader.stored_label_sets(first, end):
        lengths[row - first] = len(blob) // COLUMN_TYPE.itemsize
        blobs.append(blob)
    return Segment.from_bytes(first, lengths, b"".join(blobs))


def _write_segments(
    group: Sequence[Segment], paths: Sequence[Path], dead: Rows | None = None
) -> dict[str, Any]:
    """Write adjacent segments as one, with no labels in dead rows; checksums by file."""
    starts_path, columns_path = paths
    offset = 0
    with atomic_file(starts_path) as file:
        starts = ChecksumWriter(file)
        write_array_header(starts, (_rows(group) + 1,), START_TYPE)
        starts.write(np.zeros(1, dtype=START_TYPE).tobytes())
        for part in _parts(group, dead):
            starts.write((part.starts[1:] + offset).astype(START_TYPE).tobytes())
            offset += int(part.starts[-1])
    with atomic_file(columns_path) as file:
        columns = ChecksumWriter(file)
        write_array_header(columns, (offset,), COLUMN_TYPE)
        for part in _parts(group, dead):
            columns.write(part.columns.tobytes())
    return {
        starts_path.name: starts.checksums().to_json(),
        columns_path.name: columns.checksums().to_json(),
    }


def _parts(group: Sequence[Segment], dead: Rows | None) -> Iterator[Segment]:
    """The segments of a group a few rows at a time, in memory, with no labels in dead rows."""
    for segment in group:
        for first in range(segment.first, segment.end, _SEGMENT_ROWS):
            part = segment.before(first + _SEGMENT_ROWS).after(first)
            yield part if dead is None else part.without(dead)


def _joined(group: Sequence[Segment]) -> tuple[int, int]:
    """The span of adjacent segments as one."""
    return group[0].first, group[-1].end


def _rows(group: Sequence[Segment]) -> int:
    return group[-1].end - group[0].first


def _spans(manifest: Mapping[str, Any]) -> list[_Span]:
    return [tuple(span) for span in manifest["segments"]]


def _history(manifest: Mapping[str, Any]) -> list[Milestone]:
    return [Milestone(*past) for past in manifest["history"]]
