"""Values that are computed once and shared between threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, RLock
from typing import Any, TypeVar

Value = TypeVar("Value")


class Memo:
    """Computes each key's value once; threads that ask meanwhile wait for it.

    With a `limit`, the least recently used values are dropped. A computation
    that fails is not remembered.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._lock = Lock()
        self._slots: OrderedDict[Hashable, _Slot] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of `key`, from `make` if it has not been computed before."""
        while True:
            with self._lock:
                slot = self._slots.get(key)
                if slot is None:
                    slot = self._slots[key] = _Slot()
                self._slots.move_to_end(key)
            if not slot.is_ready:
                with slot.lock:
                    if slot.has_failed:
                        # Another thread failed meanwhile: try in a new slot.
                        continue
                    if not slot.is_ready:
                        self._fill(key, slot, make)
            value: Value = slot.value
            return value

    def _fill(self, key: Hashable, slot: _Slot, make: Callable[[], Any]) -> None:
        try:
            slot.value = make()
        except BaseException:
            slot.has_failed = True
            with self._lock:
                if self._slots.get(key) is slot:
                    del self._slots[key]
            raise
        slot.is_ready = True
        if self._limit is not None:
            with self._lock:
                ready = [one for one, other in self._slots.items() if other.is_ready]
                for oldest in ready[: max(len(ready) - self._limit, 0)]:
                    del self._slots[oldest]

    def put(self, key: Hashable, value: object) -> None:
        """Set the value of `key`."""
        slot = _Slot()
        slot.value, slot.is_ready = value, True
        with self._lock:
            self._slots[key] = slot

    def peek(self, key: Hashable) -> Any:
        """The value of `key` if it has been computed, else None."""
        with self._lock:
            slot = self._slots.get(key)
        return slot.value if slot is not None and slot.is_ready else None

    def drop(self, key: Hashable) -> None:
        """Drop the value of `key`; the next `get` computes it again."""
        with self._lock:
            self._slots.pop(key, None)

    def keys(self) -> list[Hashable]:
        """All keys whose values have been computed or are being computed."""
        with self._lock:
            return list(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._slots.clear()


class _Slot:
    """A value and its lock, which is reentrant: computing a value may need others."""

    __slots__ = ("has_failed", "is_ready", "lock", "value")

    def __init__(self) -> None:
        self.lock = RLock()
        self.is_ready = False
        self.has_failed = False
        self.value: Any = None
