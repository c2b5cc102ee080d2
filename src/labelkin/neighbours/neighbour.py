"""Neighbours as documents with titles, distances and headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labelkin.corpus.document import Document
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.search import MatchedTerm, NeighbourSearch
from labelkin.vocab.concept import Concept

# Characters of the text that stand in for a missing title.
_BEGINNING = 80


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A document similar to a text: its distance, and the headings that it carries.

    `terms` are those that it shares with the text, strongest first, if requested.
    """

    id: str
    title: str
    distance: float
    score: float
    headings: tuple[Concept, ...] = ()
    terms: tuple[MatchedTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of a collection with its neighbours, and the generation that both are of.

    `headings` has the concept of each of its labels, None for those that the
    vocabulary lacks.
    """

    generation: int
    document: Document
    headings: Mapping[str, Concept | None]
    neighbours: list[Neighbour]

    @property
    def unresolved(self) -> list[str]:
        """The labels that the vocabulary lacks."""
        return [label for label, concept in self.headings.items() if concept is None]


def describe(
    search: NeighbourSearch, documents: Sequence[Document], near: Neighbours, terms: int = 0
) -> list[list[Neighbour]]:
    """Arrays of neighbours as documents, each with up to `terms` shared terms."""
    snapshot, settings = search.snapshot, search.snapshot.config.neighbours
    distances = near.distances(settings.distance, settings.distance_floor)
    texts = snapshot.texts_of(sorted({int(row) for row in near.rows.flat if row != NO_NEIGHBOUR}))
    label_sets = snapshot.label_sets()
    described = []
    for place, document in enumerate(documents):
        ranked = [
            (rank, row) for rank, row in enumerate(map(int, near.rows[place])) if row in texts
        ]
        matched: list[list[MatchedTerm]] = [[] for _ in ranked]
        if terms:
            matched = search.matched_terms(document, {row: texts[row] for _, row in ranked}, terms)
        columns = [label_sets.columns(row).tolist() for _, row in ranked]
        concepts = snapshot.concepts(sorted({one for of_row in columns for one in of_row}))
        described.append(
            [
                Neighbour(
                    id=texts[row].id,
                    title=texts[row].title or texts[row].text[:_BEGINNING],
                    distance=float(distances[place, rank]),
                    score=float(near.scores[place, rank]),
                    headings=tuple(concepts[column] for column in of_row),
                    terms=tuple(shared),
                )
                for (rank, row), of_row, shared in zip(ranked, columns, matched, strict=True)
            ]
        )
    return described
