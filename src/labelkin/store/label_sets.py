"""Label sets of all rows, as append-only memory-mapped segments.

A segment is two arrays: the vocabulary columns of its rows one after another,
and where each row's begin. Segments never change; a new list of them takes
effect by the atomic rename of their manifest. The newest rows may not be in a
segment yet: they are read from the database into memory.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file, atomic_text

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

logger = logging.getLogger(__name__)

COLUMN_TYPE = np.dtype("<i4")
START_TYPE = np.dtype("<i8")
_MANIFEST_NAME = "manifest.json"
_FORMAT_VERSION = 1
_OPEN_ATTEMPTS = 5
_HISTORY = 1000
_CHUNK = 1 << 20

Columns = npt.NDArray[np.int32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segment:
    """Label sets of the rows `first` to `end` (exclusive)."""

    first: int
    starts: npt.NDArray[np.int64]
    columns: Columns

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

    def before(self, end: int) -> Segment:
        """The part of the segment before the row `end`."""
        if end >= self.end:
            return self
        starts = self.starts[: max(end - self.first, 0) + 1]
        return Segment(self.first, starts, self.columns[: starts[-1]])


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

    def frequencies(self, width: int, dropped: Rows) -> npt.NDArray[np.int64]:
        """How often each column occurs, rows in `dropped` left out; a segment at a time."""
        counts = np.zeros(width, dtype=np.int64)
        for segment in self.segments:
            for start in range(0, len(segment.columns), _CHUNK):
                part = segment.columns[start : start + _CHUNK]
                counts += np.bincount(part, minlength=width)
        dropped = dropped[dropped < self.rows]
        for start in range(0, len(dropped), _CHUNK):
            _, part = self.gather(dropped[start : start + _CHUNK])
            counts -= np.bincount(part, minlength=width)
        return counts


@dataclass(frozen=True, slots=True)
class Milestone:
    """A state of the database that the segments reflect up to `next_row`."""

    generation: int
    token: str
    next_row: int


class SegmentFolder:
    """The segments of a collection on disk, and the generation that they reflect."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, is_ours: Callable[[Milestone], bool]) -> list[Segment]:
        """The segments as far as they reflect the state of the database that a reader sees.

        `is_ours` tells whether a milestone lies in that state's past: a
        database put back from a backup, or one seen through an older snapshot,
        knows only some. Damage is no loss: what cannot be read is left out.
        """
        for _ in range(_OPEN_ATTEMPTS):
            try:
                return self._load(is_ours)
            except FileNotFoundError:
                # A writer merged segments between our look at the list and at them.
                continue
            except (OSError, ValueError, KeyError, TypeError) as error:
                logger.warning("%s: %s; label sets are read from the database", self.folder, error)
                break
        return []

    def save(self, known: list[Segment], new: Segment, milestone: Milestone) -> None:
        """Add `new` behind `known`. The caller holds the writer lock.

        Smaller neighbours are merged as they come, so that their number stays
        logarithmic and each row is rewritten a logarithmic number of times.
        """
        self.folder.mkdir(exist_ok=True)
        groups = [[segment] for segment in known if segment.end > segment.first]
        if new.end > new.first:
            tail = [new]
            while groups and _rows(groups[-1]) < 2 * _rows(tail):
                tail = groups.pop() + tail
            groups.append(tail)
        for group in groups:
            self._write(group)
        spans = [(group[0].first, group[-1].end) for group in groups]
        history = [past for past in self._history() if past.generation < milestone.generation]
        manifest = {
            "format_version": _FORMAT_VERSION,
            "segments": spans,
            "history": [astuple(past) for past in (*history[-_HISTORY:], milestone)],
        }
        with atomic_text(self.folder / _MANIFEST_NAME) as file:
            json.dump(manifest, file)
        self._sweep(spans)

    def _write(self, group: Sequence[Segment]) -> None:
        """Write neighbouring segments as one, unless it is on disk already."""
        starts_path, columns_path = self._paths(group[0].first, group[-1].end)
        if len(group) == 1 and isinstance(group[0].columns, np.memmap) and columns_path.exists():
            return
        offset = 0
        with atomic_file(starts_path) as file:
            _write_header(file, _rows(group) + 1, START_TYPE)
            file.write(np.zeros(1, dtype=START_TYPE).tobytes())
            for segment in group:
                file.write((segment.starts[1:] + offset).astype(START_TYPE).tobytes())
                offset += int(segment.starts[-1])
        with atomic_file(columns_path) as file:
            _write_header(file, offset, COLUMN_TYPE)
            for segment in group:
                for start in range(0, len(segment.columns), _CHUNK):
                    file.write(segment.columns[start : start + _CHUNK].tobytes())

    def _load(self, is_ours: Callable[[Milestone], bool]) -> list[Segment]:
        manifest = self._manifest()
        ours = next((past for past in reversed(_history(manifest)) if is_ours(past)), None)
        end = ours.next_row if ours else 0
        segments = []
        for first, last in manifest["segments"]:
            if first >= end:
                break
            starts_path, columns_path = self._paths(first, last)
            starts = np.load(starts_path, mmap_mode="r", allow_pickle=False)
            columns = np.load(columns_path, mmap_mode="r", allow_pickle=False)
            if len(starts) != last - first + 1 or starts[-1] != len(columns):
                raise ValueError(f"{columns_path.name} is damaged")
            segments.append(Segment(first, starts, columns).before(end))
        return segments

    def _manifest(self) -> dict[str, Any]:
        path = self.folder / _MANIFEST_NAME
        if not path.exists():
            return {"segments": [], "history": []}
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format_version"] != _FORMAT_VERSION:
            raise ValueError(f"format {manifest['format_version']} is not known")
        return manifest

    def _history(self) -> list[Milestone]:
        try:
            return _history(self._manifest())
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _paths(self, first: int, end: int) -> tuple[Path, Path]:
        stem = f"{first:012d}-{end:012d}"
        return self.folder / f"{stem}.starts.npy", self.folder / f"{stem}.columns.npy"

    def _sweep(self, spans: Sequence[tuple[int, int]]) -> None:
        """Delete what no list names: merged segments, leftovers of a crash."""
        wanted = {path for first, end in spans for path in self._paths(first, end)}
        for path in self.folder.iterdir():
            if path not in wanted and path.name != _MANIFEST_NAME:
                path.unlink(missing_ok=True)


def _rows(group: Sequence[Segment]) -> int:
    return group[-1].end - group[0].first


def _history(manifest: dict[str, Any]) -> list[Milestone]:
    return [Milestone(*past) for past in manifest["history"]]


def _write_header(file: IO[bytes], length: int, kind: np.dtype[Any]) -> None:
    header = {"descr": kind.str, "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(file, header)
