from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from labelkin.vocab import Concept, Vocabulary, read_vocabulary
from labelkin.vocab.editions import KINDS, EditionDiff, compare_editions, completed
from labelkin.vocab.names import name_key


def named(identifier: str, name: str, *synonyms: str, **rest: object) -> Concept:
    return Concept(identifier, {"en": name}, {"en": synonyms} if synonyms else {}, **rest)  # type: ignore[arg-type]


def compared(old: list[Concept], new: list[Concept]) -> EditionDiff:
    return compare_editions(old, Vocabulary(new))


def ids(diff: EditionDiff) -> dict[str, list[str]]:
    return {
        kind: [change.concept.id for change in changes]
        for kind, changes in diff.changes.items()
        if changes
    }


def test_equal_editions(vocabulary: Vocabulary) -> None:
    diff = compare_editions(vocabulary, vocabulary)
    assert ids(diff) == {}
    assert list(diff.changes) == list(KINDS)
    assert diff.old == diff.new == 4


def test_added_removed_and_deprecated() -> None:
    diff = compared(
        [named("A", "Bread"), named("B", "Oats"), named("C", "Rye", deprecated=True)],
        [named("A", "Bread", deprecated=True), named("C", "Rye"), named("D", "Malt")],
    )
    assert ids(diff) == {"added": ["D"], "restored": ["C"], "removed": ["B"], "deprecated": ["A"]}
    assert (diff.old, diff.new) == (2, 2)


def test_merged_by_a_link_through_others() -> None:
    diff = compared(
        [named("A", "Bread"), named("B", "Oats")],
        [
            named("A", "Bread", deprecated=True, replaced_by=("X",)),
            named("X", "Loaves", deprecated=True, replaced_by=("A", "gone", "B")),
            named("B", "Oats"),
        ],
    )
    assert ids(diff) == {"merged": ["A"]}
    assert diff.successors() == {"A": ("B",)}


@pytest.mark.parametrize("synonym", ["Rye Bread", "rye  bread"])
def test_merged_by_name(synonym: str) -> None:
    diff = compared([named("A", "Bread"), named("B", "Rye bread")], [named("A", "Bread", synonym)])
    assert ids(diff) == {"merged": ["B"], "new synonyms": ["A"]}
    assert diff.successors() == {"B": ("A",)}


def test_a_name_that_two_headings_have_merges_nothing() -> None:
    diff = compared(
        [named("A", "Bread"), named("B", "Oats"), named("C", "Loaf")],
        [named("A", "Bread", "Loaf"), named("B", "Oats", "Loaf")],
    )
    assert ids(diff)["removed"] == ["C"]


def test_a_homonym_that_is_dropped_is_not_merged() -> None:
    planet, metal = named("m1", "Mercury"), named("m2", "Mercury")
    assert ids(compared([planet, metal], [planet])) == {"removed": ["m2"]}
    gone = replace(metal, deprecated=True)
    assert ids(compared([planet, metal], [planet, gone])) == {"deprecated": ["m2"]}
    synonym = named("m1", "Quicksilver", "mercury")
    assert ids(compared([synonym, metal], [synonym])) == {"removed": ["m2"]}
    # One that takes the name over, and a link, are evidence.
    diff = compared([named("m1", "Quicksilver"), metal], [synonym])
    assert diff.successors() == {"m2": ("m1",)}
    linked = replace(gone, replaced_by=("m1",))
    assert compared([planet, metal], [planet, linked]).successors() == {"m2": ("m1",)}


def test_split_by_names_and_by_links() -> None:
    diff = compared(
        [named("A", "Loaf", "Dark loaf", "Light loaf"), named("B", "Grain")],
        [
            named("N1", "Dark loaf"),
            named("N2", "Loaf, light", "Light loaf"),
            named("B", "Grain", deprecated=True, replaced_by=("N1", "N2")),
        ],
    )
    assert ids(diff) == {"added": ["N1", "N2"], "split": ["A", "B"]}
    assert diff.successors() == {"A": ("N1", "N2"), "B": ("N1", "N2")}


