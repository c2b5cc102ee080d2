from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.corpus import Document
from labelkin.represent.stems import SNOWBALL, Stems


def stems(text: str, language: str = "en", title: str = "", weight: int = 1) -> list[str]:
    (found,) = Stems(weight).extract([Document("1", title, text, language=language)])
    return found


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "The cats were running", ["cat", "run"]),
        ("de", "Die Häuser und die Gärten", ["haus", "gart"]),
        ("es", "Los gatos corrían por las casas", ["gat", "corr", "cas"]),
        ("fr", "Les maisons et les jardins", ["maison", "jardin"]),
        ("ru", "Собаки бегали", ["собак", "бега"]),
        ("xx", "Words stay whole", ["words", "stay", "whole"]),
    ],
)
def test_languages(language: str, text: str, expected: list[str]) -> None:
    assert stems(text, language) == expected


def test_words_are_split_at_punctuation_and_numbers_left_out() -> None:
    assert stems("beta-blockers: 5 loaves/day, x_y 12 p53") == [
        "beta",
        "blocker",
        "loav",
        "day",
        "p53",
    ]


def test_case_and_unicode_form_do_not_matter() -> None:
    assert stems("NAÏVE ﬁsh") == stems("nai\u0308ve fish")


def test_title_weight() -> None:
    assert stems("bread", title="rye") == ["rye", "bread"]
    assert sorted(stems("bread", title="rye", weight=3)) == ["bread", "rye", "rye", "rye"]
    assert Stems(1).version != Stems(3).version


def test_every_snowball_language_has_its_stemmer() -> None:
    import Stemmer

    assert set(SNOWBALL.values()) == set(Stemmer.algorithms()) - {"porter", "dutch_porter"}


@given(st.text(), st.sampled_from(sorted(SNOWBALL)))
def test_any_text_gives_terms_without_white_space(text: str, language: str) -> None:
    for term in stems(text, language):
        assert term
        assert len(term.split()) == 1
