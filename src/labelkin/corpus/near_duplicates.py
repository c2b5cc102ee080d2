"""Texts that are nearly the same, found by MinHash and verified exactly.

Two texts are near-duplicates if the Jaccard similarity of their shingles is at
least a threshold: of the words and pairs of adjacent words that they have
together, they share that part. Case, punctuation and white space do not count.

Comparing all pairs would take too long. Minimum hashes of the shingles (Broder,
"On the resemblance and containment of documents", 1997), joined in bands
(Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4), name
the pairs worth comparing; each of these is then compared by its shingles. So
no pair below the threshold is reported, and of those just at it fewer than one
in a thousand is missed.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
import unicodedata
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelkin.closing import Closing
from labelkin.corpus.checksum_set import ChecksumSet
from labelkin.exceptions import InputError

DEFAULT_THRESHOLD = 0.8
LEAST_THRESHOLD = 0.3

# Scripts that put no spaces between words: each of their characters counts as one.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(f"[{_UNSPACED}]|[^\\W{_UNSPACED}]+")
_HASHES = 128
_MISSED = 0.001
# A bucket with more texts than this is not compared pair by pair: each text is compared with so
# many that have about as many shingles.
_WIDEST = 1000
_BATCH_WORDS = 1 << 20
_BATCH_TEXTS = 1 << 16
_BATCH_SHINGLES = 1 << 22
_MOST_CACHED_WORDS = 200_000
_BITS = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)

Integers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]
Shingles = npt.NDArray[np.uint32]
Similarities = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared: folded, without punctuation."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True)
class Banding:
    """How minimum hashes are joined: texts that agree in all of one band are compared."""

    bands: int
    rows: int

    @classmethod
    def for_threshold(cls, threshold: float) -> Banding:
        """The fewest candidates with at most one in a thousand pairs at the threshold missed."""
        fits = [cls(_HASHES // rows, rows) for rows in range(1, _HASHES + 1)]
        return max(
            (one for one in fits if one.missed(threshold) <= _MISSED), key=lambda one: one.rows
        )

    def missed(self, similarity: float) -> float:
        """The probability that texts of this similarity agree in no band."""
        return float((1 - similarity**self.rows) ** self.bands)


class NearDuplicates(Closing):
    """Finds groups among texts that are added one by one, each under the next row.

    Shingles and bands are in temporary files, about eight bytes for each word
    and 200 for each text; 200 bytes for each text are in memory. The groups
    depend on the set of texts, the threshold and the seed, not on the order.
    """

    def __init__(self, threshold: float = DEFAULT_THRESHOLD, *, seed: int = 0) -> None:
        if not LEAST_THRESHOLD <= threshold <= 1:
            raise InputError(
                f"the threshold {threshold} is not between {LEAST_THRESHOLD} and 1; "
                "1 means the same words in the same order"
            )
        self.threshold = threshold
        self._banding = Banding.for_threshold(threshold)
        random = np.random.default_rng(seed)
        count = self._banding.bands * self._banding.rows
        self._factors = random.integers(1 << 63, size=count, dtype=np.uint64) * 2 + 1
        self._offsets = random.integers(1 << 63, size=count, dtype=np.uint64)
        self._words: dict[str, int] = {}
        self._seen = ChecksumSet()
        self._checksums = array("Q")
        self._sizes = array("q")
        self._waiting: list[array[int]] = []
        self._waiting_words = 0
        self._blocks: list[tuple[int, int]] = []
        self._shingle_file = tempfile.TemporaryFile()  # noqa: SIM115
        self._band_file = tempfile.TemporaryFile()  # noqa: SIM115

    def close(self) -> None:
        """Remove the temporary files."""
        self._shingle_file.close()
        self._band_file.close()

    def __len__(self) -> int:
        return len(self._checksums)

    def add(self, text: str) -> None:
        """Add the text of the next row."""
        words = words_of(text) or text.split()
        content = " ".join(words).encode("utf-8", "replace")
        checksum = _hash(content)
        self._checksums.append(checksum)
        if not self._seen.add(checksum):
            return
        self._waiting.append(array("Q", [self._hashed(word) for word in words] or [checksum]))
        self._waiting_words += len(words)
        if self._waiting_words >= _BATCH_WORDS or len(self._waiting) >= _BATCH_TEXTS:
            self._flush()

    def _hashed(self, word: str) -> int:
        known = self._words.get(word)
        if known is None:
            if len(self._words) >= _MOST_CACHED_WORDS:
                self._words.clear()
            known = self._words[word] = _hash(word.encode("utf-8", "replace"))
        return known

    def _flush(self) -> None:
        """Write the shingles and bands of the texts that wait."""
        if not self._waiting:
            return
        lengths = np.array([len(words) for words in self._waiting])
        words = np.concatenate([np.frombuffer(words, dtype=np.uint64) for words in self._waiting])
        text_of_word = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
        pairs = _mixed(words[:-1] * np.uint64(0x9E3779B97F4A7C15) + words[1:])
        is_pair = text_of_word[1:] == text_of_word[:-1]
        singles = (text_of_word << _BITS) | (_mixed(words) >> _BITS)
        doubles = (text_of_word[1:][is_pair] << _BITS) | (pairs[is_pair] >> _BITS)
        keys = np.unique(np.concatenate((singles, doubles)))
        shingles = keys & _LOW
        sizes = np.bincount((keys >> _BITS).astype(np.int64), minlength=len(lengths))
        shingles.astype(np.uint32).tofile(self._shingle_file)
        starts = np.cumsum(sizes) - sizes
        bands = np.zeros((self._banding.bands, len(sizes)), dtype=np.uint64)
        for place, (factor, offset) in enumerate(zip(self._factors, self._offsets, strict=True)):
            least = np.minimum.reduceat((shingles * factor + offset) >> _BITS, starts)
            band = bands[place // self._banding.rows]
            band[:] = _mixed(band + least)
        self._blocks.append((self._band_file.tell(), len(sizes)))
        bands.tofile(self._band_file)
        self._band_file.flush()
        self._sizes.extend(sizes.tolist())
        self._waiting, self._waiting_words = [], 0

    def groups(self, progress: Progress | None = None) -> Integers:
        """The group of each row, as the smallest row in it; texts alone are their own group.

        A group is connected by near-duplicates: its first and last text may
        differ by more than the threshold. `progress` is called with the bands
        that are done and their number.
        """
        self._flush()
        rows = len(self)
        if not rows:
            return np.empty(0, dtype=np.int64)
        texts, first_rows, order = self._distinct()
        labels = np.arange(len(first_rows), dtype=np.int64)
        for band in range(self._banding.bands if self.threshold < 1 else 0):
            labels = self._joined_by(band, labels, order)
            if progress is not None:
                progress(band + 1, self._banding.bands)
        smallest = np.full(len(first_rows), rows, dtype=np.int64)
        np.minimum.at(smallest, labels, first_rows)
        return smallest[labels][texts]

    def text_numbers(self) -> Integers:
        """A number for each row that two rows share if their texts have the same words."""
        self._flush()
        return self._distinct()[0]

    def _distinct(self) -> tuple[Integers, Integers, Hashes]:
        """The text of each row, the first row of each text, and the checksum of each text.

        Texts are numbered in the order in which their shingles were written.
        """
        checksums = np.frombuffer(self._checksums, dtype=np.uint64)
        values, first, inverse = np.unique(checksums, return_index=True, return_inverse=True)
        by_row = np.argsort(first)
        number = np.empty(len(values), dtype=np.int64)
        number[by_row] = np.arange(len(values))
        return number[inverse], first[by_row], values[by_row]

    def similarities(self, left: Integers, right: Integers) -> Similarities:
        """The Jaccard similarity of pairs of texts, by their numbers."""
        self._shingle_file.flush()
        sizes = np.frombuffer(self._sizes, dtype=np.int64)
        ends = np.cumsum(sizes)
        shingles: Shingles = np.memmap(self._shingle_file, dtype=np.uint32, mode="r")
        similarities = np.empty(len(left))
        cost = np.cumsum(sizes[left] + sizes[right])
        for part in _parts(cost):
            one, other = left[part], right[part]
            keys = np.concatenate(
                [
                    (np.repeat(np.arange(len(one), dtype=np.uint64), sizes[texts]) << _BITS)
                    | shingles[_ranges(ends[texts] - sizes[texts], sizes[texts])]
                    for texts in (one, other)
                ]
            )
            keys.sort()
            shared = keys[1:][keys[1:] == keys[:-1]] >> _BITS
            common = np.bincount(shared.astype(np.int64), minlength=len(one))
            similarities[part] = common / (sizes[one] + sizes[other] - common)
        return similarities

    def _joined_by(self, band: int, labels: Integers, checksums: Hashes) -> Integers:
        """The labels after texts that agree in a band, and are near-duplicates, were joined."""
        keys = np.concatenate(
            [
                np.fromfile(self._band_file, np.uint64, count, offset=0)
                for count in self._seek_blocks(band)
            ]
        )
        sizes = np.frombuffer(self._sizes, dtype=np.int64)
        texts = np.lexsort((checksums, sizes, keys))
        is_shared = np.zeros(len(texts), dtype=bool)
        equal = keys[texts[1:]] == keys[texts[:-1]]
        is_shared[1:] |= equal
        is_shared[:-1] |= equal
        texts = texts[is_shared]
        keys, sizes = keys[texts], sizes[texts]
        starts = np.arange(len(texts))
        step, found = 1, []
        while len(starts) and step <= _WIDEST:
            starts = starts[starts + step < len(texts)]
            later = starts + step
            # Texts of a bucket ascend by size: a partner too large stays so.
            fits = keys[starts] == keys[later]
            fits &= sizes[starts] >= self.threshold * sizes[later]
            starts, later = starts[fits], later[fits]
            left, right = texts[starts], texts[later]
            is_new = labels[left] != labels[right]
            found.append((left[is_new], right[is_new]))
            step += 1
            # The more is joined, the fewer pairs are left to compare.
            if step & (step - 1) == 0:
                labels, found = self._joined(labels, found), []
        return self._joined(labels, found)

    def _seek_blocks(self, band: int) -> Iterator[int]:
        """Move to the keys of a band, block by block; yields how many there are."""
        for start, count in self._blocks:
            self._band_file.seek(start + 8 * band * count)
            yield count

    def _joined(self, labels: Integers, pairs: list[tuple[Integers, Integers]]) -> Integers:
        """The labels after the near-duplicates among `pairs` were joined."""
        left = np.concatenate([np.empty(0, dtype=np.int64), *(one for one, _ in pairs)])
        right = np.concatenate([np.empty(0, dtype=np.int64), *(other for _, other in pairs)])
        if not len(left):
            return labels
        near = self.similarities(left, right) >= self.threshold
        if not near.any():
            return labels
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        edges = (np.ones(int(near.sum()), dtype=bool), (labels[left[near]], labels[right[near]]))
        graph = coo_array(edges, shape=(len(labels), len(labels)))
        component: npt.NDArray[np.int32] = connected_components(graph, directed=False)[1]
        return component.astype(np.int64)[labels]


def _hash(content: bytes) -> int:
    # 0 and 1 count as the same, as in a ChecksumSet.
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little") or 1


def _mixed(values: Hashes) -> Hashes:
    """Spread the bits of 64-bit numbers (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _parts(cost: Integers) -> Iterator[slice]:
    """Slices whose cost, given as running totals, is about that of a batch."""
    start = 0
    while start < len(cost):
        before = int(cost[start - 1]) if start else 0
        end = int(np.searchsorted(cost, before + _BATCH_SHINGLES, side="right"))
        yield slice(start, max(end, start + 1))
        start = max(end, start + 1)


def _ranges(starts: Integers, lengths: Integers) -> Integers:
    """The indexes of ranges, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
