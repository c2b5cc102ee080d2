"""The headings of the demonstration vocabulary, and the phrases that texts use for them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from labelkin.demo.outline import Entry, Group, read_outlines
from labelkin.demo.wording import direct, inverted
from labelkin.vocab.concept import Concept

SCHEME = "labelkin-demo"
MOST_SYNONYMS = 4
TOPIC_WORDS = 4

_NO_SYNONYMS = 0.08
_INVERTED_SYNONYM = 0.3
_RELATED = 0.12

# Between the tree numbers of siblings.
_LARGEST_STEP = 50
_THREE_DIGITS = 999


@dataclass(frozen=True, slots=True)
class Heading:
    """A concept and the phrases that texts use for it.

    `said` and `said_synonyms` are its name and synonyms as they appear in a sentence;
    `topic_words` suggest the heading without naming it and are partly shared with its siblings.
    """

    concept: Concept
    category: str
    group: Group
    said: str
    said_synonyms: tuple[str, ...]
    topic_words: tuple[str, ...]

    @property
    def id(self) -> str:
        """The concept's id."""
        return self.concept.id

    @property
    def structural(self) -> bool:
        """Whether it only groups others (`Places`, `Provinces`) or is deprecated."""
        common_noun_of_places = self.category == "G" and self.said == self.said.lower()
        return not self.concept.broader or common_noun_of_places


def demo_concepts(seed: int = 0) -> list[Concept]:
    """The headings of the demonstration vocabulary, in the order of their ids.

    Ids, names and hierarchy are the same for every seed; the seed selects the synonyms
    and the related headings.
    """
    return [heading.concept for heading in demo_headings(seed)]


@lru_cache(maxsize=4)
def demo_headings(seed: int = 0) -> tuple[Heading, ...]:
    """The headings behind `demo_concepts(seed)`."""
    entries = read_outlines()
    ids = {entry.name: f"LK{number:04d}" for number, entry in enumerate(entries, start=1)}
    numbers = _tree_numbers(entries)
    related = _related(entries, random.Random(f"labelkin-demo/related/{seed}"))
    shared = _ambiguous(entries)
    taken = {entry.name for entry in entries}
    headings = []
    for entry in entries:
        rng = random.Random(f"labelkin-demo/heading/{seed}/{entry.name}")
        synonyms = _synonyms(entry, shared, taken, rng)
        concept = Concept(
            id=ids[entry.name],
            names={"en": entry.name, **({"de": entry.german} if entry.german else {})},
            synonyms={"en": tuple(written for written, _ in synonyms)} if synonyms else {},
            notations=numbers.get(entry.name, ()),
            broader=tuple(ids[parent] for parent in entry.parents),
            related=tuple(sorted(ids[name] for name in related.get(entry.name, ()))),
            schemes=(SCHEME,),
            deprecated=entry.replaced_by is not None,
            replaced_by=(ids[entry.replaced_by],) if entry.replaced_by else (),
        )
        headings.append(
            Heading(
                concept=concept,
                category=entry.category,
                group=entry.group,
                said=entry.said,
                said_synonyms=tuple(said for _, said in synonyms if said is not None),
                topic_words=_topic_words(entry, rng),
            )
        )
    return tuple(headings)


def _tree_numbers(entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    children: dict[str, list[str]] = {}
    for entry in entries:
        for parent in entry.parents:
            children.setdefault(parent, []).append(entry.name)
    tops = (entry for entry in entries if not entry.parents and entry.replaced_by is None)
    return tree_numbers({entry.category: entry.name for entry in tops}, children)


def tree_numbers(
    tops: Mapping[str, str], children: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Tree numbers as in MeSH, for every heading below the tops.

    `tops` maps a category's letter to its top heading, which gets the number `A01`; the headings
    below it get `A01.050` and so on, in the order of `children`. A heading with two parents has a
    number below each place of each of them, as have all headings below it.
    """
    numbers: dict[str, list[str]] = {}
    pending = [(heading, f"{letter}01") for letter, heading in tops.items()]
    while pending:
        heading, number = pending.pop()
        numbers.setdefault(heading, []).append(number)
        below = children.get(heading, ())
        step = min(_LARGEST_STEP, _THREE_DIGITS // (len(below) + 1))
        pending.extend(
            (child, f"{number}.{position * step:03d}")
            for position, child in reversed(list(enumerate(below, start=1)))
        )
    return {heading: tuple(sorted(places)) for heading, places in numbers.items()}


def _ambiguous(entries: Sequence[Entry]) -> frozenset[str]:
    """Synonyms that two headings share; the outlines contain some on purpose."""
    counts = Counter(written for entry in entries for written, _ in entry.synonyms)
    return frozenset(written for written, count in counts.items() if count > 1)


def _synonyms(
    entry: Entry, shared: frozenset[str], taken: set[str], rng: random.Random
) -> list[tuple[str, str | None]]:
    """Synonyms and their forms in a sentence; None for those that texts never use."""
    bare = rng.random() < _NO_SYNONYMS
    chosen: list[tuple[str, str | None]] = [
        (written, None if "," in written else said)
        for written, said in entry.synonyms
        if written in shared or not bare
    ]
    if "," in entry.name:
        chosen.append((direct(entry.name), None))
    for term in (entry.name, *(written for written, _ in entry.synonyms)):
        form = inverted(term)
        if form is None or form in taken or bare:
            continue
        if rng.random() < _INVERTED_SYNONYM:
            chosen.append((form, None))
    return chosen[:MOST_SYNONYMS]


def _topic_words(entry: Entry, rng: random.Random) -> tuple[str, ...]:
    own = list(entry.own_words[:2])
    pool = entry.group.words
    return tuple(own + rng.sample(pool, min(len(pool), TOPIC_WORDS - len(own))))


def _related(entries: Sequence[Entry], rng: random.Random) -> Mapping[str, set[str]]:
    """Symmetric links between headings of one realm in different categories."""
    by_realm: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.replaced_by is None:
            for realm in entry.group.realms:
                by_realm.setdefault(realm, []).append(entry)
    links: dict[str, set[str]] = {}
    for entry in entries:
        if entry.replaced_by is not None or rng.random() >= _RELATED:
            continue
        other = rng.choice(by_realm[rng.choice(entry.group.realms)])
        if other.category != entry.category:
            links.setdefault(entry.name, set()).add(other.name)
            links.setdefault(other.name, set()).add(entry.name)
    return links
