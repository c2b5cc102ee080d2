from __future__ import annotations

import numpy as np
from scipy.sparse import random as random_matrix  # noqa: TID253

from labelkin.autoencoder.table_kernel import add_rows


def test_every_number_of_half_precision():
    bits = np.arange(1 << 16, dtype=np.uint16)
    bits = bits[np.isfinite(bits.view(np.float16))]
    sums = np.zeros((1, len(bits)), dtype=np.float32)
    add_rows(
        np.array([0, 1]),
        np.zeros(1, dtype=np.int32),
        np.ones(1, dtype=np.float32),
        bits[None],
        sums,
    )
    np.testing.assert_array_equal(sums[0], bits.view(np.float16).astype(np.float32))


def test_the_same_sums_as_by_scipy():
    random = np.random.default_rng(0)
    table = random.standard_normal((300, 20)).astype(np.float16)
    matrix = random_matrix(
        40, 300, 0.1, format="csr", dtype=np.float32, random_state=np.random.default_rng(1)
    )
    sums = np.zeros((40, 20), dtype=np.float32)
    starts = matrix.indptr.astype(np.int64)
    add_rows(starts, matrix.indices, matrix.data, table.view(np.uint16), sums)
    np.testing.assert_array_equal(sums, matrix @ table.astype(np.float32))
