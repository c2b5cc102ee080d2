"""SIGKILL at random moments of nine kinds of work, and what is left of the collection.

A `Victim` has a collection of its own, which one kill after another leaves behind. Each kill starts
a process that runs some commands, waits for one of the kind, kills the process at a random
moment of it, and compares everything that is stored with what was acknowledged.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from labelkin import Indexer, read_vocabulary
from labelkin.integrity import check_collection

from ..serve.campaign import Campaign
from .state import BATCH, Commands, State, Step, check, create, write_edition

WORKER = Path(__file__).with_name("worker.py")
# The moment is drawn from the time that such a command usually takes, and a bit more.
FIRST_GUESS_SECONDS = 0.4
LONGER = 1.05
LONGEST_SECONDS = 300.0
# A collection that has grown so large is replaced by a new one, to keep a kill cheap.
MOST_DOCUMENTS = 1500


# What is compared; rows without this number lack the order of headings, major headings,
# revisions, metadata and parts of concepts.
COMPARISON = 2


@dataclass(frozen=True)
class Kill:
    """One kill and what was found after it."""

    kind: str
    seed: int
    # What was hit, and how many seconds after its start; the next command may have begun.
    command: str
    moment: float
    # Whether that command had not ended.
    is_hit: bool
    # Commands, or requests of the service, that had been acknowledged in this process.
    acknowledged: int
    # Documents that were compared with what was acknowledged last.
    compared: int
    # Of the command that was hit: nothing stored, some batches, everything.
    stored: str
    leftovers: int
    seconds: float
    problem: str = ""

    def row(self) -> dict[str, Any]:
        """For a file of results."""
        shown = {**asdict(self), "comparison": COMPARISON}
        return {**shown, "moment": round(self.moment, 4), "seconds": round(self.seconds, 2)}


class Victim(ABC):
    """Work of one kind on one collection, killed again and again."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        folder.mkdir(parents=True, exist_ok=True)

    def kill(self, seed: int) -> Kill:
        """Kill once. Raises AssertionError if something is lost or damaged."""
        started = time.monotonic()
        kill = self._kill(seed)
        return Kill(**{**asdict(kill), "seconds": time.monotonic() - started})

    @abstractmethod
    def _kill(self, seed: int) -> Kill:
        """Kill once."""

    @abstractmethod
    def finish(self) -> None:
        """After the last kill: assert that all goes on, and that nothing is left behind."""


class CommandVictim(Victim):
    """Commands of one kind; a subclass chooses them."""

    # Read before the commands, so that kills hit the work and not the start.
    imports: Sequence[str] = ("labelkin.corpus", "labelkin.indexer", "tantivy", "scipy.sparse")
    is_built = False
    repeated = 2

    def __init__(self, kind: str, folder: Path) -> None:
        super().__init__(kind, folder)
        self.path = folder / "c"
        self._seconds: deque[float] = deque(maxlen=9)
        self._renew()

    def _renew(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self.state = create(self.path, build=self.is_built)

    def is_target(self, step: Step) -> bool:
        """Whether a command is of the kind that is killed."""
        return step.verb == self.kind

    @abstractmethod
    def steps(self, commands: Commands) -> Iterator[Step]:
        """Commands that lead to one of the kind, with it at the end."""

    def check_more(self, done: Sequence[Step]) -> None:
        """Assert what else must be so after a kill; these commands were acknowledged."""

    def _kill(self, seed: int) -> Kill:
        if len(self.state.documents) > MOST_DOCUMENTS:
            self._renew()
        choose = random.Random(f"{self.kind} {seed}")
        files = self.folder / "files"
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir()
        before = self.state
        commands = Commands(self.path, files, before, seed)
        steps = [step for _ in range(self.repeated) for step in self.steps(commands)]
        targets = [place for place, step in enumerate(steps) if self.is_target(step)]
        target = choose.choice(targets)
        usual = statistics.median(self._seconds) if self._seconds else FIRST_GUESS_SECONDS
        run = _Run(steps, files / "plan.json", self.imports)
        run.kill_in(target, choose.uniform(0, LONGER * usual))
        self._seconds.extend(run.seconds[place] for place in targets if place in run.seconds)
        done = steps[: run.done]
        for step in done:
            before = step.states[-1] if step.states else before
        hit = steps[run.done] if run.started > run.done else None
        possible = [before, *(hit.states if hit else ())]
        place, leftovers = check(self.path, possible)
        self.state = possible[place]
        self.check_more(done)
        stored = "nothing" if place == 0 else "all" if possible[place:] == possible[-1:] else "part"
        return Kill(
            self.kind,
            seed,
            " ".join([one for one in (hit or steps[run.done - 1]).command if "/" not in one]),
            run.moment,
            hit is not None,
            run.done,
            len(self.state.documents),
            stored if hit is not None and hit.states else "",
            leftovers,
            0.0,
        )

    def finish(self) -> None:
        check_collection(self.path, repair=True)
        report = check_collection(self.path)
        assert report.problems == []
        assert [one.part for one in report.findings if one.state == "leftover"] == []
        check(self.path, [self.state])


class _Run:
    """A process that runs commands until it is killed."""

    def __init__(self, steps: Sequence[Step], plan: Path, imports: Sequence[str]) -> None:
        commands = [step.command for step in steps]
        plan.write_text(json.dumps({"imports": [*imports], "commands": commands}))
        self._plan = plan
        self.started = self.done = 0
        self.moment = 0.0
        self.seconds: dict[int, float] = {}

    def kill_in(self, target: int, wait: float) -> None:
        """Kill the process so many seconds after the start of a command."""
        command = [sys.executable, str(WORKER), str(self._plan)]
        errors = self._plan.with_name("errors.txt")
        with (
            errors.open("wb") as output,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=output, text=True) as process,
        ):
            assert process.stdout is not None
            try:
                while self.started <= target:
                    line = process.stdout.readline()
                    assert line, errors.read_text(encoding="utf-8")[-2000:]
                    self._note(line)
                began = time.monotonic()
                time.sleep(wait)
            finally:
                process.kill()
            self.moment = time.monotonic() - began
            for line in process.stdout.read().splitlines(keepends=True):
                # What was being written when the process died was not read by anybody.
                if line.endswith("\n"):
                    self._note(line)
        assert "Traceback" not in errors.read_text(encoding="utf-8")

    def _note(self, line: str) -> None:
        what, number, *rest = line.split()
        if what == "start":
            self.started = int(number) + 1
        else:
            code, seconds = rest
            assert code == "0", f"{line} {self._plan.with_name('errors.txt').read_text()[-2000:]}"
            self.done = int(number) + 1
            self.seconds[int(number)] = float(seconds)


