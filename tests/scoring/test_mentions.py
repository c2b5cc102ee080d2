from __future__ import annotations

import numpy as np
import pytest

from labelkin import Document
from labelkin.scoring import mentions as module
from labelkin.scoring.mentions import MentionFinder, Mentions
from labelkin.scoring.name_table import NameTable
from labelkin.vocab import Concept

CONCEPTS = [
    Concept("D0", {"en": "Diabetes Mellitus"}, {"en": ("Diabetes",)}),
    Concept("D1", {"en": "Diabetes Mellitus, Type 2"}, {"en": ("Type 2 Diabetes", "T2")}),
    Concept("D2", {"en": "Acquired Immunodeficiency Syndrome"}, {"en": ("AIDS",)}),
    Concept("D3", {"en": "Multiple Sclerosis"}, {"en": ("MS", "PMS")}),
    Concept("D4", {"en": "Premenstrual Syndrome"}, {"en": ("PMS",)}),
    Concept("D5", {"en": "Carcinoma, Non-Small-Cell Lung"}),
    Concept("D6", {"en": "Bank (Finance)"}),
    Concept("D7", {"en": "Bank (River)"}),
]


@pytest.fixture(scope="module")
def finder() -> MentionFinder:
    return MentionFinder(NameTable.make(CONCEPTS, "en"))


def found(finder: MentionFinder, title: str, body: str = "", **more: str) -> dict[str, dict]:
    mentions = finder.find([Document("q", title, body, fields=more)])
    return {
        f"D{column}": {
            name: getattr(mentions, name)[place].item()
            for name in vars(mentions)
            if name not in ("starts", "columns")
        }
        for place, column in enumerate(mentions.columns)
    }


@pytest.mark.parametrize(
    "text",
    [
        "TYPE 2 DIABETES",
        "Type-2 Diabetes",
        "a case of diabetes mellitus, type 2",
        "type 2 diabetes mellitus",
    ],
)
def test_ways_to_write_a_name(finder: MentionFinder, text: str) -> None:
    assert found(finder, text)["D1"]["title"] == 1


def test_hyphens_and_order_at_the_comma(finder: MentionFinder) -> None:
    assert "D5" in found(finder, "Non-small cell lung carcinomas")
    assert "D5" not in found(finder, "Small cell lung carcinomas")


def test_whole_words_only(finder: MentionFinder) -> None:
    assert found(finder, "prediabetes and bankruptcy") == {}


def test_the_longest_name_counts_and_what_is_in_it_is_nested(finder: MentionFinder) -> None:
    seen = found(finder, "Type 2 diabetes", "Diabetes and diabetes mellitus.")
    assert (seen["D1"]["title"], seen["D1"]["nested"], seen["D1"]["length"]) == (1, 0, 3)
    assert (seen["D0"]["title"], seen["D0"]["body"], seen["D0"]["nested"]) == (0, 2, 2)
    assert (seen["D0"]["preferred"], seen["D1"]["preferred"]) == (True, False)


def test_names_do_not_reach_from_the_title_into_the_body(finder: MentionFinder) -> None:
    assert found(finder, "On multiple", "sclerosis") == {}


def test_fields_count_as_body(finder: MentionFinder) -> None:
    assert found(finder, "", "", keywords="diabetes")["D0"]["body"] == 1


def test_where_the_first_is(finder: MentionFinder) -> None:
    assert found(finder, "Diabetes now")["D0"]["first"] == 0
    places = [found(finder, "", f"{'word ' * n}diabetes end")["D0"]["first"] for n in (1, 5, 50)]
    assert places == sorted(places)
    assert 0 < places[0] < places[-1] < 1


def test_acronyms_are_written_as_such(finder: MentionFinder) -> None:
    seen = found(finder, "AIDS in Africa")
    assert seen["D2"]["acronym"]
    assert found(finder, "Hearing aids") == {}
    assert found(finder, "HEARING AIDS") == {}
    spelled_out = found(finder, "Acquired immunodeficiency syndrome (AIDS)")["D2"]
    assert (spelled_out["title"], spelled_out["acronym"]) == (2, False)


def test_ambiguous_acronyms_need_their_long_form(finder: MentionFinder) -> None:
    assert found(finder, "PMS in women") == {}
    seen = found(finder, "Premenstrual syndrome", "PMS in women")
    assert {*seen} == {"D4"}
    assert seen["D4"]["body"] == 1
    assert found(finder, "MS in women") == {}
    assert found(finder, "Multiple sclerosis (MS)")["D3"]["title"] == 2


def test_how_many_share_a_name(finder: MentionFinder) -> None:
    seen = found(finder, "The bank")
    assert [seen[name]["sharing"] for name in ("D6", "D7")] == [2, 2]
    assert found(finder, "Bank (finance)")["D6"]["sharing"] == 1


def test_who_stands_for_whom() -> None:
    targets = np.array([1, 1, -1, 3, 4, 5, 6, 7])
    finder = MentionFinder(NameTable.make(CONCEPTS, "en"), targets)
    seen = found(finder, "Diabetes", "Diabetes and AIDS; type 2 diabetes")
    assert {*seen} == {"D1"}
    assert (seen["D1"]["title"], seen["D1"]["body"]) == (1, 2)


def test_batches_do_not_matter(finder: MentionFinder, monkeypatch) -> None:
    texts = ["Diabetes", "", "Type 2 diabetes mellitus", "nothing", "The bank of AIDS"]
    documents = [Document(str(n), text, text) for n, text in enumerate(texts)]
    whole = finder.find(documents)
    monkeypatch.setattr(module, "_CHUNK", 2)
    parts = finder.find(documents)
    for name in vars(Mentions([], *[[]] * 10)):  # type: ignore[arg-type]
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    assert np.diff(whole.starts).tolist() == [1, 0, 2, 0, 3]
    assert whole.documents.tolist() == [0, 2, 2, 4, 4, 4]


def test_no_documents_and_no_names(finder: MentionFinder) -> None:
    assert len(finder.find([])) == 0
    nothing = MentionFinder(NameTable.make((), "en")).find([Document("q", "Diabetes")])
    assert (len(nothing), len(nothing.columns)) == (1, 0)


def test_words_are_forgotten_when_there_are_too_many(finder: MentionFinder, monkeypatch) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 3)
    for _ in range(3):
        assert "D0" in found(finder, "one two three four diabetes")


def test_matches_say_where(finder: MentionFinder) -> None:
    documents = [Document("q", "On type 2 diabetes", "Multiple sclerosis"), Document("e")]
    matches, sizes = finder.matches(documents)
    places = zip(matches.columns, matches.begins, matches.ends, matches.in_title, strict=True)
    assert (1, 1, 4, True) in list(places)
    assert matches.in_title.tolist() == [True, True, False]
    # The title has four words, and an end.
    assert matches.begins[2] == 5
    # The ends of title and body count as words.
    assert sizes.tolist() == [8, 2]
    assert len(matches.of(0)) == 3
    assert len(matches.of(1)) == 0


def test_many_words_are_searched_by_the_automaton_of_all_names(monkeypatch) -> None:
    monkeypatch.setattr(module, "_WORTH_AUTOMATON", 6)
    finder = MentionFinder(NameTable.make(CONCEPTS, "en"))
    document = Document("", "Type 2 diabetes")
    first = finder.find([document])
    assert "automaton" not in vars(finder.table)
    second = finder.find([document])
    assert "automaton" in vars(finder.table)
    assert first.columns.tolist() == second.columns.tolist() == [0, 1]
