from __future__ import annotations

from labelkin.vocab.concept import Concept
from labelkin.vocab.order import in_order, natural


def test_numbers_count_by_their_value_and_accents_not_at_all() -> None:
    names = ["Type 10", "éclair", "Type 2", "Zebra", "Eclipse", "type 1"]
    assert sorted(names, key=natural) == [
        "éclair",
        "Eclipse",
        "type 1",
        "Type 2",
        "Type 10",
        "Zebra",
    ]


def test_a_name_of_thousands_of_digits_is_sorted() -> None:
    assert natural("9" * 10_000) > natural("8")


def test_siblings_are_listed_by_the_notation_below_their_parent() -> None:
    parent = Concept("p", {"en": "P"}, notations=("B1",))
    first = Concept("b", {"en": "Z"}, notations=("B1.2", "C1"))
    second = Concept("a", {"en": "A"}, notations=("A9", "B1.10"))
    assert in_order([second, first], "en", parent) == [first, second]
    unplaced = Concept("c", {"en": "M"})
    assert in_order([first, second, unplaced], "en", parent) == [second, unplaced, first]
