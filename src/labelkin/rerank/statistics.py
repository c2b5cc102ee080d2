"""Statistics of headings over labelled documents: frequency, co-occurrence, words, names.

Only the given documents are counted, so that the documents that the trees are
trained on can be held out of every statistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from labelkin.represent.term_columns import TermColumns, unit_rows
from labelkin.rerank.matrices import indicator, resized, with_data
from labelkin.rerank.pairs import matrix_keys

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from labelkin.scoring.mentions import Mentions

# Two headings are related if they have this many documents in common.
_MIN_SHARED_DOCUMENTS = 2
# A term is evidence for a heading if it raises its share this much, in this many documents.
_MIN_TERM_DOCUMENTS = 3
_MIN_SHARE = 0.05
_MIN_LIFT = 2.0
# Added to the number of a term's documents, so that rare terms have lower shares.
_SMOOTHING = 3
# Terms that describe a heading's documents; more make no difference.
_DESCRIBING_TERMS = 100
# The prior rate at which a heading is assigned to a document that names it.
_RATE = 0.3
# Lines of a co-occurrence matrix that are computed at a time.
_LINES = 2000

Floats = npt.NDArray[np.float32]

# Ways of naming a heading, the strongest first.
IN_TITLE, IN_BODY, NESTED = range(3)


def naming_kinds(mentions: Mentions) -> npt.NDArray[np.int64]:
    """For each mention whether it is in the title, only in the body, or only in longer names."""
    outside = np.where(mentions.body > 0, IN_BODY, NESTED)
    return np.where(mentions.title > 0, IN_TITLE, outside)


@dataclass(frozen=True, eq=False)
class LabelStatistics:
    """Statistics over headings, by vocabulary column; matrices are sparse.

    `together` (columns × columns) holds the share of a heading's documents that
    have the other one too, `describing` (terms × columns) the unit centroids of
    the headings' documents, `speaking` (terms × columns) the share of a term's
    documents that have the heading, where it is much larger than overall;
    `together_logs` and `speaking_logs` are the logarithms of their ratios to the
    share of all documents. `named` holds for each way of naming how often a heading
    named that way was assigned, `named_in` how many documents named it that way.
    """

    documents: int
    frequencies: Floats
    together: csr_matrix[Any]
    describing: csr_matrix[Any]
    speaking: csr_matrix[Any]
    together_logs: Floats
    speaking_logs: Floats
    named: Floats
    named_in: Floats

    @property
    def width(self) -> int:
        """How many columns the vocabulary had."""
        return len(self.frequencies)

    @property
    def attraction(self) -> csr_matrix[Any]:
        """`together` as the logarithm of the ratio to chance."""
        return with_data(self.together, self.together_logs)

    @property
    def evidence(self) -> csr_matrix[Any]:
        """`speaking` as the logarithm of the ratio to the heading's share of all documents."""
        return with_data(self.speaking, self.speaking_logs)

    def widened(self, width: int) -> LabelStatistics:
        """The same for a larger vocabulary; the new columns are empty."""
        if width <= self.width:
            return self
        more = width - self.width
        together, describing, speaking = (
            resized(matrix, rows, width)
            for matrix, rows in (
                (self.together, width),
                (self.describing, self.describing.shape[0]),
                (self.speaking, self.speaking.shape[0]),
            )
        )
        rates = np.full((len(self.named), more), _RATE, dtype=np.float32)
        return LabelStatistics(
            self.documents,
            np.pad(self.frequencies, (0, more)),
            together,
            describing,
            speaking,
            self.together_logs,
            self.speaking_logs,
            np.concatenate((self.named, rates), axis=1),
            np.pad(self.named_in, ((0, 0), (0, more))),
        )


