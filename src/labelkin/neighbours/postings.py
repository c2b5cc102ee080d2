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

import mmap
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.bm25 import K1, LENGTHS, B, FieldStatistics

Integers = npt.NDArray[np.int64]

_LENGTHS = np.array(LENGTHS)
_TABLE_ROWS = 3
# Postings that are read at a time.
_CHUNK = 1 << 18
_MOST_FIELDS = 1 << 8
_SMALL_TABLE = 1 << 16


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

    def located(self, rows: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Where some rows are in the segment, and whether they are there."""
        if not len(self.rows):
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return places, self.rows[places] == rows

    def places_of(self, rows: Integers) -> Integers:
        """Where some rows are in the segment; those that are not there are left out."""
        places, there = self.located(rows)
        return places[there]

    def newest_but(self, removed: Integers) -> int:
        """The last row that is not among some, which ascend; −1 if there is none."""
        gone = self.places_of(removed)
        # Counted from the end, all of the last so many have been removed.
        last = len(self.rows) - 1
        is_end = gone[::-1] == last - np.arange(len(gone))
        left = last - (len(gone) if is_end.all() else int(np.argmin(is_end)))
        return int(self.rows[left]) if left >= 0 else -1

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

    def release(self) -> None:
        """Release the pages that have been read; for sequential readers."""
        for one in self._mappings:
            one.madvise(mmap.MADV_DONTNEED)

    @cached_property
    def _mappings(self) -> list[mmap.mmap]:
        if not hasattr(mmap, "MADV_DONTNEED"):
            return []
        bases = [_base(getattr(self, name)) for name in FILES]
        return [one for one in bases if isinstance(one, mmap.mmap)]


FILES = ("rows", "hashes", "ends", "names", "starts", "documents", "impacts", "table")


def _base(values: Any) -> Any:
    """What holds the values of an array."""
    while isinstance(values, np.ndarray):
        values = values.base
    return values


def term_key(field: int, term: str) -> bytes:
    """A term with its field, as segments keep it."""
    return bytes((field,)) + term.encode("utf-8", "surrogatepass")


def term_hashes(keys: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    """The hashes that terms are found by."""
    return np.fromiter(map(zlib.crc32, keys), dtype=np.uint32, count=len(keys))


def length_codes(lengths: Integers) -> Integers:
    """Each length of a field as the byte that stands for it (`bm25.py`)."""
    return np.asarray(np.searchsorted(_LENGTHS, lengths, side="right") - 1, dtype=np.int64)


def impact_type(table_size: int) -> np.dtype[Any]:
    """The type of places in a table of so many impacts."""
    return np.dtype(np.uint16 if table_size <= _SMALL_TABLE else np.uint32)
