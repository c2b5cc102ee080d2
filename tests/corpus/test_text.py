from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labelkin.corpus.text import clean_label, clean_text, has_control_characters

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_cleaned_text_can_be_stored_and_stays_clean(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned
    assert not has_control_characters(cleaned)


@given(ANY_TEXT)
def test_cleaned_label_is_one_line(text: str) -> None:
    cleaned = clean_label(text)
    assert cleaned == " ".join(cleaned.split())
    assert not has_control_characters(cleaned)


def test_paragraphs_stay() -> None:
    assert clean_text("one\n\ntwo\x00") == "one\n\ntwo"


def test_label_loses_controls_only() -> None:
    assert clean_label(" Hum\x00ans,\n adult ") == "Humans, adult"
    assert has_control_characters("Hum\x00ans")
    assert not has_control_characters("Humans,\n adult")
