"""Statistics over all shards, so that each scores its documents as one index would.

How many documents have a term is counted once, by ranges of the terms' hashes: in every
shard, terms are in the order of these, so a task counts a slice of each shard's dictionary,
which each process verifies once. What the ranges give is mapped into memory wherever queries
are made or shards are searched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from labelkin.cluster.arrays import array_record, publish_arrays
from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.shards import open_segment
from labelkin.cluster.task import Task, digest
from labelkin.cluster.workspace import Workspace
from labelkin.neighbours.array_file import Arrays, Checksums, write_arrays
from labelkin.neighbours.bm25 import FieldStatistics
from labelkin.neighbours.engine import TermStatistics
from labelkin.neighbours.postings import Integers, term_hashes, term_key

_HASHES = 1 << 32
_KNOWN_TERMS = 400_000
_OPEN = 4
# The files of a shard that have its terms.
_DICTIONARY = ("hashes.npy", "ends.npy", "names.npy", "starts.npy")


@dataclass(frozen=True, slots=True)
class FrequencyTask(Task):
    """Counts the documents of all shards that have each term of a range of hashes."""

    output: Path
    shards: tuple[Path, ...]
    first: int
    end: int

    def run(self) -> None:
        """Write the terms with their frequencies, in the order of their hashes."""
        publish_arrays(self.output, self._write)

    def _write(self, folder: Path) -> tuple[Checksums, Mapping[str, Any]]:
        counts: Counter[bytes] = Counter()
        for shard in self.shards:
            segment = open_segment(shard, _DICTIONARY)
            begin, end = np.searchsorted(segment.hashes, (self.first, self.end)).tolist()
            start = int(segment.ends[begin - 1]) if begin else 0
            names = segment.names[start : int(segment.ends[end - 1]) if end else 0].tobytes()
            frequencies = np.diff(segment.starts[begin : end + 1]).tolist()
            place = 0
            for stop, frequency in zip(
                (segment.ends[begin:end] - start).tolist(), frequencies, strict=True
            ):
                counts[names[place:stop]] += frequency
                place = stop
        keys = list(counts)
        hashes = term_hashes(keys)
        order = np.argsort(hashes, kind="stable")
        ordered = [keys[place] for place in order.tolist()]
        arrays: Arrays = {
            "hashes": hashes[order],
            "ends": np.cumsum([len(key) for key in ordered], dtype=np.int64),
            "names": np.frombuffer(b"".join(ordered), dtype=np.uint8),
            "frequencies": np.array([counts[key] for key in ordered], dtype=np.int64),
        }
        return write_arrays(folder, arrays), {}


@dataclass(frozen=True, slots=True)
class StatisticsFiles:
    """Where the statistics are: frequencies by ranges of hashes, and totals by field."""

    ranges: tuple[Path, ...]
    fields: tuple[str, ...]
    documents: int
    lengths: tuple[int, ...]

    @property
    def name(self) -> str:
        """A digest of what they depend on."""
        return digest([path.name for path in self.ranges], self.fields)


def count_terms(
    session: Session,
    workspace: Workspace,
    shards: tuple[Path, ...],
    fields: tuple[str, ...],
    progress: TaskProgress | None = None,
) -> StatisticsFiles:
    """The statistics of all shards together."""
    kind = f"frequencies-{digest(fields)[:8]}"
    folder = workspace.part(kind)
    bounds = np.linspace(0, _HASHES, len(shards) + 1).astype(np.int64).tolist()
    names = [shard.name for shard in shards]
    tasks = [
        FrequencyTask(folder / digest(names, first, end), shards, first, end)
        for first, end in pairwise(bounds)
    ]
    session.run(tasks, progress)
    ranges = tuple(task.output for task in tasks)
    workspace.sweep(kind, ranges)
    records = [array_record(shard, ()) for shard in shards]
    of_fields = zip(*(record["lengths"] for record in records), strict=True)
    documents = sum(int(record["documents"]) for record in records)
    return StatisticsFiles(ranges, fields, documents, tuple(map(sum, of_fields)))


class GlobalStatistics(TermStatistics):
    """Numbers of documents and lengths over all shards."""

    def __init__(self, files: StatisticsFiles) -> None:
        self._files = files
        self._ranges = [_Range.open(path) for path in files.ranges]
        self._lock = Lock()
        self._known: dict[tuple[str, str], int] = {}

    def statistics(self, field: str) -> FieldStatistics:
        """Removed documents do not count."""
        documents = self._files.documents
        number = self._files.fields.index(field)
        length = self._files.lengths[number] if self._files.lengths else 0
        return FieldStatistics(documents, length / max(documents, 1))

    def document_frequencies(self, field: str, terms: Sequence[str]) -> list[int]:
        """Removed documents do not count."""
        with self._lock:
            if len(self._known) > _KNOWN_TERMS:
                self._known = {}
            new = [term for term in dict.fromkeys(terms) if (field, term) not in self._known]
            if new:
                found = self._looked_up(field, new)
                self._known.update(
                    ((field, term), count) for term, count in zip(new, found, strict=True)
                )
            return [self._known[field, term] for term in terms]

    def _looked_up(self, field: str, terms: Sequence[str]) -> list[int]:
        from labelkin.neighbours.postings_kernel import find_terms

        number = self._files.fields.index(field)
        keys = [term_key(number, term) for term in terms]
        hashes = term_hashes(keys)
        counts = np.zeros(len(keys), dtype=np.int64)
        for one in self._ranges:
            asked = np.flatnonzero((hashes >= one.first) & (hashes <= one.last))
            if not len(asked):
                continue
            wanted = [keys[place] for place in asked.tolist()]
            ends = np.cumsum([len(key) for key in wanted])
            joined = np.frombuffer(b"".join(wanted), dtype=np.uint8)
            places = find_terms(one.hashes, one.ends, one.names, hashes[asked], ends, joined)
            there = places >= 0
            counts[asked[there]] = one.frequencies[places[there]]
        frequencies: list[int] = counts.tolist()
        return frequencies


@lru_cache(maxsize=_OPEN)
def open_statistics(files: StatisticsFiles) -> GlobalStatistics:
    """The statistics, opened once in a process."""
    return GlobalStatistics(files)


@dataclass(frozen=True, eq=False)
class _Range:
    """The terms of a range of hashes."""

    hashes: Any
    ends: Integers
    names: Any
    frequencies: Integers

    @classmethod
    def open(cls, folder: Path) -> _Range:
        array_record(folder)
        names = ("hashes", "ends", "names", "frequencies")
        return cls(*(np.asarray(np.load(folder / f"{one}.npy", mmap_mode="r")) for one in names))

    @property
    def first(self) -> int:
        return int(self.hashes[0]) if len(self.hashes) else _HASHES

    @property
    def last(self) -> int:
        return int(self.hashes[-1]) if len(self.hashes) else -1