class Adding(CommandVictim):
    """`labelkin add`: new documents and new versions, several batches a command."""

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.add()


class Learning(CommandVictim):
    """`labelkin learn`: other headings, and records with texts."""

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.learn()


class Removing(CommandVictim):
    """`labelkin remove`, of a collection that is indexed."""

    is_built = True

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.add()
        yield commands.remove(4 * BATCH)


class Building(CommandVictim):
    """`labelkin build`: the index of terms brought up to date, and vectors by lsa."""

    is_built = True

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.add(2 * BATCH)
        yield commands.remove(2 * BATCH)
        yield commands.unchanging("build")
        yield commands.unchanging("build", "--representation", "lsa", *self._relearn)

    def _kill(self, seed: int) -> Kill:
        # Every third time lsa is fitted anew, and all vectors are computed again.
        self._relearn = ("--relearn",) if seed % 3 == 0 else ()
        return super()._kill(seed)

    def check_more(self, done: Sequence[Step]) -> None:
        """What is missing is built, once."""
        with Indexer.open(self.path) as indexer:
            for name in (None, "lsa"):
                indexer.build(name)
                assert indexer.build(name) == 0


class Training(CommandVictim):
    """`labelkin train`: the label autoencoder and the reranker by turns."""

    imports = (*CommandVictim.imports, "torch", "lightgbm", "labelkin.training")
    is_built = True
    repeated = 1
    label_ae = ("--only", "label-ae", "--preset", "16", "--epochs", "2", "--device", "cpu")
    reranker = ("--only", "rerank", "--no-linear")

    def _renew(self) -> None:
        super()._renew()
        self._trained: set[str] = set()

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.add(10)
        yield commands.unchanging("train", *self.label_ae)
        yield commands.unchanging("train", *self.reranker)

    def check_more(self, done: Sequence[Step]) -> None:
        """Models that were acknowledged can be used, whatever became of the next one."""
        self._trained |= {step.command[3] for step in done if step.verb == "train"}
        with Indexer.open(self.path) as indexer:
            assert self._trained <= {*indexer.usable_methods()}


class Updating(CommandVictim):
    """`labelkin vocab update` to an edition that renames all headings, and back."""

    def _renew(self) -> None:
        super()._renew()
        edition = self.folder / "edition.tsv"
        write_edition(edition)
        with Indexer.open(self.path) as indexer:
            indexer.update_vocabulary(read_vocabulary(edition))
            self._new = State.of(indexer)
            indexer.undo_vocabulary()
            self._old = self.state = State.of(indexer)
        assert self._new.concepts != self._old.concepts
        assert self._new.documents != self._old.documents

    def is_target(self, step: Step) -> bool:
        return True

    def steps(self, commands: Commands) -> Iterator[Step]:
        if commands.state == self._old:
            yield self._step(commands, self._new, str(self.folder / "edition.tsv"))
        yield self._step(commands, self._old, "--undo")

    def _step(self, commands: Commands, state: State, argument: str) -> Step:
        commands.state = state
        return Step(["vocab", "update", str(self.path), argument], (state,))


