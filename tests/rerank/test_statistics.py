from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix  # noqa: TID253

from labelkin.corpus import Document
from labelkin.represent.term_columns import TermColumns
from labelkin.rerank import statistics as module
from labelkin.rerank.matrices import from_arrays, to_arrays
from labelkin.rerank.statistics import (
    IN_BODY,
    IN_TITLE,
    NESTED,
    LabelStatistics,
    count_statistics,
)
from labelkin.scoring.mentions import MentionFinder
from labelkin.scoring.name_table import NameTable
from labelkin.vocab import Concept

WIDTH = 4
WORDS = ["apple", "pear", "plum", "crab", "fig"]
CONCEPTS = [
    Concept("0", {"en": "Apple"}),
    Concept("1", {"en": "Pear"}),
    Concept("2", {"en": "Crab Apple"}),
    Concept("3", {"en": "Plum"}),
]
FINDER = MentionFinder(NameTable.make(CONCEPTS, "en"))

texts = st.tuples(
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.sets(st.integers(0, WIDTH - 1), max_size=3),
)


def parts_of(corpus):
    documents = [
        Document(str(n), " ".join(title), " ".join(body))
        for n, (title, body, _) in enumerate(corpus)
    ]
    stems = [title + body for title, body, _ in corpus]
    terms, _ = TermColumns.counted(stems, len(stems))
    labels = np.zeros((len(corpus), WIDTH), dtype=np.float32)
    for line, (_, _, given_labels) in enumerate(corpus):
        labels[line, [*given_labels]] = 1
    return csr_matrix(labels), terms.counts(stems), terms, FINDER.find(documents)


@given(st.lists(texts, min_size=1, max_size=25))
def test_against_brute_force(corpus):
    labels, counts, terms, mentions = parts_of(corpus)
    found = count_statistics(labels, counts, terms, mentions)
    having = [{line for line, text in enumerate(corpus) if c in text[2]} for c in range(WIDTH)]
    assert found.documents == len(corpus)
    assert found.frequencies.tolist() == [len(documents) for documents in having]
    together = np.zeros((WIDTH, WIDTH))
    for one in range(WIDTH):
        for other in range(WIDTH):
            both = len(having[one] & having[other])
            if one != other and both >= 2:
                together[one, other] = both / len(having[one])
    np.testing.assert_allclose(found.together.toarray(), together, rtol=1e-6)

    speaking = np.zeros((len(terms), WIDTH))
    dense = counts.toarray() > 0
    for term in range(len(terms)):
        documents = {*np.flatnonzero(dense[:, term]).tolist()}
        for column in range(WIDTH):
            both = len(documents & having[column])
            share = both / (len(documents) + 3)
            overall = len(having[column]) / len(corpus)
            if both >= 3 and share > 0.05 and share > 2 * overall:
                speaking[term, column] = share
    np.testing.assert_allclose(found.speaking.toarray(), speaking, rtol=1e-6)

    weighted = terms.weighted(counts, pairs=False).toarray()
    centroids = np.array([weighted[[*documents]].sum(0) for documents in having])
    lengths = np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(found.describing.toarray(), (centroids / lengths).T, atol=1e-5)


def test_words_speak_for_headings_that_they_raise():
    corpus = [(["crab"], [], {2})] * 6 + [(["fig"], [], {0})] * 14
    labels, counts, terms, mentions = parts_of(corpus)
    found = count_statistics(labels, counts, terms, mentions)
    crab, fig = terms.columns(["crab", "fig"])
    assert found.speaking[crab, 2] == pytest.approx(6 / 9)
    # "fig" has heading 0 in every document, but most documents have it.
    assert found.speaking[fig, 0] == 0
    assert found.evidence[crab, 2] == pytest.approx(np.log(6 / 9 / (6 / 20)), abs=1e-6)


