"""Products of sparse matrices where only some entries count, compiled by numba.

Each function takes the arrays of a matrix of documents × something and of one of
something × columns. Sums are formed in the order in which SciPy forms them, so that
both give the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function
from labelkin.neighbours.postings_kernel import replace_lowest
from labelkin.rerank.pairs import Floats, Integers

Indices = npt.NDArray[np.uint32]

# Sums of single-precision weights may miss 1 by a little.
_WHOLE = 0.999


@compile_function()
def _add_products(
    document: int,
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    sums: npt.NDArray[Any],
) -> None:
    """Add a line of the product to `sums`."""
    starts, indices, data = left
    right_starts, columns, values = right
    for place in range(starts[document], starts[document + 1]):
        line, weight = indices[place], data[place]
        for entry in range(right_starts[line], right_starts[line + 1]):
            sums[columns[entry]] += weight * values[entry]


@compile_function()
def product_entries(
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    pair_starts: Integers,
    pair_columns: Integers,
    sums: npt.NDArray[Any],
    entries: Floats,
) -> None:
    """Set `entries` to the entry of each pair in the product; `sums` are zeros, one a column."""
    for document in range(len(pair_starts) - 1):
        first, end = pair_starts[document], pair_starts[document + 1]
        if first < end:
            _add_products(document, left, right, sums)
            for pair in range(first, end):
                entries[pair] = sums[pair_columns[pair]]
            sums[:] = 0


@compile_function()
def rank_values(starts: Integers, values: npt.NDArray[Any], ranks: Floats) -> None:
    """Set `ranks` to the rank of each value within its document, from 0 for the highest.

    Of equal ones the first comes first; NaN comes last.
    """
    for document in range(len(starts) - 1):
        first, end = starts[document], starts[document + 1]
        order = np.argsort(-values[first:end], kind="mergesort")
        for rank in range(end - first):
            ranks[first + order[rank]] = rank


@compile_function()
def largest_values(
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    pair_starts: Integers,
    pair_columns: Integers,
    largest: Floats,
    values: Floats,
) -> None:
    """Set `values` to the largest entry of the right matrix that each pair's document meets.

    `largest` are zeros, one a column.
    """
    starts, indices, _ = left
    right_starts, columns, data = right
    for document in range(len(pair_starts) - 1):
        for place in range(starts[document], starts[document + 1]):
            line = indices[place]
            for entry in range(right_starts[line], right_starts[line + 1]):
                column = columns[entry]
                largest[column] = max(largest[column], data[entry])
        for pair in range(pair_starts[document], pair_starts[document + 1]):
            values[pair] = largest[pair_columns[pair]]
        largest[:] = 0


@compile_function()
def best_sums(
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    shifts: Floats,
    places: Integers,
    values: Floats,
) -> None:
    """Set each line of `places` to where the highest sums are, ascending, and `values` to these.

    A sum is an entry of the product and the shift of its column. Of equal ones at the end
    the first are taken.
    """
    sums = np.empty(len(shifts), dtype=np.float32)
    for document in range(len(places)):
        sums[:] = 0
        _add_products(document, left, right, sums)
        _keep_best(sums, shifts, places[document], values[document])


@compile_function()
def best_half_sums(
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Any, npt.NDArray[np.uint16]],
    singles: Floats,
    shifts: Floats,
    places: Integers,
    values: Floats,
) -> None:
    """The same for a right matrix in half precision; `singles` has its numbers by their bits."""
    starts, indices, data = left
    right_starts, columns, halves = right
    sums = np.empty(len(shifts), dtype=np.float32)
    for document in range(len(places)):
        sums[:] = 0
        for place in range(starts[document], starts[document + 1]):
            line, weight = indices[place], data[place]
            for entry in range(right_starts[line], right_starts[line + 1]):
                sums[columns[entry]] += weight * singles[halves[entry]]
        _keep_best(sums, shifts, places[document], values[document])


@compile_function()
def _keep_best(sums: Floats, shifts: Floats, places: Integers, values: Floats) -> None:
    """Add the shifts, and set `places` to where the highest sums are, `values` to these."""
    heap = np.full(len(places), -np.inf, dtype=np.float32)
    for column in range(len(sums)):
        sums[column] += shifts[column]
        if sums[column] > heap[0]:
            replace_lowest(heap, sums[column])
    lowest = heap[0]
    ties = len(places)
    for column in range(len(sums)):
        if sums[column] > lowest:
            ties -= 1
    filled = 0
    for column in range(len(sums)):
        if sums[column] > lowest or (sums[column] == lowest and ties > 0):
            ties -= sums[column] == lowest
            places[filled] = column
            values[filled] = sums[column]
            filled += 1


@compile_function()
def _cover(
    document: int,
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    bearers: Integers,
    whole_weights: Floats,
    sums: Floats,
    names: Integers,
    covers: Floats,
    headings: Integers,
) -> int:
    """Find what a document has of the names of headings; how many headings have a word of it.

    These are the first of `headings`. The columns of `covers` have for each heading the share of
    its best covered name, the largest weight, and how many names are there as a whole.
    """
    starts, indices, data = left
    right_starts, columns, values = right
    count = 0
    for place in range(starts[document], starts[document + 1]):
        line, weight = indices[place], data[place]
        for entry in range(right_starts[line], right_starts[line + 1]):
            name, added = columns[entry], weight * values[entry]
            # A word that all documents have weighs nothing.
            if added > 0:
                if sums[name] == 0:
                    names[count] = name
                    count += 1
                sums[name] += added
    touched = 0
    for place in range(count):
        name = names[place]
        heading = bearers[name]
        share = sums[name] / max(whole_weights[name], np.float32(1e-9))
        if covers[heading, 1] == 0:
            headings[touched] = heading
            touched += 1
        covers[heading, 0] = max(covers[heading, 0], share)
        covers[heading, 1] = max(covers[heading, 1], sums[name])
        covers[heading, 2] += share > np.float32(_WHOLE)
        sums[name] = 0
    return touched


@compile_function()
def best_covered(
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    bearers: Integers,
    whole_weights: Floats,
    is_allowed: npt.NDArray[np.bool_],
    limit: int,
) -> Integers:
    """The keys of the allowed headings of whose names each document has most, `limit` at most."""
    documents, width = len(left[0]) - 1, len(is_allowed)
    sums = np.zeros(len(bearers), dtype=np.float32)
    names = np.empty(len(bearers), dtype=np.int64)
    covers = np.zeros((width, 3), dtype=np.float32)
    headings = np.empty(width, dtype=np.int64)
    heap = np.empty(limit, dtype=np.float32)
    keys = np.empty(documents * limit, dtype=np.int64)
    count = 0
    for document in range(documents):
        touched = _cover(
            document, left, right, bearers, whole_weights, sums, names, covers, headings
        )
        mine = np.sort(headings[:touched])
        heap[:] = 0
        for heading in mine:
            strength = covers[heading, 1] * covers[heading, 0]
            if is_allowed[heading] and strength > heap[0]:
                replace_lowest(heap, strength)
        ties = limit
        for heading in mine:
            ties -= is_allowed[heading] and covers[heading, 1] * covers[heading, 0] > heap[0]
        for heading in mine:
            strength = covers[heading, 1] * covers[heading, 0]
            is_last = strength == heap[0] and strength > 0 and ties > 0
            if is_allowed[heading] and (strength > heap[0] or is_last):
                ties -= is_last
                keys[count] = document * width + heading
                count += 1
            covers[heading] = 0
    return keys[:count]


@compile_function()
def covered_values(
    left: tuple[Integers, Indices, Floats],
    right: tuple[Integers, Indices, Floats],
    bearers: Integers,
    whole_weights: Floats,
    pair_starts: Integers,
    pair_columns: Integers,
    width: int,
) -> Floats:
    """For each pair the share of the best covered name, the largest weight, the whole names."""
    sums = np.zeros(len(bearers), dtype=np.float32)
    names = np.empty(len(bearers), dtype=np.int64)
    covers = np.zeros((width, 3), dtype=np.float32)
    headings = np.empty(width, dtype=np.int64)
    values = np.empty((3, len(pair_columns)), dtype=np.float32)
    for document in range(len(pair_starts) - 1):
        touched = _cover(
            document, left, right, bearers, whole_weights, sums, names, covers, headings
        )
        for pair in range(pair_starts[document], pair_starts[document + 1]):
            values[:, pair] = covers[pair_columns[pair]]
        for heading in headings[:touched]:
            covers[heading] = 0
    return values