class Compacting(CommandVictim):
    """`labelkin compact` after many documents were removed."""

    is_built = True

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.add()
        yield commands.unchanging("build")
        yield commands.remove(4 * BATCH)
        yield commands.unchanging("compact")


class BackingUp(CommandVictim):
    """`labelkin backup`: the copy is whole, or not there; every other one is an archive."""

    is_built = True

    def steps(self, commands: Commands) -> Iterator[Step]:
        yield commands.add(BATCH)
        yield commands.remove(BATCH)
        for ending in ("", ".tar"):
            copy = self.folder / "copies" / f"copy-{len(self._expected)}{ending}"
            self._expected[copy] = commands.state
            yield commands.unchanging("backup", str(copy))

    def _kill(self, seed: int) -> Kill:
        self._expected: dict[Path, State] = {}
        return super()._kill(seed)

    def check_more(self, done: Sequence[Step]) -> None:
        acknowledged = {Path(step.command[2]) for step in done if step.verb == "backup"}
        for copy, expected in self._expected.items():
            assert copy.exists() or copy not in acknowledged
            if not copy.exists():
                continue
            folder = copy
            if copy.suffix:
                with tarfile.open(copy) as archive:
                    archive.extractall(self.folder / "unpacked", filter="data")
                folder = self.folder / "unpacked" / copy.stem
            assert check_collection(folder).is_sound
            check(folder, [expected])
        shutil.rmtree(self.folder / "unpacked", ignore_errors=True)
        for copy in self._expected:
            copy.unlink() if copy.is_file() else shutil.rmtree(copy, ignore_errors=True)

    def finish(self) -> None:
        super().finish()
        with Indexer.open(self.path) as indexer:
            for name in ("copy-0", "copy-0.tar", "copy-1", "copy-1.tar", "copy-2", "copy-3.tar"):
                indexer.backup(self.folder / "copies" / name)
        # Also what kills have left of earlier ones is gone.
        assert [*(self.folder / "copies").glob(".*")] == []


class Serving(Victim):
    """`labelkin serve` while two clients write and two read."""

    def __init__(self, kind: str, folder: Path) -> None:
        super().__init__(kind, folder)
        self.campaign = Campaign(folder)

    def _kill(self, seed: int) -> Kill:
        choose = random.Random(f"{self.kind} {seed}")
        campaign, before = self.campaign, self.campaign.counts()
        moment = campaign.kill_once(choose)
        campaign.check_files()
        after = campaign.counts()
        acknowledged = sum(after[kind] - before[kind] for kind in after if " " not in kind)
        compared = sum(len(writer.acknowledged) for writer in campaign.writers)
        return Kill(
            self.kind,
            seed,
            "serve",
            moment,
            True,
            acknowledged,
            compared + len(campaign.original),
            "",
            0,
            0.0,
        )

    def finish(self) -> None:
        self.campaign.finish()


KINDS: dict[str, type[Victim]] = {
    "add": Adding,
    "learn": Learning,
    "remove": Removing,
    "build": Building,
    "train": Training,
    "vocab": Updating,
    "compact": Compacting,
    "backup": BackingUp,
    "serve": Serving,
}


def kill_many(
    counts: Mapping[str, int], folder: Path, note: Callable[[Kill], None], seed: int = 0
) -> list[Kill]:
    """So many kills of each kind, by turns; `note` is told each one.

    Work that has failed is not killed again, and its collection stays as it is.
    """
    kills: list[Kill] = []
    victims: dict[str, Victim] = {}
    rounds = range(max(counts.values(), default=0))
    # Spread, so that an interrupted run has kills of all kinds.
    for kind in [one for turn in rounds for one, count in counts.items() if turn < count]:
        number = seed + sum(one.kind == kind for one in kills)
        if any(one.problem and one.kind == kind for one in kills):
            continue
        try:
            if kind not in victims:
                victims[kind] = KINDS[kind](kind, folder / kind)
            kill = victims[kind].kill(number)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            kill = Kill(kind, number, kind, 0.0, True, 0, 0, "", 0, 0.0, problem)
        kills.append(kill)
        note(kill)
    for kind, victim in victims.items():
        if not any(one.problem and one.kind == kind for one in kills):
            victim.finish()
    return kills
