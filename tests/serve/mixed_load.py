"""Readers and writers on a running service at the same time, and what they have seen."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..freshness import Freshness
from .processes import ConnectionLostError, Server, Session, open_descriptors, resident_megabytes
from .writers import SEEN, Record, Violation, Writer

READERS, WRITERS = 8, 2
# The rest of a writer between two writes.
_REST = 0.02
_SAMPLE_SECONDS = 1.0
# Memory and descriptors are compared from here on: caches fill in the first minute.
_SETTLED_SECONDS = 60.0
_LISTED_ERRORS = 20
_PREFIXES = "a be ca de el fo ga he in la ma ne or pa re sa te un va wa".split()


@dataclass(frozen=True)
class Request:
    """When a request was answered, by which kind of endpoint, and after how many seconds."""

    at: float
    kind: str
    seconds: float


@dataclass(frozen=True)
class Sample:
    """The memory and the open descriptors of the server at a time."""

    at: float
    megabytes: float
    descriptors: int


@dataclass
class MixedLoad:
    """Some seconds of mixed load on a collection that nobody else writes to."""

    server: Server
    collection: str
    methods: Sequence[str]
    records: Sequence[Record]
    headings: Sequence[str]
    seconds: float
    requests: list[Request] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    checked: int = 0
    freshness: Freshness = field(default_factory=Freshness)

    def run(self) -> dict[str, Any]:
        """Run the load, check every write, and report."""
        self.writers = [
            Writer(f"writer-{number}", self.collection, self.records, self.headings)
            for number in range(WRITERS)
        ]
        self._ended = threading.Event()
        self._began = time.monotonic()
        works: list[Callable[[], None]] = [
            *(lambda number=number: self._read(number) for number in range(READERS)),
            *(lambda writer=writer: self._write(writer) for writer in self.writers),
        ]
        threads = [threading.Thread(target=self._guarded, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        while time.monotonic() - self._began < self.seconds and len(self.errors) < _LISTED_ERRORS:
            self._sample()
            self._ended.wait(_SAMPLE_SECONDS)
        self._ended.set()
        for thread in threads:
            thread.join()
        self.ran = time.monotonic() - self._began
        self._guarded(self._check)
        return self.report()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            # A reader or writer that is broken has nothing more to say.
            self.errors.append(f"{type(error).__name__}: {error}")

    def _sample(self) -> None:
        pids = self.server.pids()
        at = time.monotonic() - self._began
        self.samples.append(Sample(at, resident_megabytes(pids), open_descriptors(pids)))

    def _read(self, number: int) -> None:
        reader = Reader(self.collection, self.methods, self.records, number)

        def step(session: Session) -> str:
            asked, reader.generation = time.monotonic(), None
            kind = reader.step(session)
            if reader.generation is not None:
                self.freshness.answered(reader.generation, asked)
            return kind

        self._repeat(step, 0.0)

    def _write(self, writer: Writer) -> None:
        def step(session: Session) -> str:
            before = writer.generation
            kind = writer.step(session)
            if writer.generation != before:
                self.freshness.wrote(writer.generation)
            return kind

        self._repeat(step, _REST)

    def _repeat(self, step: Callable[[Session], str], rest: float) -> None:
        with self.server.session() as session:
            while not self._ended.is_set():
                started = time.monotonic()
                try:
                    kind = step(session)
                except (Violation, ConnectionLostError) as error:
                    self.errors.append(f"{type(error).__name__}: {error}")
                    self._ended.wait(_REST)
                    continue
                ended = time.monotonic()
                self.requests.append(Request(ended - self._began, kind, ended - started))
                if rest:
                    self._ended.wait(rest)

    def _check(self) -> None:
        """Every document that was written is as acknowledged; corrections count."""
        with self.server.session() as session:
            for writer in self.writers:
                self.checked += writer.check_all(session)
                for identifier in writer.present():
                    writer.check_evidence(session, identifier)

    def report(self) -> dict[str, Any]:
        """All figures, for JSON."""
        writes: Counter[str] = sum((writer.counts for writer in self.writers), Counter())
        is_write = {*writes}
        # A run that was given up early has no others.
        settled = [one for one in self.samples if one.at >= self.settled_seconds] or self.samples
        return {
            "seconds": round(self.ran, 1),
            "readers": READERS,
            "writers": WRITERS,
            "reads": sum(one.kind not in is_write for one in self.requests),
            "writes": sum(one.kind in is_write for one in self.requests),
            "by kind": dict(Counter(one.kind for one in self.requests).most_common()),
            "corrections seen by the next request": sum(one.kind == SEEN for one in self.requests),
            "errors": len(self.errors),
            "first errors": self.errors[:_LISTED_ERRORS],
            "documents compared": self.checked,
            **self.freshness.figures(),
            "by minute": self._minutes(is_write),
            "megabytes": [round(settled[0].megabytes), round(settled[-1].megabytes)],
            "megabytes a minute": round(slope(settled, lambda one: one.megabytes), 2),
            "descriptors": [settled[0].descriptors, settled[-1].descriptors],
            "most descriptors": max(one.descriptors for one in settled),
            "samples": [
                [round(one.at, 1), round(one.megabytes, 1), one.descriptors] for one in self.samples
            ],
        }

    @property
    def settled_seconds(self) -> float:
        """From when on memory is compared: after a minute, in short runs after half of the time."""
        return min(_SETTLED_SECONDS, self.seconds / 2)

    def _minutes(self, is_write: set[str]) -> list[dict[str, float]]:
        """Milliseconds of reads and writes by minute; a last part of a minute is left out."""
        minutes = []
        for minute in range(max(int(self.ran / 60), 1)):
            inside = [one for one in self.requests if 60 * minute <= one.at < 60 * (minute + 1)]
            figures: dict[str, float] = {}
            for name in ("read", "write"):
                seconds = sorted(
                    one.seconds for one in inside if (one.kind in is_write) == (name == "write")
                )
                figures[f"{name}s"] = len(seconds)
                for share in (50, 95, 99):
                    figures[f"{name} p{share}"] = round(1e3 * percentile(seconds, share), 1)
            in_minute = [one for one in self.samples if 60 * minute <= one.at < 60 * (minute + 1)]
            figures["megabytes"] = round(in_minute[-1].megabytes) if in_minute else 0
            figures["descriptors"] = in_minute[-1].descriptors if in_minute else 0
            minutes.append(figures)
        return minutes


class Reader:
    """Asks for everything that can be read, with different methods and settings."""

    def __init__(
        self, collection: str, methods: Sequence[str], records: Sequence[Record], number: int
    ) -> None:
        self._collection = quote(collection)
        self._path = f"/api/v1/collections/{self._collection}"
        self._methods = methods
        self._records = records
        self._random = random.Random(number)
        # Of the last answer that says from which one it is.
        self.generation: int | None = None
        self._actions: dict[str, tuple[int, Callable[[Session], None]]] = {
            "suggest (Annif)": (6, self._suggest_as_annif),
            "suggest": (4, self._suggest),
            "neighbours": (2, self._neighbours),
            "concept search": (2, self._search),
            "batch (Annif)": (1, self._batch_as_annif),
            "batch": (1, self._annotate),
            "compare": (1, self._compare),
            "project": (1, self._project),
        }

    def step(self, session: Session) -> str:
        """Ask for something; the kind of request. Violation if the answer is wrong."""
        kinds = list(self._actions)
        (kind,) = self._random.choices(kinds, [self._actions[kind][0] for kind in kinds])
        self._actions[kind][1](session)
        return kind

    def _suggest_as_annif(self, session: Session) -> None:
        limit = self._random.choice((5, 10, 100))
        form = {"text": self._text(), "limit": limit}
        if self._random.random() < 0.3:
            form["threshold"] = self._random.choice((0.1, 0.3))
        answer = self._ask(session, "POST", f"{self._project_path()}/suggest", form=form)
        scores = [one["score"] for one in answer["results"]]
        self._expect(len(scores) <= limit and scores == sorted(scores, reverse=True), answer)

    def _suggest(self, session: Session) -> None:
        asked = self._random.choice(
            (
                {},
                {"k": 7, "weighting": "square", "method": "knn"},
                {"limit": 20, "carriers": 3},
                {"threshold": 0.2, "fold_broader": True},
                {"evidence": False},
            )
        )
        body = {"method": self._random.choice(self._methods), **asked}
        body["documents"] = [self._document()]
        answer = self._ask(session, "POST", f"{self._path}/suggest", json_body=body)
        self._expect(len(answer["results"]) == 1, answer)

    def _neighbours(self, session: Session) -> None:
        count = self._random.choice((3, 20))
        body = {"documents": [self._document()], "k": count}
        answer = self._ask(session, "POST", f"{self._path}/neighbours", json_body=body)
        self._expect(0 < len(answer["results"][0]["neighbours"]) <= count, answer)

    def _search(self, session: Session) -> None:
        query = self._random.choice(_PREFIXES)
        answer = self._ask(session, "GET", f"{self._path}/concepts?query={query}&limit=20")
        self._expect(answer["total"] >= len(answer["concepts"]), answer)

    def _batch_as_annif(self, session: Session) -> None:
        documents = [{"text": self._text(), "document_id": str(one)} for one in range(5)]
        body = {"documents": documents}
        answer = self._ask(session, "POST", f"{self._project_path()}/suggest-batch", json_body=body)
        self._expect([one["document_id"] for one in answer] == list("01234"), answer)

    def _annotate(self, session: Session) -> None:
        lines = [self._document() for _ in range(8)]
        answer = session.ask("POST", f"{self._path}/annotate?limit=10", lines=lines)
        self._expect(answer.status == 200 and answer.body.count(b"\n") == 8, answer.body)
        self._expect(b'"error"' not in answer.body, answer.body)

    def _compare(self, session: Session) -> None:
        body = {"document": self._document(), "limit": 5}
        answer = self._ask(session, "POST", f"{self._path}/compare", json_body=body)
        self._expect(len(answer["results"]) == len(self._methods), answer)

    def _project(self, session: Session) -> None:
        answer = self._ask(session, "GET", self._project_path())
        self._expect(answer["is_trained"] is True, answer)

    def _ask(self, session: Session, method: str, path: str, **body: Any) -> Any:
        answer = session.ask(method, path, **body)
        if answer.status != 200:
            raise Violation(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
        content = answer.json()
        if isinstance(content, dict):
            self.generation = content.get("generation")
        return content

    def _expect(self, is_right: bool, answer: Any) -> None:
        if not is_right:
            raise Violation(f"a wrong answer: {str(answer)[:300]}")

    def _project_path(self) -> str:
        return f"/v1/projects/{self._collection}:{self._random.choice(self._methods)}"

    def _text(self) -> str:
        record = self._random.choice(self._records)
        return f"{record.title} {record.body}"

    def _document(self) -> dict[str, str]:
        record = self._random.choice(self._records)
        return {"title": record.title, "abstract": record.body}


def percentile(values: Sequence[float], percent: float) -> float:
    """A percentile of sorted values; 0 of none."""
    return values[min(int(len(values) * percent / 100), len(values) - 1)] if values else 0.0


def slope(samples: Sequence[Sample], value: Callable[[Sample], float]) -> float:
    """The growth of a value per minute, by least squares."""
    times, values = [one.at / 60 for one in samples], [value(one) for one in samples]
    middle, level = sum(times) / len(times), sum(values) / len(values)
    spread = sum((time_ - middle) ** 2 for time_ in times)
    products = zip(times, values, strict=True)
    if not spread:
        return 0.0
    return sum((time_ - middle) * (one - level) for time_, one in products) / spread
