from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelkin import Document
from labelkin.represent.term_columns import TermColumns, unit_rows, wording_of

texts = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), min_size=1, max_size=8)


def plain_terms(stems: list[str]) -> list[str]:
    return stems + [f"{one} {other}" for one, other in pairwise(stems)]


@given(texts)
def test_terms_that_occur_in_enough_documents(documents):
    frequencies = Counter(term for stems in documents for term in {*plain_terms(stems)})
    terms, words = TermColumns.counted(iter(documents), len(documents))
    assert words == sorted(t for t, n in frequencies.items() if n >= (4 if " " in t else 2))
    assert len(terms) == len(words)
    assert terms.columns(words).tolist() == [*range(len(words))]
    # The columns can be rebuilt from the words and their weights.
    assert TermColumns.of(words, terms.idf).columns(words).tolist() == [*range(len(words))]
    for column, term in enumerate(words):
        assert terms.is_single[column] == (" " not in term)
        assert terms.idf[column] == pytest.approx(
            np.log(len(documents) / frequencies[term]), abs=1e-6
        )
    assert terms.columns(["unheard of", *words]).tolist() == [-1, *range(len(words))]
    assert len(terms.columns([])) == 0


@given(texts, texts)
def test_counts(counted, documents):
    terms, words = TermColumns.counted(counted, len(counted))
    counts = terms.counts(documents)
    assert counts.shape == (len(documents), len(terms))
    assert counts.has_sorted_indices
    for line, stems in zip(counts.toarray(), documents, strict=True):
        expected = Counter(plain_terms(stems))
        assert line.tolist() == [expected[term] for term in words]


@given(st.lists(st.text("abé小^ ", min_size=1), unique=True), st.lists(st.text("abé小^ ")))
def test_terms_are_found_by_bisection_and_by_hash(terms, asked):
    terms = sorted(term for term in terms if term.strip())
    columns = TermColumns.of(terms, np.ones(len(terms), dtype=np.float32))
    assert columns.terms == terms
    assert columns.is_single.tolist() == [" " not in term for term in terms]
    assert columns._in_title.tolist() == [term.startswith("^") for term in terms]
    expected = [terms.index(term) if term in terms else -1 for term in [*asked, *terms]]
    assert columns.columns([*asked, *terms]).tolist() == expected
    columns._looked_up = 10**9
    assert columns.columns([*asked, *terms]).tolist() == expected


@given(texts, st.booleans())
def test_weights(documents, pairs):
    terms, _ = TermColumns.counted(documents, len(documents))
    counts = terms.counts(documents)
    before = counts.toarray()
    weighted = terms.weighted(counts, pairs=pairs).toarray()
    np.testing.assert_array_equal(counts.toarray(), before)
    expected = np.where(before > 0, 1 + np.log(np.maximum(before, 1)), 0) * terms.idf
    if not pairs:
        expected[:, ~terms.is_single] = 0
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    expected = np.divide(expected, lengths, out=np.zeros_like(expected), where=lengths > 0)
    np.testing.assert_allclose(weighted, expected, atol=1e-6)


def test_no_documents_and_no_terms():
    terms, _ = TermColumns.counted([["a"], []], 2)
    assert len(terms) == 0
    assert terms.counts([["a"], []]).shape == (2, 0)
    assert terms.weighted(terms.counts([["a"]]), pairs=True).shape == (1, 0)
    some, _ = TermColumns.counted([["a"], ["a"]], 2)
    assert some.counts([]).shape == (0, 1)


def test_lines_of_length_1():
    terms, _ = TermColumns.counted([["a", "b"], ["a"], ["b", "c"], ["c"]], 4)
    made = unit_rows(terms.counts([["a", "a", "b"], [], ["c"]]))
    np.testing.assert_allclose(np.linalg.norm(made.toarray(), axis=1), [1, 0, 1], rtol=1e-6)


def test_the_wording_keeps_stop_words_and_the_kinds_of_numbers():
    document = Document("1", "Of 120 mice", "In 1998, the mice 7", {"more": "X9"}, language="en")
    (words,) = wording_of([document])
    assert words == [
        *("of", "#3", "mice"),
        *("in", "#year", "the", "mice", "#1", "x9"),
        *("^of", "^#3", "^mice"),
    ]
    assert wording_of([Document("2", "", "", language="xx")]) == [[]]


def test_words_of_the_title_are_scaled_by_themselves():
    texts = [["a", "b", "^a"], ["a", "c", "^c"], ["b", "c", "^a"], ["d", "e", "^c"], ["f"]]
    terms, words = TermColumns.counted(texts, len(texts), at_least=1, pairs_at_least=9)
    weighted = terms.weighted(terms.counts(texts), pairs=True).toarray()
    titled = np.array([word.startswith("^") for word in words])
    np.testing.assert_allclose(np.linalg.norm(weighted[:, ~titled], axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        np.linalg.norm(weighted[:, titled], axis=1), [0.7, 0.7, 0.7, 0.7, 0], rtol=1e-5
    )


def test_rare_words_get_no_column():
    texts = [["a", "b"], ["a", "b"], ["a", "c"]]
    _, words = TermColumns.counted(texts, 3, at_least=3, pairs_at_least=2)
    assert words == ["a", "a b"]


def test_only_the_most_frequent_words():
    documents = [["a", "b", "c"], ["a", "b", "c"], ["a", "b", "d"], ["a", "d", "e"]]
    _, words = TermColumns.counted(documents, 4, at_least=1, pairs_at_least=9, most=3)
    # c and d are as frequent: the first by name.
    assert words == ["a", "b", "c"]
    terms, words = TermColumns.counted(documents, 4, at_least=1, pairs_at_least=9, most=0)
    assert (len(terms), words) == (0, [])
    assert terms.weighted(terms.counts(documents), pairs=True).shape == (4, 0)
    _, everything = TermColumns.counted(documents, 4, at_least=1, pairs_at_least=9, most=99)
    assert everything == ["a", "b", "c", "d", "e"]
