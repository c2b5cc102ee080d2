from __future__ import annotations

import math

import pytest

from labelkin.scoring import name_table
from labelkin.scoring.name_table import NameTable
from labelkin.vocab import Concept, Vocabulary


def spelled(table: NameTable) -> list[str]:
    words = {code: word for word, code in table.codes().items()}
    return [" ".join(words[code] for code in name) for name in table.names]


def bearers(table: NameTable, name: str) -> list[int]:
    place = spelled(table).index(name)
    return table.columns[table.starts[place] : table.starts[place + 1]].tolist()


def test_names_and_synonyms_of_one_language(vocabulary: Vocabulary) -> None:
    table = NameTable.make(vocabulary, "en")
    assert spelled(table) == [
        "bread",
        "bread rye",
        "rye bread",
        "dark loaf",
        "oat",
        "avena",
        "barley",
        "malt old",
        "malt",
    ]
    assert bearers(table, "dark loaf") == [1, 2]
    german = NameTable.make(vocabulary, "de")
    assert [bearers(german, name) for name in spelled(german)] == [[0], [1]]


def test_what_is_preferred(vocabulary: Vocabulary) -> None:
    table = NameTable.make(vocabulary, "en")
    preferred = [name for name, flag in zip(spelled(table), table.preferred, strict=False) if flag]
    # "Rye Bread" is a synonym and the preferred name turned at its comma.
    assert preferred[:3] == ["bread", "bread rye", "rye bread"]
    assert len(NameTable.make((), "en")) == 0


def test_names_that_say_nothing_are_left_out() -> None:
    table = NameTable.make([Concept("a", {"en": "Wills"}, {"en": ("--", "WHO", "7")})], "en")
    assert spelled(table) == ["who"]
    assert table.acronyms.tolist() == [True]


def test_an_acronym_that_is_a_word_elsewhere_is_none() -> None:
    table = NameTable.make([Concept("a", {"en": "CAT"}, {"en": ("Cats",)})], "en")
    assert table.acronyms.tolist() == [False]


def test_names_with_too_many_words_for_unicode_are_left_out(monkeypatch) -> None:
    monkeypatch.setattr(name_table, "MOST_WORDS", 2)
    table = NameTable.make([Concept("a", {"en": "Rye Bread"}, {"en": ("Dark Bread",)})], "en")
    assert spelled(table) == ["rye bread"]


def test_names_of_rare_words_tell_most(vocabulary: Vocabulary) -> None:
    table = NameTable.make(vocabulary, "en")
    weights = dict(zip(spelled(table), table.weights().tolist(), strict=True))
    # Nine names; "bread" is in three of them, "rye" in two.
    assert weights["oat"] == 1
    assert weights["bread"] == pytest.approx(1 - math.log(3) / math.log(9))
    assert weights["rye bread"] == pytest.approx(weights["bread"] + 1 - math.log(2) / math.log(9))
    assert len(NameTable.make((), "en").weights()) == 0


def test_codes_keep_clear_of_surrogates() -> None:
    codes = [name_table.code_of(number) for number in range(0xD000, 0xE000)]
    assert len({*codes}) == len(codes)
    assert "".join(codes).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rye bread and old malt", ["rye bread", "bread", "malt"]),
        ("bread rye bread", ["bread", "bread rye", "rye bread", "bread"]),
        ("nothing here", []),
        ("", []),
    ],
)
def test_one_text_is_searched_for_the_names_that_it_can_have(
    vocabulary: Vocabulary, text: str, expected: list[str]
) -> None:
    table = NameTable.make(vocabulary, "en")
    codes = table.codes()
    coded = "".join(codes.get(word, "\x01") for word in text.split())
    few = table.find(coded, once=True)
    assert "automaton" not in vars(table)
    assert [spelled(table)[number] for number in few[:, 0].tolist()] == expected
    assert few.tolist() == table.find(coded).tolist()
    assert "automaton" in vars(table)


def test_a_table_without_names_finds_none() -> None:
    assert len(NameTable.make((), "en").find("abc", once=True)) == 0
