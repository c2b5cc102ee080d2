"""A controlled vocabulary: concepts in stable integer columns, names and hierarchy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from labelkin.exceptions import VocabularyError
from labelkin.vocab.concept import Concept
from labelkin.vocab.names import NameIndex, Resolution, name_key


class Vocabulary:
    """Concepts by column. A concept keeps its column for good; new ones are appended.

    Columns are what label sets and models are made of; ids are what people and
    files see. Broader ids that are not in the vocabulary are passed over.
    """

    def __init__(self, concepts: Iterable[Concept] = ()) -> None:
        self._concepts: list[Concept] = []
        self._columns: dict[str, int] = {}
        self._names: NameIndex | None = None
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
        self._narrower = None
        self._resolved.clear()
        return column

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

    def resolve(
        self, label: str, name: str = "", language: str = "", *, guess: bool = True
    ) -> Resolution:
        """The concept that `label` means, else the one that `name` (a hint beside it) means.

        Names in `language` come before those in others. Without `guess`, a URI
        or id is taken at its word and nothing stands in for it.
        """
        key = (label, name, language, guess)
        found = self._resolved.get(key)
        if found is None:
            found = self._name_index.resolve(label, language, guess=guess)
            if found.column is None and name and guess:
                by_name = self._name_index.resolve(name, language)
                found = by_name if by_name.column is not None else found
            self._resolved[key] = found
        return found

    def find(self, label: str) -> Concept:
        """The concept that a person means by `label`; VocabularyError says why there is none."""
        resolution = self.resolve(label)
        if resolution.column is None:
            raise VocabularyError(
                f"{label!r} is {resolution.match.value} in this vocabulary; "
                "try `labelkin vocab search`"
            )
        return self._concepts[resolution.column]

    def narrower(self, identifier: str) -> tuple[str, ...]:
        """Ids of the concepts directly below."""
        if self._narrower is None:
            self._narrower = {}
            for concept in self._concepts:
                for parent in concept.broader:
                    self._narrower.setdefault(parent, []).append(concept.id)
        return tuple(self._narrower.get(identifier, ()))

    def broader(self, identifier: str) -> tuple[str, ...]:
        """Ids of the concepts directly above that are in the vocabulary."""
        return tuple(
            parent for parent in self.concept(identifier).broader if parent in self._columns
        )

    def top(self) -> list[Concept]:
        """Concepts with nothing above them."""
        return [concept for concept in self._concepts if not self.broader(concept.id)]

    def search(self, query: str, limit: int = 20) -> list[tuple[Concept, str]]:
        """Concepts whose names hold `query`, each with the name that matched.

        Whole names come first, then beginnings, then words, then the rest; the
        shorter name wins within each.
        """
        wanted = name_key(query)
        hits: list[tuple[int, int, int, str]] = []
        for column, concept in enumerate(self._concepts):
            best: tuple[int, int, int, str] | None = None
            for name in _all_names(concept):
                rank = _match_rank(wanted, name_key(name))
                if rank is not None and (best is None or (rank, len(name)) < best[:2]):
                    best = (rank, len(name), column, name)
            if best is not None:
                hits.append(best)
        return [(self._concepts[column], name) for _, _, column, name in sorted(hits)[:limit]]

    def languages(self) -> list[str]:
        """Languages in which concepts have names, sorted."""
        return sorted({language for concept in self._concepts for language in concept.names})

    def fingerprint(self) -> str:
        """A digest of the ids in column order: equal means columns mean the same."""
        digest = hashlib.sha256()
        for concept in self._concepts:
            digest.update(concept.id.encode("utf-8") + b"\n")
        return digest.hexdigest()

    @property
    def _name_index(self) -> NameIndex:
        if self._names is None:
            self._names = NameIndex()
            for column, concept in enumerate(self._concepts):
                self._names.add(column, concept)
        return self._names


def _all_names(concept: Concept) -> Iterator[str]:
    yield from concept.names.values()
    for names in concept.synonyms.values():
        yield from names


def _match_rank(wanted: str, key: str) -> int | None:
    if wanted not in key:
        return None
    if key == wanted:
        return 0
    if key.startswith(wanted):
        return 1
    return 2 if f" {wanted}" in key else 3
