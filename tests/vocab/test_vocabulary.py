from __future__ import annotations

import pytest

from labelkin.exceptions import VocabularyError
from labelkin.vocab import Concept, Vocabulary


def test_columns_are_stable(vocabulary: Vocabulary) -> None:
    before = vocabulary.fingerprint()
    assert [vocabulary.column(concept.id) for concept in vocabulary] == list(range(5))
    assert vocabulary.add(Concept("V6", {"en": "Hops"})) == 5
    assert vocabulary[5].name() == "Hops"
    assert vocabulary.fingerprint() != before
    assert vocabulary.resolve("hops").column == 5


def test_a_concept_added_later_is_found_though_it_was_unknown(vocabulary: Vocabulary) -> None:
    assert vocabulary.resolve("Hops").column is None
    vocabulary.add(Concept("V6", {"en": "Hops"}))
    assert vocabulary.resolve("Hops").column == 5


def test_twice_the_same_id(vocabulary: Vocabulary) -> None:
    with pytest.raises(VocabularyError, match="'V1' occurs twice"):
        vocabulary.add(Concept("V1", {"en": "X"}))
    assert len(vocabulary) == 5


def test_hierarchy(vocabulary: Vocabulary) -> None:
    assert vocabulary.narrower("V1") == ("V2",)
    assert vocabulary.broader("V2") == ("V1",)
    assert [concept.id for concept in vocabulary.top()] == [
        "V1",
        "V3",
        "http://example.org/v#V4",
        "V5",
    ]


def test_broader_outside_the_vocabulary_is_passed_over() -> None:
    found = Vocabulary([Concept("1", {"en": "A"}, broader=("elsewhere",))])
    assert found.broader("1") == ()
    assert len(found.top()) == 1


def test_search_ranks_whole_names_first(vocabulary: Vocabulary) -> None:
    hits = vocabulary.search("bread")
    assert [(concept.id, name) for concept, name in hits] == [("V1", "Bread"), ("V2", "Bread, Rye")]
    assert [concept.id for concept, _ in vocabulary.search("ROT")] == ["V1", "V2"]
    assert vocabulary.search("zzz") == []
    assert len(vocabulary.search("a", limit=2)) == 2


def test_find_says_what_is_wrong(vocabulary: Vocabulary) -> None:
    assert vocabulary.find("rye bread").id == "V2"
    with pytest.raises(VocabularyError, match="'dark loaf' is ambiguous"):
        vocabulary.find("dark loaf")


def test_names_by_language(vocabulary: Vocabulary) -> None:
    assert vocabulary[0].name("de") == vocabulary[0].name("de-AT") == "Brot"
    assert vocabulary[2].name("de") == "Oats"
    assert Concept("X", {}).name() == "X"
    assert Concept("X", {"fr": "Pain"}).name("de") == "Pain"
    assert vocabulary.languages() == ["de", "en"]