def count_statistics(
    labels: csr_matrix[Any], counts: csr_matrix[Any], terms: TermColumns, mentions: Mentions
) -> LabelStatistics:
    """Statistics over documents: their labels, how often they have each term, what they name."""
    documents, width = labels.shape
    frequencies = np.bincount(labels.indices, minlength=width).astype(np.float32)
    named, named_in = _naming_rates(labels, mentions)
    together = _together(labels, frequencies)
    speaking = _speaking(labels, counts, frequencies)
    return LabelStatistics(
        documents=documents,
        frequencies=frequencies,
        together=together,
        describing=_describing(labels, terms.weighted(counts, pairs=False)),
        speaking=speaking,
        together_logs=log_ratios(together, frequencies, documents),
        speaking_logs=log_ratios(speaking, frequencies, documents),
        named=named,
        named_in=named_in,
    )


def log_ratios(matrix: csr_matrix[Any], frequencies: Floats, documents: int) -> Floats:
    """The logarithm of each entry's ratio to the share of all documents with its heading."""
    shares = np.maximum(frequencies[matrix.indices], 1) / max(documents, 1)
    logs: Floats = np.log(matrix.data / shares).astype(np.float32)
    return logs


def _together(labels: csr_matrix[Any], frequencies: Floats) -> csr_matrix[Any]:
    common: csr_matrix[Any] = (labels.T @ labels).tocsr()
    of = np.repeat(np.arange(common.shape[0]), np.diff(common.indptr))
    common.data = np.where(
        (common.data >= _MIN_SHARED_DOCUMENTS) & (of != common.indices),
        common.data / np.maximum(frequencies[of], 1),
        0,
    ).astype(np.float32)
    common.eliminate_zeros()
    return common


def _describing(labels: csr_matrix[Any], weighted: csr_matrix[Any]) -> csr_matrix[Any]:
    from scipy.sparse import vstack

    by_label = labels.T.tocsr()
    parts = []
    for first in range(0, max(by_label.shape[0], 1), _LINES):
        centroids = unit_rows((by_label[first : first + _LINES] @ weighted).tocsr())
        of = np.repeat(np.arange(centroids.shape[0]), np.diff(centroids.indptr))
        order = np.lexsort((-centroids.data, of))
        ranks = np.empty(len(of), dtype=np.int64)
        ranks[order] = np.arange(len(of)) - centroids.indptr[of[order]]
        centroids.data[ranks >= _DESCRIBING_TERMS] = 0
        centroids.eliminate_zeros()
        parts.append(centroids)
    by_term: csr_matrix[Any] = vstack(parts, format="csr").T.tocsr()
    return by_term


def _speaking(
    labels: csr_matrix[Any], counts: csr_matrix[Any], frequencies: Floats
) -> csr_matrix[Any]:
    from scipy.sparse import vstack

    by_term = indicator(counts).T.tocsr()
    in_documents = np.diff(by_term.indptr)
    parts = []
    for first in range(0, max(by_term.shape[0], 1), _LINES):
        common: csr_matrix[Any] = (by_term[first : first + _LINES] @ labels).tocsr()
        of = np.repeat(np.arange(common.shape[0]), np.diff(common.indptr)) + first
        shares = common.data / (in_documents[of] + _SMOOTHING)
        overall = frequencies[common.indices] / max(labels.shape[0], 1)
        is_evidence = (
            (common.data >= _MIN_TERM_DOCUMENTS)
            & (shares > _MIN_SHARE)
            & (shares > _MIN_LIFT * overall)
        )
        common.data = np.where(is_evidence, shares, 0).astype(np.float32)
        common.eliminate_zeros()
        parts.append(common)
    speaking: csr_matrix[Any] = vstack(parts, format="csr")
    return speaking


def _naming_rates(labels: csr_matrix[Any], mentions: Mentions) -> tuple[Floats, Floats]:
    width = labels.shape[1]
    keys, _ = matrix_keys(labels, width)
    named_keys = mentions.documents * width + mentions.columns
    given = np.isin(named_keys, keys)
    kinds = naming_kinds(mentions)
    rates = np.empty((3, width), dtype=np.float32)
    seen = np.empty((3, width), dtype=np.float32)
    for kind in (IN_TITLE, IN_BODY, NESTED):
        mine = kinds == kind
        seen[kind] = np.bincount(mentions.columns[mine], minlength=width)
        hits = np.bincount(mentions.columns[mine & given], minlength=width)
        rates[kind] = (hits + _RATE) / (seen[kind] + 1)
    return rates, seen
