from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from labelkin.exceptions import ConfigError
from labelkin.store.rows import concept_from_json, concept_to_json
from labelkin.vocab import Concept, Vocabulary, read_vocabulary
from labelkin.vocab.branches import Branches

Write = Callable[[str, str | bytes], Path]

PREFIXES = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix isothes: <http://purl.org/iso25964/skos-thes#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix e: <http://e.org/> .
"""
# STW: subject categories are concepts with notations, descriptors are below them.
STW = (
    PREFIXES
    + """
e:stw a skos:ConceptScheme ; rdfs:label "STW"@de , "Standard Thesaurus"@en .
e:v a skos:Concept ; skos:prefLabel "Economics"@en ; skos:notation "V" ; skos:inScheme e:stw .
e:v01 a skos:Concept ; skos:prefLabel "Macro"@en ; skos:notation "V.01" ; skos:broader e:v .
e:v0102 a skos:Concept ; skos:prefLabel "Growth"@en ; skos:notation "V.01.02" ; skos:broader e:v01 .
e:v010 a skos:Concept ; skos:prefLabel "Other"@en ; skos:notation "V.010" ; skos:broader e:v .
e:capital a skos:Concept ; skos:prefLabel "Capital"@en , "Kapital"@de ; skos:broader e:v0102 .
e:human a skos:Concept ; skos:prefLabel "Human capital"@en ; skos:broader e:capital .
e:wage a skos:Concept ; skos:prefLabel "Wage"@en ; skos:altLabel "Pay"@en ; skos:broader e:v010 .
"""
)
# YSO: thematic groups with members and groups in groups; an ordered collection as well.
YSO = (
    PREFIXES
    + """
e:yso a skos:ConceptScheme ; skos:prefLabel "YSO"@fi .
e:animals a skos:Concept ; skos:prefLabel "eläimet"@fi , "animals"@en ; skos:inScheme e:yso .
e:dogs a skos:Concept ; skos:prefLabel "koirat"@fi , "dogs"@en ; skos:broader e:animals .
e:puppies a skos:Concept ; skos:prefLabel "pennut"@fi , "puppies"@en ; skos:broader e:dogs .
e:law a skos:Concept ; skos:prefLabel "oikeus"@fi , "law"@en ; skos:inScheme e:yso .
e:court a skos:Concept ; skos:prefLabel "tuomioistuin"@fi , "courts"@en .
e:g1 a skos:Collection , isothes:ConceptGroup ; skos:prefLabel "Luonto"@fi , "Nature"@en ;
  isothes:subGroup e:g2 .
e:g2 a skos:Collection , isothes:ConceptGroup ; skos:prefLabel "Animals"@en ; skos:notation "G57" ;
  skos:member e:dogs , e:missing ; skos:member e:g1 .
e:g3 a isothes:ConceptGroup ; skos:prefLabel "Law"@fi ; skos:member e:law .
e:g4 a skos:OrderedCollection ; rdfs:label "Courts and law" ; skos:memberList ( e:court e:law ) .
"""
)


def named(vocabulary: Vocabulary, entry: str) -> list[str]:
    columns = Branches(vocabulary).columns(entry)
    return sorted(vocabulary[column].name() for column in columns)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("Capital", ["Capital", "Human capital"]),
        ("kapital", ["Capital", "Human capital"]),
        ("http://e.org/v01", ["Capital", "Growth", "Human capital", "Macro"]),
        ("V.01", ["Capital", "Growth", "Human capital", "Macro"]),
        ("V.010", ["Other", "Wage"]),
        ("Pay", ["Wage"]),
        ("Standard thesaurus", ["Economics"]),
        ("http://e.org/stw", ["Economics"]),
        ("wage", ["Wage"]),
        ("human", ["Human capital"]),
    ],
)
def test_stw_follows_broader_links_and_notations(
    entry: str, expected: list[str], write: Write
) -> None:
    assert named(read_vocabulary(write("stw.ttl", STW)), entry) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("dogs", ["dogs", "puppies"]),
        ("Nature", ["dogs"]),
        ("luonto", ["dogs"]),
        ("http://e.org/g2", ["dogs"]),
        ("G57", ["dogs"]),
        ("Courts and law", ["courts", "law"]),
        ("YSO", ["animals", "law"]),
        # A group precedes a concept of the same name.
        ("animals", ["dogs"]),
        ("eläimet", ["animals", "dogs", "puppies"]),
    ],
)
def test_yso_has_groups_in_groups(entry: str, expected: list[str], write: Write) -> None:
    assert named(read_vocabulary(write("yso.ttl", YSO)), entry) == expected


def test_groups_are_no_concepts_and_survive_storage(write: Write) -> None:
    vocabulary = read_vocabulary(write("yso.ttl", YSO))
    assert "http://e.org/g3" not in vocabulary
    dogs = vocabulary.concept("http://e.org/dogs")
    assert dogs.groups == {
        "http://e.org/g1": ("Nature", "Luonto"),
        "http://e.org/g2": ("Animals", "G57"),
    }
    assert concept_from_json(concept_to_json(dogs)) == dogs
    assert concept_from_json('{"id": "old", "schemes": ["s"]}').groups == {}


def test_groups_without_typed_concepts(write: Write) -> None:
    untyped = YSO.replace("a skos:Concept ;", "")
    assert named(read_vocabulary(write("yso.ttl", untyped)), "Nature") == ["dogs"]


def test_a_list_that_leads_back_into_itself_ends(write: Write) -> None:
    endless = (
        YSO
        + """@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
