from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.rerank.training_data import TrainingContext, TrainingData, with_reserve
from labelkin.vocab import Vocabulary

VOCABULARY = Vocabulary([Concept("S", {"en": "Bird migration", "de": "Vogelzug"})])


def data_of(indexer: Indexer) -> TrainingData:
    snapshot = indexer.snapshot()
    rows = np.arange(snapshot.generation().next_row)
    views = indexer.runtime.views()
    return TrainingData(views, rows, indexer.search(), RerankTrainingSettings())


@pytest.mark.parametrize(
    ("languages", "words"), [("de", 1), ("de de de en", 1), ("de en en fr", 2), ("fr", 2)]
)
def test_headings_have_their_names_in_the_language_of_most_documents(
    tmp_path: Path, languages: str, words: int
) -> None:
    documents = [
        Document(str(n), f"Vogelzug migration {n}", labels=("S",), language=language)
        for n, language in enumerate(languages.split())
    ]
    with Indexer.create(tmp_path / "c", VOCABULARY) as indexer:
        indexer.add(documents)
        assert data_of(indexer).headings.words.tolist() == [words]


def test_the_nearest_are_closed_up_over_those_that_are_held_out(tmp_path: Path) -> None:
    texts = ["wheat rust", "wheat rust", "wheat rust barley", "wheat barley oats", "oats"]
    documents = [Document(str(n), one, labels=("S",), language="en") for n, one in enumerate(texts)]
    with Indexer.create(tmp_path / "c", VOCABULARY, language="en") as indexer:
        indexer.add(documents)
        data = data_of(indexer)
        context = TrainingContext(data, np.array([0, 3, 4]), autoencoder=None)
        assert data.nearest().shape == (5, with_reserve(20))
        # Places among the texts of the context; copies are no neighbours.
        assert data.nearest()[0, :3].tolist() == [2, 3, -1]
        assert context.nearest()[:, :2].tolist() == [[1, -1], [2, 0], [1, -1]]
        assert context.texts.rows.tolist() == [0, 3, 4]