def test_names_and_places() -> None:
    old = [
        named("A", "Bread", "Loaf"),
        named("B", "Oats", broader=("A",)),
        named("C", "Rye"),
    ]
    new = [
        Concept("A", {"en": "Breads", "de": "Brot"}, {"en": ("Bread", "loaf")}),
        named("B", "Oats", "Avena", broader=("C",)),
        named("C", "Rye"),
    ]
    diff = compared(old, new)
    (renamed,), (moved,) = diff.changes["renamed"], diff.changes["moved"]
    assert (renamed.before, renamed.after) == (("Bread",), ("Breads",))
    assert (moved.before, moved.after) == (("A",), ("C",))
    # What was the name is a synonym now: no further name. Case does not count.
    assert ids(diff) == {
        "renamed": ["A"], "translated": ["A"], "moved": ["B"], "new synonyms": ["B"],
    }  # fmt: skip
    assert ids(compared(new, old))["lost synonyms"] == ["B"]


def test_what_an_edition_says_nothing_about_is_kept() -> None:
    old = [
        named("A", "Bread", "Loaf", notations=("1",)),
        Concept("B", {"en": "Oats", "fr": "Avoine"}, {"fr": ("Avena",)}, broader=("A",)),
    ]
    spanish = Vocabulary([Concept("A", {"es": "Pan"}), Concept("B", {"es": "Avena"})])
    edition = completed(old, spanish)
    assert list(edition) == [
        replace(old[0], names={"en": "Bread", "es": "Pan"}),
        replace(old[1], names={"en": "Oats", "fr": "Avoine", "es": "Avena"}),
    ]
    assert [*edition.concept("B").names] == ["en", "fr", "es"]
    assert ids(compare_editions(old, spanish)) == {"translated": ["A", "B"]}
    assert ids(compared(old, [Concept("A", {}), Concept("B", {})])) == {}
    # A language that the edition has is replaced: the name is gone.
    french = [
        named("A", "Bread", "Loaf"),
        Concept("B", {"en": "Oats"}),
        Concept("C", {"fr": "Blé"}),
    ]
    diff = compared(old, french)
    assert ids(diff) == {"added": ["C"], "lost synonyms": ["B"]}
    assert diff.changes["lost synonyms"][0].before == ("Avoine", "Avena")


def test_as_json() -> None:
    content = compared([named("A", "Bread")], [named("A", "Bread", "Loaf")]).to_json()
    assert content["headings"] == {"old": 1, "new": 1}
    assert content["counts"]["new synonyms"] == 1
    assert content["new_synonyms"] == [
        {"id": "A", "name": "Bread", "before": [], "after": ["Loaf"]}
    ]


@pytest.fixture(scope="module")
def mesh(shared_data: Path) -> Vocabulary:
    return read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")


def test_mesh_of_2016(mesh: Vocabulary, shared_data: Path) -> None:
    lines = (shared_data / "bioasq" / "mesh2016-mapping.txt").read_text().splitlines()
    # The others are names of categories.
    old = [Concept(line.split()[0], {}) for line in lines if line.startswith("D")]
    counts = compare_editions(old, mesh).counts()
    # Without names, what has become of a heading that is gone cannot be told.
    assert not any(counts[kind] for kind in ("merged", "split", "renamed", "new synonyms"))
    assert len(mesh) == len(old) - counts["removed"] + counts["added"]
    assert counts["added"] > counts["removed"] > 0


def test_decs_has_ids_of_its_own(mesh: Vocabulary, shared_data: Path) -> None:
    """Neither ids nor codes link a Spanish name to its MeSH heading."""
    decs = read_vocabulary(shared_data / "mesh" / "decs2019-es.tsv.gz", language="es")
    assert not any(concept.id in mesh for concept in decs)
    # Names that both have: Latin ones mostly, which would add nothing.
    by_name = {name_key(concept.name()): concept.id for concept in mesh}
    same = {one.id: by_name.get(name_key(one.name("es"))) for one in decs}
    shared = {code: identifier for code, identifier in same.items() if identifier}
    assert len(shared) < 0.15 * len(decs)
    assert sum(int(code) == int(one[1:]) for code, one in shared.items()) < 10
