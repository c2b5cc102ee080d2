"""Segments of an inverted index: terms and their postings as arrays, mapped from disk.

A segment is a folder of arrays that never change:

    rows.npy        the row of each document
    hashes.npy      CRC-32 of each term with its field; terms are in the order of these
    ends.npy        where each term ends in names.npy
    names.npy       the terms one after another, in UTF-8, each after a byte for its field
    starts.npy      where the postings of each term begin, and the end of the last
    documents.npy   postings: documents by term, ascending
    impacts.npy     postings: places in the table of impacts
    table.npy       what an impact depends on: field, frequency of the term, length of the field

BM25 needs the average length of a field, which changes with every document that is
added. So a posting does not hold its impact but a place in a table, which has a few
thousand entries and is computed for each state of the index.
"""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelkin.atomic import sync_folder
from labelkin.checksums import BlockChecksums, ChecksumWriter, write_array_header
from labelkin.neighbours.bm25 import K1, LENGTHS, B, FieldStatistics
from labelkin.neighbours.engine import IndexedDocument

Integers = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[Any]]
Checksums = dict[str, BlockChecksums]

_LENGTHS = np.array(LENGTHS)
_TABLE_ROWS = 3
# Postings that are merged at a time.
_CHUNK = 2_000_000
_SMALL_TABLE = 1 << 16
_MOST_FIELDS = 1 << 8
# Bytes; tantivy leaves longer terms out, and does not count them either.
_LONGEST_TERM = (1 << 16) - 6


