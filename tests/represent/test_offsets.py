from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin.represent.folding import plain, word_spans
from labelkin.represent.offsets import Offsets

# Combining marks, ligatures, soft hyphens, wide and half-width forms, Hangul in parts, Indic vowels
# in parts, capitals that are two letters in lower case, what becomes several words, and surrogates.
ODD = [
    *"aZ éİΣß.- \n'",
    *"\u0301\u0323\u0327\u0308\u0345ﬁﬄĲǆ\u00ad\u200d\u00a0",
    *"ＡＢｃ１ｶﾞ\u3099か中、㈱㌔½™…µ①Ⅷ",
    *"\u1100\u1161\u11a8각\u0dd9\u0dca\u0dcf\u0cc6\u0cc2\u0cd5\U0001d400\U0001f35e\ud800",
]
texts = st.text(st.one_of(st.sampled_from(ODD), st.characters()), max_size=40)


def normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


@given(texts | texts.map(str.upper))
def test_the_words_of_the_plain_text_are_found_in_the_given_one(text: str) -> None:
    shown = plain(text)
    offsets = Offsets(text)
    last = 0
    for begin, end in word_spans(shown):
        first, stop = offsets.span(begin, end)
        assert 0 <= first < stop <= len(text)
        # In order; two words can be one character (½ is 1⁄2).
        assert stop >= last
        last = stop
        word = normal(text[first:stop])
        assert shown[begin:end].casefold() in (word.casefold(), *_parts_of(word))
        # Nothing is missing before, and nothing that a shorter span would leave out comes after.
        before = normal(text[:first])
        assert normal(text[:stop]) == before + word


def _parts_of(word: str) -> Iterator[str]:
    """All words that a place within one given character could stand for."""
    for shown in (word, word.lower()):
        spans = [
            (0, len(shown)),
            *((b, e) for b in range(len(shown)) for e in range(len(shown) + 1)),
        ]
        yield from (shown[begin:end].casefold() for begin, end in spans)


@given(texts)
def test_all_characters_are_covered_in_order(text: str) -> None:
    """Spans of single characters follow one another and leave none out that has a plain form."""
    offsets = Offsets(text)
    spans = [offsets.span(place, place + 1) for place in range(len(plain(text)))]
    assert spans == sorted(spans)
    parts = list(dict.fromkeys(spans))
    assert "".join(normal(text[begin:end]) for begin, end in parts) == normal(text)
    assert [begin for begin, _ in parts[1:]] == [end for _, end in parts[:-1]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Cafe\u0301 noir", ["Cafe\u0301", "noir"]),
        ("ﬁne ﬂour", ["ﬁne", "ﬂour"]),
        ("\u00a0ＲＹＥ　bread", ["ＲＹＥ", "bread"]),
        ("…½ kg", ["½", "½", "kg"]),
        ("İSTANBUL ŞEHRİ, ＲＹＥ", ["İ", "STANBUL", "ŞEHRİ", "ＲＹＥ"]),
        ("ﬁ İSTANBUL ﬁ BREAD", None),
        ("\u1112\u1161\u11ab 빵", ["\u1112\u1161\u11ab", "빵"]),
        ("パン、小麦。ﾊﾟﾝ", ["パン", "小麦", "ﾊﾟﾝ"]),
        ("ma\u00adchine", ["ma", "chine"]),
    ],
)
def test_odd_words(text: str, words: list[str] | None) -> None:
    offsets = Offsets(text)
    spans = [offsets.span(begin, end) for begin, end in word_spans(plain(text))]
    assert [text[begin:end] for begin, end in spans] == (words or text.split())


def test_a_plain_text_needs_no_table() -> None:
    assert Offsets("Rye bread")._steps == []
    assert Offsets("Crème brûlée, 小麦")._steps == []
