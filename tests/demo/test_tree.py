from __future__ import annotations

from labelkin.demo.tree import tree_numbers


def test_numbers_follow_the_order_of_the_children() -> None:
    numbers = tree_numbers({"A": "top"}, {"top": ["x", "y"], "y": ["z"]})
    assert numbers == {
        "top": ("A01",),
        "x": ("A01.050",),
        "y": ("A01.100",),
        "z": ("A01.100.050",),
    }


def test_two_parents_give_a_place_below_each_and_so_for_all_below() -> None:
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
