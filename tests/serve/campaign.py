"""A collection that is served, killed under load with writes on, and served again."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labelkin import Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.vocab import Vocabulary

from .mixed_load import Reader
from .processes import TOKEN, ConnectionLostError, Server, labelkin_server
from .writers import Writer, all_documents, headings_of, records_of

DOCUMENTS = 150
WRITERS, READERS = 2, 2
METHODS = ("knn", "lexical")
MOST_WRITES = 12
# What worker processes may take to notice that another one has written.
FOLLOWING_SECONDS = 2.0


class Campaign:
    """Writers and readers of one collection that is served again and again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.path, self.log, self.options = folder / "c", folder / "server.log", options
        self.port = 0
        documents = list(demo_documents(DOCUMENTS + 200, 0))
        with Indexer.create(self.path, Vocabulary(demo_concepts(0)), language="en") as indexer:
            indexer.add(documents[:DOCUMENTS])
            self.original = {one.id: one for one in indexer.documents()}
        self.records = records_of((one.title, one.body) for one in documents[DOCUMENTS:])
        self.writers: list[Writer] = []
        self.errors: list[str] = []
        self.requests = 0

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """The service, always at the same port: nothing of the one before may hold it."""
        server = labelkin_server({"c": self.path}, self.log, *self.options, port=self.port)
        server.start({"LABELKIN_TOKEN": TOKEN})
        try:
            server.wait_until_ready()
            self.port = server.port
            if not self.writers:
                with server.session() as session:
                    headings = headings_of(session, "c", 300)
                self.writers = [
                    Writer(f"writer-{number}", "c", self.records, headings)
                    for number in range(WRITERS)
                ]
            yield server
        finally:
            server.end()

    def check(self, server: Server) -> None:
        """All that was acknowledged is stored, and nothing else; suggestions count it."""
        with server.session() as session:
            documents = all_documents(session, "c")
            for writer in self.writers:
                writer.settle(documents)
                for identifier in writer.present()[-10:]:
                    writer.check_evidence(session, identifier)
        others = {key for key in documents if not key.startswith("writer-")}
        assert others == self.original.keys()
        for key, one in self.original.items():
            assert documents[key].labels == frozenset(one.labels)

    @contextmanager
    def load(self, server: Server, *, reconnect: bool = False) -> Iterator[None]:
        """Writers and readers at work while the block runs."""
        ended = threading.Event()
        readers = [Reader("c", METHODS, self.records, number) for number in range(READERS)]
        steps = [*(one.step for one in readers), *(one.step for one in self.writers)]
        threads = [
            threading.Thread(target=self._repeat, args=(server, step, ended, reconnect))
            for step in steps
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def _repeat(
        self, server: Server, step: Callable[..., str], ended: threading.Event, reconnect: bool
    ) -> None:
        session = server.session()
        try:
            while not ended.is_set():
                try:
                    step(session)
                    self.requests += 1
                except ConnectionLostError:
                    if not reconnect:
                        return
                    # What was under way may be stored or not.
                    self._settle_one(server, step)
        except Exception as error:
            self.errors.append(f"{type(error).__name__}: {error}")
        finally:
            session.close()

    def _settle_one(self, server: Server, step: Callable[..., str]) -> None:
        writer = getattr(step, "__self__", None)
        if isinstance(writer, Writer) and writer.under_way:
            # Whichever worker answers has followed the others by then.
            time.sleep(FOLLOWING_SECONDS)
            with server.session() as session:
                writer.settle(all_documents(session, "c"))

    def wait_for_writes(self, count: int) -> None:
        """Wait until the writers have written this much more."""
        ends, before = time.monotonic() + 60, self.writes
        while self.writes < before + count and not self.errors:
            assert time.monotonic() < ends
            time.sleep(0.005)

    @property
    def writes(self) -> int:
        return sum(writer.counts.total() for writer in self.writers)

    def counts(self) -> Counter[str]:
        return sum((writer.counts for writer in self.writers), Counter())

    def check_files(self) -> None:
        """Everything on disk is sound, and the documents are those that the writers know of."""
        with Indexer.open(self.path) as indexer:
            assert indexer.check().problems == []

    def kill_once(self, choose: random.Random) -> float:
        """Serve, check what the kill before has left, and kill the service under load.

        Returns the seconds of load before the kill.
        """
        with self.serving() as server:
            self.check(server)
            started = time.monotonic()
            with self.load(server):
                self.wait_for_writes(choose.randint(1, MOST_WRITES))
                time.sleep(choose.random() * 0.1)
                seconds = time.monotonic() - started
                server.kill()
        assert self.errors == []
        return seconds

    def finish(self) -> None:
        """Serve once more, and end as one should."""
        with self.serving() as server:
            self.check(server)
            assert server.stop() == 0
        self.check_files()
