"""What a collection holds, in a form that can be compared, and the commands that change it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from labelkin import Document, Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.integrity import check_collection
from labelkin.store.rows import concept_to_json
from labelkin.vocab import Vocabulary

# Small, so that one command writes several batches: each is stored as a whole or not at all.
BATCH = 25
# A reranker needs 140 documents.
DOCUMENTS = 160
FEWEST = 100
TEXTS = 400


@dataclass(frozen=True)
class Content:
    """A document as it must be stored."""

    title: str
    body: str
    # In the order of the record.
    labels: tuple[str, ...]
    major_labels: tuple[str, ...] = ()
    revision: str | None = None
    # As JSON.
    metadata: str = "{}"

    @classmethod
    def of(cls, document: Document) -> Content:
        """That of a stored document."""
        return cls(
            document.title,
            document.body,
            document.labels,
            document.major_labels,
            document.revision,
            json.dumps(document.metadata, sort_keys=True),
        )

    def record(self, key: str) -> dict[str, object]:
        """The record that it is read from."""
        return self.headings(key) | {
            "title": self.title,
            "abstract": self.body,
            "language": "en",
            **json.loads(self.metadata),
        }

    def headings(self, key: str) -> dict[str, object]:
        """The record of a correction."""
        return {
            "id": key,
            "labels": self.labels,
            "major_labels": self.major_labels,
            "revision": self.revision,
        }


# Documents by id; None for one that is not there.
Changes = Mapping[str, Content | None]


@dataclass(frozen=True)
class State:
    """All documents and all concepts, these as JSON."""

    documents: Mapping[str, Content]
    concepts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, indexer: Indexer) -> State:
        """The present state of a collection, each document read from the database."""
        documents = {one.id: Content.of(one) for one in indexer.documents()}
        return cls(documents, {one.id: concept_to_json(one) for one in indexer.vocabulary})

    def after(self, changes: Changes) -> State:
        """The state with some documents stored or removed."""
        documents = {**self.documents, **changes}
        kept = {key: one for key, one in documents.items() if one is not None}
        return replace(self, documents=kept)

    def difference(self, other: State) -> str:
        """In a few words, where two states differ."""
        keys = self.documents.keys() | other.documents.keys()
        differ = [key for key in keys if self.documents.get(key) != other.documents.get(key)]
        names = self.concepts.keys() | other.concepts.keys()
        renamed = [key for key in names if self.concepts.get(key) != other.concepts.get(key)]
        return f"{len(differ)} documents differ {differ[:3]}, {len(renamed)} concepts {renamed[:3]}"


@dataclass(frozen=True)
class Step:
    """A command, and the states that it leads to one after another; none if it changes nothing."""

    command: list[str]
    states: tuple[State, ...] = ()

    @property
    def verb(self) -> str:
        """The name of the command."""
        return self.command[0]


def create(path: Path, *, build: bool = False) -> State:
    """A collection of generated documents that stores small batches."""
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        if build:
            indexer.build()
        state = State.of(indexer)
    config = path / "labelkin.toml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("batch_size = 1000", f"batch_size = {BATCH}"), encoding="utf-8")
    return state


def check(path: Path, possible: Iterable[State]) -> tuple[int, int]:
    """Assert that a collection opens, is sound and in one of these states.

    Returns which state it is in, and how many leftovers of killed processes there are.
    """
    states = list(possible)
    with Indexer.open(path) as indexer:
        now = State.of(indexer)
        info = indexer.info()
        key, one = next(iter(now.documents.items()))
        (near,) = indexer.neighbours([Document("", one.title, one.body, language="en")])
    assert now in states, f"{now.difference(states[0])}; {now.difference(states[-1])}"
    labels = sum(len(one.labels) for one in now.documents.values())
    assert (info.documents, info.label_occurrences) == (len(now.documents), labels), info
    assert key in {neighbour.id for neighbour in near}, f"{key} is not found by its own text"
    report = check_collection(path)
    assert report.is_complete, report
    assert report.problems == [], report.problems
    return states.index(now), sum(one.state == "leftover" for one in report.findings)


class Commands:
    """Makes up commands for a collection; `state` is the one that they lead to."""

    def __init__(self, path: Path, folder: Path, state: State, seed: int) -> None:
        self.path, self.state = path, state
        self._folder = folder
        self._random = random.Random(seed)
        self._texts = list(demo_documents(TEXTS, 0))
        self._labels = [one.id for one in demo_concepts(0) if not one.deprecated]
        self._made = 0
        self._revision = max(int(one.revision or 0) for one in state.documents.values())

    def _step(self, states: Iterable[State], verb: str, *arguments: str) -> Step:
        step = Step([verb, str(self.path), *arguments], tuple(states))
        if step.states:
            self.state = step.states[-1]
        return step

    def _batched(self, changes: Changes) -> Iterator[State]:
        """The state after each batch; a batch is one transaction."""
        state, items = self.state, iter(changes.items())
        while batch := dict(islice(items, BATCH)):
            state = state.after(batch)
            yield state

    def _new(self) -> Content:
        text = self._random.choice(self._texts)
        mark = f"{text.body} ({self._random.getrandbits(32):x})"
        metadata = json.dumps({"volume": self._random.randint(1, 99)})
        body = " ".join(mark.split())
        return self._relabelled(Content(text.title, body, (), metadata=metadata))

    def _relabelled(self, content: Content) -> Content:
        """Other headings, some of them major, and a revision above all that there were."""
        labels = tuple(self._random.sample(self._labels, self._random.randint(1, 6)))
        major = tuple(one for one in labels if self._random.random() < 0.3)
        self._revision += 1
        revision = str(self._revision)
        return replace(content, labels=labels, major_labels=major, revision=revision)

    def _some_ids(self, count: int) -> list[str]:
        ids = sorted(self.state.documents)
        return self._random.sample(ids, min(count, len(ids)))

    def _file(self, name: str, lines: Iterable[str]) -> str:
        self._made += 1
        path = self._folder / f"{self._made}-{name}"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return str(path)

    def add(self, count: int = 4 * BATCH) -> Step:
        """New documents, and others in place of some."""
        replaced = self._some_ids(count // 4)
        new = [f"new-{self._random.getrandbits(48):x}" for _ in range(count - len(replaced))]
        ids = [*replaced, *new]
        self._random.shuffle(ids)
        changes = {one: self._new() for one in ids}
        return self._step(self._batched(changes), "add", self._records(changes))

    def learn(self, count: int = 4 * BATCH) -> Step:
        """Other headings for stored documents; some records bring a text as well."""
        changes, lines = {}, []
        for one in self._some_ids(count):
            if self._random.random() < 0.2:
                changes[one] = new = self._new()
                lines.append(json.dumps(new.record(one)))
            else:
                changes[one] = new = self._relabelled(self.state.documents[one])
                lines.append(json.dumps(new.headings(one)))
        path = self._file("corrections.jsonl", lines)
        return self._step(self._batched(changes), "learn", path)

    def remove(self, count: int = 3 * BATCH) -> Step:
        """Some documents go, never all."""
        ids = self._some_ids(min(count, len(self.state.documents) - FEWEST))
        states = self._batched(dict.fromkeys(ids))
        return self._step(states, "remove", "--from", self._file("ids.txt", ids))

    def unchanging(self, verb: str, *arguments: str) -> Step:
        """A command that changes no document."""
        return self._step((), verb, *arguments)

    def _records(self, changes: Changes) -> str:
        lines = (json.dumps(one.record(key)) for key, one in changes.items() if one is not None)
        return self._file("documents.jsonl", lines)


def write_edition(path: Path) -> None:
    """An edition of the generated vocabulary: all are renamed, a few are replaced by others."""
    rows = ["id\tname\tdeprecated\treplaced_by"]
    concepts = [one for one in demo_concepts(0) if not one.deprecated]
    for place, one in enumerate(concepts):
        is_replaced = place % 9 == 0 and place + 1 < len(concepts)
        link = f"yes\t{concepts[place + 1].id}" if is_replaced else "\t"
        rows.append(f"{one.id}\t{one.name()} (edition 2)\t{link}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
