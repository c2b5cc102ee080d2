from __future__ import annotations

import pytest

from labelkin.demo.wording import direct, inverted, listed, sentence, singular, spoken


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("Wheat, Winter", "winter wheat"),
        ("Salmo trutta", "Salmo trutta"),
        ("Roots for Eating", "roots for eating"),
        ("Integrated Pest Management", "integrated pest management"),
        ("IPM", "IPM"),
        ("DNA Marks", "DNA marks"),
        ("Tarrow Red Cattle", "Tarrow red cattle"),
        ("Foot-and-Mouth Disease", "foot-and-mouth disease"),
    ],
)
def test_spoken(term: str, expected: str) -> None:
    assert spoken(term) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("Sarn River", "the Sarn River"),
        ("River Sarn", "the River Sarn"),
        ("Isle of Oster", "the Isle of Oster"),
        ("The Hethes", "the Hethes"),
        ("Ellmark", "Ellmark"),
        ("Port Merrin", "Port Merrin"),
    ],
)
def test_spoken_proper_nouns(term: str, expected: str) -> None:
    assert spoken(term, proper=True) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Apples", "Apple"),
        ("Cherries", "Cherry"),
        ("Potatoes", "Potato"),
        ("Peaches", "Peach"),
        ("Radishes", "Radish"),
        ("Ducks, Wild", "Wild Duck"),
        ("Asparagus", "Asparagus"),
        ("Heaths", "Heath"),
        ("Wheat", "Wheat"),
        ("Salt Marshes", "Salt Marsh"),
    ],
)
def test_singular(name: str, expected: str) -> None:
    assert singular(name) == expected


def test_direct_and_inverted_undo_each_other() -> None:
    assert inverted("Winter Wheat") == "Wheat, Winter"
    assert direct("Wheat, Winter") == "Winter Wheat"
    assert direct("Wheat") == "Wheat"
    assert inverted("Wheat") is None
    assert inverted("Salmo trutta") is None
    assert inverted("Life Cycle Assessment") is None


def test_listed() -> None:
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_sentence_keeps_inner_capitals() -> None:
    assert sentence("notes on Ellmark") == "Notes on Ellmark."