@dataclass(frozen=True, eq=False)
class Segment:
    """Some documents, by ascending rows, with their postings."""

    rows: Integers
    hashes: npt.NDArray[np.uint32]
    ends: Integers
    names: npt.NDArray[np.uint8]
    starts: Integers
    documents: npt.NDArray[np.uint32]
    impacts: npt.NDArray[Any]
    table: npt.NDArray[np.int32]

    @classmethod
    def open(cls, folder: Path) -> Segment:
        """Map the files of a segment into memory; ValueError if they do not fit each other."""
        arrays = {
            name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False))
            for name in FILES
        }
        segment = cls(**arrays)
        terms, postings = len(segment.hashes), len(segment.documents)
        if (
            len(segment.ends) != terms
            or len(segment.starts) != terms + 1
            or segment.starts[-1] != postings
            or len(segment.impacts) != postings
            or segment.table.shape[:1] != (_TABLE_ROWS,)
        ):
            raise ValueError(f"{folder}: files that do not fit each other")
        return segment

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _bytes(self) -> memoryview[int]:
        return self.names.data

    def name(self, term: int) -> memoryview[int]:
        """The term at a place, with the byte for its field."""
        return self._bytes[self.ends[term - 1] if term else 0 : self.ends[term]]

    def find(self, keys: Sequence[bytes], hashes: npt.NDArray[np.uint32]) -> Integers:
        """The places of terms, as `term_key` gives them, −1 for those that are not there."""
        found = np.full(len(keys), -1, dtype=np.int64)
        firsts = np.searchsorted(self.hashes, hashes)
        lasts = np.searchsorted(self.hashes, hashes, side="right")
        there = np.flatnonzero(lasts > firsts)
        for number in there.tolist():
            for place in range(firsts[number], lasts[number]):
                if self.name(place) == keys[number]:
                    found[number] = place
        return found

    def places_of(self, rows: Integers) -> Integers:
        """Where some rows are in the segment; those that are not there are left out."""
        if not len(self.rows):
            return np.zeros(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        there: Integers = places[self.rows[places] == rows]
        return there

    @cached_property
    def lengths(self) -> Integers:
        """How many terms all documents have in each field, by the field's number."""
        fields, frequencies, _ = self.table
        counts = np.zeros(len(fields), dtype=np.int64)
        for start in range(0, len(self.impacts), _CHUNK):
            counts += np.bincount(self.impacts[start : start + _CHUNK], minlength=len(fields))
        return np.bincount(fields, counts * frequencies, minlength=_MOST_FIELDS).astype(np.int64)

    def impact_table(self, statistics: Sequence[FieldStatistics]) -> npt.NDArray[np.float32]:
        """What a posting of each kind adds to a score before weight and idf (`bm25.py`)."""
        fields, frequencies, lengths = self.table
        averages = np.array([one.average_length or 1.0 for one in statistics])
        damping = K1 * (1 - B + B * _LENGTHS[lengths] / averages[fields])
        impacts = (K1 + 1) * frequencies / (frequencies + damping)
        return np.asarray(impacts, dtype=np.float32)


FILES = ("rows", "hashes", "ends", "names", "starts", "documents", "impacts", "table")


def term_key(field: int, term: str) -> bytes:
    """A term with its field, as segments keep it."""
    return bytes((field,)) + term.encode("utf-8", "surrogatepass")


def term_hashes(keys: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """The hashes that terms are found by."""
    return np.fromiter(map(zlib.crc32, keys), dtype=np.uint32, count=len(keys))


class SegmentBuilder:
    """Collects documents for a new segment."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._rows: list[int] = []
        self._terms: list[dict[str, int]] = [{} for _ in fields]
        self._tokens = [array("I") for _ in fields]
        self._lengths: list[list[int]] = [[] for _ in fields]

    @property
    def tokens(self) -> int:
        """How many terms have been collected, repeats included."""
        return sum(map(len, self._tokens))

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, documents: Iterable[IndexedDocument]) -> None:
        """Add documents; rows ascend."""
        for row, by_field in documents:
            self._rows.append(row)
            for field, terms, tokens, lengths in zip(
                self._fields, self._terms, self._tokens, self._lengths, strict=True
            ):
                of_field = by_field.get(field, ())
                if max(map(len, of_field), default=0) > _LONGEST_TERM // 4:
                    of_field = [term for term in of_field if len(term.encode()) <= _LONGEST_TERM]
                tokens.extend([terms.setdefault(term, len(terms)) for term in of_field])
                lengths.append(len(of_field))

    def write(self, folder: Path) -> Checksums:
        """Write the segment into a new folder; the checksums of its files."""
        return write_arrays(folder, self._arrays())

    def _arrays(self) -> Arrays:
        keys = [
            term_key(number, term) for number, terms in enumerate(self._terms) for term in terms
        ]
        hashes = term_hashes(keys)
        order = _by_hash(hashes, keys)
        place_of = np.empty(len(keys), dtype=np.int64)
        place_of[order] = np.arange(len(keys))
        terms, documents, frequencies, kinds = self._postings(place_of)
        impacts, table = _impacts(kinds, frequencies)
        counts = np.bincount(terms, minlength=len(keys))
        return {
            **_dictionary([keys[place] for place in order.tolist()], counts),
            "rows": np.array(self._rows, dtype=np.int64),
            "documents": documents,
            "impacts": impacts,
            "table": table,
        }

    def _postings(
        self, place_of: Integers
    ) -> tuple[Integers, npt.NDArray[np.uint32], Integers, Integers]:
        """Term, document, frequency, and field with length, of each posting in order."""
        everything = np.arange(len(self._rows), dtype=np.int64)
        keys, codes, first = [], [], 0
        for number, tokens in enumerate(self._tokens):
            lengths = np.array(self._lengths[number], dtype=np.int64)
            places = place_of[first + np.frombuffer(tokens, dtype=np.uint32).astype(np.int64)]
            keys.append(places << 32 | np.repeat(everything, lengths))
            codes.append(np.searchsorted(_LENGTHS, lengths, side="right") - 1)
            first += len(self._terms[number])
        distinct, frequencies = np.unique(np.concatenate(keys), return_counts=True)
        terms, documents = distinct >> 32, distinct & (1 << 32) - 1
        field_of = np.empty(len(place_of), dtype=np.int64)
        field_of[place_of] = np.repeat(np.arange(len(self._terms)), list(map(len, self._terms)))
        fields = field_of[terms]
        return (
            terms,
            documents.astype(np.uint32),
            frequencies,
            fields << 8 | np.array(codes)[fields, documents],
        )


def merge_segments(
    segments: Sequence[Segment], dead: Sequence[npt.NDArray[np.bool_]], folder: Path
) -> Checksums:
    """Write adjacent segments as one into a new folder, without the documents that are dead.

    Returns the checksums of its files.

    Terms are in the order of their hashes in all segments, so that a range of terms is a
    range of postings in each. Ranges are merged one after another.
    """
    places, table = _joined_tables(segments)
    rows = [segment.rows[~gone] for segment, gone in zip(segments, dead, strict=True)]
    firsts = np.cumsum([0, *map(len, rows)])
    renumbered = [
        np.where(gone, -1, first + np.cumsum(~gone) - 1)
        for first, gone in zip(firsts, dead, strict=False)
    ]
    owners = _owners(segments)
    counts = np.zeros(len(owners), dtype=np.int64)
    total = sum(
        int(np.count_nonzero(~gone[segment.documents[start : start + _CHUNK]]))
        for segment, gone in zip(segments, dead, strict=True)
        for start in range(0, len(segment.documents), _CHUNK)
    )
    kind = np.dtype(np.uint16 if table.shape[1] <= _SMALL_TABLE else np.uint32)
    folder.mkdir(parents=True)
    with (
        _ArrayFile(folder / "documents.npy", (total,), np.dtype(np.uint32)) as documents,
        _ArrayFile(folder / "impacts.npy", (total,), kind) as impacts,
    ):
        for first, end in _ranges(segments, owners):
            parts = [
                _postings_of(segment, owners[first:end, number], renumbered[number], places[number])
                for number, segment in enumerate(segments)
            ]
            terms, numbers, entries = (np.concatenate(part) for part in zip(*parts, strict=True))
            order = np.argsort(terms, kind="stable")
            documents.write(numbers[order].astype(np.uint32))
            impacts.write(entries[order].astype(kind))
            counts[first:end] = np.bincount(terms, minlength=end - first)
    used = np.flatnonzero(counts)
    rest = _dictionary(list(_names(segments, owners[used])), counts[used])
    rest |= {"rows": np.concatenate(rows), "table": table}
    return documents.checksums | impacts.checksums | write_arrays(folder, rest)


def _postings_of(
    segment: Segment, own: Integers, renumbered: Integers, places: Integers
) -> tuple[Integers, Integers, Integers]:
    """The postings of a range of terms: term within the range, new document, new table entry.

    `own` are the places of the terms in the segment, −1 for those that it lacks.
    """
    there = np.flatnonzero(own >= 0)
    if not len(there):
        return there, there, there
    first, end = own[there[0]], own[there[-1]] + 1
    part = slice(segment.starts[first], segment.starts[end])
    terms = np.repeat(there, np.diff(segment.starts[first : end + 1]))
    documents = renumbered[segment.documents[part]]
    kept = documents >= 0
    return terms[kept], documents[kept], places[segment.impacts[part]][kept]


def _dictionary(names: Sequence[bytes], counts: Integers) -> Arrays:
    """The arrays of terms in the order of their hashes, with so many postings each."""
    return {
        "hashes": term_hashes(names),
        "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
        "names": np.frombuffer(b"".join(names), dtype=np.uint8),
        "starts": np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    }


def _ranges(segments: Sequence[Segment], owners: Integers) -> Iterator[tuple[int, int]]:
    """Ranges of terms with about as many postings as are merged at a time."""
    sizes = np.zeros(len(owners), dtype=np.int64)
    for number, segment in enumerate(segments):
        there = owners[:, number] >= 0
        sizes[there] += np.diff(segment.starts)[owners[there, number]]
    before = np.concatenate(([0], np.cumsum(sizes)))
    first = 0
    while first < len(owners):
        end = int(np.searchsorted(before, before[first] + _CHUNK, side="right")) - 1
        end = max(end, first + 1)
        yield first, end
        first = end


def _owners(segments: Sequence[Segment]) -> Integers:
    """For each term of any segment its place in each of them, −1 where it is not."""
    hashes = np.concatenate([segment.hashes for segment in segments])
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    sizes = [len(segment.hashes) for segment in segments]
    numbers: Integers = np.repeat(np.arange(len(segments)), sizes)[order]
    places: Integers = np.concatenate([np.arange(size) for size in sizes])[order]

    def name(at: int) -> memoryview[int]:
        return segments[int(numbers[at])].name(int(places[at]))

    repeated = np.flatnonzero(hashes[1:] == hashes[:-1]) + 1
    differing = [at for at in repeated.tolist() if name(at) != name(at - 1)]
    is_new = np.ones(len(hashes), dtype=np.bool_)
    is_new[repeated] = False
    for value in np.unique(hashes[differing]):
        # Different terms with the same hash are in the order of their names.
        first, end = np.searchsorted(hashes, value), np.searchsorted(hashes, value, side="right")
        ordered = sorted(range(first, end), key=lambda at: (bytes(name(at)), numbers[at]))
        numbers[first:end], places[first:end] = numbers[ordered], places[ordered]
        is_new[first:end] = [at == first or name(at) != name(at - 1) for at in range(first, end)]
    owners = np.full((int(is_new.sum()), len(segments)), -1, dtype=np.int64)
    owners[np.cumsum(is_new) - 1, numbers] = places
    return owners


def _names(segments: Sequence[Segment], owners: Integers) -> Iterator[bytes]:
    """The name of each term, from the first segment that has it."""
    firsts = np.argmax(owners >= 0, axis=1)
    places = owners[np.arange(len(owners)), firsts]
    for number, place in zip(firsts.tolist(), places.tolist(), strict=True):
        yield bytes(segments[number].name(place))


def _joined_tables(segments: Sequence[Segment]) -> tuple[list[Integers], npt.NDArray[np.int32]]:
    """For each segment the places of its kinds of postings in a table of all, and that table."""
    tables = np.concatenate([segment.table for segment in segments], axis=1)
    joined, places = np.unique(tables, axis=1, return_inverse=True)
    sizes = [segment.table.shape[1] for segment in segments]
    parts = np.split(places.ravel().astype(np.int64), np.cumsum(sizes)[:-1])
    return parts, joined.astype(np.int32)


def _by_hash(hashes: npt.NDArray[np.uint32], keys: Sequence[bytes]) -> Integers:
    """The order of terms by hash, those of equal hashes by name."""
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if len(same):
        order = np.array(sorted(order.tolist(), key=lambda at: (hashes[at], keys[at])))
    return order


def _impacts(
    kinds: Integers, frequencies: Integers
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The place of each posting in a table of the different ones, the most frequent first."""
    distinct, places, counts = np.unique(
        kinds << 32 | frequencies, return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    place_of = np.empty(len(order), dtype=np.uint32)
    place_of[order] = np.arange(len(order))
    kinds = distinct[order] >> 32
    table = np.array((kinds >> 8, distinct[order] & (1 << 32) - 1, kinds & 255), dtype=np.int32)
    impacts = place_of[places.ravel()]
    return impacts.astype(np.uint16) if len(order) <= _SMALL_TABLE else impacts, table


class _ArrayFile:
    """An array that is written in parts; its shape is known beforehand."""

    def __init__(self, path: Path, shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
        self._path = path
        self._file = path.open("wb")
        self._writer = ChecksumWriter(self._file)
        write_array_header(self._writer, shape, kind)

    @property
    def checksums(self) -> Checksums:
        return {self._path.name: self._writer.checksums()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())

    def write(self, values: npt.NDArray[Any]) -> None:
        self._writer.write(values.tobytes())


def write_arrays(folder: Path, arrays: Arrays) -> Checksums:
    """Write arrays into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    checksums: Checksums = {}
    for name, values in arrays.items():
        with _ArrayFile(folder / f"{name}.npy", values.shape, values.dtype) as file:
            file.write(values)
        checksums |= file.checksums
    sync_folder(folder)
    return checksums
