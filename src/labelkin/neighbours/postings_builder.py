"""Collecting documents for a segment of postings."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.neighbours.array_file import Arrays, Checksums, write_arrays
from labelkin.neighbours.engine import IndexedDocument
from labelkin.neighbours.postings import (
    Integers,
    impact_type,
    length_codes,
    term_hashes,
    term_key,
)

# Bytes; tantivy leaves longer terms out, and does not count them either.
_LONGEST_TERM = (1 << 16) - 6
_LOW_HALF = (1 << 32) - 1


class SegmentBuilder:
    """Collects documents for a new segment, in memory."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._rows: list[int] = []
        self._terms: list[dict[str, int]] = [{} for _ in fields]
        self._tokens = [array("I") for _ in fields]
        self._lengths: list[list[int]] = [[] for _ in fields]
        #: How much has been collected: documents and their terms, repeats included.
        self.size = 0

    def add(self, document: IndexedDocument) -> None:
        """Add a document; rows ascend."""
        row, by_field = document
        self._rows.append(row)
        self.size += 1
        for field, terms, tokens, lengths in zip(
            self._fields, self._terms, self._tokens, self._lengths, strict=True
        ):
            of_field = by_field.get(field, ())
            if max(map(len, of_field), default=0) > _LONGEST_TERM // 4:
                of_field = [term for term in of_field if len(term.encode()) <= _LONGEST_TERM]
            tokens.extend([terms.setdefault(term, len(terms)) for term in of_field])
            lengths.append(len(of_field))
            self.size += len(of_field)

    def write(self, folder: Path) -> Checksums:
        """Write the segment into a new folder; the checksums of its files."""
        return write_arrays(folder, self._arrays())

    def _arrays(self) -> Arrays:
        keys = [
            term_key(number, term) for number, terms in enumerate(self._terms) for term in terms
        ]
        order = _by_hash(term_hashes(keys), keys)
        place_of = np.empty(len(keys), dtype=np.int64)
        place_of[order] = np.arange(len(keys))
        terms, documents, frequencies = self._postings(place_of)
        impacts, table = _impacts(self._kinds(place_of, terms, documents), frequencies)
        names = [keys[place] for place in order.tolist()]
        counts = np.bincount(terms, minlength=len(keys))
        return {
            "rows": np.array(self._rows, dtype=np.int64),
            "hashes": term_hashes(names),
            "ends": np.cumsum([len(name) for name in names], dtype=np.int64),
            "names": np.frombuffer(b"".join(names), dtype=np.uint8),
            "starts": np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            "documents": documents.astype(np.uint32),
            "impacts": impacts,
            "table": table,
        }

    def _postings(self, place_of: Integers) -> tuple[Integers, Integers, Integers]:
        """Term, document and frequency of each posting, in the order of the first two."""
        everything = np.arange(len(self._rows), dtype=np.int64)
        pairs, first = [], 0
        for terms, tokens, lengths in zip(self._terms, self._tokens, self._lengths, strict=True):
            places = place_of[first : first + len(terms)][np.frombuffer(tokens, dtype=np.uint32)]
            pairs.append(places << 32 | np.repeat(everything, lengths))
            first += len(terms)
        of_all = np.concatenate(pairs)
        del pairs
        of_all.sort()
        firsts = np.flatnonzero(np.diff(of_all, prepend=-1))
        frequencies = np.diff(firsts, append=len(of_all))
        distinct = of_all[firsts]
        return distinct >> 32, distinct & _LOW_HALF, frequencies

    def _kinds(self, place_of: Integers, terms: Integers, documents: Integers) -> Integers:
        """Field, and length of the field in the document, of each posting as one number."""
        field_of = np.empty(len(place_of), dtype=np.int64)
        field_of[place_of] = np.repeat(np.arange(len(self._terms)), list(map(len, self._terms)))
        codes = [length_codes(np.array(lengths, dtype=np.int64)) for lengths in self._lengths]
        fields = field_of[terms]
        return fields << 8 | np.array(codes)[fields, documents]


def _by_hash(hashes: npt.NDArray[np.uint32], keys: Sequence[bytes]) -> Integers:
    """The order of terms by hash, those of equal hashes by name."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    for value in np.unique(ordered[1:][ordered[1:] == ordered[:-1]]):
        part = slice(*np.searchsorted(ordered, (value, int(value) + 1)))
        order[part] = sorted(order[part].tolist(), key=keys.__getitem__)
    return order


def _impacts(
    kinds: Integers, frequencies: Integers
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
    """The place of each posting in a table of the different ones, and that table."""
    distinct, places = np.unique(kinds << 32 | frequencies, return_inverse=True)
    kinds = distinct >> 32
    table = np.array((kinds >> 8, distinct & _LOW_HALF, kinds & 255), dtype=np.int32)
    return places.ravel().astype(impact_type(len(distinct))), table
