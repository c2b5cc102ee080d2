"""Basic k-NN on real MEDLINE records, against figures measured with another implementation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin import Indexer, read_corpus, read_vocabulary

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def indexer(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexer]:
    vocabulary = read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(tmp_path_factory.mktemp("mesh47k") / "c", vocabulary) as made:
        report = made.add(read_corpus(shared_data / "mesh47k" / "train.json.gz"))
        assert (report.added, report.without_labels) == (43_178, 0)
        assert (len(report.unresolved), report.unresolved.total()) == (15, 39)
        yield made


@pytest.mark.parametrize(("split", "expected"), [("dev", 0.430), ("test", 0.505), ("l1000", 0.370)])
def test_majority_vote_of_20_neighbours(
    split: str, expected: float, indexer: Indexer, shared_data: Path
) -> None:
    documents = list(read_corpus(shared_data / "mesh47k" / f"{split}.json.gz").documents())
    found = indexer.neighbour_arrays(documents, 20)
    label_sets, vocabulary = indexer.collection.label_sets(), indexer.vocabulary
    right = given = true = 0
    for rows, scores, document in zip(found.rows, found.scores, documents, strict=True):
        labels = label_sets.matrix(rows, len(vocabulary))
        votes, sums = np.asarray(labels.sum(0)).ravel(), labels.T @ scores
        order = np.lexsort((np.arange(len(votes)), -sums, -votes))[: round(labels.nnz / 20)]
        right += len({vocabulary[c].name() for c in order} & set(document.labels))
        given, true = given + len(order), true + len(document.labels)
    assert 2 * right / (given + true) == pytest.approx(expected, abs=0.01)
