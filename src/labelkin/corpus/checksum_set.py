"""A set of 64-bit checksums that takes a quarter of the memory of a set of integers."""

from __future__ import annotations

from array import array

_FIRST_SLOTS = 1 << 10
_BITS = (1 << 64) - 1


class ChecksumSet:
    """Checksums in a hash table of plain numbers: 12 to 24 bytes each, whatever their number.

    Its bits being random, a checksum is its own hash. Slots that are taken are followed
    by the next ones (linear probing); a slot of 0 is free.
    """

    def __init__(self) -> None:
        self._slots = array("Q", [0]) * _FIRST_SLOTS
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, checksum: int) -> bool:
        """Add a checksum; whether it is new."""
        # 0 and 1 count as the same: once in 2⁶³ pairs of texts.
        is_new = _insert(self._slots, checksum & _BITS or 1)
        if is_new:
            self._count += 1
            if 3 * self._count > 2 * len(self._slots):
                self._grow()
        return is_new

    def _grow(self) -> None:
        slots = array("Q", [0]) * (2 * len(self._slots))
        for key in self._slots:
            if key:
                _insert(slots, key)
        self._slots = slots


def _insert(slots: array[int], key: int) -> bool:
    last = len(slots) - 1
    place = key & last
    while held := slots[place]:
        if held == key:
            return False
        place = (place + 1) & last
    slots[place] = key
    return True
