"""Gold labels and their hierarchy over the columns of a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labelkin.corpus.document import Document
from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def gold_matrix(documents: Sequence[Document], vocabulary: Vocabulary) -> csr_matrix[Any]:
    """Documents × labels. Labels that the vocabulary lacks get columns behind its own.

    Nobody can predict those, but a system must not look better because the
    vocabulary it was given lacks what people have used.
    """
    from scipy.sparse import csr_matrix

    unknown: dict[str, int] = {}
    starts, columns = [0], []
    for document in documents:
        found = set()
        for label in document.labels:
            name = document.label_names.get(label, "")
            column = vocabulary.resolve(label, name, document.language or "").column
            if column is None:
                column = len(vocabulary) + unknown.setdefault(label, len(unknown))
            found.add(column)
        columns += sorted(found)
        starts.append(len(columns))
    ones = np.ones(len(columns), dtype=np.int8)
    shape = (len(documents), len(vocabulary) + len(unknown))
    return csr_matrix((ones, np.array(columns, dtype=np.int64), starts), shape=shape)


def unknown_labels(documents: Sequence[Document], vocabulary: Vocabulary) -> Counter[str]:
    """What `gold_matrix` gives columns behind the vocabulary's, in their order."""
    found: Counter[str] = Counter()
    for document in documents:
        for label in document.labels:
            name = document.label_names.get(label, "")
            if vocabulary.resolve(label, name, document.language or "").column is None:
                found[label] += 1
    return found


def hierarchy_of(vocabulary: Vocabulary, labels: int) -> Hierarchy:
    """What stands above what; columns behind the vocabulary's have nothing above them."""
    pairs = (
        (vocabulary.column(parent), column)
        for column, concept in enumerate(vocabulary)
        for parent in vocabulary.broader(concept.id)
    )
    return Hierarchy.from_pairs(pairs, labels)
