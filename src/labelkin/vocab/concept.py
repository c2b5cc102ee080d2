"""One entry of a controlled vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# In place of a language code.
ALL_LANGUAGES = "all"


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept with its names in each language and its links to other concepts.

    `names` and `synonyms` are keyed by language code. `notations` are codes
    that place the concept in a scheme (MeSH tree numbers, classification
    codes). `broader`, `related` and `replaced_by` hold concept ids;
    `Vocabulary.narrower` gives the inverse of `broader`. `schemes` holds the ids
    of concept schemes. `groups` maps the ids of the groups and named schemes
    that the concept belongs to, directly or through other groups, to their
    names and notations. `undone` concepts are those that only an edition had which
    was undone since: documents may carry them, but no label resolves to them.
    """

    id: str
    names: Mapping[str, str]
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notations: tuple[str, ...] = ()
    broader: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    deprecated: bool = False
    replaced_by: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    undone: bool = False

    def name(self, language: str = "en") -> str:
        """The preferred name in `language`, else in English, else in any, else the id.

        A regional tag such as `de-AT` falls back to `de`; `all` gives the names in all
        languages, separated by ` / `.
        """
        if language == ALL_LANGUAGES:
            return " / ".join(dict.fromkeys(self.names.values())) or self.id
        known = self.name_language(language)
        return self.id if known is None else self.names[known]

    def names_as_json(self, language: str) -> dict[str, Any]:
        """The name in a language, with `all` also the names by language."""
        names = {"names": dict(self.names)} if language == ALL_LANGUAGES else {}
        return {"name": self.name(language), **names}

    def name_language(self, language: str = "en") -> str | None:
        """The language of the preferred name that `name` gives; None if there is no name."""
        for known in (language, language.partition("-")[0], "en"):
            if known in self.names:
                return known
        return next(iter(self.names), None)

    def indexed_name(self, language: str | None) -> tuple[str, str] | None:
        """Language and preferred name by which documents in `language` are found, if any."""
        known = self.name_language(language or "en")
        return None if known is None else (known, self.names[known])

    def all_names(self) -> Iterator[str]:
        """The preferred names and synonyms in all languages."""
        yield from self.names.values()
        for names in self.synonyms.values():
            yield from names

    def successors(self, find: Callable[[str], Concept | None]) -> list[Concept]:
        """The concepts in use that replaced-by links lead to, directly or through others.

        `find` gives the concept with an id, if the vocabulary has it.
        """
        current: list[Concept] = []
        seen = {self.id}
        ahead = [*self.replaced_by]
        while ahead:
            one = find(ahead.pop(0))
            if one is None or one.id in seen:
                continue
            seen.add(one.id)
            if one.deprecated:
                ahead += one.replaced_by
            else:
                current.append(one)
        return current

    def current(self, find: Callable[[str], Concept | None]) -> Concept | None:
        """The one concept that has replaced this one; itself if it is not deprecated.

        None if no concept has replaced it, or several have: which of them a text is about,
        only people can tell.
        """
        if not self.deprecated:
            return self
        successors = self.successors(find)
        return successors[0] if len(successors) == 1 else None
