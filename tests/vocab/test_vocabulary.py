from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

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


def test_broader_outside_the_vocabulary_is_ignored() -> None:
    vocabulary = Vocabulary([Concept("1", {"en": "A"}, broader=("elsewhere",))])
    assert vocabulary.broader("1") == ()
    assert len(vocabulary.top()) == 1


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


def test_extended_appends_and_leaves_the_original_unchanged(vocabulary: Vocabulary) -> None:
    before = vocabulary.fingerprint()
    assert vocabulary.resolve("Rolls").column is None
    assert vocabulary.narrower("V1") == ("V2",)
    larger = vocabulary.extended(
        [Concept("V6", {"en": "Rolls"}, broader=("V1",)), Concept("V7", {"en": "Malt"})]
    )
    assert (len(vocabulary), len(larger)) == (5, 7)
    assert all(larger[column] is concept for column, concept in enumerate(vocabulary))
    assert larger.column("V7") == 6
    assert larger.resolve("rolls").column == 5
    assert larger.resolve("Brot").column == 0
    assert larger.narrower("V1") == ("V2", "V6")
    assert vocabulary.fingerprint() == before
    assert "V6" not in vocabulary
    assert vocabulary.resolve("Rolls").column is None
    assert vocabulary.narrower("V1") == ("V2",)
    with pytest.raises(VocabularyError, match="'V1' occurs twice"):
        vocabulary.extended([Concept("V6", {"en": "Rolls"}), Concept("V1", {"en": "X"})])
    assert len(vocabulary) == 5


def test_adding_to_an_extended_vocabulary_leaves_the_original_unchanged(
    vocabulary: Vocabulary,
) -> None:
    copy = vocabulary.extended([])
    copy.add(Concept("V6", {"en": "Hops"}))
    assert (len(vocabulary), len(copy)) == (5, 6)
    assert vocabulary.resolve("Hops").column is None


def test_the_cache_of_resolutions_is_bounded(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelkin.vocab.vocabulary._CACHED_RESOLUTIONS", 10)
    for number in range(25):
        assert vocabulary.resolve(f"unknown {number}").column is None
        assert vocabulary.resolve("Oats").column == 2
        assert len(vocabulary._resolved) <= 10


def test_threads_share_a_vocabulary_for_reading() -> None:
    size, threads = 2000, 8
    vocabulary = Vocabulary(
        Concept(f"C{number}", {"en": f"Name {number}"}, broader=("C0",) if number else ())
        for number in range(size)
    )
    start = Barrier(threads)

    def read(_: int) -> tuple[int, int | None]:
        start.wait()
        return len(vocabulary.narrower("C0")), vocabulary.resolve(f"Name {size - 1}").column

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            assert set(pool.map(read, range(threads))) == {(size - 1, size - 1)}
    finally:
        sys.setswitchinterval(interval)
