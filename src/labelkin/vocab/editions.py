"""What distinguishes two editions of a vocabulary, concept by concept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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

# What an edition may say nothing about.
_PARTS = ("notations", "broader", "related", "schemes", "groups")


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


def completed(old: Iterable[Concept], new: Vocabulary) -> Vocabulary:
    """The new edition with everything that it says nothing about as the old one has it.

    These are names in languages in which no concept of the new edition has any, and links,
    notations or groups if no concept of it has them: a file of ids and names in one more
    language adds these names and removes nothing.
    """
    known = {concept.id: concept for concept in old if not concept.undone}
    languages = {tag for concept in new for tag in (*concept.names, *concept.synonyms)}
    lacking = [part for part in _PARTS if not any(getattr(one, part) for one in new)]
    return Vocabulary(
        concept
        if (before := known.get(concept.id)) is None
        else _with_kept(concept, before, languages, lacking)
        for concept in new
    )


def _with_kept(
    concept: Concept, before: Concept, languages: set[str], lacking: Sequence[str]
) -> Concept:
    kept: dict[str, Any] = {part: getattr(before, part) for part in lacking}
    if not {*before.names, *before.synonyms} <= languages:
        names = {tag: name for tag, name in before.names.items() if tag not in languages}
        synonyms = {tag: of for tag, of in before.synonyms.items() if tag not in languages}
        # In the order of before: the first name stands in where a language has none.
        order = dict.fromkeys((*before.names, *concept.names))
        names |= concept.names
        kept["names"] = {tag: names[tag] for tag in order if tag in names}
        kept["synonyms"] = {**synonyms, **concept.synonyms}
    return replace(concept, **kept) if kept else concept


def compare_editions(old: Iterable[Concept], new: Vocabulary) -> EditionDiff:
    """The changes from an old edition to a new one, which is `completed`; ids are kept.

    A concept that the new edition lacks, or has as deprecated, was merged or split if
    replaced-by links lead to current concepts; else if several new concepts have
    taken its names and synonyms (split), or its name is a name or synonym of exactly
    one current concept (merged), which did not have it in the old edition: two concepts
    of the same name are different ones. Neither edition has concepts that are undone.
    """
    known = {concept.id: concept for concept in old if not concept.undone}
    new = completed(known.values(), new)
    changes: dict[str, list[ConceptChange]] = {kind: [] for kind in KINDS}
    current = [concept for concept in new if not concept.deprecated]
    added = [concept for concept in current if concept.id not in known]
    changes["added"] = [ConceptChange(concept) for concept in added]
    takers = _by_name(added)
    for concept in known.values():
        now = new.get(concept.id)
        is_undone = now is not None and now.undone
        now = None if is_undone else now
        is_gone = now is None or now.deprecated
        if concept.deprecated:
            if now is not None and not is_gone:
                changes["restored"].append(ConceptChange(now))
        elif now is None or is_gone:
            successors = () if is_undone else _successors(concept, now, new, takers, known)
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
    if not old.names:
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
    lost = [name for tag, name in old.names.items() if tag not in new.names]
    yield "lost synonyms", _without_names_of(new, lost) + _further(old, new), ()


def _further(concept: Concept, other: Concept) -> tuple[str, ...]:
    """The synonyms of `concept` that are no names of `other`."""
    return _without_names_of(other, (one for of in concept.synonyms.values() for one in of))


def _without_names_of(concept: Concept, names: Iterable[str]) -> tuple[str, ...]:
    keys = {name_key(name) for name in concept.all_names()}
    return tuple(name for name in names if name_key(name) not in keys)


def _successors(
    concept: Concept,
    now: Concept | None,
    new: Vocabulary,
    takers: Mapping[str, list[Concept]],
    known: Mapping[str, Concept],
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
            before = known.get(successor.id)
            # One that had the name beside this one is a homonym of it.
            had_it = before is not None and name_key(name) in map(name_key, before.all_names())
            if not successor.deprecated and not had_it:
                return (successor.id,)
    return ()


def _by_name(concepts: Iterable[Concept]) -> dict[str, list[Concept]]:
    by_name: dict[str, list[Concept]] = {}
    for concept in concepts:
        for key in dict.fromkeys(map(name_key, concept.all_names())):
            by_name.setdefault(key, []).append(concept)
    return by_name
