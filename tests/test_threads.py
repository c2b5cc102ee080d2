"""Many threads on one open collection, beside one that adds and removes documents."""

from __future__ import annotations

import hashlib
import random
import shutil
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from labelkin import Document, Indexer, LabelkinError, Settings
from labelkin.demo import demo_documents

from .freshness import Freshness
from .reliability.records import keep
from .runtime_data import (
    DOCUMENTS,
    HAS_PROC,
    descriptors,
    fresh_documents,
    make_trained,
    resident_bytes,
    signature,
    variants,
)

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")

THREADS = 8
REQUESTS = 100
# A thread's stack, connection and pages of the allocator differ from run to run.
DESCRIPTORS_OF_A_THREAD = 3
GROWTH = 40_000_000
# How old an answer may be: a write that was acknowledged so long before it was asked for counts.
OLDEST_SECONDS = 1.0
# The same where other tests share the cores.
OLDEST_BESIDE_TESTS = 5.0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("threads") / "c"
    return path, make_trained(path)


@dataclass
class Run:
    """What the threads of a run have seen and done."""

    path: Path
    methods: list[str]
    follow: bool
    requests: int
    seconds: float = 0.0
    # How long the writer rests between changes, and which share of the answers is computed again.
    rest: float = 0.02
    every: int = 1
    answers: dict[int, dict[tuple[int, int], str]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    changes: list[tuple[int, list[Document], list[str]]] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    levels: list[tuple[int, int]] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    freshness: Freshness = field(default_factory=Freshness)

    def go(self) -> None:
        self.texts = fresh_documents()
        with Indexer.open(self.path, follow=self.follow) as indexer:
            self.asked = variants(indexer, self.methods)
            indexer.warm_up(self.methods)
            readers = [
                threading.Thread(target=self._guarded, args=(self._read, indexer, number))
                for number in range(THREADS)
            ]
            writer = threading.Thread(target=self._guarded, args=(self._write, indexer, 0))
            self.finished = 0
            for thread in (*readers, writer):
                thread.start()
            while any(thread.is_alive() for thread in readers):
                time.sleep(0.2)
                if HAS_PROC:
                    self.levels.append((descriptors(), resident_bytes()))
            self.done.set()
            writer.join()

    def _guarded(self, work, indexer: Indexer, number: int) -> None:
        try:
            work(indexer, number)
        except BaseException as error:
            self.errors.append(error)
            self.done.set()

    def _read(self, indexer: Indexer, number: int) -> None:
        choose = random.Random(number)
        ends = time.monotonic() + self.seconds
        count = 0
        while (count < self.requests or time.monotonic() < ends) and not self.errors:
            text, asked = choose.randrange(len(self.texts)), choose.randrange(len(self.asked))
            started = time.monotonic()
            answer = indexer.answer([self.texts[text]], settings=self.asked[asked])
            self.freshness.answered(answer.generation, started)
            seen = checksum(answer.suggestions[0])
            # Whoever asked the same of the same generation got the same.
            earlier = self.answers[answer.generation].setdefault((text, asked), seen)
            assert earlier == seen
            count += 1

    def _write(self, indexer: Indexer, _: int) -> None:
        new = iter(demo_documents(DOCUMENTS + 100_000, 1))
        mine: list[str] = []
        while not self.done.is_set():
            document = next(new)
            added = [
                Document(
                    f"w-{document.id}",
                    document.title,
                    document.body,
                    language="en",
                    labels=document.labels,
                )
            ]
            removed = [mine.pop(0)] if len(mine) > 20 else []
            for documents, gone in ((added, []), ([], removed)):
                if documents:
                    indexer.add(documents)
                elif gone:
                    indexer.remove(gone)
                else:
                    continue
                self.freshness.wrote(indexer.collection.generation().number)
                answer = indexer.answer([documents[0] if documents else self.texts[0]])
                # A thread sees its own writes at its next call.
                assert answer.generation >= indexer.collection.generation().number
                self.changes.append((answer.generation, documents, gone))
                time.sleep(self.rest)
            mine.append(added[0].id)


def checksum(suggestions: list) -> str:
    """A short form of an answer, so that remembering many takes little memory."""
    content = repr(signature(suggestions)).encode()
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def replayed(run: Run, copy: Path) -> int:
    """Compare all answers with those of one thread on a copy; how many were compared."""
    compared = 0
    with Indexer.open(copy) as indexer:
        changes = {number: (added, removed) for number, added, removed in run.changes}
        first = indexer.collection.generation().number
        for generation in range(first, max(run.answers) + 1):
            if generation in changes:
                added, removed = changes[generation]
                if added:
                    indexer.add(added)
                else:
                    indexer.remove(removed)
                assert indexer.answer(run.texts[:1], settings=Settings()).generation == generation
            answers = list(run.answers.get(generation, {}).items())
            for (text, asked), seen in answers[:: run.every]:
                answer = indexer.answer([run.texts[text]], settings=run.asked[asked])
                assert answer.generation == generation
                assert checksum(answer.suggestions[0]) == seen
                compared += 1
    return compared


def checked(trained: tuple[Path, list[str]], folder: Path, run: Run) -> None:
    shutil.copytree(trained[0], run.path)
    shutil.copytree(trained[0], folder / "copy")
    run.go()
    assert run.errors == []
    assert len(run.changes) > 10
    assert len(run.answers) > 3
    assert run.freshness.oldest_asked <= (OLDEST_SECONDS if run.seconds else OLDEST_BESIDE_TESTS)
    assert replayed(run, folder / "copy") > 0.2 * THREADS * min(run.requests, 100)
    if HAS_PROC:
        settled = run.levels[len(run.levels) // 3 :]
        opened = [count for count, _ in settled]
        memory = [size for _, size in settled]
        assert max(opened) - min(opened) <= DESCRIPTORS_OF_A_THREAD * (THREADS + 2)
        assert memory[-1] - memory[0] < GROWTH


@pytest.mark.parametrize("follow", [False, True])
def test_every_answer_is_that_of_its_generation(trained, tmp_path: Path, follow: bool) -> None:
    run = Run(tmp_path / "c", trained[1], follow, REQUESTS)
    checked(trained, tmp_path, run)


@pytest.mark.parametrize("follow", [False, True])
def test_close_ends_requests_with_one_line(trained, follow: bool) -> None:
    path, methods = trained
    texts = fresh_documents()
    outcomes: list[str] = []
    for round_ in range(6):
        indexer = Indexer.open(path, follow=follow)
        asked = variants(indexer, methods)

        def ask(number: int, indexer: Indexer = indexer, asked: list[Settings] = asked) -> None:
            choose = random.Random(number)
            try:
                while True:
                    some = choose.sample(texts, choose.choice((1, 3, 12)))
                    indexer.suggest(some, settings=choose.choice(asked))
            except LabelkinError as error:
                outcomes.append(str(error))
            except BaseException as error:
                outcomes.append(repr(error))

        readers = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in readers:
            thread.start()
        time.sleep(0.05 * round_)
        indexer.close()
        for thread in readers:
            thread.join(timeout=60)
            assert not thread.is_alive()
    assert {*outcomes} == {f"{path}: the collection is closed"}
    assert len(outcomes) == 24


def test_methods_measured_together_do_as_they_do_alone(trained) -> None:
    path, methods = trained
    documents = list(demo_documents(DOCUMENTS + 40, 0))[DOCUMENTS:]
    with Indexer.open(path) as indexer:
        settings = [Settings.from_config(indexer.config, method) for method in methods]
        together = indexer.compare(documents, settings)
        for one, beside_others in zip(settings, together, strict=True):
            alone = indexer.evaluate(documents, settings=one)
            for ranking, other in (
                (alone.predicted, beside_others.predicted),
                (alone.ordered, beside_others.ordered),
            ):
                assert ranking.columns.tolist() == other.columns.tolist(), one.method
                assert ranking.scores == pytest.approx(other.scores, abs=1e-6)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_minutes_of_mixed_requests(trained, tmp_path: Path) -> None:
    path, methods = tmp_path / "c", trained[1]
    run = Run(path, methods, follow=True, requests=REQUESTS, seconds=600, rest=0.3, every=5)
    checked(trained, tmp_path, run)
    first, last = run.levels[len(run.levels) // 10], run.levels[-1]
    keep(
        "threads",
        {
            "seconds": run.seconds,
            "readers": THREADS,
            "writers": 1,
            "different answers": sum(map(len, run.answers.values())),
            "writes": len(run.changes),
            "errors": len(run.errors),
            **run.freshness.figures(),
            "descriptors": [first[0], last[0]],
            "megabytes": [round(first[1] / 1e6), round(last[1] / 1e6)],
        },
    )
