from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.represent.wordllama import WordLlamaEncoder
from labelkin.store.config import DenseSection

pytest.importorskip("wordllama")


def test_threads_get_what_one_thread_gets() -> None:
    encoder = WordLlamaEncoder("wordllama", DenseSection(max_length=50))
    calls = [
        [Document(str(n), f"rye bread {n}", "and rivers " * (n % 5)), Document("empty")]
        for n in range(24)
    ]
    expected = [encoder.encode(documents) for documents in calls]
    with ThreadPoolExecutor(4) as pool:
        for vectors, alone in zip(pool.map(encoder.encode, calls), expected, strict=True):
            assert np.array_equal(vectors, alone)
