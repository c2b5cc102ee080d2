from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.vocab import Concept, Match, Vocabulary
from labelkin.vocab.names import name_key, turned, uri_tail


@pytest.mark.parametrize(
    ("label", "column", "match"),
    [
        ("V2", 1, Match.ID),
        ("http://e.org/V2", 1, Match.URI_TAIL),
        ("V4", 3, Match.URI_TAIL),
        ("https://example.org/v#V4/", 3, Match.URI_TAIL),
        ("http://elsewhere.org/v#V4", None, Match.UNKNOWN),
        ("http://example.org/v#V4", 3, Match.ID),
        ("A01.100", 1, Match.NOTATION),
        ("bread", 0, Match.NAME),
        ("  BREAD ", 0, Match.NAME),
        ("Brot", 0, Match.NAME),
        ("rye bread", 1, Match.SYNONYM),
        ("Rye  Bread", 1, Match.SYNONYM),
        ("Bread, Rye", 1, Match.NAME),
        ("Old, Malt", None, Match.UNKNOWN),
        ("Dark Loaf", None, Match.AMBIGUOUS),
        ("Loaf, Dark", None, Match.AMBIGUOUS),
        ("Wheat", None, Match.UNKNOWN),
        ("", None, Match.UNKNOWN),
        ("v2", None, Match.UNKNOWN),
    ],
)
def test_resolve(vocabulary: Vocabulary, label: str, column: int | None, match: Match) -> None:
    resolution = vocabulary.resolve(label)
    assert (resolution.column, resolution.match) == (column, match)


def test_words_turn_at_the_comma_either_way() -> None:
    listed = Vocabulary([Concept("1", {"en": "Diabetes Mellitus, Type 2"}), Concept("2", {})])
    assert listed.resolve("type 2 diabetes mellitus").match is Match.TURNED
    plain = Vocabulary([Concept("1", {"en": "Type 2 Diabetes Mellitus"})])
    assert plain.resolve("Diabetes Mellitus, Type 2").column == 0


def test_a_name_beats_another_concepts_synonym() -> None:
    vocabulary = Vocabulary([Concept("1", {"en": "A"}, {"en": ("B",)}), Concept("2", {"en": "b"})])
    assert vocabulary.resolve("B").column == 1


def test_an_ambiguous_name_does_not_fall_through_to_a_synonym() -> None:
    concepts = [Concept("1", {"en": "Java"}), Concept("2", {"en": "java"})]
    concepts.append(Concept("3", {"en": "Coffee"}, {"en": ("Java",)}))
    assert Vocabulary(concepts).resolve("Java").match is Match.AMBIGUOUS


def test_homonyms_across_languages() -> None:
    vocabulary = Vocabulary(
        [Concept("1", {"en": "Gift"}), Concept("2", {"en": "Poison", "de": "Gift"})]
    )
    assert vocabulary.resolve("Gift").match is Match.AMBIGUOUS
    assert vocabulary.resolve("Gift", language="en").column == 0
    assert vocabulary.resolve("gift", language="de").column == 1


def test_deprecated_concepts_do_not_block_current_ones() -> None:
    old = Concept("1", {"en": "Malt"}, deprecated=True)
    vocabulary = Vocabulary([old, Concept("2", {"en": "Malt"}), Concept("3", {"en": "Rye"})])
    assert vocabulary.resolve("Malt").column == 1
    assert vocabulary.resolve("1").column == 0
    assert Vocabulary([old]).resolve("malt").column == 0


def test_a_name_that_is_also_the_end_of_a_uri() -> None:
    vocabulary = Vocabulary(
        [Concept("http://e.org/1984", {"en": "X"}), Concept("b", {"en": "1984"})]
    )
    assert vocabulary.resolve("1984").column == 1
    assert vocabulary.resolve("http://e.org/1984").column == 0


def test_without_guessing_uris_are_taken_at_their_word(vocabulary: Vocabulary) -> None:
    assert vocabulary.resolve("http://e.org/V2", guess=False).column is None
    assert vocabulary.resolve("V4", guess=False).column is None
    assert vocabulary.resolve("D9", "Oats", guess=False).column is None
    assert vocabulary.resolve("oats", guess=False).column == 2


def test_the_name_beside_an_id_is_the_second_chance(vocabulary: Vocabulary) -> None:
    assert vocabulary.resolve("D999", "Oats").column == 2
    assert vocabulary.resolve("V1", "Oats").column == 0
    assert vocabulary.resolve("D999", "Nothing").match is Match.UNKNOWN


NAME = st.text(min_size=1, max_size=12)


@given(st.lists(st.tuples(NAME, st.lists(NAME, max_size=3)), max_size=8), NAME)
def test_resolution_never_crashes_and_names_resolve_to_a_bearer(
    named: list[tuple[str, list[str]]], query: str
) -> None:
    concepts = [
        Concept(f"id:{number}", {"en": name}, {"en": tuple(synonyms)})
        for number, (name, synonyms) in enumerate(named)
    ]
    vocabulary = Vocabulary(concepts)
    vocabulary.resolve(query)
    for column, (name, _) in enumerate(named):
        resolution = vocabulary.resolve(f"id:{column}")
        assert (resolution.column, resolution.match) == (column, Match.ID)
        by_name = vocabulary.resolve(name)
        bearers = [i for i, (other, _) in enumerate(named) if name_key(other) == name_key(name)]
        if by_name.match is Match.NAME:
            assert [by_name.column] == bearers
        elif name_key(name):
            assert len(bearers) > 1 or by_name.match is Match.ID


@given(NAME)
def test_keys_ignore_case_and_spaces(name: str) -> None:
    assert name_key(f"  {name} ") == name_key(name)
    assert name_key(name_key(name)) == name_key(name)


def test_turned_and_tail() -> None:
    assert turned("receptors, serotonin, 5-ht1") == "5-ht1 serotonin receptors"
    assert turned("1,2-propanediol") == "1,2-propanediol"
    assert uri_tail("http://e.org/a/b#c") == "c"
    assert uri_tail("http://e.org/a/b/") == "b"
    assert uri_tail("D0001") == ""
