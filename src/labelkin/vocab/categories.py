"""Counts of concepts per top-level category (the paper's table 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from labelkin.vocab.mesh import CATEGORY_NAMES, DESCRIPTOR_ID, TREE_NUMBER
from labelkin.vocab.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Category:
    """A branch of the hierarchy, with the number of its concepts and of their places.

    A concept can have several places in one branch. The paper's table counts
    places: its sixteen numbers add up to about twice the number of descriptors.
    """

    code: str
    name: str
    concepts: int
    places: int


def categories(vocabulary: Vocabulary, language: str = "en") -> list[Category]:
    """Group by the first letter of tree numbers if all notations are such, else by top concept."""
    if _has_tree_numbers(vocabulary):
        return _by_tree_number(vocabulary, language)
    return _by_top_concept(vocabulary, language)


def top_branch(vocabulary: Vocabulary) -> Callable[[str], str]:
    """A function from the ids of concepts to the codes of the branches they are in.

    A code is the first letter of a tree number, if all notations are such, or the
    id of a top concept; below a single top concept, that of a concept directly
    below it. A concept with several places is where the first of them is, and
    one without a place has the code "".
    """
    if _has_tree_numbers(vocabulary):
        return lambda identifier: (vocabulary.concept(identifier).notations or ("",))[0][:1]
    depth = 1 if len(vocabulary.top()) == 1 else 0

    @cache
    def top(identifier: str) -> str:
        path = vocabulary.paths(identifier, limit=1)[0]
        return path[min(depth, len(path) - 1)].id

    return top


def branch_names(
    vocabulary: Vocabulary, codes: Iterable[str], language: str = "en"
) -> dict[str, str]:
    """What branches of `top_branch` are called, by their codes."""
    letters = {}
    if _has_tree_numbers(vocabulary):
        letters = {one.code: one.name for one in _by_tree_number(vocabulary, language)}
    return {
        code: letters.get(code) or code if letters else vocabulary.concept(code).name(language)
        for code in codes
    }


def _has_tree_numbers(vocabulary: Vocabulary) -> bool:
    placed = [concept for concept in vocabulary if concept.notations]
    return bool(placed) and all(
        TREE_NUMBER.fullmatch(place) for concept in placed for place in concept.notations
    )


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
    # MeSH's categories are not concepts; elsewhere a single root names its branch.
    is_mesh = any(DESCRIPTOR_ID.fullmatch(concept.id) for concept in vocabulary)
    names = {letter: tops[0] for letter, tops in roots.items() if len(tops) == 1}
    names = CATEGORY_NAMES if is_mesh else names
    return [
        Category(letter, names.get(letter, ""), len(concepts[letter]), places[letter])
        for letter in sorted(concepts)
    ]


def _by_top_concept(vocabulary: Vocabulary, language: str) -> list[Category]:
    branches = []
    for concept in vocabulary.top():
        below: set[str] = set()
        places = 1
        pending = list(vocabulary.narrower(concept.id))
        while pending:
            identifier = pending.pop()
            if identifier == concept.id:  # a cycle
                continue
            places += 1
            if identifier not in below:
                below.add(identifier)
                pending.extend(vocabulary.narrower(identifier))
        code = concept.notations[0] if concept.notations else concept.id
        branches.append(Category(code, concept.name(language), len(below) + 1, places))
    return sorted(branches, key=lambda category: (-category.concepts, category.code))
