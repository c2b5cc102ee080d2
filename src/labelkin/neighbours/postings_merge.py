"""Merging segments of postings, in memory that does not grow with them.

Terms are in the order of their hashes in all segments, so a range of hashes is a range of
terms in each, and a range of postings. Ranges are merged one after another, and written at
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.array_file import ArrayFile, Checksums, write_arrays
from labelkin.neighbours.postings import Integers, Segment, impact_type

# What is merged at a time: postings, rows, terms of all segments, and bytes of their names.
_POSTINGS = 1 << 18
_ROWS = 1 << 18
_TERMS = 1 << 15
_BYTES = 1 << 20
# Stands for a document that is dead.
_DEAD = (1 << 32) - 1


def merge_segments(
    segments: Sequence[Segment], dead: Sequence[Integers], folder: Path
) -> Checksums:
    """Write adjacent segments as one into a new folder, without the documents that are dead.

    `dead` are the places of these in each segment, ascending. Returns the checksums of the files.
    """
    folder.mkdir(parents=True)
    table, places = _joined_tables(segments)
    left = [len(segment) - len(gone) for segment, gone in zip(segments, dead, strict=True)]
    firsts = np.cumsum([0, *left])[:-1].tolist()
    sources = [_Source(*one) for one in zip(segments, firsts, dead, places, strict=True)]
    with _Output(folder, impact_type(table.shape[1])) as output:
        for source in sources:
            source.copy_rows(output.rows)
        for firsts, ends in _ranges_of_terms(segments):
            _merge_terms(_Entries.read(segments, firsts, ends), sources, output)
    return output.checksums | write_arrays(folder, {"table": table})


def _joined_tables(
    segments: Sequence[Segment],
) -> tuple[npt.NDArray[np.int32], list[npt.NDArray[Any]]]:
    """A table of all impacts, and for each segment the places of its own ones there."""
    tables = np.concatenate([segment.table for segment in segments], axis=1)
    joined, places = np.unique(tables, axis=1, return_inverse=True)
    sizes = [segment.table.shape[1] for segment in segments]
    of_all = places.ravel().astype(impact_type(joined.shape[1]))
    return joined.astype(np.int32), np.split(of_all, np.cumsum(sizes)[:-1])


def _merge_terms(entries: _Entries, sources: Sequence[_Source], output: _Output) -> None:
    is_new = entries.is_new()
    terms = np.cumsum(is_new) - 1
    counts = np.zeros(terms[-1] + 1, dtype=np.int64)
    for chunk in _chunks(entries, terms):
        counts += chunk.write(sources, output, len(counts))
    # Terms of dead documents only are gone.
    used = np.flatnonzero(is_new)[counts > 0]
    output.write_terms(
        entries.hashes[used],
        entries.names[_places(entries.name_begins[used], entries.name_lengths[used])],
        entries.name_lengths[used],
        counts[counts > 0],
    )


class _Output(ExitStack):
    """The files of the merged segment, except the table; opened by `with`."""

    def __init__(self, folder: Path, impacts: np.dtype[Any]) -> None:
        super().__init__()
        self._folder = folder
        self._kinds: dict[str, Any] = {
            "rows": np.int64,
            "hashes": np.uint32,
            "ends": np.int64,
            "names": np.uint8,
            "starts": np.int64,
            "documents": np.uint32,
            "impacts": impacts,
        }
        self._files: dict[str, ArrayFile] = {}
        self._bytes = self._postings = 0

    def __enter__(self) -> Self:
        try:
            for name, kind in self._kinds.items():
                file = ArrayFile(self._folder / f"{name}.npy", np.dtype(kind))
                self._files[name] = self.enter_context(file)
        except OSError:
            self.close()
            raise
        self._files["starts"].write(np.zeros(1, dtype=np.int64))
        return self

    @property
    def rows(self) -> ArrayFile:
        """The file of the documents' rows."""
        return self._files["rows"]

    @property
    def checksums(self) -> Checksums:
        """The checksums of all files; they are complete."""
        return {name: one for file in self._files.values() for name, one in file.checksums.items()}

    def write_postings(self, documents: npt.NDArray[np.uint32], impacts: npt.NDArray[Any]) -> None:
        """Append postings of this term or the next ones."""
        self._files["documents"].write(documents)
        self._files["impacts"].write(impacts)

    def write_terms(
        self,
        hashes: npt.NDArray[np.uint32],
        names: npt.NDArray[np.uint8],
        lengths: Integers,
        counts: Integers,
    ) -> None:
        """Append terms, whose names are so long and which have so many postings."""
        self._files["hashes"].write(hashes)
        self._files["names"].write(names)
        self._files["ends"].write(self._bytes + np.cumsum(lengths))
        self._files["starts"].write(self._postings + np.cumsum(counts))
        self._bytes += int(lengths.sum())
        self._postings += int(counts.sum())


