from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.evaluate import evaluate, parse_measure
from labelkin.evaluate.sweep import THRESHOLDS
from labelkin.scoring.lexical import lexical_scores
from labelkin.scoring.mentions import Mentions
from labelkin.scoring.settings import LexicalSettings, Settings
from labelkin.vocab import Vocabulary

LEXICAL = Settings(method="lexical", lexical=LexicalSettings(threshold=0.0))
QUERY = Document("q", "Rye bread", "Oats and rye bread. Malt.")


@pytest.fixture
def indexer(tmp_path: Path, vocabulary: Vocabulary) -> Iterator[Indexer]:
    """A collection with a vocabulary and no documents."""
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as made:
        yield made


def names(indexer: Indexer, settings: Settings = LEXICAL) -> list[str]:
    (found,) = indexer.suggest([QUERY], settings=settings)
    return [suggestion.concept.name() for suggestion in found]


def mentions(**changes: float) -> Mentions:
    usual = {
        "title": 0,
        "body": 1,
        "nested": 0,
        "first": 0.5,
        "length": 1,
        "preferred": 1,
        "acronym": 0,
        "sharing": 1,
        "weight": 1,
    }
    arrays = {name: np.array([value]) for name, value in {**usual, **changes}.items()}
    return Mentions(starts=np.array([0, 1]), columns=np.array([0]), **arrays)


def test_a_collection_without_documents_suggests(indexer: Indexer) -> None:
    (found,) = indexer.suggest([QUERY], settings=LEXICAL)
    first = found[0]
    assert (first.concept.name(), first.rank, first.votes) == ("Bread, Rye", 1, 0)
    assert first.reason == "named in the title: 'Rye bread'"
    assert all(0 < suggestion.score < 1 for suggestion in found)
    assert not (indexer.collection.path / "indexes").exists() or not any(
        (indexer.collection.path / "indexes").iterdir()
    )


def test_replaced_headings_are_named_by_their_old_names(indexer: Indexer) -> None:
    # V5, "Malt (Old)", was replaced by V3, "Oats".
    (found,) = indexer.suggest([Document("q", "Malt (old)")], settings=LEXICAL)
    assert [suggestion.concept.name() for suggestion in found] == ["Oats"]
    assert found[0].named[0].words == "Malt (old"


def test_cuts_and_lists(indexer: Indexer) -> None:
    assert names(indexer) == ["Bread, Rye", "Oats", "Bread"]
    assert names(indexer, LEXICAL.changed(limit=1)) == ["Bread, Rye"]
    assert names(indexer, LEXICAL.changed(threshold=0.7)) == ["Bread, Rye"]
    assert names(indexer, LEXICAL.changed(exclude=("Oats",))) == ["Bread, Rye", "Bread"]
    assert names(indexer, LEXICAL.changed(include=("A01.100",))) == ["Bread, Rye"]


def test_batches(indexer: Indexer) -> None:
    ranking = indexer.labels([Document("a", "nothing"), QUERY, Document("b")], LEXICAL)
    assert ranking.lengths.tolist() == [0, 3, 0]
    assert len(indexer.labels([], LEXICAL)) == 0
    assert indexer.suggest([Document("a", "nothing")], settings=LEXICAL) == [[]]


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        ({"title": 1, "body": 0}, {"title": 0, "body": 1}),
        ({"body": 3}, {"body": 1}),
        ({"body": 1}, {"body": 0, "nested": 1}),
        ({"weight": 2}, {"weight": 1}),
        ({"sharing": 1}, {"sharing": 2}),
        ({"first": 0.1}, {"first": 0.9}),
    ],
)
def test_what_makes_a_score(stronger: dict[str, float], weaker: dict[str, float]) -> None:
    scores = [lexical_scores(mentions(**changes))[0] for changes in (stronger, weaker)]
    assert 1 > scores[0] > scores[1] > 0


def test_the_formula() -> None:
    strength = 1.5 / 2 * (2 + 2 + 0.25) * 0.75
    found = lexical_scores(mentions(title=1, body=2, nested=4, weight=1.5, sharing=2))
    assert found[0] == pytest.approx(strength / (1 + strength))


def test_tuning_and_evaluating(indexer: Indexer) -> None:
    documents = [replace(QUERY, labels=("V2", "V3")), Document("r", "Barley", labels=("Barley",))]
    trials = indexer.tune(documents, parse_measure("MiF"), method="lexical")
    assert len(trials) == len(THRESHOLDS)
    evaluation = indexer.evaluate(documents, settings=trials[0].settings)
    assert evaluate(evaluation, [parse_measure("MiF")])["MiF"] == trials[0].value == 1


def test_beside_another_method(indexer: Indexer) -> None:
    indexer.add([Document("a", "sourdough", labels=("Barley",))])
    knn = Settings.from_config(indexer.config)
    votes, named = indexer.compare([replace(QUERY, labels=("V2",))], [knn, LEXICAL])
    assert (len(votes.predicted.columns), len(named.predicted.columns)) == (0, 3)


def test_new_headings_are_found_at_once(indexer: Indexer) -> None:
    indexer.suggest([QUERY], settings=LEXICAL)
    indexer.add([Document("a", "x", labels=("Pumpernickel",))], keep_unknown=True)
    (found,) = indexer.suggest([Document("q", "On pumpernickel", language="en")], settings=LEXICAL)
    assert [suggestion.concept.name() for suggestion in found] == ["Pumpernickel"]
