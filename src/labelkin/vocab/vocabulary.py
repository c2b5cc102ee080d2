"""A controlled vocabulary: concepts in stable integer columns, names and hierarchy."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from labelkin.exceptions import VocabularyError
from labelkin.vocab.concept import Concept
from labelkin.vocab.cycles import cycles, cycles_at_top, shortest_cycle
from labelkin.vocab.names import Match, NameIndex, Resolution, name_key, turned, uri_tail
from labelkin.vocab.paths import paths_to_top

if TYPE_CHECKING:
    from labelkin.vocab.name_search import NameSearch, SearchPage

# The cache of resolved labels is cleared when it reaches this many entries.
_CACHED_RESOLUTIONS = 100_000
_LISTED = 5


class Vocabulary:
    """Concepts by column. A concept keeps its column; new concepts are appended.

    Label sets and models refer to columns; people and files refer to ids.
    Broader ids that are not in the vocabulary, or are the concept itself, are ignored.
    `former_names` are pairs of a column and a name or notation that its concept had in
    an earlier edition and has no longer. No search finds concepts that are undone.

    Threads may share a vocabulary for reading. `add` must not run beside
    readers; `extended` returns a larger vocabulary without changing this one.
    """

    def __init__(
        self, concepts: Iterable[Concept] = (), former_names: Iterable[tuple[int, str]] = ()
    ) -> None:
        self.former_names = tuple(former_names)
        self._concepts: list[Concept] = []
        self._columns: dict[str, int] = {}
        self._names: NameIndex | None = None
        self._search: NameSearch | None = None
        self._top: dict[str, None] | None = None
        self._narrower: dict[str, list[str]] | None = None
        self._resolved: dict[tuple[str, str, str, bool], Resolution] = {}
        for concept in concepts:
            self.add(concept)

    def add(self, concept: Concept) -> int:
        """Append `concept` and return its column; its id must be new."""
        if concept.id in self._columns:
            raise VocabularyError(f"concept {concept.id!r} occurs twice in the vocabulary")
        column = len(self._concepts)
        self._concepts.append(concept)
        self._columns[concept.id] = column
        if self._names is not None:
            self._names.add(column, concept)
        self._search = None
        self._top = None
        self._narrower = None
        self._resolved.clear()
        return column

    def extended(self, concepts: Iterable[Concept]) -> Vocabulary:
        """A new vocabulary with `concepts` appended; this one stays unchanged."""
        vocabulary = Vocabulary(former_names=self.former_names)
        vocabulary._concepts = self._concepts.copy()
        vocabulary._columns = self._columns.copy()
        for concept in concepts:
            vocabulary.add(concept)
        return vocabulary

    def __len__(self) -> int:
        return len(self._concepts)

    def __getitem__(self, column: int) -> Concept:
        return self._concepts[column]

    def __iter__(self) -> Iterator[Concept]:
        return iter(self._concepts)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._columns

    def column(self, identifier: str) -> int:
        """The column of the concept with exactly this id."""
        try:
            return self._columns[identifier]
        except KeyError:
            raise VocabularyError(f"no concept {identifier!r} in the vocabulary") from None

    def concept(self, identifier: str) -> Concept:
        """The concept with exactly this id."""
        return self._concepts[self.column(identifier)]

    def get(self, identifier: str) -> Concept | None:
        """The concept with exactly this id, None if there is none."""
        column = self._columns.get(identifier)
        return None if column is None else self._concepts[column]

    def successors(self, concept: Concept) -> tuple[str, ...]:
        """The ids of the current concepts that replaced-by links of a concept lead to."""
        return tuple(one.id for one in concept.successors(self.get))

    def successor(self, column: int) -> int:
        """The column of the one concept that has taken the place of a deprecated one.

        The column itself if its concept is not deprecated, or if not exactly one
        concept has taken its place.
        """
        current = self._concepts[column].current(self.get)
        return column if current is None else self._columns[current.id]

    def resolve(
        self, label: str, name: str = "", language: str = "", *, guess: bool = True
    ) -> Resolution:
        """The concept that `label` stands for, else the one that `name` stands for.

        `name` is the name that a source gives beside an id. Names in `language`
        precede those in others, and present names precede former ones. Without
        `guess`, a URI or id has to match exactly, and `name` is ignored.
        """
        column = self._columns.get(label)
        # Records mostly carry ids, for which the index of names need not be made.
        if column is not None and not self._concepts[column].undone:
            return Resolution(column, Match.ID)
        key = (label, name, language, guess)
        resolution = self._resolved.get(key)
        if resolution is None:
            names = self._name_index
            resolution = names.resolve(label, language, guess=guess)
            by_name = resolution
            if resolution.column is None and name and guess:
                by_name = names.resolve(name, language)
                resolution = by_name if by_name.column is not None else resolution
            if resolution.match is Match.UNKNOWN and by_name.match is Match.UNKNOWN:
                by_former = names.former(label) or (names.former(name) if guess else None)
                resolution = by_former or resolution
            if len(self._resolved) >= _CACHED_RESOLUTIONS:
                self._resolved.clear()
            self._resolved[key] = resolution
        return resolution

    def find(self, label: str) -> Concept:
        """The concept for an id or name typed by a person; VocabularyError if there is none."""
        resolution = self.resolve(label)
        if resolution.is_ambiguous:
            raise VocabularyError(self.ambiguity(label))
        if resolution.column is None:
            raise VocabularyError(
                f"{label!r} is unknown in this vocabulary; {self.next_step(label)}"
            )
        return self._concepts[resolution.column]

    def ambiguity(self, label: str) -> str:
        """Why a label does not resolve: the concepts that share it as a name."""
        candidates = self.candidates(label)
        names = listed(f"{concept.name()} ({concept.id})" for concept in candidates)
        return f"{label!r} is ambiguous: {names}; give an id"

    def candidates(self, label: str) -> list[Concept]:
        """The concepts that a label could mean: by preferred name first, then by others."""
        key = name_key(label)
        keys = {key, turned(key)}
        ranked = []
        for column, concept in enumerate(self._concepts):
            if concept.undone:
                continue
            names = {name_key(name) for name in concept.all_names()}
            if any(key == name_key(name) for name in concept.names.values()):
                ranked.append((0, column))
            elif (
                label in (*concept.notations, uri_tail(concept.id))
                or names & keys
                or keys & {turned(name) for name in names}
            ):
                ranked.append((1, column))
        return [self._concepts[column] for _, column in sorted(ranked)]

    def next_step(self, label: str) -> str:
        """What to try after a label that is unknown: a similar name if there is one."""
        close = self.similar_names(label)
        if close:
            return "did you mean " + " or ".join(map(repr, close)) + "?"
        return "try `labelkin vocab search`"

    def similar_names(self, label: str, limit: int = 3) -> list[str]:
        """Names that are spelt almost like `label`, the most similar first."""
        key = name_key(label)
        if len(key) < 3:
            return []
        # Comparing all names would take seconds: misspellings mostly keep the length and the
        # beginning or the end.
        keys: dict[str, str] = {}
        for concept in self._concepts:
            for name in () if concept.undone else concept.all_names():
                if abs(len(name) - len(key)) <= 2:
                    other = name_key(name)
                    if other[:2] == key[:2] or other[-2:] == key[-2:]:
                        keys.setdefault(other, name)
        return [keys[one] for one in difflib.get_close_matches(key, keys, limit, cutoff=0.85)]

    def narrower(self, identifier: str) -> tuple[str, ...]:
        """Ids of the direct children."""
        narrower = self._narrower
        if narrower is None:
            narrower = {}
            for concept in self._concepts:
                for parent in concept.broader:
                    if parent != concept.id:
                        narrower.setdefault(parent, []).append(concept.id)
            # Assigned when complete: another thread must not see half of it.
            self._narrower = narrower
        return tuple(narrower.get(identifier, ()))

    def broader(self, identifier: str) -> tuple[str, ...]:
        """Ids of the direct parents that are in the vocabulary."""
        return tuple(
            parent
            for parent in self.concept(identifier).broader
            if parent in self._columns and parent != identifier
        )

    def top(self) -> list[Concept]:
        """Concepts without a parent in the vocabulary, and one of each cycle without one."""
        return [self.concept(identifier) for identifier in self._top_ids]

    def paths(self, identifier: str, limit: int = 50) -> list[list[Concept]]:
        """The ways by broader links from the top to the concept with this id, top first.

        No way goes through a concept twice. Where notations are tree numbers,
        there is one way for each. At most `limit` of them are given.
        """
        self.column(identifier)
        paths = paths_to_top(self, identifier, self._top_ids.keys(), limit)
        return [[self.concept(one) for one in path] for path in paths]

    @property
    def _top_ids(self) -> dict[str, None]:
        top = self._top
        if top is None:
            parents = [
                [parent for parent in above if parent != column]
                for column, above in enumerate(self._linked_parents())
            ]
            columns = [column for column, above in enumerate(parents) if not above]
            columns += [group[0] for group in cycles_at_top(parents)]
            top = self._top = {self._concepts[column].id: None for column in sorted(columns)}
        return top

    def cycles(self) -> list[list[Concept]]:
        """Concepts that broader links make broader than themselves, by common cycles."""
        groups = cycles(self._linked_parents())
        return [[self._concepts[column] for column in group] for group in groups]

    def cycle_through(self, concept: Concept) -> list[Concept]:
        """A shortest way by broader links from a concept in a cycle to itself."""
        way = shortest_cycle(self._linked_parents(), self._columns[concept.id])
        return [self._concepts[column] for column in way]

    def _linked_parents(self) -> list[list[int]]:
        """The columns that broader links name, even the concept's own."""
        known = self._columns
        return [
            [known[parent] for parent in concept.broader if parent in known]
            for concept in self._concepts
        ]

    def search(self, query: str, limit: int = 20, offset: int = 0) -> list[tuple[Concept, str]]:
        """Concepts with a name that contains `query`, each with its best matching name."""
        hits = self.search_page(query, offset, limit).hits
        return [(hit.concept, hit.name) for hit in hits]

    def search_page(self, query: str, offset: int = 0, limit: int = 20) -> SearchPage:
        """Concepts with a name that contains `query`, from the one at `offset` on.

        A concept with exactly this id, notation or end of its URI comes first.
        Then come exact matches, prefixes, starts of words, other matches, and
        names that match without accents only; within each, shorter names come
        first. Names in all languages count. An empty query gives all concepts
        in the order of their columns.
        """
        return self._name_search.page(query, offset, limit)

    def languages(self) -> list[str]:
        """Languages in which concepts have names, sorted."""
        return sorted(self.names_by_language())

    def names_by_language(self) -> Counter[str]:
        """How many concepts have a name in each language."""
        return Counter(language for concept in self._concepts for language in concept.names)

    def fingerprint(self) -> str:
        """A checksum of the ids in column order: if equal, the columns mean the same."""
        checksum = hashlib.sha256()
        for concept in self._concepts:
            checksum.update(concept.id.encode("utf-8") + b"\n")
        return checksum.hexdigest()

    @property
    def _name_search(self) -> NameSearch:
        search = self._search
        if search is None:
            from labelkin.vocab.name_search import NameSearch

            search = self._search = NameSearch([one for one in self._concepts if not one.undone])
        return search

    @property
    def _name_index(self) -> NameIndex:
        names = self._names
        if names is None:
            names = NameIndex()
            for column, concept in enumerate(self._concepts):
                names.add(column, concept)
            for column, name in self.former_names:
                if not self._concepts[column].undone:
                    names.add_former(column, name)
            # Assigned when complete: another thread must not see half of it.
            self._names = names
        return names


def listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    every = list(names)
    more = len(every) - _LISTED
    return ", ".join(every[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
