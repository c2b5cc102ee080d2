"""Adds up the postings of queries and selects the best documents, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.uint64]

# Documents whose scores stay in the processor's cache while all terms of a query are added.
_BLOCK = 1 << 17
# Scores that are skipped together if none of them is high enough.
_STRIP = 64


@compile_function()
def add_postings(
    begins: Places,
    ends: Places,
    weights: Floats,
    documents: npt.NDArray[np.uint32],
    impacts: npt.NDArray[Any],
    table: Floats,
    scores: Floats,
) -> bool:
    """Add the weighted impacts of some terms' postings to the scores of documents.

    The postings of a term are those from its begin to its end, by document. `table`
    holds the impact that each of `impacts` stands for. False for postings that cannot
    be right: their file is damaged.
    """
    reached = begins.copy()
    stop = np.uint64(_BLOCK)
    while True:
        last = min(stop, np.uint64(len(scores)))
        is_end = stop >= len(scores)
        for term in range(len(begins)):
            place, end, weight = reached[term], ends[term], weights[term]
            while place < end:
                document, impact = documents[place], impacts[place]
                if document >= last:
                    if is_end:
                        return False
                    break
                if impact >= len(table):
                    return False
                scores[document] += weight * table[impact]
                place += np.uint64(1)
            reached[term] = place
        if is_end:
            return True
        stop += np.uint64(_BLOCK)


@compile_function()
def best_places(scores: Floats, k: int, tie: float) -> npt.NDArray[np.int64]:
    """Where the `k` highest positive scores are, with all that equal the last of them.

    Scores that differ by less than `tie` of the highest count as equal.
    """
    strips = (len(scores) + _STRIP - 1) // _STRIP
    highest = np.empty(strips, dtype=np.float32)
    heap = np.zeros(k, dtype=np.float32)
    for strip in range(strips):
        scores_here = scores[strip * _STRIP : (strip + 1) * _STRIP]
        highest[strip] = _maximum(scores_here)
        if highest[strip] > heap[0]:
            for score in scores_here:
                if score > heap[0]:
                    replace_lowest(heap, score)
    lowest = heap[0] - 2 * tie * _maximum(highest)
    places = []
    for strip in range(strips):
        if highest[strip] > 0 and highest[strip] >= lowest:
            for place in range(strip * _STRIP, min((strip + 1) * _STRIP, len(scores))):
                if scores[place] > 0 and scores[place] >= lowest:
                    places.append(place)  # noqa: PERF401 - numba compiles a loop
    return np.array(places, dtype=np.int64)


@compile_function(fastmath=True)
def _maximum(values: Floats) -> np.float32:
    """The highest of some values, 0 for none; several are compared in one instruction."""
    highest = np.float32(0)
    for value in values:
        highest = max(highest, value)
    return highest


@compile_function()
def replace_lowest(heap: Floats, value: np.float32) -> None:
    """Replace the lowest value of a heap, which is its first, by a higher one."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = value
