"""Facts about headings from the vocabulary alone: words of their names, and the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.represent.stems import Stems
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank.matrices import resized
from labelkin.rerank.pairs import Floats, Integers
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The weight of a word in a name that no document contains.
_UNKNOWN_WORD = 10.0


@dataclass(frozen=True, eq=False)
class Headings:
    """Facts about headings, by vocabulary column.

    `names` (terms × columns) weighs the words of preferred names, `weights` is
    the weight of each whole name, `words` its number of words; `broader`
    (columns × columns) has 1 where the second is directly above the first,
    `narrower` where it is directly below. `all_names` (terms × names) and
    `all_weights` are the same for all names with different words, synonyms
    included; `bearers` are their columns, ascending.
    Models of earlier versions lack the last three, and the signal that needs them.
    """

    names: csr_matrix[Any]
    weights: Floats
    words: Floats
    broader: csr_matrix[Any]
    narrower: csr_matrix[Any]
    all_names: csr_matrix[Any] = field(default_factory=lambda: _no_names())
    all_weights: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    bearers: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def widened(self, width: int) -> Headings:
        """The same for a larger vocabulary; the new columns are empty."""
        more = width - len(self.weights)
        if more <= 0:
            return self
        return Headings(
            resized(self.names, self.names.shape[0], width),
            np.pad(self.weights, (0, more)),
            np.pad(self.words, (0, more)),
            resized(self.broader, width, width),
            resized(self.narrower, width, width),
            self.all_names,
            self.all_weights,
            self.bearers,
        )


def _no_names() -> csr_matrix[Any]:
    from scipy.sparse import csr_matrix

    nothing: csr_matrix[Any] = csr_matrix(np.zeros((0, 0), dtype=np.float32))
    return nothing


def describe_headings(vocabulary: Vocabulary, terms: TermColumns, language: str) -> Headings:
    """The facts, with names in a language and stems as in `terms`."""
    preferred = _words_of_names([concept.name(language) for concept in vocabulary], language)
    names, weights = _weighted(preferred, terms)
    words = np.array([len(one) for one in preferred], dtype=np.float32)
    written = [
        (column, name)
        for column, concept in enumerate(vocabulary)
        for name in (concept.name(language), *concept.synonyms.get(language, ()))
    ]
    in_words = _words_of_names([name for _, name in written], language)
    # The order of the words does not matter here: names with the same ones are one.
    distinct = dict.fromkeys(
        (column, one) for (column, _), one in zip(written, in_words, strict=True) if one
    )
    all_names, all_weights = _weighted([one for _, one in distinct], terms)
    bearers = np.array([column for column, _ in distinct], dtype=np.int64)
    broader = _broader(vocabulary)
    narrower = broader.T.tocsr()
    return Headings(names, weights, words, broader, narrower, all_names, all_weights, bearers)


def _words_of_names(names: Sequence[str], language: str) -> list[tuple[str, ...]]:
    """The distinct stems of each name, sorted."""
    documents = [Document("", name, language=language) for name in names]
    return [tuple(sorted(set(stems))) for stems in Stems().extract(documents)]


def _weighted(
    names: Sequence[tuple[str, ...]], terms: TermColumns
) -> tuple[csr_matrix[Any], Floats]:
    """The idf of each word of a name (terms × names), and the weight of each whole name."""
    from scipy.sparse import csr_matrix

    columns = terms.columns([word for name in names for word in name])
    lines = np.repeat(np.arange(len(names)), [len(name) for name in names])
    known = columns >= 0
    weights = terms.idf[columns[known]]
    matrix = csr_matrix((weights, (columns[known], lines[known])), shape=(len(terms), len(names)))
    unknown = _UNKNOWN_WORD * np.bincount(lines[~known], minlength=len(names))
    whole = np.bincount(lines[known], weights, len(names)) + unknown
    return matrix, whole.astype(np.float32)


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
