"""What distinguishes two editions of a vocabulary, concept by concept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labelkin.vocab.concept import Concept
from labelkin.vocab.names import Match, name_key
from labelkin.vocab.vocabulary import Vocabulary

#: The kinds of changes in the order of reports, each with what it means.
KINDS = {
    "added": "not in the old edition",
    "restored": "deprecated before, in use again",
    "removed": "not in the new edition, and not replaced",
    "deprecated": "marked as deprecated, and not replaced",
    "merged": "replaced by another heading",
    "split": "replaced by several headings",
    "renamed": "another preferred name",
    "translated": "a name in a further language",
    "moved": "other broader headings",
    "new synonyms": "further names",
    "lost synonyms": "names that are gone",
}


@dataclass(frozen=True, slots=True)
class ConceptChange:
    """One difference between the editions.

    `concept` is the one of the new edition, of the old one where the new lacks it. What
    was and what is instead: names; for moved, merged and split concepts, the ids of others.
    """

    concept: Concept
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    def to_json(self, language: str = "en") -> dict[str, Any]:
        """The change for programs."""
        return {
            "id": self.concept.id,
            "name": self.concept.name(language),
            "before": list(self.before),
            "after": list(self.after),
        }


@dataclass(frozen=True, slots=True)
class EditionDiff:
    """All changes by kind, and the number of headings in use of each edition."""

    old: int
    new: int
    changes: Mapping[str, list[ConceptChange]]

    def counts(self) -> dict[str, int]:
        """How many changes of each kind there are."""
        return {kind: len(changes) for kind, changes in self.changes.items()}

    def successors(self) -> dict[str, tuple[str, ...]]:
        """For concepts that were merged or split the ids that have taken their place."""
        return {
            change.concept.id: change.after
            for kind in ("merged", "split")
            for change in self.changes[kind]
        }

    def to_json(self, language: str = "en") -> dict[str, Any]:
        """Counts and all changes for programs."""
        return {
            "headings": {"old": self.old, "new": self.new},
            "counts": self.counts(),
            **{
                kind.replace(" ", "_"): [change.to_json(language) for change in changes]
                for kind, changes in self.changes.items()
            },
        }


def compare_editions(old: Iterable[Concept], new: Vocabulary) -> EditionDiff:
    """The changes from an old edition to a new one; a concept keeps its id.

    A concept that the new edition lacks, or has as deprecated, was merged or split if
    replaced-by links lead to current concepts; else if several new concepts have
    taken its names and synonyms (split), or its name is a name or synonym of exactly
    one current concept (merged).
    """
    known = {concept.id: concept for concept in old}
    changes: dict[str, list[ConceptChange]] = {kind: [] for kind in KINDS}
    current = [concept for concept in new if not concept.deprecated]
    added = [concept for concept in current if concept.id not in known]
    changes["added"] = [ConceptChange(concept) for concept in added]
    takers = _by_name(added)
    for concept in known.values():
        now = new.concept(concept.id) if concept.id in new else None
        is_gone = now is None or now.deprecated
        if concept.deprecated:
            if now is not None and not is_gone:
                changes["restored"].append(ConceptChange(now))
        elif now is None or is_gone:
            successors = _successors(concept, now, new, takers)
            kinds = ("removed" if now is None else "deprecated", "merged", "split")
            change = ConceptChange(now or concept, after=successors)
            changes[kinds[min(len(successors), 2)]].append(change)
        else:
            for kind, before, after in _differences(concept, now):
                if before or after:
                    changes[kind].append(ConceptChange(now, before, after))
    in_use = sum(not concept.deprecated for concept in known.values())
    return EditionDiff(in_use, len(current), changes)


def _differences(
    old: Concept, new: Concept
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The changes of a concept that both editions have: kind, what was, what is instead."""
    yield (
        "moved",
        tuple(one for one in old.broader if one not in new.broader),
        tuple(one for one in new.broader if one not in old.broader),
    )
    if not (old.names and new.names):
        # An edition of ids and hierarchy alone.
        return
    renamed = [tag for tag, name in old.names.items() if new.names.get(tag, name) != name]
    yield (
        "renamed",
        tuple(old.names[tag] for tag in renamed),
        tuple(new.names[tag] for tag in renamed),
    )
    yield "translated", (), tuple(new.names[tag] for tag in new.names if tag not in old.names)
    yield "new synonyms", (), _further(new, old)
    yield "lost synonyms", _further(old, new), ()


def _further(concept: Concept, other: Concept) -> tuple[str, ...]:
    """The synonyms of `concept` that are no names of `other`."""
    keys = {name_key(name) for name in other.all_names()}
    synonyms = [name for names in concept.synonyms.values() for name in names]
    return tuple(name for name in synonyms if name_key(name) not in keys)


def _successors(
    concept: Concept,
    now: Concept | None,
    new: Vocabulary,
    takers: Mapping[str, list[Concept]],
) -> tuple[str, ...]:
    """The ids of the current concepts that have taken the place of one."""
    if linked := new.successors(now or concept):
        return linked
    keys = dict.fromkeys(map(name_key, concept.all_names()))
    taken = dict.fromkeys(taker.id for key in keys for taker in takers.get(key, ()))
    if len(taken) > 1:
        return tuple(taken)
    for language, name in concept.names.items():
        resolution = new.resolve(name, language=language)
        if resolution.column is not None and resolution.match in (Match.NAME, Match.SYNONYM):
            successor = new[resolution.column]
            if not successor.deprecated:
                return (successor.id,)
    return ()


def _by_name(concepts: Iterable[Concept]) -> dict[str, list[Concept]]:
    by_name: dict[str, list[Concept]] = {}
    for concept in concepts:
        for key in dict.fromkeys(map(name_key, concept.all_names())):
            by_name.setdefault(key, []).append(concept)
    return by_name
