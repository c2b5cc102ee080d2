from __future__ import annotations

import pytest

from labelkin.represent.folding import (
    can_be_name,
    folded,
    is_acronym,
    plain,
    text_words,
    word_spans,
)
from labelkin.represent.folding import name_words as words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Neoplasms", "neoplasm"),
        ("Arteries", "artery"),
        ("Viruses", "virus"),
        ("Boxes", "box"),
        ("MRIs", "MRI"),
    ],
)
def test_case_and_number_do_not_matter(one: str, other: str) -> None:
    assert folded(one, "en") == folded(other, "en")


@pytest.mark.parametrize(
    ("one", "other"),
    [("AIDS", "aids"), ("operation", "operative"), ("analysis", "analysi"), ("glass", "glas")],
)
def test_other_differences_do(one: str, other: str) -> None:
    assert folded(one, "en") != folded(other, "en")


def test_other_languages_have_their_stemmer() -> None:
    assert folded("Häuser", "de") == folded("Haus", "de")
    assert folded("Ord", "xx") == "ord"


def test_words() -> None:
    assert words("Crohn's disease, non-small-cell") == ["Crohn", "disease", "non", "small", "cell"]
    assert words(plain("l’eau ﬁne")) == ["l", "eau", "fine"]
    text = "Crohn’s disease. In St. Louis, 3.5 % (a: b); more?"
    assert [text[begin:end] for begin, end in word_spans(text)] == text_words(text)
    assert text_words(text)[:3] == ["Crohn", "disease", "."]
    assert text_words("In St. Louis") == words("In St. Louis")


def test_a_text_in_capitals_has_no_acronyms() -> None:
    assert plain("ALL ABOUT AIDS") == "all about aids"
    assert plain("AIDS") == "AIDS"


def test_acronyms() -> None:
    assert all(map(is_acronym, ("HIV", "mRNA", "MRIs", "HLA")))
    assert not any(map(is_acronym, ("Rye", "A", "HEARTBEAT", "p53")))


def test_words_that_cannot_be_a_name() -> None:
    assert can_be_name("rye", "en")
    assert not any(can_be_name(word, "en") for word in ("Will", "Wills", "the", "x", "2019"))
