from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labelkin import Concept, Document, Indexer, Vocabulary
from labelkin.rerank.features import Evidence, Features, Knowledge
from labelkin.rerank.headings import describe_headings
from labelkin.rerank.labelled_texts import label_matrix, read_labelled_texts
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.signals.names import NameWordsSignal
from labelkin.rerank.statistics import count_statistics
from labelkin.scoring.settings import RERANK_DEPTH

CONCEPTS = [
    Concept("R", {"en": "Insulin Resistance"}, {"en": ("Resistance, Insulin", "Insensitivity")}),
    Concept("I", {"en": "Insulin"}),
    Concept("P", {"en": "Plant Resistance"}),
    Concept("O", {"en": "Old Insulin"}, deprecated=True, replaced_by=("I",)),
    Concept("N", {"en": "The"}),
]
TEXTS = (
    *("Insulin of mice", "Resistance of mice", "Plants of old", "Insulin in plants"),
    *("Old insulin", "Insensitivity of plants", "Mice and insensitivity", "Resistance of plants"),
)


@pytest.fixture
def indexer(tmp_path: Path):
    with Indexer.create(tmp_path / "c", Vocabulary(CONCEPTS), language="en") as made:
        made.add(
            Document(str(n), text, language="en", labels=("R",)) for n, text in enumerate(TEXTS)
        )
        yield made


def evidence_of(indexer: Indexer, *documents: Document) -> Evidence:
    snapshot, rows = indexer.snapshot(), np.arange(len(TEXTS))
    width = snapshot.generation().next_column
    labels = label_matrix(snapshot.label_sets(), rows, width, None)
    cache = indexer.search().context.cache
    texts, terms = read_labelled_texts(snapshot, cache, rows, labels)
    knowledge = Knowledge(
        count_statistics(texts.labels, texts.counts, terms.columns, texts.mentions),
        describe_headings(snapshot.vocabulary, terms.columns, "en"),
        terms.columns,
        ("name words",),
    )
    return Evidence(indexer.queries(documents, RERANK_DEPTH), knowledge)


def values_of(evidence: Evidence, column: int) -> dict[str, float]:
    pairs = Pairs(np.array([column]), len(evidence), evidence.width)
    values = NameWordsSignal().values(evidence, pairs, Features(evidence, pairs))
    return {name: float(one[0]) for name, one in values.items()}


def test_the_order_and_form_of_words_do_not_matter(indexer: Indexer) -> None:
    evidence = evidence_of(
        indexer, Document("", "Of mice", "They were resistant to insulins.", language="en")
    )
    assert evidence.mentions.columns.tolist() == [1]
    found = values_of(evidence, 0)
    assert found["covered"] == pytest.approx(1)
    # Both names with these words count once; the other synonym is not there.
    assert found["covered_names"] == 1
    assert found["title_covered"] == found["title_covered_names"] == 0
    assert 0 < values_of(evidence, 2)["covered"] < 1


def test_names_in_the_title(indexer: Indexer) -> None:
    evidence = evidence_of(
        indexer, Document("", "Insulin: insensitivity and resistance", "Mice", language="en")
    )
    found = values_of(evidence, 0)
    assert found["title_covered"] == pytest.approx(1)
    assert found["title_covered_names"] == found["covered_names"] == 2
    assert found["title_covered_weight"] == found["covered_weight"] > 0


def test_headings_whose_names_are_covered_best_are_proposed(indexer: Indexer, monkeypatch) -> None:
    document = Document("", "Resistances to old insulin", language="en")
    evidence = evidence_of(indexer, document)
    # The deprecated heading is not proposed, nor one whose name has no words to compare.
    assert {*NameWordsSignal().propose(evidence).tolist()} == {0, 1, 2}
    monkeypatch.setattr("labelkin.rerank.signals.names._BEST_COVERED", 1)
    assert NameWordsSignal().propose(evidence_of(indexer, document)).tolist() == [0]
