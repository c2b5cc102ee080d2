"""Compiled products give exactly what SciPy gives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp  # noqa: TID253 - compared with throughout

from labelkin import compiled
from labelkin.corpus.document import Document
from labelkin.indexer import Indexer
from labelkin.rerank.features import Evidence, find_candidates
from labelkin.rerank.matrices import HalfMatrix
from labelkin.rerank.method import _model
from labelkin.rerank.pair_kernel import best_covered, covered_values, largest_values
from labelkin.rerank.pairs import Pairs, arrays_of, best_entries, best_half_entries
from labelkin.scoring.settings import RERANK_DEPTH


def matrix(rows: int, columns: int, seed: int, density: float = 0.3) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    made = sp.random(rows, columns, density, "csr", np.float32, rng=rng)
    made.data -= np.float32(0.4)
    return made.tocsr()


LEFT, RIGHT = matrix(30, 40, 1), matrix(40, 50, 2)
# The third document has no candidates, the fourth all columns.
KEYS = np.unique(np.random.default_rng(3).integers(0, 1500, 400))
KEYS = np.union1d(KEYS[(KEYS < 100) | (KEYS >= 200)], np.arange(150, 200))
PAIRS = Pairs(KEYS, 30, 50)


def test_products(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (LEFT @ RIGHT).toarray()
    expected = whole[PAIRS.documents, PAIRS.columns]
    monkeypatch.setattr("labelkin.rerank.pairs._CHUNK", 7)
    for pays in (False, True):
        monkeypatch.setattr(compiled, "pays", lambda *arguments, pays=pays: pays)
        assert PAIRS.product(LEFT, RIGHT).tolist() == expected.tolist()
        assert PAIRS.product(LEFT * 0, RIGHT).tolist() == [0.0] * len(PAIRS)
        assert len(Pairs(KEYS[:0], 0, 50).product(LEFT[:0], RIGHT)) == 0


def test_best_entries_are_those_of_the_whole_product() -> None:
    shifts = np.random.default_rng(4).normal(size=50).astype(np.float32)
    whole = (LEFT @ RIGHT).toarray() + shifts
    for count in (1, 7, 50, 80):
        places, values = best_entries(LEFT, RIGHT, count, shifts)
        assert places.shape == (30, min(count, 50))
        assert (np.diff(places, axis=1) > 0).all()
        expected = np.sort(whole, axis=1)[:, ::-1][:, : places.shape[1]]
        assert np.sort(values, axis=1)[:, ::-1].tolist() == expected.tolist()
        assert np.take_along_axis(whole, places, 1).tolist() == values.tolist()


def test_the_best_entries_of_a_product_in_half_precision() -> None:
    shifts = np.random.default_rng(4).normal(size=50).astype(np.float32)
    halves = HalfMatrix.of(RIGHT)
    rounded = RIGHT.copy()
    rounded.data = rounded.data.astype(np.float16).astype(np.float32)
    assert (halves.rows(np.arange(40)) != rounded).nnz == 0
    assert (halves.product(LEFT) != LEFT @ rounded).nnz == 0
    for count in (1, 7, 80):
        places, values = best_half_entries(LEFT, halves, count, shifts)
        expected_places, expected = best_entries(LEFT, rounded, count, shifts)
        assert places.tolist() == expected_places.tolist()
        assert values.tolist() == expected.tolist()


def test_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Many are equal, and some unknown.
    values = np.random.default_rng(5).integers(0, 9, len(PAIRS)).astype(np.float32)
    values[::7] = np.nan
    ranks = []
    for pays in (False, True):
        monkeypatch.setattr(compiled, "pays", lambda *arguments, pays=pays: pays)
        ranks.append(PAIRS.ranks(values).tolist())
        assert PAIRS.ranks(values.astype(np.float64)).tolist() == ranks[0]
    assert ranks[0] == ranks[1]


def test_of_equal_entries_the_first_are_taken() -> None:
    ones = sp.csr_matrix(np.ones((2, 1), dtype=np.float32))
    right = sp.csr_matrix(np.array([[1, 2, 1, 2, 1, 1]], dtype=np.float32))
    places, values = best_entries(ones, right, 4)
    assert places.tolist() == [[0, 1, 2, 3]] * 2
    assert values.tolist() == [[1, 2, 1, 2]] * 2


def test_the_largest_value_that_a_document_meets() -> None:
    values = np.zeros(len(PAIRS), dtype=np.float32)
    given = (PAIRS.starts, PAIRS.columns, np.zeros(50, dtype=np.float32), values)
    largest_values(arrays_of(LEFT), arrays_of(RIGHT), *given)
    has, right = LEFT.toarray() != 0, RIGHT.toarray()
    for document, column, value in zip(PAIRS.documents, PAIRS.columns, values, strict=True):
        assert value == max(0.0, *right[has[document], column], 0.0)


def test_words_that_weigh_nothing_are_no_words_of_a_name() -> None:
    """A word that is in all documents has idf 0, which the matrix of names holds as a zero."""
    # Names 0 and 1 consist of such words only, name 2 has one of them and another word.
    words = ([0.0, 0.0, 0.0, 2.0], [0, 1, 0, 2], [0, 1, 2, 4])
    names = sp.csr_matrix((np.array(words[0], dtype=np.float32), *words[1:]), shape=(3, 3))
    by_term = names.T.tocsr()
    has = sp.csr_matrix(np.ones((2, 3), dtype=np.float32))
    bearers = np.array([0, 0, 1])
    weights = np.array([0, 0, 2], dtype=np.float32)
    given = (arrays_of(has), arrays_of(by_term), bearers, weights)
    assert best_covered(*given, np.ones(2, dtype=np.bool_), 5).tolist() == [1, 3]
    values = covered_values(*given, np.array([0, 2, 4]), np.array([0, 1, 0, 1]), 2)
    assert values.tolist() == [[0, 1, 0, 1], [0, 2, 0, 2], [0, 1, 0, 1]]


def test_matrices_that_do_not_fit_have_no_product() -> None:
    with pytest.raises(ValueError, match="no product"):
        PAIRS.product(LEFT, LEFT)
    with pytest.raises(ValueError, match="no product"):
        best_entries(LEFT, LEFT, 3)


def test_features_are_the_same_in_both_ways(
    indexer: Indexer, fresh: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for pays in (False, True):
        monkeypatch.setattr(compiled, "pays", lambda *arguments, pays=pays: pays)
        queries = indexer.queries(fresh, RERANK_DEPTH)
        width = queries.snapshot.generation().next_column
        found.append(find_candidates(Evidence(queries, _model(queries).knowledge_for(width))))
    first, second = found
    assert first.pairs.keys.tolist() == second.pairs.keys.tolist()
    assert np.array_equal(first.features, second.features, equal_nan=True)
