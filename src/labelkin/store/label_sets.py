"""Label sets of all rows, as append-only memory-mapped segments.

A segment is two arrays: the vocabulary columns of its rows one after another,
and where each row's begin. Segments never change; a new list of them takes
effect by the atomic rename of their manifest. The newest rows may not be in a
segment yet: they are read from the database into memory.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        starts = np.zeros(len(sets) + 1, dtype=START_TYPE)
        np.cumsum([len(columns) for columns in sets], out=starts[1:])
        columns = np.concatenate(sets) if sets else np.empty(0, dtype=COLUMN_TYPE)
        return cls(first, starts, columns.astype(COLUMN_TYPE, copy=False))

    @classmethod
    def joined(cls, segments: Sequence[Segment]) -> Segment:
        """Neighbouring segments as one."""
        starts = [segments[0].starts]
        for segment in segments[1:]:
            starts.append(segment.starts[1:] + starts[-1][-1])
        columns = np.concatenate([segment.columns for segment in segments])
        return cls(segments[0].first, np.concatenate(starts), columns)


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

        rows = np.asarray(rows, dtype=np.int64)
        lengths = np.zeros(len(rows), dtype=np.int64)
        begins = np.zeros(len(rows), dtype=np.int64)
        owners = np.searchsorted(self._firsts, rows, side="right") - 1
        for number in np.unique(owners):
            segment = self.segments[number]
            mine = owners == number
            local = rows[mine] - segment.first
            begins[mine] = segment.starts[local]
            lengths[mine] = segment.starts[local + 1] - begins[mine]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        # The place of every label within its segment: a ragged arange.
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - begins, lengths)
        columns = np.empty(starts[-1], dtype=COLUMN_TYPE)
        label_owners = np.repeat(owners, lengths)
        for number in np.unique(owners):
            mine = label_owners == number
            columns[mine] = self.segments[number].columns[places[mine]]
        ones = np.ones(len(columns), dtype=np.float32)
        return csr_matrix((ones, columns, starts), shape=(len(rows), width))

    def sizes(self) -> npt.NDArray[np.int64]:
        """How many labels each row has."""
        if not self.segments:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([np.diff(segment.starts) for segment in self.segments])

    def frequencies(self, width: int, dropped: Rows) -> npt.NDArray[np.int64]:
        """How often each column occurs, rows in `dropped` left out; a segment at a time."""
        counts = np.zeros(width, dtype=np.int64)
        for segment in self.segments:
            counts += np.bincount(segment.columns, minlength=width)
        for row in dropped:
            if row < self.rows:
                np.subtract.at(counts, self.columns(int(row)), 1)
        return counts


class SegmentFolder:
    """The segments of a collection on disk, and the generation that they reflect."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self) -> tuple[int, list[Segment]]:
        """Generation and segments. Damage is no loss here: it starts over from nothing."""
        for _ in range(_OPEN_ATTEMPTS):
            try:
                return self._load()
            except FileNotFoundError:
                # A writer merged segments between our look at the list and at them.
                continue
            except (OSError, ValueError, KeyError, TypeError) as error:
                logger.warning("%s: %s; label sets are read from the database", self.folder, error)
                break
        return 0, []

    def save(self, generation: int, known: list[Segment], new: Segment) -> None:
        """Add `new` behind `known`. The caller holds the writer lock.

        Smaller neighbours are merged as they come, so that their number stays
        logarithmic and each row is rewritten a logarithmic number of times.
        """
        self.folder.mkdir(exist_ok=True)
        kept, tail = list(known), [new] if new.end > new.first else []
        while tail and kept and _rows(kept[-1]) < 2 * sum(map(_rows, tail)):
            tail.insert(0, kept.pop())
        if tail:
            merged = Segment.joined(tail)
            starts_path, columns_path = self._paths(merged)
            _save(starts_path, merged.starts)
            _save(columns_path, merged.columns)
            kept.append(merged)
        manifest = {
            "format_version": _FORMAT_VERSION,
            "generation": generation,
            "segments": [[segment.first, segment.end] for segment in kept],
        }
        with atomic_text(self.folder / _MANIFEST_NAME) as file:
            json.dump(manifest, file)
        self._sweep(kept)

    def _load(self) -> tuple[int, list[Segment]]:
        path = self.folder / _MANIFEST_NAME
        if not path.exists():
            return 0, []
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format_version"] != _FORMAT_VERSION:
            raise ValueError(f"format {manifest['format_version']} is not known")
        segments = []
        for first, end in manifest["segments"]:
            starts_path, columns_path = self._names(first, end)
            starts = np.load(starts_path, mmap_mode="r", allow_pickle=False)
            columns = np.load(columns_path, mmap_mode="r", allow_pickle=False)
            if len(starts) != end - first + 1 or starts[-1] != len(columns):
                raise ValueError(f"{columns_path.name} is damaged")
            segments.append(Segment(first, starts, columns))
        return int(manifest["generation"]), segments

    def _paths(self, segment: Segment) -> tuple[Path, Path]:
        return self._names(segment.first, segment.end)

    def _names(self, first: int, end: int) -> tuple[Path, Path]:
        stem = f"{first:012d}-{end:012d}"
        return self.folder / f"{stem}.starts.npy", self.folder / f"{stem}.columns.npy"

    def _sweep(self, kept: list[Segment]) -> None:
        """Delete what no list names: merged segments, leftovers of a crash."""
        wanted = {path for segment in kept for path in self._paths(segment)}
        for path in self.folder.iterdir():
            if path not in wanted and path.name != _MANIFEST_NAME:
                path.unlink(missing_ok=True)


def _rows(segment: Segment) -> int:
    return segment.end - segment.first


def _save(path: Path, array: npt.NDArray[Any]) -> None:
    with atomic_file(path) as file:
        np.save(file, array, allow_pickle=False)
