"""How a vocabulary spreads over its top-level categories (the paper's table 1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from labelkin.vocab.mesh import CATEGORY_NAMES, DESCRIPTOR_ID, TREE_NUMBER
from labelkin.vocab.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Category:
    """A branch: how many concepts it holds, and how many places they take in it.

    A concept can stand at several places of one branch. The paper's table
    counts places: its sixteen numbers add up to about twice the descriptors.
    """

    code: str
    name: str
    concepts: int
    places: int


def categories(vocabulary: Vocabulary, language: str = "en") -> list[Category]:
    """Branches by the first letter of tree numbers, else by the topmost concepts."""
    placed = [concept for concept in vocabulary if concept.notations]
    if placed and all(TREE_NUMBER.fullmatch(place) for c in placed for place in c.notations):
        return _by_tree_number(vocabulary, language)
    return _by_top_concept(vocabulary, language)


def _by_tree_number(vocabulary: Vocabulary, language: str) -> list[Category]:
    concepts: dict[str, set[str]] = {}
    roots: dict[str, list[str]] = {}
    places: Counter[str] = Counter()
    for concept in vocabulary:
        for number in concept.notations:
            concepts.setdefault(number[0], set()).add(concept.id)
            places[number[0]] += 1
            if "." not in number:
                roots.setdefault(number[0], []).append(concept.name(language))
    # MeSH's categories are no concepts; elsewhere a single root names its branch.
    is_mesh = any(DESCRIPTOR_ID.fullmatch(concept.id) for concept in vocabulary)
    names = {letter: found[0] for letter, found in roots.items() if len(found) == 1}
    names = CATEGORY_NAMES if is_mesh else names
    return [
        Category(letter, names.get(letter, ""), len(concepts[letter]), places[letter])
        for letter in sorted(concepts)
    ]


def _by_top_concept(vocabulary: Vocabulary, language: str) -> list[Category]:
    found = []
    for concept in vocabulary.top():
        below: set[str] = set()
        places = 1
        pending = list(vocabulary.narrower(concept.id))
        while pending:
            identifier = pending.pop()
            places += 1
            if identifier not in below and identifier != concept.id:
                below.add(identifier)
                pending.extend(vocabulary.narrower(identifier))
        code = concept.notations[0] if concept.notations else concept.id
        found.append(Category(code, concept.name(language), len(below) + 1, places))
    return sorted(found, key=lambda category: (-category.concepts, category.code))
