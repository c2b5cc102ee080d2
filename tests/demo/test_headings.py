from __future__ import annotations

import re
from collections import Counter

import pytest

from labelkin.demo.headings import TOPIC_WORDS, demo_concepts, demo_headings, tree_numbers
from labelkin.vocab.concept import Concept


def test_about_a_thousand_headings_with_ids_in_order(demo_vocabulary: dict[str, Concept]) -> None:
    assert 950 <= len(demo_vocabulary) <= 1100
    assert list(demo_vocabulary) == [f"LK{n:04d}" for n in range(1, len(demo_vocabulary) + 1)]


@pytest.mark.parametrize("language", ["en", "de"])
def test_names_are_unique_and_capitalised(
    demo_vocabulary: dict[str, Concept], language: str
) -> None:
    names = [c.names[language] for c in demo_vocabulary.values() if language in c.names]
    if language == "en":
        assert len(names) == len(demo_vocabulary)
        assert len({name.lower() for name in names}) == len(names)
    assert all(name[0].isupper() for name in names)


def test_names_look_like_subject_headings(demo_vocabulary: dict[str, Concept]) -> None:
    names = {concept.name() for concept in demo_vocabulary.values()}
    assert 20 <= sum(", " in name for name in names) <= 120
    assert sum(name.endswith("s") for name in names) > 400
    assert {"Wheat, Winter", "Cherry Harvest", "Potato Diseases"} <= names


def test_most_have_german_names(demo_vocabulary: dict[str, Concept]) -> None:
    share = sum("de" in c.names for c in demo_vocabulary.values()) / len(demo_vocabulary)
    assert 0.5 <= share <= 0.9


def test_synonyms(demo_vocabulary: dict[str, Concept]) -> None:
    synonyms = [concept.synonyms.get("en", ()) for concept in demo_vocabulary.values()]
    sizes = Counter(map(len, synonyms))
    assert set(sizes) == {0, 1, 2, 3, 4}
    assert 30 <= sizes[0] <= 150
    names = {concept.name().lower() for concept in demo_vocabulary.values()}
    assert not [term for terms in synonyms for term in terms if term.lower() in names]
    assert all(len(set(terms)) == len(terms) for terms in synonyms)
    everything = [term for terms in synonyms for term in terms]
    assert sum(term.isupper() for term in everything) >= 10
    assert sum(", " in term for term in everything) >= 50
    assert sum(bool(re.fullmatch(r"[A-Z][a-z]+ [a-z]+", term)) for term in everything) >= 50


def test_inverted_names_have_their_direct_form_as_synonym(
    demo_vocabulary: dict[str, Concept],
) -> None:
    for concept in demo_vocabulary.values():
        if ", " in concept.name():
            head, qualifier = concept.name().split(", ")
            assert f"{qualifier} {head}" in concept.synonyms["en"]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_few_synonyms_are_ambiguous(seed: int) -> None:
    counts = Counter(
        term for concept in demo_concepts(seed) for term in concept.synonyms.get("en", ())
    )
    ambiguous = {term for term, count in counts.items() if count > 1}
    assert {"Corn", "Blight", "Mills", "Scab"} <= ambiguous
    assert len(ambiguous) <= 25


def test_hierarchy_is_acyclic_with_no_parent_that_another_implies(
    demo_vocabulary: dict[str, Concept],
) -> None:
    def ancestors(concept: Concept, below: tuple[str, ...] = ()) -> set[str]:
        assert concept.id not in below
        above: set[str] = set()
        for parent in concept.broader:
            above |= {parent} | ancestors(demo_vocabulary[parent], (*below, concept.id))
        return above

    for concept in demo_vocabulary.values():
        assert len(set(concept.broader)) == len(concept.broader)
        for parent in concept.broader:
            assert not ancestors(demo_vocabulary[parent]) & set(concept.broader)


