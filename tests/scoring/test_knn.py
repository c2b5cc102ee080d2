from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Document, Indexer
from labelkin.exceptions import ConfigError
from labelkin.scoring.settings import ScorerSettings, Settings
from labelkin.vocab import Vocabulary


@pytest.fixture
def indexer(tmp_path: Path, vocabulary: Vocabulary) -> Iterator[Indexer]:
    made = Indexer.create(tmp_path / "c", vocabulary, language="en")
    made.add(
        [
            Document("a", "sourdough oven rye", labels=("V1", "V2")),
            Document("b", "sourdough oven", labels=("V1", "V5")),
            Document("c", "sourdough porridge", labels=("V3",)),
            Document("d", "harpsichord", labels=("http://example.org/v#V4",)),
        ]
    )
    yield made
    made.close()


QUERY = [Document("q", "sourdough oven")]


REQUEST = ("limit", "include", "exclude")


def names(indexer: Indexer, **changes: object) -> list[str]:
    """The suggested headings with other values of the request or of the scorer."""
    request = {name: changes.pop(name) for name in REQUEST if name in changes}
    settings = Settings.from_config(indexer.config)
    scorer = replace(settings.knn, **changes)  # type: ignore[arg-type]
    settings = replace(settings, knn=scorer, **request)  # type: ignore[arg-type]
    (suggestions,) = indexer.suggest(QUERY, settings=settings)
    return [suggestion.concept.name() for suggestion in suggestions]


def test_suggestions_carry_their_evidence(indexer: Indexer) -> None:
    (found,) = indexer.suggest(QUERY)
    first = found[0]
    assert first.concept.name() == "Bread"
    assert (first.rank, first.neighbours) == (1, 3)
    assert first.score == pytest.approx(2 / 3)
    assert first.reason == "2 of 3 nearest documents"
    assert [carrier.id for carrier in first.carriers] == ["b", "a"]
    assert first.carriers[0].distance == 0
    assert sum(carrier.share for carrier in first.carriers) == pytest.approx(1)


def test_deprecated_headings_are_replaced(indexer: Indexer) -> None:
    # "b" carries V5, which V3 replaced; "c" carries V3 itself.
    assert names(indexer, count=None) == ["Bread", "Oats", "Bread, Rye"]
    (found,) = indexer.suggest(QUERY, settings=Settings(knn=ScorerSettings(count=None)))
    assert [carrier.id for carrier in found[1].carriers] == ["b", "c"]


def test_cuts(indexer: Indexer) -> None:
    assert len(names(indexer)) == 2
    assert len(names(indexer, count=None, limit=1)) == 1
    assert names(indexer, count=None, threshold=0.6) == ["Bread", "Oats"]
    assert names(indexer, k=1) == ["Bread", "Oats"]


def test_lists(indexer: Indexer) -> None:
    assert names(indexer, count=None, exclude=("Bread",)) == ["Oats"]
    assert names(indexer, count=None, exclude=("Bread, Rye",)) == ["Bread", "Oats"]
    assert names(indexer, count=None, include=("A01",)) == ["Bread", "Bread, Rye"]
    with pytest.raises(ConfigError, match="not a concept"):
        names(indexer, include=("Nonsense",))


def test_folding(indexer: Indexer) -> None:
    (found,) = indexer.suggest(QUERY, settings=Settings(knn=ScorerSettings(count=None)), fold=True)
    assert [(s.rank, s.concept.name()) for s in found] == [(1, "Oats"), (2, "Bread, Rye")]


@pytest.mark.parametrize("weighting", ["majority", "difference", "square"])
def test_scores_are_shares(indexer: Indexer, weighting: str) -> None:
    scorer = ScorerSettings(weighting=weighting, count=None)  # type: ignore[arg-type]
    (found,) = indexer.suggest(QUERY, settings=Settings(knn=scorer))
    assert all(0 < suggestion.score <= 1 for suggestion in found)


def test_nothing_near(indexer: Indexer) -> None:
    assert indexer.suggest([Document("q", "zzzz"), *QUERY])[0] == []
    assert indexer.suggest([]) == []
