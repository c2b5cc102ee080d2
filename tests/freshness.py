"""How old answers are: whether they lack a write that was acknowledged before they were asked."""

from __future__ import annotations

import time
from bisect import bisect_right, insort
from dataclasses import dataclass, field
from threading import Lock

# Several writers are told of their generations in any order; the next ones are near.
_NEXT = 10


@dataclass
class Freshness:
    """When writes were acknowledged, and the age of the oldest answer."""

    answers: int = 0
    # Seconds from a write that an answer lacks to when it was asked for, and to when it came.
    oldest_asked: float = 0.0
    oldest_answered: float = 0.0
    _acknowledged: list[tuple[int, float]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def wrote(self, generation: int) -> None:
        """A write of this generation was acknowledged just now."""
        with self._lock:
            insort(self._acknowledged, (generation, time.monotonic()))

    def answered(self, generation: int, asked: float) -> None:
        """An answer from this generation, asked for at this time, has come just now."""
        now = time.monotonic()
        with self._lock:
            place = bisect_right(self._acknowledged, (generation, float("inf")))
            newer = [at for _, at in self._acknowledged[place : place + _NEXT]]
            self.answers += 1
            if newer:
                self.oldest_asked = max(self.oldest_asked, asked - min(newer))
                self.oldest_answered = max(self.oldest_answered, now - min(newer))

    def figures(self) -> dict[str, float]:
        """For a report."""
        return {
            "answers with an age": self.answers,
            "oldest when asked": round(self.oldest_asked, 3),
            "oldest when answered": round(self.oldest_answered, 3),
        }
