"""`kill -9` under load with writes on: what was acknowledged is there after a restart."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import kill
from pathlib import Path

import pytest

from labelkin import Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.vocab import Vocabulary

from .mixed_load import Reader
from .processes import HAS_PROC, TOKEN, ConnectionLostError, Server, is_running, labelkin_server
from .writers import Writer, all_documents, headings_of, records_of

pytest.importorskip("fastapi", reason="needs the extra `serve`")
pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc")

DOCUMENTS = 150
WRITERS, READERS = 2, 2
METHODS = ("knn", "lexical")
SOAK_KILLS, SOAK_WORKER_KILLS = 200, 40
# What worker processes may take to notice that another one has gone, or has written.
SECONDS = 30.0
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
        self.reads = 0

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
                    self.reads += 1
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


def killed_again_and_again(folder: Path, kills: int, *options: str) -> Campaign:
    campaign, choose = Campaign(folder, *options), random.Random(kills)
    for _ in range(kills):
        with campaign.serving() as server:
            campaign.check(server)
            with campaign.load(server):
                campaign.wait_for_writes(choose.randint(1, 12))
                time.sleep(choose.random() * 0.1)
                server.kill()
            assert campaign.errors == []
    with campaign.serving() as server:
        campaign.check(server)
        assert server.stop() == 0
    campaign.check_files()
    counts = campaign.counts()
    assert counts["corrected"] + counts["added"] > 0
    return campaign


def test_acknowledged_writes_survive_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, 3)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_acknowledged_writes_survive_hundreds_of_kills(tmp_path: Path) -> None:
    campaign = killed_again_and_again(tmp_path, SOAK_KILLS)
    print(f"{SOAK_KILLS} kills: {dict(campaign.counts())}")  # noqa: T201


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < ends, what
        time.sleep(0.05)


def workers_killed_again_and_again(folder: Path, kills: int) -> Campaign:
    """Kill one worker after another under load; then the parent."""
    campaign, choose = Campaign(folder, "--workers", "2"), random.Random(kills)
    with campaign.serving() as server:
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        with campaign.load(server, reconnect=True):
            for _ in range(kills):
                campaign.wait_for_writes(choose.randint(1, 12))
                workers = server.workers()
                kill(choose.choice(workers), signal.SIGKILL)
                wait_until(
                    lambda workers=workers: len({*server.workers()} - {*workers}) == 1,
                    "another worker in place of the one that was killed",
                )
                # The others have gone on, and so does the new one.
                campaign.wait_for_writes(1)
            assert campaign.errors == []
        assert campaign.errors == []
        time.sleep(FOLLOWING_SECONDS)
        campaign.check(server)
        workers = server.workers()
        with campaign.load(server):
            campaign.wait_for_writes(2)
            server.kill()
            wait_until(lambda: not any(map(is_running, workers)), f"the end of {workers}")
        assert campaign.errors == []
    # At the same port, from the same files.
    with campaign.serving() as server:
        campaign.check(server)
        wait_until(lambda: len(server.workers()) == 2, "two workers")
        assert server.stop() == 0
    campaign.check_files()
    return campaign


def test_workers_are_replaced_and_do_not_outlive_their_parent(tmp_path: Path) -> None:
    workers_killed_again_and_again(tmp_path, 2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_workers_killed_dozens_of_times(tmp_path: Path) -> None:
    campaign = workers_killed_again_and_again(tmp_path, SOAK_WORKER_KILLS)
    print(f"{SOAK_WORKER_KILLS} kills of workers: {dict(campaign.counts())}")  # noqa: T201
