"""What the vocabulary alone tells of its headings: the words of their names, what is broader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.represent.stems import Stems
from labelkin.rerank.matrices import resized
from labelkin.rerank.pairs import Floats
from labelkin.rerank.term_columns import TermColumns
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# What a word of a name weighs that no document has.
_UNKNOWN_WORD = 10.0


@dataclass(frozen=True, eq=False)
class Headings:
    """Facts about headings, by vocabulary column.

    `names` (columns × terms) weighs the words of preferred names, `weights` is
    the weight of each whole name, `words` its number of words; `broader`
    (columns × columns) has 1 where the second is right above the first.
    """

    names: csr_matrix[Any]
    weights: Floats
    words: Floats
    broader: csr_matrix[Any]

    def widened(self, width: int) -> Headings:
        """For a vocabulary that has grown since: nothing is known of the new columns."""
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
    rows, columns = [], []
    unknown = np.zeros(width, dtype=np.float32)
    words = np.zeros(width, dtype=np.float32)
    for number, stems in enumerate(Stems().extract(named)):
        for word in set(stems):
            column = terms.column(word)
            words[number] += 1
            if column is None:
                unknown[number] += _UNKNOWN_WORD
            else:
                rows.append(number)
                columns.append(column)
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
