"""A base class for objects that hold files open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Lets a class with `close` be used in a `with` statement."""

    @abstractmethod
    def close(self) -> None:
        """Release the files and other resources held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
