"""Writers of a running service that remember what was acknowledged, to compare it later."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from .processes import Session

# How many documents a writer keeps: the collection does not grow without end.
_MOST_DOCUMENTS = 150
_TITLE_MARK = " ¤ "
# What a writer does after a correction.
SEEN = "suggest after a correction"
_NEAREST = 100


@dataclass(frozen=True)
class Record:
    """A text that documents are made of."""

    title: str
    body: str


@dataclass(frozen=True)
class Stored:
    """What the service must have of a document."""

    title: str
    body: str
    labels: frozenset[str]
    is_corrected: bool = field(default=False, compare=False)

    def message(self, identifier: str) -> dict[str, Any]:
        """The document as the service takes it."""
        labels = sorted(self.labels)
        return {
            "id": identifier,
            "title": self.title,
            "abstract": self.body,
            "labels": labels,
            "language": "en",
        }


# Documents by id; None for one that must not be there.
State = dict[str, Stored | None]


class Violation(AssertionError):  # noqa: N818
    """The service has answered something that is wrong."""


class Writer:
    """Adds, replaces, corrects and deletes documents whose ids begin with its name.

    `acknowledged` is what the service has confirmed. `under_way` is what a request
    without an answer would have changed: all of that may be stored, or nothing.
    """

    def __init__(
        self,
        name: str,
        collection: str,
        records: Sequence[Record],
        headings: Sequence[str],
    ) -> None:
        self.name = name
        self.acknowledged: State = {}
        self.under_way: State = {}
        self.counts: Counter[str] = Counter()
        self.generation = 0
        self._collection = collection
        self._path = f"/api/v1/collections/{quote(collection)}"
        self._records = records
        self._headings = headings
        self._random = random.Random(name)
        self._made = 0
        # The document whose correction the next request has to count.
        self._corrected = ""
        self._actions = {
            "added": (3, self._add),
            "added several": (1, self._add_several),
            "streamed": (1, self._stream),
            "learned": (2, self._learn),
            "replaced": (3, self._replace),
            "corrected": (5, self._correct),
            "deleted": (3, self._delete),
        }

    def step(self, session: Session) -> str:
        """Write something; the kind of write. Violation if the service refuses it.

        After a correction the next step asks for suggestions, which have to count it.
        """
        if self._corrected:
            identifier, self._corrected = self._corrected, ""
            self.check_evidence(session, identifier)
            return SEEN
        present = self.present()
        kinds = ["added", "added several", "streamed", "learned"]
        if len(present) > _MOST_DOCUMENTS:
            kinds = ["deleted"]
        elif len(present) > 5:
            kinds = list(self._actions)
        weights = [self._actions[kind][0] for kind in kinds]
        (kind,) = self._random.choices(kinds, weights)
        self._actions[kind][1](session)
        self.counts[kind] += 1
        return kind

    def present(self) -> list[str]:
        """The ids of the documents that are stored."""
        return [identifier for identifier, one in self.acknowledged.items() if one is not None]

    def _add(self, session: Session) -> None:
        identifier, new = self._new_id(), self._new()
        self._write(session, {identifier: new}, "PUT", json_body=new.message(identifier))

    def _add_several(self, session: Session) -> None:
        changes = self._several()
        messages = [one.message(identifier) for identifier, one in changes.items() if one]
        self._write(session, changes, "POST", json_body=messages)

    def _stream(self, session: Session) -> None:
        changes = self._several()
        messages = [one.message(identifier) for identifier, one in changes.items() if one]
        self._write(session, changes, "POST", lines=messages)

    def _learn(self, session: Session) -> None:
        """Through Annif's API; half of the time in place of a document that is there."""
        present = self.present()
        is_new = len(present) < 2 or self._random.random() < 0.5
        identifier = self._new_id() if is_new else self._random.choice(present)
        new = self._new()
        document = {
            "document_id": identifier,
            "text": new.title + _TITLE_MARK + new.body,
            "subjects": [{"uri": label} for label in sorted(new.labels)],
        }
        path = f"/v1/projects/{quote(self._collection)}/learn"
        self._write(session, {identifier: new}, "POST", path, json_body=[document])

    def _replace(self, session: Session) -> None:
        identifier, new = self._random.choice(self.present()), self._new()
        self._write(session, {identifier: new}, "PUT", json_body=new.message(identifier))

    def _correct(self, session: Session) -> None:
        """Correct the headings of a document."""
        identifier = self._random.choice(self.present())
        before = self.acknowledged[identifier]
        assert before is not None
        labels = self._labels()
        new = Stored(before.title, before.body, labels, is_corrected=True)
        correction = {"labels": sorted(labels)}
        self._write(session, {identifier: new}, "PATCH", json_body=correction)
        self._corrected = identifier

    def _delete(self, session: Session) -> None:
        self._write(session, {self._random.choice(self.present()): None}, "DELETE")

    def _write(
        self, session: Session, changes: State, method: str, path: str = "", **body: Any
    ) -> None:
        if not path:
            path = f"{self._path}/documents"
            if method != "POST":
                (identifier,) = changes
                path += f"/{quote(identifier)}"
        self.under_way = changes
        answer = session.ask(method, path, **body)
        if answer.status not in (200, 204):
            raise Violation(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
        self.acknowledged.update(changes)
        self.under_way = {}
        if answer.status == 200:
            self.generation = answer.json()["generation"]

    def check_evidence(self, session: Session, identifier: str) -> None:
        """Raise Violation unless suggestions for a document's text count its headings."""
        stored = self.acknowledged[identifier]
        assert stored is not None
        heading = min(stored.labels)
        asked = {
            "documents": [{"title": stored.title, "abstract": stored.body}],
            "method": "knn",
            "k": _NEAREST,
            "carriers": _NEAREST,
            "include": [heading],
            # Another worker process than the one that wrote may answer.
            "generation": self.generation,
            "threshold": 0.0,
            # Also headings below this one are included.
            "limit": _NEAREST,
        }
        answer = session.ask("POST", f"{self._path}/suggest", json_body=asked)
        if answer.status != 200:
            raise Violation(f"suggest: {answer.status} {answer.body[:300]!r}")
        suggestions = answer.json()["results"][0]["suggestions"]
        carriers = {
            carrier["id"]
            for suggestion in suggestions
            if suggestion["id"] == heading
            for carrier in suggestion["evidence"]["carriers"]
            if carrier["carries"]
        }
        if identifier not in carriers:
            raise Violation(f"{heading} is a heading of {identifier}, but that is not counted")

    def check_all(self, session: Session) -> int:
        """Compare every document ever written with the service; how many there are."""
        for identifier, expected in self.acknowledged.items():
            answer = session.ask("GET", f"{self._path}/documents/{quote(identifier)}")
            if answer.status not in (200, 404):
                raise Violation(f"GET {identifier}: {answer.status} {answer.body[:300]!r}")
            stored = stored_of(answer.json()) if answer.status == 200 else None
            if stored != expected:
                raise Violation(f"{identifier} is {stored}, not {expected}")
        return len(self.acknowledged)

    def settle(self, documents: Mapping[str, Stored]) -> None:
        """Compare with all documents that are stored; decide what became of what was under way."""
        mine = {key: one for key, one in documents.items() if key.startswith(f"{self.name}/")}
        if self.under_way:
            done = {key: mine.get(key) == new for key, new in self.under_way.items()}
            if all(done.values()):
                self.acknowledged.update(self.under_way)
                self.counts["stored without an answer"] += 1
            else:
                self.counts["neither stored nor answered"] += 1
            self.under_way = {}
        expected = {key: one for key, one in self.acknowledged.items() if one is not None}
        for key in expected.keys() | mine.keys():
            if expected.get(key) != mine.get(key):
                raise Violation(f"{key} is {mine.get(key)}, not {expected.get(key)}")

    def _several(self) -> State:
        return {self._new_id(): self._new() for _ in range(self._random.randint(2, 5))}

    def _new_id(self) -> str:
        self._made += 1
        return f"{self.name}/{self._made}"

    def _new(self) -> Stored:
        record = self._random.choice(self._records)
        # Something of its own, so that equal texts are no equal documents.
        body = f"{record.body} {self.name} {self._random.getrandbits(32):x}"
        return Stored(record.title, body, self._labels())

    def _labels(self) -> frozenset[str]:
        return frozenset(self._random.sample(self._headings, self._random.randint(1, 6)))


def stored_of(message: Mapping[str, Any]) -> Stored:
    """A document as the service returns it."""
    labels = frozenset(label["id"] for label in message["labels"])
    return Stored(message["title"], message["body"], labels)


def all_documents(session: Session, collection: str) -> dict[str, Stored]:
    """All documents of a collection, page by page."""
    documents: dict[str, Stored] = {}
    after = ""
    while True:
        path = f"/api/v1/collections/{quote(collection)}/documents?limit=1000&after={quote(after)}"
        answer = session.ask("GET", path)
        if answer.status != 200:
            raise Violation(f"{path}: {answer.status} {answer.body[:300]!r}")
        page = answer.json()
        documents.update((one["id"], stored_of(one)) for one in page["documents"])
        if not page["next"]:
            return documents
        after = page["next"]


def records_of(texts: Iterable[tuple[str, str]]) -> list[Record]:
    """Texts with single spaces, as they are stored."""
    return [Record(" ".join(title.split()), " ".join(body.split())) for title, body in texts]


def headings_of(session: Session, collection: str, count: int) -> list[str]:
    """Ids of headings of a vocabulary, those in use for replaced ones left out."""
    path = f"/api/v1/collections/{quote(collection)}/concepts?limit={count}"
    concepts = session.ask("GET", path).json()["concepts"]
    return [one["id"] for one in concepts if not one["deprecated"]]