@dataclass(frozen=True, eq=False)
class _Source:
    """A segment that is merged: its first new document, its dead ones, its impacts' new places."""

    segment: Segment
    first: int
    dead: Integers
    places: npt.NDArray[Any]

    def copy_rows(self, output: ArrayFile) -> None:
        """Copy the rows of the documents that are not dead."""
        for start in range(0, len(self.segment), _ROWS):
            rows = self.segment.rows[start : start + _ROWS]
            within = slice(*np.searchsorted(self.dead, (start, start + _ROWS)))
            output.write(np.delete(rows, self.dead[within] - start))
            self.segment.release()

    def postings(self, part: slice) -> tuple[npt.NDArray[np.uint32], npt.NDArray[Any]]:
        """New documents and impacts of some postings."""
        old = self.segment.documents[part]
        new = old + np.uint32(self.first)
        if len(self.dead):
            before = np.searchsorted(self.dead, old)
            new -= before.astype(np.uint32)
            new[self.dead[np.minimum(before, len(self.dead) - 1)] == old] = _DEAD
        impacts = self.places[self.segment.impacts[part]]
        self.segment.release()
        return new, impacts


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some postings in their new order, in pieces.

    A piece belongs to the segment `numbers` and the term `terms`, and is `counts` postings
    from `begins` on.
    """

    numbers: Integers
    begins: Integers
    counts: Integers
    terms: Integers

    def write(self, sources: Sequence[_Source], output: _Output, terms: int) -> Integers:
        """Write the postings that are not dead; how many there are of each of so many terms."""
        ends = np.cumsum(self.counts)
        starts, total = ends - self.counts, int(ends[-1])
        documents = np.empty(total, dtype=np.uint32)
        impacts = np.empty(total, dtype=sources[0].places.dtype)
        for number, source in enumerate(sources):
            own = np.flatnonzero(self.numbers == number)
            if not len(own):
                continue
            # The pieces of a segment follow one another there.
            begins, counts = self.begins[own], self.counts[own]
            places = _places(starts[own], counts)
            part = slice(int(begins[0]), int(begins[-1] + counts[-1]))
            documents[places], impacts[places] = source.postings(part)
        owners = np.repeat(self.terms, self.counts)
        if any(len(source.dead) for source in sources):
            kept = documents != _DEAD
            documents, impacts, owners = documents[kept], impacts[kept], owners[kept]
        output.write_postings(documents, impacts)
        return np.bincount(owners, minlength=terms)


def _chunks(entries: _Entries, terms: Integers) -> Iterator[_Chunk]:
    """The postings of entries, so many at a time; those of a frequent term in several pieces."""
    ends = np.cumsum(entries.counts)
    starts = ends - entries.counts
    for start in range(0, int(ends[-1]), _POSTINGS):
        stop = start + _POSTINGS
        first, end = np.searchsorted(ends, start, side="right"), np.searchsorted(starts, stop)
        part = slice(int(first), int(end))
        before = np.maximum(start - starts[part], 0)
        after = np.maximum(ends[part] - stop, 0)
        yield _Chunk(
            entries.numbers[part],
            entries.begins[part] + before,
            entries.counts[part] - before - after,
            terms[part],
        )


@dataclass(frozen=True, eq=False)
class _Entries:
    """Terms of segments in their new order, one that several have several times, by segment.

    `numbers` are the segments. The postings of an entry are `counts` from `begins` on there,
    and its name has `name_lengths` bytes from `name_begins` on in `names`.
    """

    hashes: npt.NDArray[np.uint32]
    numbers: Integers
    begins: Integers
    counts: Integers
    name_begins: Integers
    name_lengths: Integers
    names: npt.NDArray[np.uint8]

    @classmethod
    def read(
        cls, segments: Sequence[Segment], firsts: Sequence[int], ends: Sequence[int]
    ) -> _Entries:
        """The terms of segments from `firsts` to `ends`."""
        read, size = [], 0
        for number, (segment, first, end) in enumerate(zip(segments, firsts, ends, strict=True)):
            starts = segment.starts[first : end + 1]
            name_starts = np.zeros(end - first + 1, dtype=np.int64)
            name_starts[1:] = segment.ends[first:end]
            name_starts[0] = segment.ends[first - 1] if first else 0
            names = np.array(segment.names[name_starts[0] : name_starts[-1]])
            read.append(
                (
                    np.array(segment.hashes[first:end]),
                    np.full(end - first, number),
                    np.array(starts[:-1]),
                    np.diff(starts),
                    name_starts[:-1] + (size - name_starts[0]),
                    np.diff(name_starts),
                    names,
                )
            )
            size += len(names)
            segment.release()
        entries = cls(*map(np.concatenate, zip(*read, strict=True)))
        return entries.reordered(np.argsort(entries.hashes, kind="stable")).with_collisions_sorted()

    def reordered(self, order: Integers) -> _Entries:
        """The entries in another order."""
        return _Entries(
            self.hashes[order],
            self.numbers[order],
            self.begins[order],
            self.counts[order],
            self.name_begins[order],
            self.name_lengths[order],
            self.names,
        )

    def with_collisions_sorted(self) -> _Entries:
        """Different terms with the same hash in the order of their names."""
        is_same = self.hashes[1:] == self.hashes[:-1]
        order = np.arange(len(self.hashes))
        for value in np.unique(self.hashes[1:][is_same & self.is_new()[1:]]):
            part = slice(*np.searchsorted(self.hashes, (value, int(value) + 1)))
            order[part] = sorted(order[part].tolist(), key=self._name)
        return self.reordered(order)

    def _name(self, entry: int) -> bytes:
        first = self.name_begins[entry]
        return self.names[first : first + self.name_lengths[entry]].tobytes()

    def is_new(self) -> npt.NDArray[np.bool_]:
        """Whether the term of each entry is another one than that before."""
        is_new = np.ones(len(self.hashes), dtype=np.bool_)
        lengths = self.name_lengths
        same = (self.hashes[1:] == self.hashes[:-1]) & (lengths[1:] == lengths[:-1])
        repeated = np.flatnonzero(same) + 1
        counts = lengths[repeated]
        ours = self.names[_places(self.name_begins[repeated], counts)]
        theirs = self.names[_places(self.name_begins[repeated - 1], counts)]
        owners = np.repeat(np.arange(len(repeated)), counts)
        differing = np.bincount(owners[ours != theirs], minlength=len(repeated))
        is_new[repeated] = differing > 0
        return is_new


def _ranges_of_terms(segments: Sequence[Segment]) -> Iterator[tuple[list[int], list[int]]]:
    """Where ranges of hashes begin and end in each segment."""
    sizes = [len(segment.hashes) for segment in segments]
    firsts = [0] * len(segments)
    while firsts != sizes:
        terms, size = max(_TERMS // len(segments), 1), max(_BYTES // len(segments), 1)
        ends = firsts
        while ends == firsts:
            reached = [
                _reached(segment, first, terms, size)
                for segment, first in zip(segments, firsts, strict=True)
            ]
            # Terms with a lower hash than all that are left are complete.
            left = [
                int(segment.hashes[end])
                for segment, end in zip(segments, reached, strict=True)
                if end < len(segment.hashes)
            ]
            ends = reached
            if left:
                ends = [
                    first + int(np.searchsorted(segment.hashes[first:end], min(left)))
                    for segment, first, end in zip(segments, firsts, reached, strict=True)
                ]
            # More of them have the same hash.
            terms, size = 2 * terms, 2 * size
        yield firsts, ends
        firsts = ends


def _reached(segment: Segment, first: int, terms: int, size: int) -> int:
    """The end of at most so many terms whose names have so many bytes, but of one at least."""
    most = min(first + terms, len(segment.hashes))
    if first == most:
        return first
    limit = size + (segment.ends[first - 1] if first else 0)
    within = int(np.searchsorted(segment.ends[first:most], limit, side="right"))
    return first + max(within, 1)


def _places(begins: Integers, counts: Integers) -> Integers:
    """So many numbers from each of `begins` on, one after another."""
    places = np.repeat(begins - (np.cumsum(counts) - counts), counts)
    places += np.arange(len(places))
    return places
