from __future__ import annotations

from collections import Counter

import pytest

from labelkin.demo import outline
from labelkin.demo.lexicon import OUTLINES
from labelkin.demo.lexicon.aspects import ASPECTS
from labelkin.demo.outline import Entry, read_outlines
from labelkin.demo.topics import REALMS

SMALL = """
Plants = Flora; Plant Life / Pflanzen
  ~ field garden: root depth, sap flow
  ~ leaf area
  Apples = Malus domestica / Äpfel < Trees + storage
    ~ orchard: windfalls
    ^Sarn Pippin = River Pippin
  Trees
  Old Plants -> Trees
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> dict[str, Entry]:
    monkeypatch.setattr(outline, "OUTLINES", {"A": SMALL})
    return {entry.name: entry for entry in read_outlines()}


def test_order_and_parents(small: dict[str, Entry]) -> None:
    assert {name: entry.parents for name, entry in small.items()} == {
        "Plants": (),
        "Apples": ("Plants", "Trees"),
        "Apple Storage": ("Apples", "Crop Storage"),
        "Sarn Pippin": ("Apples",),
        "Trees": ("Plants",),
        "Old Plants": (),
    }


def test_names_and_synonyms(small: dict[str, Entry]) -> None:
    assert small["Plants"].synonyms == (("Flora", "flora"), ("Plant Life", "plant life"))
    assert small["Apples"].synonyms == (("Malus domestica", "Malus domestica"),)
    assert small["Apples"].german == "Äpfel"
    assert small["Trees"].german is None
    assert small["Sarn Pippin"].said == "Sarn Pippin"
    assert small["Old Plants"].replaced_by == "Trees"


def test_groups_are_inherited_until_a_new_one_opens(small: dict[str, Entry]) -> None:
    assert small["Plants"].group.words == ("root depth", "sap flow", "leaf area")
    assert small["Plants"].group.realms == ("field", "garden")
    assert small["Trees"].group is small["Plants"].group
    assert small["Sarn Pippin"].group.words == ("windfalls",)
    assert small["Apple Storage"].group.name == "Apples"


def test_aspects_bring_their_category_and_words(small: dict[str, Entry]) -> None:
    storage = small["Apple Storage"]
    assert storage.said == "apple storage"
    assert storage.synonyms == (("Keeping of Apples", "keeping of apples"),)
    assert storage.category == "E"
    assert storage.own_words == ASPECTS["storage"].words


def test_lexicon_refers_only_to_headings_that_exist() -> None:
    entries = read_outlines()
    names = Counter(entry.name for entry in entries)
    assert max(names.values()) == 1
    for entry in entries:
        assert set(entry.parents) <= set(names)
        assert entry.replaced_by is None or entry.replaced_by in names
    assert {aspect.home for aspect in ASPECTS.values()} - {None} <= set(names)


def test_lexicon_has_no_unused_aspect_and_no_odd_line() -> None:
    text = "\n".join(OUTLINES.values())
    listed = {name for line in text.splitlines() if " + " in line for name in line.split()}
    assert set(ASPECTS) <= listed
    for line in text.splitlines():
        assert (len(line) - len(line.lstrip())) % 2 == 0
        assert line == line.rstrip()


def test_every_group_has_realms_and_enough_words() -> None:
    for entry in read_outlines():
        assert entry.group.realms
        assert set(entry.group.realms) <= {*REALMS, "any"}
        assert len(entry.group.words) >= 5