e:g5 a skos:OrderedCollection ; skos:prefLabel "Endless"@en ; skos:memberList e:l .
e:l rdf:first e:law ; rdf:rest e:m . e:m rdf:first e:court ; rdf:rest e:l .
"""
    )
    assert named(read_vocabulary(write("yso.ttl", endless)), "Endless") == ["courts", "law"]


def test_gnd_without_notations_or_groups() -> None:
    vocabulary = Vocabulary(
        [
            Concept("https://d-nb.info/gnd/1", {"de": "Recht"}),
            Concept(
                "https://d-nb.info/gnd/2",
                {"de": "Zivilrecht"},
                broader=("https://d-nb.info/gnd/1",),
            ),
            Concept(
                "https://d-nb.info/gnd/3", {"de": "Mietrecht"}, broader=("https://d-nb.info/gnd/2",)
            ),
            Concept("https://d-nb.info/gnd/4", {"de": "Musik"}),
        ]
    )
    assert named(vocabulary, "Recht") == ["Mietrecht", "Recht", "Zivilrecht"]
    assert named(vocabulary, "2") == ["Mietrecht", "Zivilrecht"]


def test_places_of_a_mesh_heading_are_kept_apart() -> None:
    vocabulary = Vocabulary(
        [
            Concept("D1", {"en": "Bread"}, notations=("J01",)),
            Concept("D2", {"en": "Rye"}, notations=("J01.1", "B01.2"), broader=("D1",)),
            Concept("D3", {"en": "Wild rye"}, notations=("B01.2.3",), broader=("D2",)),
            Concept("D4", {"en": "Ours"}, broader=("D2",)),
            Concept("D5", {"en": "J"}, notations=("C10",)),
        ]
    )
    assert named(vocabulary, "Bread") == ["Bread", "Ours", "Rye"]
    assert named(vocabulary, "J01.1") == ["Ours", "Rye"]
    assert named(vocabulary, "Rye") == ["Ours", "Rye", "Wild rye"]
    assert named(vocabulary, "B") == ["Ours", "Rye", "Wild rye"]
    # A notation precedes a name, an id a notation.
    assert named(vocabulary, "J") == ["Bread", "Ours", "Rye"]
    with pytest.raises(ConfigError, match="'C1' is not a concept"):
        named(vocabulary, "C1")


def test_codes_without_dots_follow_links_and_beginnings() -> None:
    jel = [
        Concept("a", {"en": "General"}, notations=("A",)),
        Concept("a1", {"en": "Teaching"}, notations=("A1",), broader=("a",)),
        Concept("a10", {"en": "Schools"}, notations=("A10",), broader=("a1",)),
    ]
    assert named(Vocabulary(jel), "A1") == ["Schools", "Teaching"]
    dewey = [Concept(code, {"en": code}, notations=(code,)) for code in ("641.5", "641.57", "65")]
    assert named(Vocabulary(dewey), "64") == ["641.5", "641.57"]


@pytest.mark.parametrize("entry", ["A", "B", "C"])
def test_cycles_end(entry: str) -> None:
    vocabulary = Vocabulary(
        [
            Concept("1", {"en": "A"}, broader=("3", "1")),
            Concept("2", {"en": "B"}, broader=("1",)),
            Concept("3", {"en": "C"}, broader=("2",)),
        ]
    )
    assert named(vocabulary, entry) == ["A", "B", "C"]


def test_what_matches_nothing_or_too_much_is_an_error(write: Write) -> None:
    twice = YSO + 'e:g9 a skos:Collection ; skos:prefLabel "Nature"@en ; skos:member e:law .\n'
    twice += 'e:boat a skos:Concept ; skos:prefLabel "bark"@en .\n'
    twice += 'e:tree a skos:Concept ; skos:prefLabel "bark"@en .\n'
    branches = Branches(read_vocabulary(write("yso.ttl", twice)))
    for entry, message in (
        ("puppiez", r"'puppiez' is not a concept, .*; did you mean 'puppies'\?"),
        ("zzz", "'zzz' is not a concept, .*; try `labelkin vocab search`"),
        ("", "'' is not a concept"),
        (
            "Nature",
            r"'Nature' is ambiguous: Nature \(http://e.org/g1\), Nature \(http://e.org/g9\); give",
        ),
        (
            "bark",
            r"'bark' is ambiguous: bark \(http://e.org/boat\), bark \(http://e.org/tree\); give",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            branches.columns(entry)


@pytest.mark.shared
def test_real_mesh_is_fast(shared_data: Path) -> None:
    vocabulary = read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")
    started = process_time()
    branches = Branches(vocabulary)
    neoplasms = branches.columns("Neoplasms")
    assert process_time() - started < 1
    assert neoplasms.tolist() == branches.columns("C04").tolist()
    below = [
        column
        for column, concept in enumerate(vocabulary)
        if any(place == "C04" or place.startswith("C04.") for place in concept.notations)
    ]
    assert neoplasms.tolist() == below
    assert len(below) > 600
