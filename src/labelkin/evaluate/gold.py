"""Gold labels and their hierarchy over the columns of a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from labelkin.corpus.document import Document
from labelkin.evaluate.evaluation import Evaluation
from labelkin.evaluate.hierarchy import Hierarchy
from labelkin.scoring.ranking import Ranking
from labelkin.store.reader import Reader
from labelkin.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def gold_matrix(documents: Sequence[Document], vocabulary: Vocabulary) -> csr_matrix[Any]:
    """Documents × labels. Labels missing from the vocabulary get columns after its own.

    No method can predict those, but they count: a method must not score higher
    because its vocabulary lacks headings that people have assigned.
    """
    unknown = list(unknown_labels(documents, vocabulary))
    extra_columns = {label: column for column, label in enumerate(unknown, len(vocabulary))}
    columns = [
        sorted({extra_columns[label] if column is None else column for label, column in resolved})
        for resolved in _resolved(documents, vocabulary)
    ]
    return Ranking.from_lists(columns).matrix(len(vocabulary) + len(unknown))


def unknown_labels(documents: Sequence[Document], vocabulary: Vocabulary) -> Counter[str]:
    """Counts of the labels missing from the vocabulary, in the order of their columns."""
    return Counter(
        label
        for resolved in _resolved(documents, vocabulary)
        for label, column in resolved
        if column is None
    )


def _resolved(
    documents: Sequence[Document], vocabulary: Vocabulary
) -> Iterator[list[tuple[str, int | None]]]:
    """The labels of each document with their columns, as stored; None if unresolved."""
    for document in documents:
        names, language = document.label_names, document.language or ""
        columns = (
            vocabulary.resolve(label, names.get(label, ""), language).column
            for label in document.labels
        )
        yield [
            (label, None if column is None else vocabulary.successor(column))
            for label, column in zip(document.labels, columns, strict=True)
        ]


def gold_evaluation(documents: Sequence[Document], reader: Reader) -> Evaluation:
    """The right labels of documents and all that measures may need to know, without predictions."""
    vocabulary = reader.vocabulary
    gold = gold_matrix(documents, vocabulary)
    labels = gold.shape[1]
    return Evaluation.unpredicted(
        gold,
        training_frequencies=reader.label_sets().frequencies(labels, reader.tombstones()),
        training_documents=reader.count(),
        hierarchy=hierarchy_of(vocabulary, labels),
    )


def hierarchy_of(vocabulary: Vocabulary, labels: int) -> Hierarchy:
    """The hierarchy of a vocabulary; columns after its own have no parents."""
    pairs = (
        (vocabulary.column(parent), column)
        for column, concept in enumerate(vocabulary)
        for parent in vocabulary.broader(concept.id)
    )
    return Hierarchy.from_pairs(pairs, labels)
