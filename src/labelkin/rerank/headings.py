"""Facts about headings from the vocabulary alone: words of their names, and the hierarchy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.memo import Memo
from labelkin.represent.stems import Stems
from labelkin.rerank.matrices import resized
from labelkin.rerank.pairs import Floats
from labelkin.rerank.term_columns import TermColumns
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The weight of a word in a name that no document contains.
_UNKNOWN_WORD = 10.0


@dataclass(frozen=True, eq=False)
class Headings:
    """Facts about headings, by vocabulary column.

    `names` (columns × terms) weighs the words of preferred names, `weights` is
    the weight of each whole name, `words` its number of words; `broader`
    (columns × columns) has 1 where the second is directly above the first.
    """

    names: csr_matrix[Any]
    weights: Floats
    words: Floats
    broader: csr_matrix[Any]
    derived: Memo = field(default_factory=Memo, metadata={"saved": False})

    @property
    def by_term(self) -> csr_matrix[Any]:
        """`names` as terms × columns."""
        return self.derived.get("by term", lambda: self.names.T.tocsr())

    @property
    def narrower(self) -> csr_matrix[Any]:
        """`broader` transposed."""
        return self.derived.get("narrower", lambda: self.broader.T.tocsr())

    def widened(self, width: int) -> Headings:
        """The same for a larger vocabulary; the new columns are empty."""
        more = width - len(self.weights)
        if more <= 0:
            return self
        return Headings(
            resized(self.names, width, self.names.shape[1]),
            np.pad(self.weights, (0, more)),
            np.pad(self.words, (0, more)),
            resized(self.broader, width, width),
        )


def describe_headings(vocabulary: Vocabulary, terms: TermColumns, language: str) -> Headings:
    """The facts, with names in a language and stems as in `terms`."""
    from scipy.sparse import csr_matrix

    width = len(vocabulary)
    named = [Document("", concept.name(language), language=language) for concept in vocabulary]
    rows: list[int] = []
    columns: list[int] = []
    unknown = np.zeros(width, dtype=np.float32)
    words = np.zeros(width, dtype=np.float32)
    for number, stems in enumerate(Stems().extract(named)):
        known = terms.columns(sorted(set(stems)))
        words[number] = len(known)
        unknown[number] = _UNKNOWN_WORD * np.count_nonzero(known < 0)
        columns += known[known >= 0].tolist()
        rows += [number] * int(np.count_nonzero(known >= 0))
    weights = terms.idf[columns] if columns else np.zeros(0, dtype=np.float32)
    names = csr_matrix((weights, (rows, columns)), shape=(width, len(terms)))
    whole = np.bincount(rows, weights, width).astype(np.float32) + unknown
    return Headings(names, whole, words, _broader(vocabulary))


def _broader(vocabulary: Vocabulary) -> csr_matrix[Any]:
    from scipy.sparse import csr_matrix

    pairs = [
        (number, vocabulary.column(parent))
        for number, concept in enumerate(vocabulary)
        for parent in vocabulary.broader(concept.id)
    ]
    rows, columns = zip(*pairs, strict=True) if pairs else ((), ())
    ones = np.ones(len(pairs), dtype=np.float32)
    return csr_matrix((ones, (rows, columns)), shape=(len(vocabulary), len(vocabulary)))
