"""Kinds of index terms, and the analyses that extract them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from labelkin.corpus.document import Document


class Analysis(Protocol):
    """One pass over a text that extracts the terms of one or several kinds.

    Must be hashable: kinds whose analyses are equal share one pass. `analyse` may
    be called from several threads.
    """

    def analyse(
        self, documents: Sequence[Document], kinds: Sequence[str]
    ) -> Iterator[list[list[str]]]:
        """Yield for each document, in order, a list of terms per kind."""
        ...


@dataclass(frozen=True, slots=True)
class TermKind:
    """One way to turn a text into index terms.

    `name` is also the name of the index field. `version` changes whenever the same
    text may give other terms; caches and indexes of another version are not used.
    A term contains no white space.
    """

    name: str
    version: str
    analysis: Analysis

    def extract(self, documents: Sequence[Document]) -> list[list[str]]:
        """The terms of each document in text order, repeats included."""
        return [terms for (terms,) in self.analysis.analyse(documents, (self.name,))]
