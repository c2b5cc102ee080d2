"""Reads the outlines of the lexicon: an indented line per heading, with a few marks.

    ^Name = Synonym; Synonym / German name < Second Parent + aspect aspect
      ~ realm realm: topic word, topic word, ...
      ~ more topic words

Indentation (two spaces per level) gives the broader heading. `^` marks a proper noun, which keeps
its capitals in a sentence, as do all headings below it. `~` gives the topic words and the realms
of a heading and of all headings below it without such a line of their own: these form a *group*.
`+` lists aspects (see `lexicon.aspects`). `Name -> Other` is a deprecated heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from labelkin.demo.lexicon import OUTLINES
from labelkin.demo.lexicon.aspects import ASPECTS, Aspect
from labelkin.demo.wording import direct, singular, spoken

_MARKS = re.compile(r" (=|/|<|\+|->) ")


@dataclass(frozen=True, slots=True)
class Group:
    """Headings that share a pool of topic words; `name` is the topmost of them."""

    name: str
    realms: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A heading as written in the outline; parents and replacement are names.

    `synonyms` pairs each synonym with its form inside a sentence. `category` is the letter whose
    sentence frames suit the heading; for an aspect it may differ from the letter of its parent.
    """

    name: str
    said: str
    synonyms: tuple[tuple[str, str], ...]
    german: str | None
    parents: tuple[str, ...]
    category: str
    group: Group
    own_words: tuple[str, ...] = ()
    replaced_by: str | None = None


@dataclass(slots=True)
class _Ancestor:
    """A heading on the path from the top to the current line."""

    name: str
    proper: bool
    group: Group


def read_outlines() -> list[Entry]:
    """All entries, in the order of the outlines; aspects follow the heading that lists them."""
    return [entry for letter, text in OUTLINES.items() for entry in _read(letter, text)]


def _read(letter: str, text: str) -> Iterator[Entry]:
    lines = [line for line in text.splitlines() if line.strip()]
    path: list[_Ancestor] = []
    for number, line in enumerate(lines):
        content = line.strip()
        if content.startswith("~"):
            continue
        depth = (len(line) - len(content)) // 2
        del path[depth:]
        head, fields = _fields(content)
        proper = head.startswith("^") or any(ancestor.proper for ancestor in path)
        name = head.removeprefix("^")
        group = _group(name, lines[number + 1 :], depth) or path[-1].group
        parents = tuple(ancestor.name for ancestor in path[-1:])
        path.append(_Ancestor(name, proper, group))
        entry = Entry(
            name=name,
            said=spoken(name, proper=proper),
            synonyms=tuple(_synonym(term, proper) for term in _items(fields.get("="), ";")),
            german=fields.get("/"),
            parents=parents + tuple(_items(fields.get("<"), ";")),
            category=letter,
            group=group,
            replaced_by=fields.get("->"),
        )
        if entry.replaced_by is not None:
            entry = replace(entry, parents=())
        yield entry
        for short_name in _items(fields.get("+"), " "):
            yield _aspect_entry(entry, ASPECTS[short_name], proper)


def _fields(content: str) -> tuple[str, dict[str, str]]:
    head, *rest = _MARKS.split(content)
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


def _items(field: str | None, separator: str) -> list[str]:
    return [item.strip() for item in (field or "").split(separator) if item.strip()]


def _group(name: str, following: list[str], depth: int) -> Group | None:
    """The group that the `~` lines directly below a heading define, if there are any."""
    realms: tuple[str, ...] = ()
    words: list[str] = []
    for line in following:
        content = line.strip()
        if not content.startswith("~") or (len(line) - len(content)) // 2 != depth + 1:
            break
        before, colon, after = content.removeprefix("~").partition(":")
        if colon:
            realms = tuple(before.split())
        words.extend(_items(after if colon else before, ","))
    return Group(name, realms, tuple(dict.fromkeys(words))) if words else None


def _synonym(term: str, proper: bool) -> tuple[str, str]:
    bare = term.removeprefix("^")
    return bare, spoken(bare, proper=proper or term.startswith("^"))


def _aspect_entry(base: Entry, aspect: Aspect, proper: bool) -> Entry:
    stem = singular(base.name)
    said = {
        "name": base.name if proper else spoken(base.name),
        "stem": stem if proper else spoken(stem),
    }

    def both(pattern: str) -> tuple[str, str]:
        written = pattern.format(name=base.name, stem=stem)
        return written, direct(pattern.lower().format(**said))

    name, said_name = both(aspect.pattern)
    return Entry(
        name=name,
        said=said_name,
        synonyms=tuple(both(pattern) for pattern in aspect.synonyms),
        german=None,
        parents=(base.name,) if aspect.home is None else (base.name, aspect.home),
        category=aspect.category or base.category,
        group=base.group,
        own_words=aspect.words,
    )
