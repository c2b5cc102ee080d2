"""What every kind of index term offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from labelkin.corpus.document import Document


class TermKind(Protocol):
    """One way to turn a text into index terms.

    `version` changes whenever the same text may give other terms; caches and
    indexes made with another version are not used. A term holds no white space.
    """

    @property
    def name(self) -> str:
        """The short name, which is also the field of the index."""
        ...

    @property
    def version(self) -> str:
        """What the terms depend on besides the text."""
        ...

    def extract(self, documents: Sequence[Document]) -> list[list[str]]:
        """The terms of each document in text order, repeats included."""
        ...
