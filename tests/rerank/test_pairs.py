from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix  # noqa: TID253

from labelkin import compiled
from labelkin.rerank.pairs import Pairs, best_keys, matrix_keys

WIDTH, COUNT = 7, 4
places = st.tuples(st.integers(0, COUNT - 1), st.integers(0, WIDTH - 1))
tables = st.dictionaries(places, st.integers(-5, 5).map(float), max_size=20)


def keys_of(table) -> np.ndarray:
    return np.array(sorted(d * WIDTH + c for d, c in table), dtype=np.int64)


def values_of(table) -> np.ndarray:
    return np.array([table[place] for place in sorted(table)], dtype=np.float32)


def pairs_of(table) -> Pairs:
    return Pairs(keys_of(table), COUNT, WIDTH)


def matrix_of(table) -> csr_matrix:
    lines, columns = zip(*table, strict=True) if table else ((), ())
    return csr_matrix((list(table.values()), (lines, columns)), shape=(COUNT, WIDTH))


@given(tables, tables)
def test_union_is_that_of_sets(one, other):
    found = Pairs.union([keys_of(one), keys_of(other), keys_of(one)], COUNT, WIDTH)
    pairs = sorted({*one, *other})
    assert list(zip(found.documents.tolist(), found.columns.tolist(), strict=True)) == pairs
    assert np.diff(found.starts).tolist() == [sum(d == n for d, _ in pairs) for n in range(COUNT)]


def test_union_of_nothing():
    assert len(Pairs.union([], COUNT, WIDTH)) == 0
    assert Pairs.union([], 2, WIDTH).starts.tolist() == [0, 0, 0]


@given(tables, tables)
def test_values_are_looked_up(wanted, known):
    found = pairs_of(wanted).values(keys_of(known), values_of(known), missing=9.0)
    assert found.tolist() == [known.get(place, 9.0) for place in sorted(wanted)]


@given(tables, tables)
def test_entries_are_those_of_the_matrix(wanted, known):
    matrix = matrix_of(known)
    # A matrix need not be in order.
    matrix.indices, matrix.data = matrix.indices.copy(), matrix.data.copy()
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[first:last] = matrix.indices[first:last][::-1].copy()
        matrix.data[first:last] = matrix.data[first:last][::-1].copy()
    matrix.has_sorted_indices = False
    found = pairs_of(wanted).entries(matrix, missing=9.0)
    assert found.tolist() == [known.get(place, 9.0) for place in sorted(wanted)]


@given(tables)
def test_matrix_and_back(table):
    pairs, values = pairs_of(table), values_of(table)
    mask = values > 0
    dense = pairs.matrix(values, mask).toarray()
    expected = np.zeros((COUNT, WIDTH))
    for (document, column), value in table.items():
        expected[document, column] = max(value, 0)
    np.testing.assert_array_equal(dense, expected)
    keys, data = matrix_keys(pairs.matrix(values, np.ones(len(pairs), dtype=np.bool_)), WIDTH)
    assert keys.tolist() == pairs.keys.tolist()
    assert data.tolist() == values.tolist()


@given(tables)
def test_ranks_are_within_documents_and_ties_keep_their_order(table):
    ranks = pairs_of(table).ranks(values_of(table))
    for document in range(COUNT):
        mine = sorted(place for place in table if place[0] == document)
        best_first = sorted(mine, key=lambda place: -table[place])
        found = [ranks[sorted(table).index(place)] for place in best_first]
        assert found == [*range(len(mine))]


@given(tables, st.integers(0, 4))
def test_best_keys(table, limit):
    expected = []
    for document in range(COUNT):
        mine = sorted(place for place in table if place[0] == document)
        expected += sorted(mine, key=lambda place: -table[place])[:limit]
    for pays in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled, "pays", lambda *arguments, pays=pays: pays)
            found = best_keys(keys_of(table), values_of(table), WIDTH, limit)
        assert found.tolist() == keys_of(expected).tolist()


def test_keys_of_many_documents_and_headings_do_not_overflow():
    width = 3_000_000
    matrix = csr_matrix(([1.0], ([2000], [width - 1])), shape=(2001, width))
    keys, _ = matrix_keys(matrix, width)
    assert keys.tolist() == [2000 * width + width - 1]