def test_shape_of_the_hierarchy(demo_vocabulary: dict[str, Concept]) -> None:
    standing = [c for c in demo_vocabulary.values() if not c.deprecated]
    assert len([c for c in standing if not c.broader]) == 8
    assert 100 <= sum(len(c.broader) == 2 for c in standing) <= 250
    assert all(len(c.broader) <= 2 for c in standing)
    assert max(n.count(".") + 1 for c in standing for n in c.notations) == 5


def test_tree_numbers_agree_with_broader(demo_vocabulary: dict[str, Concept]) -> None:
    owner: dict[str, str] = {}
    for concept in demo_vocabulary.values():
        for number in concept.notations:
            assert re.fullmatch(r"[A-H]01(\.\d{3})*", number)
            assert number not in owner
            owner[number] = concept.id
    for concept in demo_vocabulary.values():
        if concept.deprecated:
            assert concept.notations == ()
            continue
        places = [
            place for parent in concept.broader for place in demo_vocabulary[parent].notations
        ]
        above = [number.rpartition(".")[0] for number in concept.notations]
        assert sorted(above) == (sorted(places) if concept.broader else [""])


def test_related_is_symmetric_and_leaves_the_category(demo_vocabulary: dict[str, Concept]) -> None:
    linked = [concept for concept in demo_vocabulary.values() if concept.related]
    assert 80 <= len(linked) <= 300
    for concept in linked:
        for other in concept.related:
            assert concept.id in demo_vocabulary[other].related
            assert other != concept.id
            assert other not in concept.broader


def test_deprecated_headings_have_a_standing_replacement(
    demo_vocabulary: dict[str, Concept],
) -> None:
    deprecated = [concept for concept in demo_vocabulary.values() if concept.deprecated]
    assert 2 <= len(deprecated) <= 3
    for concept in deprecated:
        (replacement,) = concept.replaced_by
        assert not demo_vocabulary[replacement].deprecated
    assert all(c.deprecated for c in demo_vocabulary.values() if c.replaced_by)


def test_seed_changes_synonyms_but_neither_names_nor_hierarchy() -> None:
    zero, one = demo_concepts(0), demo_concepts(1)
    assert demo_concepts(0) == zero
    for field in ("id", "names", "broader", "notations"):
        assert [getattr(c, field) for c in zero] == [getattr(c, field) for c in one]
    assert [c.synonyms for c in zero] != [c.synonyms for c in one]
    assert [c.related for c in zero] != [c.related for c in one]


def test_topic_words_are_shared_in_part_with_siblings_and_name_no_heading() -> None:
    headings = demo_headings()
    terms = {said.lower() for h in headings for said in (h.said, *h.said_synonyms)}
    for heading in headings:
        assert len(set(heading.topic_words)) == TOPIC_WORDS
        assert not terms & set(heading.topic_words)
    by_name = {heading.concept.name(): heading for heading in headings}
    cereals = [set(by_name[name].topic_words) for name in ("Wheat", "Barley", "Rye", "Oats")]
    assert len({frozenset(words) for words in cereals}) > 1
    assert len(set.union(*cereals)) < sum(map(len, cereals))


def test_tree_numbers_follow_the_order_of_the_children() -> None:
    numbers = tree_numbers({"A": "top"}, {"top": ["x", "y"], "y": ["z"]})
    assert numbers == {
        "top": ("A01",),
        "x": ("A01.050",),
        "y": ("A01.100",),
        "z": ("A01.100.050",),
    }


def test_two_parents_give_a_tree_number_below_each() -> None:
    numbers = tree_numbers(
        {"A": "plants", "B": "harms"},
        {"plants": ["rust"], "harms": ["mould", "rust"], "rust": ["x"]},
    )
    assert numbers["rust"] == ("A01.050", "B01.100")
    assert numbers["x"] == ("A01.050.050", "B01.100.050")


def test_many_children_still_fit_three_digits() -> None:
    children = [f"c{number}" for number in range(300)]
    numbers = tree_numbers({"A": "top"}, {"top": children})
    places = [numbers[child][0] for child in children]
    assert places == sorted(set(places))
    assert all(len(place) == len("A01.000") for place in places)
