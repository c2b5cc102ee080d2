"""What an entry of an include or exclude list means: a concept with all below it, or a group.

An entry is looked up in this order, and the first step that finds something decides:

1. the id of a concept, scheme or group;
2. a notation, or the first letter of notations (`C`): `C10` is `C10` and `C10.228`, not `C100`;
3. the name of a scheme or group;
4. the beginning of notations that are not tree numbers (`64` of `641.5`);
5. the name or synonym of a concept.

A scheme or group means its members. A concept means itself and everything below it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from labelkin.exceptions import ConfigError
from labelkin.vocab.concept import Concept
from labelkin.vocab.mesh import TREE_NUMBER
from labelkin.vocab.names import name_key
from labelkin.vocab.vocabulary import Vocabulary, listed


class Branches:
    """Finds the concepts that entries of include and exclude lists mean.

    What is below a concept is found by the beginnings of its notations and by
    broader links. Links that follow from notations are not followed: they lead
    from one place of a MeSH heading to what is below another.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._members: dict[str, list[int]] = {}
        self._groups_by_name: dict[str, dict[str, str]] = {}
        places: list[str] = []
        columns: list[int] = []
        for column, concept in enumerate(vocabulary):
            places += concept.notations
            columns += [column] * len(concept.notations)
            if concept.schemes or concept.groups:
                self._add_groups(column, concept)
        order = sorted(range(len(places)), key=places.__getitem__)
        self._places = [places[number] for number in order]
        self._columns = [columns[number] for number in order]

    def _add_groups(self, column: int, concept: Concept) -> None:
        for group in {*concept.schemes, *concept.groups}:
            if group not in self._members:
                names = concept.groups.get(group, ())
                for name in names:
                    self._groups_by_name.setdefault(name_key(name), {})[group] = names[0]
            self._members.setdefault(group, []).append(column)

    def columns(self, entry: str) -> npt.NDArray[np.int64]:
        """The columns that an entry means, ascending; ConfigError if there are none."""
        if entry.strip():
            steps = (self._by_id, self._by_notation, self._by_group, self._by_prefix, self._by_name)
            for step in steps:
                if columns := step(entry):
                    return np.array(sorted(columns), dtype=np.int64)
        raise ConfigError(
            f"{entry!r} is not a concept, notation, scheme or group of this vocabulary; "
            f"{self._vocabulary.next_step(entry)}"
        )

    def _by_id(self, entry: str) -> set[int]:
        members = set(self._members.get(entry, ()))
        if entry in self._vocabulary:
            members |= self._branch([self._vocabulary.column(entry)])
        return members

    def _by_notation(self, entry: str) -> set[int]:
        is_category = len(entry) == 1 and entry.isalpha()
        columns = {
            column
            for place, column in self._starting_with(entry)
            if is_category or not place[len(entry) : len(entry) + 1].isalnum()
        }
        return self._with_linked(columns)

    def _by_group(self, entry: str) -> set[int]:
        groups = self._groups_by_name.get(name_key(entry), {})
        if len(groups) > 1:
            names = listed(f"{name} ({group})" for group, name in sorted(groups.items()))
            raise ConfigError(f"{entry!r} is ambiguous: {names}; give an id")
        return {column for group in groups for column in self._members[group]}

    def _by_prefix(self, entry: str) -> set[int]:
        if self._has_tree_numbers() or not any(map(str.isdigit, entry)):
            return set()
        return self._with_linked(column for _, column in self._starting_with(entry))

    def _by_name(self, entry: str) -> set[int]:
        column = self._by_preferred_name(entry)
        if column is None:
            resolution = self._vocabulary.resolve(entry)
            if resolution.is_ambiguous:
                raise ConfigError(self._vocabulary.ambiguity(entry))
            column = resolution.column
        return set() if column is None else self._branch([column])

    def _by_preferred_name(self, entry: str) -> int | None:
        """The one current concept with this preferred name.

        The index of all names, which knows more, takes a second to build for MeSH.
        """
        key = name_key(entry)
        columns = [
            column
            for column, concept in enumerate(self._vocabulary)
            if not concept.deprecated
            and any(
                (name.casefold() if name.isascii() else name_key(name)) == key
                for name in concept.names.values()
            )
        ]
        return columns[0] if len(columns) == 1 else None

    def _starting_with(self, beginning: str) -> Iterator[tuple[str, int]]:
        for number in range(bisect_left(self._places, beginning), len(self._places)):
            if not self._places[number].startswith(beginning):
                return
            yield self._places[number], self._columns[number]

    def _has_tree_numbers(self) -> bool:
        return any("." in place for place in self._places) and all(
            TREE_NUMBER.fullmatch(place) for place in self._places
        )

    def _branch(self, columns: Iterable[int]) -> set[int]:
        """These concepts and everything below them."""
        return self._with_linked(self._with_continued(columns))

    def _with_continued(self, columns: Iterable[int]) -> set[int]:
        """These concepts and those whose notations continue one of theirs."""
        result = set(columns)
        places = {place for column in result for place in self._vocabulary[column].notations}
        for beginning in places:
            result.update(column for _, column in self._starting_with(f"{beginning}."))
        return result

    def _with_linked(self, columns: Iterable[int]) -> set[int]:
        """These concepts and those below them by links that do not follow from notations."""
        vocabulary = self._vocabulary
        result = set(columns)
        pending = list(result)
        while pending:
            concept = vocabulary[pending.pop()]
            for identifier in vocabulary.narrower(concept.id):
                column = vocabulary.column(identifier)
                if column not in result and not _is_continued(concept, vocabulary[column]):
                    new = self._with_continued([column]) - result
                    result |= new
                    pending.extend(new)
        return result


def _is_continued(concept: Concept, narrower: Concept) -> bool:
    return any(place.rpartition(".")[0] in concept.notations for place in narrower.notations)
