"""How well the words of a text match the documents of a heading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.rerank.features import Evidence, Features
from labelkin.rerank.pairs import (
    Floats,
    Integers,
    Pairs,
    arrays_of,
    best_entries,
    best_keys,
    matrix_keys,
    pays_compiling,
)
from labelkin.rerank.signal import Signal, Values

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BEST = 40
# Documents processed at a time.
_CHUNK = 200


class WordsSignal(Signal):
    """How well the text fits the words that describe a heading or occur with it."""

    name = "words"
    features = (
        *("described", "described_rank", "spoken", "spoken_rank", "spoken_most"),
        *("word_evidence", "word_evidence_rank"),
    )
    reason = "words of the text"

    def propose(self, evidence: Evidence) -> Integers:
        """The headings that the words suggest most."""
        speakers, speaking = _speakers(evidence), evidence.knowledge.statistics.speaking
        if pays_compiling(len(evidence)):
            places, values = best_entries(speakers, speaking, _BEST)
            documents = np.arange(len(evidence))[:, None] * evidence.width
            keys: Integers = (documents + places)[values > 0]
            return keys
        spoken = matrix_keys((speakers @ speaking).tocsr(), evidence.width)
        return best_keys(*spoken, evidence.width, _BEST)

    def values(
        self,
        evidence: Evidence,
        pairs: Pairs,
        features: Features,  # noqa: ARG002
    ) -> Mapping[str, Values]:
        """Similarity to the heading's centroid; shares and log-odds of the words."""
        statistics, terms = evidence.knowledge.statistics, evidence.knowledge.terms
        weighted = terms.weighted(evidence.counts, pairs=False)
        described = pairs.product(weighted, statistics.describing)
        spoken = pairs.product(_speakers(evidence), statistics.speaking)
        word_evidence = pairs.product(evidence.has, statistics.evidence)
        return {
            "described": described,
            "described_rank": pairs.ranks(described),
            "spoken": spoken,
            "spoken_rank": pairs.ranks(spoken),
            "spoken_most": _strongest_word(evidence, pairs),
            "word_evidence": word_evidence,
            "word_evidence_rank": pairs.ranks(word_evidence),
        }


def _speakers(evidence: Evidence) -> csr_matrix[Any]:
    """The words of each document, weighted by idf; the weights of a document add up to 1."""

    def computed() -> csr_matrix[Any]:
        weighted = evidence.has.copy()
        weighted.data = evidence.knowledge.terms.idf[weighted.indices]
        totals = np.maximum(np.asarray(weighted.sum(1)).ravel(), 1e-9)
        weighted.data /= np.repeat(totals, np.diff(weighted.indptr)).astype(np.float32)
        return weighted

    return evidence.once("speakers", computed)


def _strongest_word(evidence: Evidence, pairs: Pairs) -> Floats:
    """The largest share that a single word of the text has for a candidate."""
    speaking, has = evidence.knowledge.statistics.speaking, evidence.has
    strongest = np.zeros(len(pairs), dtype=np.float32)
    if pays_compiling(len(evidence)):
        from labelkin.rerank.pair_kernel import largest_values

        largest = np.zeros(speaking.shape[1], dtype=np.float32)
        given = (pairs.starts, pairs.columns, largest, strongest)
        largest_values(arrays_of(has), arrays_of(speaking), *given)
        return strongest
    lengths = np.diff(speaking.indptr)
    for first in range(0, pairs.count, _CHUNK):
        part = has[first : first + _CHUNK]
        documents = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr)) + first
        counts = lengths[part.indices]
        ends = np.cumsum(counts)
        inside = np.arange(ends[-1] if len(ends) else 0)
        inside += np.repeat(speaking.indptr[part.indices] - (ends - counts), counts)
        keys = np.repeat(documents, counts) * pairs.width + speaking.indices[inside]
        span = slice(pairs.starts[first], pairs.starts[min(first + _CHUNK, pairs.count)])
        mine = pairs.keys[span]
        if len(mine) == 0 or len(keys) == 0:
            continue
        places = np.minimum(np.searchsorted(mine, keys), len(mine) - 1)
        hits = mine[places] == keys
        np.maximum.at(strongest[span], places[hits], speaking.data[inside][hits])
    return strongest
