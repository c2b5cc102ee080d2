"""Kinds of index terms, and the analyses that they come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from labelkin.corpus.document import Document


class Analysis(Protocol):
    """One pass over a text that gives the terms of one or several kinds.

    Equal analyses are run once for all the kinds that come from them.
    """

    def analyse(
        self, documents: Sequence[Document], kinds: Sequence[str]
    ) -> Iterator[list[list[str]]]:
        """For each document the terms of each of `kinds`, as they get ready."""
        ...


@dataclass(frozen=True, slots=True)
class TermKind:
    """One way to turn a text into index terms.

    `name` is the short name, which is also the field of the index. `version`
    changes whenever the same text may give other terms; caches and indexes made
    with another version are not used. A term holds no white space.
    """

    name: str
    version: str
    analysis: Analysis

    def extract(self, documents: Sequence[Document]) -> list[list[str]]:
        """The terms of each document in text order, repeats included."""
        return [terms for (terms,) in self.analysis.analyse(documents, (self.name,))]
