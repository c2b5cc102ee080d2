"""A suggested heading and the reasons for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from labelkin.scoring.ranking import Ranking
from labelkin.vocab.concept import Concept
from labelkin.vocab.vocabulary import Vocabulary
from labelkin.wording import counted


@dataclass(frozen=True, slots=True)
class Carrier:
    """A neighbour that supports a suggested heading, and its share of the heading's score.

    For the label autoencoder, neighbours that do not carry the heading can support it.
    `title` is the beginning of the text if there is no title.
    """

    id: str
    title: str
    distance: float
    share: float
    carries: bool = True
    year: int | None = None


@dataclass(frozen=True, slots=True)
class Naming:
    """Words by which a text names a heading, where, and how often.

    Nested words are part of a longer name in the text. `before` and `after` are
    the rest of the sentence in which they come first, as far as it is short.
    `spans` are begin and end of each occurrence, in order, as offsets into the
    text as it was given: the title, or body and fields joined by line breaks.
    """

    words: str
    place: Literal["title", "body"]
    count: int = 1
    nested: bool = False
    before: str = ""
    after: str = ""
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def reason(self) -> str:
        """The words and their place."""
        where = "title" if self.place == "title" else "text"
        how = "within a longer name" if self.nested else "named"
        return f"{how} in the {where}: '{self.words}'"


@dataclass(frozen=True, slots=True)
class SignalWeight:
    """A kind of evidence, and what it adds to the log odds of a heading."""

    name: str
    weight: float


# `Suggestion.reason` shows these two as documents and words, not as signals.
CARRIED, NAMED = "similar documents", "named in the text"
WORDS = "words of the text"
# The part of the log odds that every candidate has.
BASE = "any candidate"

Band = Literal["accept", "review", "hidden"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A heading for a text: its score in [0, 1], its rank from 1, and the evidence.

    `carriers` are the neighbours that support it, out of `neighbours` in total;
    `inferred_from` are the neighbours' headings that it follows from if no
    neighbour carries it; `named` are the words of the text that name it, the
    best first. A heading of the label autoencoder or the reranker also has its
    `signals`, the strongest first; a reranked one the `band` of its score.
    """

    concept: Concept
    score: float
    rank: int
    carriers: tuple[Carrier, ...] = ()
    neighbours: int = 0
    inferred_from: tuple[Concept, ...] = ()
    named: tuple[Naming, ...] = ()
    signals: tuple[SignalWeight, ...] = ()
    band: Band | None = None

    @property
    def votes(self) -> int:
        """How many neighbours carry the heading."""
        return sum(carrier.carries for carrier in self.carriers)

    @property
    def reason(self) -> str:
        """The evidence in one line."""
        return self.reason_in("en")

    def reason_in(self, language: str) -> str:
        """The evidence in one line, with heading names in this language."""
        reasons = []
        if self.inferred_from and not self.votes:
            names = ", ".join(concept.name(language) for concept in self.inferred_from)
            reasons.append(f"inferred from {names}")
        elif self.votes or (self.neighbours and not (self.named or self.signals)):
            reasons.append(f"{self.votes} of {counted(self.neighbours, 'nearest document')}")
        reasons += [naming.reason for naming in self.named[:1]]
        if not reasons:
            # Neither carried nor named: the strongest other signal.
            others = [one.name for one in self.signals if one.name not in (CARRIED, NAMED)]
            reasons += others[:1]
        return "; ".join(reasons)


def fold_broader(suggestions: Sequence[Suggestion], vocabulary: Vocabulary) -> list[Suggestion]:
    """`suggestions` without headings that a narrower one among them implies."""
    implied = implied_by_others([one.concept.id for one in suggestions], vocabulary)
    kept = [suggestion for suggestion in suggestions if suggestion.concept.id not in implied]
    return [replace(suggestion, rank=rank) for rank, suggestion in enumerate(kept, start=1)]


def fold_broader_labels(given: Ranking, vocabulary: Vocabulary) -> Ranking:
    """As `fold_broader`, for the labels of a batch."""
    kept: list[bool] = []
    for columns, _ in given:
        identifiers = [vocabulary[column].id for column in columns.tolist()]
        implied = implied_by_others(identifiers, vocabulary)
        kept += [identifier not in implied for identifier in identifiers]
    return given.kept(np.array(kept, dtype=np.bool_))


def implied_by_others(identifiers: Iterable[str], vocabulary: Vocabulary) -> set[str]:
    """Those of the concepts that are above another one of them.

    Concepts in one cycle do not imply each other.
    """
    above = {identifier: _ancestors(identifier, vocabulary) for identifier in identifiers}
    return {
        broader
        for narrower, ancestors in above.items()
        for broader in ancestors & above.keys()
        if narrower not in above[broader]
    }


def _ancestors(identifier: str, vocabulary: Vocabulary) -> set[str]:
    """Everything above a concept in the hierarchy; also itself if it is in a cycle."""
    above: set[str] = set()
    pending = [*vocabulary.broader(identifier)]
    while pending:
        identifier = pending.pop()
        if identifier not in above:
            above.add(identifier)
            pending.extend(vocabulary.broader(identifier))
    return above
