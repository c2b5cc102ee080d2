"""Adds up the postings of queries and selects the best documents, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.compiled import compile_function

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Hashes = npt.NDArray[np.uint32]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.uint64]
# Documents and scores, those of a query from one start to the next.
Candidates = tuple[Integers, Floats, Integers]

# Documents whose scores stay in the processor's cache while all terms of a query are added.
_BLOCK = 1 << 16
# Scores that are skipped together if none of them is high enough.
_STRIP = 32


@compile_function()
def find_terms(
    hashes: Hashes, ends: Integers, names: Bytes, asked: Hashes, key_ends: Integers, keys: Bytes
) -> Integers:
    """The places of terms in the dictionary of a segment, −1 for those that are not there.

    `asked` are their hashes, and `keys` holds their names as the segment has them.
    """
    found = np.full(len(asked), -1)
    places = np.searchsorted(hashes, asked)
    for number in range(len(asked)):
        begin, end = key_ends[number - 1] if number else 0, key_ends[number]
        place = places[number]
        while place < len(hashes) and hashes[place] == asked[number]:
            first = ends[place - 1] if place else 0
            is_same = ends[place] - first == end - begin and 0 <= first <= len(names) - end + begin
            for byte in range(end - begin if is_same else 0):
                is_same &= names[first + byte] == keys[begin + byte]
            if is_same:
                found[number] = place
            place += 1
    return found


@compile_function()
def add_candidates(
    begins: Places,
    ends: Places,
    weights: Floats,
    starts: Integers,
    documents: npt.NDArray[np.uint32],
    impacts: npt.NDArray[Any],
    table: Floats,
    first: int,
    count: int,
    removed: Integers,
    excluded: Integers,
    excluded_starts: Integers,
    margins: npt.NDArray[np.float64],
    heaps: Floats,
    before: Candidates,
) -> tuple[bool, Candidates]:
    """Search a segment of `count` documents, the first of which has the number `first`, in all.

    The terms of a query are those from one of `starts` to the next, and the postings of a term
    those from its begin to its end, by document. `table` holds the impact that each of `impacts`
    stands for. Documents of the segment that are `removed`, and those from one of
    `excluded_starts` to the next in `excluded`, do not count.

    Candidates are all documents that may be among the best, with those of the segments `before`.
    Each heap has as many scores as are wanted at least, the lowest first: documents whose score is
    lower than that by more than the margin are none. False for postings that cannot be right:
    their file is damaged.

    All queries are done with a block of documents before the next, so that the postings of terms
    that several have are still in the processor's cache.
    """
    queries = len(starts) - 1
    size = (min(count, _BLOCK) + _STRIP - 1) // _STRIP * _STRIP
    scores = np.zeros(size, dtype=np.float32)
    highest = np.empty(size // _STRIP, dtype=np.float32)
    for term in range(len(ends)):
        if begins[term] > ends[term] or ends[term] > np.uint64(len(documents)):
            return False, before
    reached = begins.copy()
    # The query of each candidate, in the order in which they are found.
    owners = np.repeat(np.arange(queries), np.diff(before[2]))
    places, values, found = before[0], before[1], len(owners)
    for start in range(0, count, _BLOCK):
        length = min(count - start, _BLOCK)
        strips = (length + _STRIP - 1) // _STRIP
        for query in range(queries):
            for term in range(starts[query], starts[query + 1]):
                place = reached[term]
                end = _end_of_block(documents, place, ends[term], start + length)
                of_term, kinds = documents[place:end], impacts[place:end]
                if not _are_right(of_term, kinds, start, length, len(table)):
                    return False, before
                weight, block = weights[term], np.uint32(start)
                for number in range(len(of_term)):
                    scores[np.uint32(of_term[number] - block)] += weight * table[kinds[number]]
                reached[term] = end
            own = excluded[excluded_starts[query] : excluded_starts[query + 1]]
            _clear(removed, start, length, scores)
            _clear(own, start, length, scores)
            _find_highest(scores, strips, highest)
            heap = heaps[query]
            for strip in range(strips):
                if highest[strip] > heap[0]:
                    replace_lowest(heap, highest[strip])
            lowest = heap[0] - margins[query]
            for strip in range(strips):
                if highest[strip] > 0 and highest[strip] >= lowest:
                    if len(places) < found + _STRIP:
                        places, values = _enlarged(places), _enlarged(values)
                        owners = _enlarged(owners)
                    for place in range(strip * _STRIP, (strip + 1) * _STRIP):
                        if scores[place] > 0 and scores[place] >= lowest:
                            places[found] = first + start + place
                            values[found] = scores[place]
                            owners[found] = query
                            found += 1
            scores[: strips * _STRIP] = 0
    for term in range(len(ends)):
        if reached[term] < ends[term]:
            return False, before
    order = np.argsort(owners[:found], kind="mergesort")
    new_starts = np.searchsorted(owners[:found][order], np.arange(queries + 1))
    return True, (places[:found][order], values[:found][order], new_starts)


@compile_function()
def _end_of_block(
    documents: npt.NDArray[np.uint32], place: np.uint64, end: np.uint64, limit: int
) -> np.uint64:
    """Where the first document that is not below the limit is, looked for in growing steps."""
    step = np.uint64(1)
    while place + step <= end and documents[place + step - np.uint64(1)] < limit:
        place += step
        step += step
    end = min(end, place + step)
    while place < end:
        middle = (place + end) >> np.uint64(1)
        if documents[middle] < limit:
            place = middle + np.uint64(1)
        else:
            end = middle
    return place


@compile_function()
def _are_right(
    documents: npt.NDArray[np.uint32],
    impacts: npt.NDArray[Any],
    start: int,
    length: int,
    impact_count: int,
) -> bool:
    """Whether postings are of `length` documents from `start` on, and their impacts are known.

    Several are compared in one instruction, which the loop that adds them up cannot do.
    """
    furthest, largest = np.uint32(0), np.uint32(0)
    for number in range(len(documents)):
        # Wraps around for a document before the first.
        furthest = max(furthest, np.uint32(documents[number] - np.uint32(start)))
        largest = max(largest, np.uint32(impacts[number]))
    return len(documents) == 0 or bool(furthest < length and largest < impact_count)


@compile_function()
def _clear(documents: Integers, start: int, length: int, scores: Floats) -> None:
    """Set the scores of those of some documents, which ascend, to 0 that are in a block."""
    for number in range(np.searchsorted(documents, start), len(documents)):
        if documents[number] >= start + length:
            break
        scores[documents[number] - start] = 0


@compile_function(fastmath=True)
def _find_highest(scores: Floats, strips: int, highest: Floats) -> None:
    """The highest score of each strip, 0 for none; several are compared in one instruction."""
    for strip in range(strips):
        best = np.float32(0)
        for place in range(strip * _STRIP, (strip + 1) * _STRIP):
            best = max(best, scores[place])
        highest[strip] = best


@compile_function()
def _enlarged(values: Any) -> Any:
    larger = np.empty(2 * len(values) + _STRIP, dtype=values.dtype)
    larger[: len(values)] = values
    return larger


@compile_function()
def best_candidates(candidates: Candidates, k: int, tie: float) -> Candidates:
    """The `k` best candidates of each query, best first.

    Scores that differ by less than `tie` of the highest count as equal, as by
    `engine.best_hits`; equal ones are in the order of documents.
    """
    places, scores, starts = candidates
    best_places = np.empty(len(places), dtype=np.int64)
    best_scores = np.empty(len(places), dtype=np.float32)
    best_starts = np.zeros(len(starts), dtype=np.int64)
    found = 0
    heap = np.empty(k, dtype=np.float32)
    for query in range(len(starts) - 1):
        heap[:] = 0
        highest = np.float32(0)
        for number in range(starts[query], starts[query + 1]):
            highest = max(highest, scores[number])
            if scores[number] > heap[0]:
                replace_lowest(heap, scores[number])
        lowest = heap[0] - 2 * tie * highest
        step = np.float32(np.float64(highest) * tie)
        keys = np.empty(starts[query + 1] - starts[query], dtype=np.int64)
        numbers = np.empty(len(keys), dtype=np.int64)
        count = 0
        for number in range(starts[query], starts[query + 1]):
            if scores[number] >= lowest:
                # By rank downwards, then by document.
                keys[count] = -np.int64(np.rint(scores[number] / step)) << 32 | places[number]
                numbers[count] = number
                count += 1
        for place in np.argsort(keys[:count])[:k]:
            best_places[found] = places[numbers[place]]
            best_scores[found] = scores[numbers[place]]
            found += 1
        best_starts[query + 1] = found
    return best_places[:found], best_scores[:found], best_starts


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
