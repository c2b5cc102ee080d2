"""Gold labels and their hierarchy over the columns of a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from labelkin.corpus.document import Document
from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.scoring.ranking import Ranking
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def gold_matrix(documents: Sequence[Document], vocabulary: Vocabulary) -> csr_matrix[Any]:
    """Documents × labels. Labels that the vocabulary lacks get columns behind its own.

    Nobody can predict those, but a system must not look better because the
    vocabulary it was given lacks what people have used.
    """
    unknown = list(unknown_labels(documents, vocabulary))
    behind = {label: len(vocabulary) + place for place, label in enumerate(unknown)}
    wanted = [
        sorted({behind[label] if column is None else column for label, column in resolved})
        for resolved in _resolved(documents, vocabulary)
    ]
    return Ranking.from_lists(wanted).matrix(len(vocabulary) + len(unknown))


def unknown_labels(documents: Sequence[Document], vocabulary: Vocabulary) -> Counter[str]:
    """The labels that the vocabulary lacks, in the order of their columns, and how often."""
    return Counter(
        label
        for resolved in _resolved(documents, vocabulary)
        for label, column in resolved
        if column is None
    )


def _resolved(
    documents: Sequence[Document], vocabulary: Vocabulary
) -> Iterator[list[tuple[str, int | None]]]:
    """The labels of each document with their columns, None where there is none."""
    for document in documents:
        names, language = document.label_names, document.language or ""
        yield [
            (label, vocabulary.resolve(label, names.get(label, ""), language).column)
            for label in document.labels
        ]


def hierarchy_of(vocabulary: Vocabulary, labels: int) -> Hierarchy:
    """What stands above what; columns behind the vocabulary's have nothing above them."""
    pairs = (
        (vocabulary.column(parent), column)
        for column, concept in enumerate(vocabulary)
        for parent in vocabulary.broader(concept.id)
    )
    return Hierarchy.from_pairs(pairs, labels)
