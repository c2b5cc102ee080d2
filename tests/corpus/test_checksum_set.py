from __future__ import annotations

import random
import sys

from hypothesis import given
from hypothesis import strategies as st

from labelkin.corpus.checksum_set import ChecksumSet

SIGNED = st.integers(-(2**63), 2**63 - 1).filter(lambda one: one not in (0, 1))


@given(st.lists(SIGNED | st.sampled_from([-1, 5, 1 << 40, 3 << 40, -(2**63)])))
def test_it_tells_what_is_new_as_a_set_does(checksums: list[int]) -> None:
    ours, plain = ChecksumSet(), set[int]()
    for checksum in checksums:
        assert ours.add(checksum) == (checksum not in plain)
        plain.add(checksum)
    assert len(ours) == len(plain)


def test_it_grows_and_forgets_nothing() -> None:
    numbers = random.Random(0)
    checksums = [numbers.getrandbits(64) - 2**63 for _ in range(20_000)]
    ours = ChecksumSet()
    assert all(map(ours.add, checksums))
    assert not any(map(ours.add, checksums))


def test_it_takes_24_bytes_a_checksum_at_most() -> None:
    numbers = random.Random(0)
    ours = ChecksumSet()
    largest = 0.0
    for count in range(1, 50_000):
        ours.add(numbers.getrandbits(64))
        if count > 2000:
            largest = max(largest, sys.getsizeof(ours._slots) / count)
    assert largest < 24.1
