from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.exceptions import VocabularyError
from labelkin.vocab import Concept, Vocabulary


def linked(*links: str, **notations: str) -> Vocabulary:
    """A vocabulary of links such as `a>b`: a is broader than b."""
    pairs = [tuple(link.split(">")) for link in links]
    ids = sorted({one for pair in pairs for one in pair} | {*notations})
    return Vocabulary(
        Concept(
            one,
            {"en": one},
            notations=tuple(notations.get(one, "").split()),
            broader=tuple(above for above, below in pairs if below == one),
        )
        for one in ids
    )


def shown(vocabulary: Vocabulary, identifier: str, limit: int = 50) -> list[str]:
    return ["".join(one.id for one in path) for path in vocabulary.paths(identifier, limit)]


def test_a_chain_and_the_top_itself() -> None:
    vocabulary = linked("a>b", "b>c")
    assert shown(vocabulary, "c") == ["abc"]
    assert shown(vocabulary, "a") == ["a"]
    with pytest.raises(VocabularyError, match="no concept 'x'"):
        vocabulary.paths("x")


def test_a_diamond_has_two_ways() -> None:
    vocabulary = linked("a>b", "a>c", "b>d", "c>d")
    assert shown(vocabulary, "d") == ["abd", "acd"]
    assert shown(vocabulary, "d", 1) == ["abd"]
    assert shown(vocabulary, "d", 0) == shown(vocabulary, "d", -1) == []


def test_cycles_end() -> None:
    # Of a cycle at the top, its first concept is the top.
    assert shown(linked("a>b", "b>a", "b>c"), "c") == ["abc"]
    assert shown(linked("a>b", "b>a", "b>c"), "a") == ["a"]
    # A way into a cycle that leads out elsewhere leads nowhere itself.
    vocabulary = linked("t>a", "a>b", "b>a", "b>c")
    assert shown(vocabulary, "c") == ["tabc"]
    assert shown(vocabulary, "b") == ["tab"]
    assert shown(vocabulary, "a") == ["ta"]
    assert shown(linked("a>a", "a>b"), "b") == ["ab"]


def test_links_to_unknown_concepts_are_ignored() -> None:
    vocabulary = Vocabulary([Concept("1", {"en": "A"}, broader=("elsewhere",))])
    assert shown(vocabulary, "1") == ["1"]


def test_a_tree_number_leads_to_one_place_only() -> None:
    """Eye is a sense organ and a part of the face; the retina is below the organ only."""
    vocabulary = linked("f>e", "s>e", "e>r", f="A01", s="A09", e="A01.4 A09.3", r="A09.3.7")
    assert shown(vocabulary, "e") == ["fe", "se"]
    assert shown(vocabulary, "r") == ["ser"]


def test_links_by_tree_numbers_can_be_a_cycle() -> None:
    """Each is below the other, in different trees."""
    vocabulary = linked("t>a", "a>b", "u>b", "b>a", t="A", u="B", a="A.1 B.1.1", b="A.1.1 B.1")
    assert shown(vocabulary, "a") == ["ta", "uba"]
    assert shown(vocabulary, "b") == ["tab", "ub"]


def test_two_tree_numbers_can_lead_the_same_way() -> None:
    vocabulary = linked("t>a", "a>b", "u>b", t="B", a="B.1 B.2", b="B.1.5 B.2.7")
    assert shown(vocabulary, "b") == ["tab", "ub"]
    assert shown(vocabulary, "b", 2) == ["tab", "ub"]


def test_a_place_at_the_top_beside_others() -> None:
    assert shown(linked("t>a", t="B", a="A B.1"), "a") == ["a", "ta"]
    # Codes that have nothing to do with the links say nothing about them.
    assert shown(linked("t>a", t="641", a="X12 Y.3"), "a") == ["ta"]
    # Links without a notation count beside those with one.
    assert shown(linked("t>a", "x>a", t="B", a="B.1"), "a") == ["ta", "xa"]


def test_more_ways_than_anyone_needs() -> None:
    levels = [f"l{number}" for number in range(40)]
    links = [f"{a}{x}>{b}{y}" for a, b in pairwise(levels) for x in "pq" for y in "pq"]
    started = time.process_time()
    paths = linked(*links).paths("l39p", limit=20)
    assert (len(paths), {len(path) for path in paths}) == (20, {40})
    # Everything above everything: ways that lead nowhere are very many.
    ids = [chr(97 + number) for number in range(20)]
    tangle = linked(*(f"{one}>{two}" for one in ids for two in ids if one != two))
    assert tangle.paths("t", limit=5)[0][0].id == "a"
    chain = Vocabulary(
        Concept(str(number), {}, broader=(str(number - 1),)) for number in range(20_000)
    )
    assert len(chain.paths("19999")[0]) == 20_000
    assert time.process_time() - started < 10


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), min_size=1, max_size=12
    )
)
def test_every_concept_has_a_way_from_the_top(pairs: list[tuple[str, str]]) -> None:
    vocabulary = linked(*(f"{above}>{below}" for above, below in dict.fromkeys(pairs)))
    tops = {concept.id for concept in vocabulary.top()}
    for concept in vocabulary:
        paths = vocabulary.paths(concept.id, 1000)
        assert paths
        for path in paths:
            ids = [one.id for one in path]
            assert ids[0] in tops
            assert ids[-1] == concept.id
            assert len(set(ids)) == len(ids)
            assert all(a in vocabulary.broader(b) for a, b in pairwise(ids))
        assert len({tuple(one.id for one in path) for path in paths}) == len(paths)


def test_the_top_follows_new_concepts() -> None:
    vocabulary = linked("a>b")
    assert [one.id for one in vocabulary.top()] == ["a"]
    vocabulary.add(Concept("c", {"en": "c"}))
    assert [one.id for one in vocabulary.top()] == ["a", "c"]
