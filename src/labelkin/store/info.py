"""The facts about a collection that `labelkin info` shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelkin.store.collection import Collection

# The steps of the paper's dataset table.
FREQUENCY_STEPS = (1_000_000, 100_000, 10_000, 1_000, 100)


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """Counts over the documents of one generation.

    `models` are those that can be used; `model_states` tells more, and of the others
    what is wrong. Both are filled in by `Indexer.info`, which knows the models, and so
    are the numbers of work lists and of indexers' decisions.
    """

    name: str
    path: str
    documents: int
    documents_without_labels: int
    documents_with_unresolved_labels: int
    concepts: int
    labels_used: int
    label_occurrences: int
    labels_per_document_mean: float
    labels_per_document_median: float
    labels_per_document_max: int
    labels_with_at_least: dict[str, int]
    languages: dict[str, int]
    vocabulary_languages: list[str]
    disk_bytes: int
    generation: int
    models: list[str]
    read_only: bool
    indexes: list[str] = field(default_factory=list)
    model_states: list[dict[str, Any]] = field(default_factory=list)
    worklists: int = 0
    decisions: int = 0
    desk_problem: str = ""


def collection_info(collection: Collection) -> CollectionInfo:
    """Count over the whole collection; takes seconds for millions of documents."""
    snapshot = collection.snapshot()
    vocabulary = snapshot.vocabulary
    label_sets = snapshot.label_sets()
    dropped = snapshot.tombstones()
    sizes = np.delete(label_sets.sizes(), dropped)
    frequencies = label_sets.frequencies(len(vocabulary), dropped)
    return CollectionInfo(
        name=collection.config.collection.name or collection.path.resolve().name,
        path=str(collection.path),
        documents=len(sizes),
        documents_without_labels=int(np.count_nonzero(sizes == 0)),
        documents_with_unresolved_labels=snapshot.count_unresolved(),
        concepts=len(vocabulary),
        labels_used=int(np.count_nonzero(frequencies)),
        label_occurrences=int(frequencies.sum()),
        labels_per_document_mean=float(sizes.mean()) if len(sizes) else 0.0,
        labels_per_document_median=float(np.median(sizes)) if len(sizes) else 0.0,
        labels_per_document_max=int(sizes.max(initial=0)),
        labels_with_at_least={
            str(step): int(np.count_nonzero(frequencies >= step)) for step in FREQUENCY_STEPS
        },
        languages={
            language or "unknown": count for language, count in snapshot.languages().items()
        },
        vocabulary_languages=vocabulary.languages(),
        disk_bytes=collection.disk_bytes(),
        generation=snapshot.generation().number,
        models=[],
        read_only=collection.read_only,
    )