def test_attraction_is_the_lift_over_chance():
    corpus = [([], [], {0, 1})] * 3 + [([], [], {0})] + [([], [], {3})] * 4
    found = count_statistics(*parts_of(corpus))
    assert found.together[0, 1] == pytest.approx(3 / 4)
    assert found.together[1, 0] == pytest.approx(1.0)
    assert found.attraction[0, 1] == pytest.approx(np.log(3 / 4 / (3 / 8)), abs=1e-6)
    assert found.attraction[1, 0] == pytest.approx(np.log(1 / (4 / 8)), abs=1e-6)


def test_naming_rates():
    corpus = [
        (["apple"], ["plum"], {0}),
        (["apple"], [], set()),
        ([], ["apple"], {0}),
        (["crab", "apple"], [], {2}),
    ]
    found = count_statistics(*parts_of(corpus))
    assert found.named_in[:, 0].tolist() == [2, 1, 1]
    assert found.named[IN_TITLE, 0] == pytest.approx((1 + 0.3) / 3)
    assert found.named[IN_BODY, 0] == pytest.approx((1 + 0.3) / 2)
    assert found.named[NESTED, 0] == pytest.approx(0.3 / 2)
    assert found.named[IN_BODY, 3] == pytest.approx(0.3 / 2)
    assert found.named[IN_TITLE, 1] == pytest.approx(0.3)
    assert found.named[IN_TITLE, 2] == pytest.approx((1 + 0.3) / 2)


def test_only_the_terms_that_describe_most_are_kept(monkeypatch):
    corpus = [(["apple", "pear", "plum"], ["crab"] * 5, {1}), (["pear", "apple"], ["crab"], {0})]
    whole = count_statistics(*parts_of(corpus * 3 + [(["fig"], [], {3})])).describing.toarray()
    monkeypatch.setattr(module, "_DESCRIBING_TERMS", 2)
    found = count_statistics(*parts_of(corpus * 3 + [(["fig"], [], {3})])).describing.toarray()
    for column in (0, 1):
        best = np.sort(whole[:, column])[-2:]
        np.testing.assert_allclose(np.sort(found[found[:, column] > 0, column]), best)


def test_some_lines_at_a_time_give_the_same(monkeypatch):
    corpus = [(["crab"], ["plum", "fig"], {2, 3})] * 4 + [(["apple", "pear"], ["fig"], {0})] * 14
    whole = count_statistics(*parts_of(corpus))
    assert whole.speaking.nnz
    monkeypatch.setattr(module, "_LINES", 2)
    _assert_same(count_statistics(*parts_of(corpus)), whole)


def test_documents_without_terms_or_mentions():
    found = count_statistics(*parts_of([([], [], {0, 1})] * 3))
    assert found.describing.shape == found.speaking.shape == (0, WIDTH)


@given(st.lists(texts, min_size=1, max_size=10), st.integers(0, 5))
def test_widened(corpus, more):
    labels, counts, terms, mentions = parts_of(corpus)
    before = count_statistics(labels, counts, terms, mentions)
    found = before.widened(WIDTH + more)
    assert (found.width, found.documents) == (WIDTH + more, before.documents)
    wide = csr_matrix((labels.data, labels.indices, labels.indptr), (len(corpus), WIDTH + more))
    expected = count_statistics(wide, counts, terms, mentions)
    _assert_same(found, expected)
    assert before.widened(WIDTH - 1) is before


@given(st.lists(texts, min_size=1, max_size=10))
def test_arrays_round_trip(corpus):
    found = count_statistics(*parts_of(corpus))
    _assert_same(from_arrays(LabelStatistics, to_arrays(found)), found)


def _assert_same(one: LabelStatistics, other: LabelStatistics) -> None:
    for name in (field.name for field in fields(one)):
        left, right = getattr(one, name), getattr(other, name)
        if hasattr(left, "toarray"):
            assert left.shape == right.shape
            left, right = left.toarray(), right.toarray()
        np.testing.assert_array_equal(left, right)
    assert one.attraction.shape == other.attraction.shape
