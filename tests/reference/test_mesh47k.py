"""Basic k-NN on real MEDLINE records, against figures measured with another implementation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer, read_corpus, read_vocabulary
from labelkin.store.config import CONFIG_NAME, NeighboursSection, update_config

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def indexer(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexer]:
    vocabulary = read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")
    folder = tmp_path_factory.mktemp("mesh47k") / "c"
    with Indexer.create(folder, vocabulary, recipe="paper") as made:
        report = made.add(read_corpus(shared_data / "mesh47k" / "train.json.gz"))
        assert (report.added, report.without_labels) == (43_178, 0)
        assert (len(report.unresolved), report.unresolved.total()) == (15, 39)
        yield made


def micro_f(indexer: Indexer, documents: list[Document]) -> float:
    """MiF of the majority vote of 20 neighbours, counted by hand."""
    found = indexer.neighbour_arrays(documents, 20)
    label_sets, vocabulary = indexer.collection.label_sets(), indexer.vocabulary
    right = given = true = 0
    for rows, scores, document in zip(found.rows, found.scores, documents, strict=True):
        labels = label_sets.matrix(rows, len(vocabulary))
        votes, sums = np.asarray(labels.sum(0)).ravel(), labels.T @ scores
        order = np.lexsort((np.arange(len(votes)), -sums, -votes))[: round(labels.nnz / 20)]
        right += len({vocabulary[c].name() for c in order} & set(document.labels))
        given, true = given + len(order), true + len(document.labels)
    return 2 * right / (given + true)


@pytest.mark.parametrize(("split", "expected"), [("dev", 0.430), ("test", 0.505), ("l1000", 0.370)])
def test_majority_vote_of_20_neighbours(
    split: str, expected: float, indexer: Indexer, shared_data: Path
) -> None:
    documents = list(read_corpus(shared_data / "mesh47k" / f"{split}.json.gz").documents())
    assert micro_f(indexer, documents) == pytest.approx(expected, abs=0.01)


def test_the_default_search_finds_better_neighbours(indexer: Indexer, shared_data: Path) -> None:
    dev = list(read_corpus(shared_data / "mesh47k" / "dev.json.gz").documents())
    papers = micro_f(indexer, dev)
    section = NeighboursSection().model_dump()
    update_config(indexer.collection.path / CONFIG_NAME, {"neighbours": section})
    assert micro_f(indexer, dev) > papers + 0.018
