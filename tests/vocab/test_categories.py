from __future__ import annotations

from labelkin.vocab import Concept, Vocabulary
from labelkin.vocab.categories import branch_names, top_branch


def test_branches_of_mesh_are_letters_of_tree_numbers() -> None:
    vocabulary = Vocabulary(
        [
            Concept("D000001", {"en": "Heart"}, notations=("A07.541", "C14.1")),
            Concept("D000002", {"en": "Nowhere"}),
        ]
    )
    branch = top_branch(vocabulary)
    assert (branch("D000001"), branch("D000002")) == ("A", "")
    assert branch_names(vocabulary, ["A", "Q"]) == {"A": "Anatomy", "Q": "Q"}


def test_elsewhere_branches_are_top_concepts() -> None:
    vocabulary = Vocabulary(
        [
            Concept("a", {"de": "Oben", "en": "Top"}),
            Concept("b", {"en": "Below"}, broader=("a",)),
            Concept("c", {"en": "Lowest"}, broader=("b",)),
            Concept("d", {"en": "Alone"}),
        ]
    )
    branch = top_branch(vocabulary)
    assert [branch(one) for one in "abcd"] == ["a", "a", "a", "d"]
    assert branch_names(vocabulary, ["a"], "de") == {"a": "Oben"}


def test_below_a_single_root_the_next_level_counts() -> None:
    vocabulary = Vocabulary(
        [
            Concept("root", {"en": "Everything"}),
            Concept("a", {"en": "A"}, broader=("root",)),
            Concept("b", {"en": "B"}, broader=("root",)),
            Concept("c", {"en": "C"}, broader=("b",)),
        ]
    )
    branch = top_branch(vocabulary)
    assert [branch(one) for one in ("root", "a", "b", "c")] == ["root", "a", "b", "b"]
