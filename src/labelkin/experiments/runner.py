"""Carrying out a plan: what is there is used, what is missing is made, stage by stage."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from labelkin._version import __version__
from labelkin.exceptions import CollectionBusyError
from labelkin.experiments.plan import Plan
from labelkin.experiments.provenance import commit
from labelkin.experiments.stage import Stage
from labelkin.experiments.workshop import Workshop
from labelkin.store.locks import FileLock

logger = logging.getLogger(__name__)

JOURNAL = "journal.jsonl"


class Observer(Protocol):
    """Hears how a run goes."""

    def begin(self, stage: Stage, number: int, total: int, seconds_left: float) -> None:
        """A stage begins; `seconds_left` is what the whole run will take, at a guess."""
        ...

    def progress(self, done: int, total: int, note: str) -> None:
        """How far the stage is; `total` 0 where nobody knows."""
        ...

    def end(self, stage: Stage, seconds: float) -> None:
        """A stage is done."""
        ...


@dataclass(frozen=True)
class RunReport:
    """What a run did, and what it found done."""

    made: tuple[Stage, ...]
    reused: tuple[Stage, ...]
    seconds: float


def missing(plan: Plan) -> tuple[list[Stage], list[Stage]]:
    """The stages that have to be carried out, in order, and those that are done.

    A result that nobody needs any more, because all that follows from it is
    there, counts as done whether it is there or not.
    """
    stages = plan.stages
    needed: dict[Stage, None] = {}

    def visit(stage: Stage) -> None:
        if stage not in needed and not stage.is_done():
            needed[stage] = None
            for other in stage.needs:
                visit(other)

    for end in plan.ends:
        visit(end)
    wanted = [stage for stage in stages if stage in needed]
    return wanted, [stage for stage in stages if stage not in needed]


def run(plan: Plan, observer: Observer) -> RunReport:
    """Carry out what is missing."""
    started = time.monotonic()
    plan.work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(plan.work / ".lock")
    with lock:
        if not lock.take():
            raise CollectionBusyError(f"{plan.work}: another run is at work in this folder")
        todo, reused = missing(plan)
        clock = _Clock(todo)
        with Workshop() as workshop:
            for number, stage in enumerate(todo, start=1):
                observer.begin(stage, number, len(todo), clock.left())
                begun = time.monotonic()
                stage.path.parent.mkdir(parents=True, exist_ok=True)
                stage.run(workshop, observer.progress)
                seconds = time.monotonic() - begun
                clock.note(stage, seconds)
                _note(plan.work, stage, seconds)
                observer.end(stage, seconds)
    return RunReport(tuple(todo), tuple(reused), time.monotonic() - started)


def read_journal(work: Path) -> dict[str, dict[str, object]]:
    """What was noted of each stage, the last time that it was carried out, by fingerprint."""
    noted = {}
    try:
        lines = (work / JOURNAL).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            entry = json.loads(line)
            noted[str(entry["fingerprint"])] = entry
        except (ValueError, KeyError, TypeError):
            logger.warning("%s: a damaged line is left out", work / JOURNAL)
    return noted


def _note(work: Path, stage: Stage, seconds: float) -> None:
    entry = {
        "fingerprint": stage.fingerprint,
        "kind": stage.kind,
        "subject": stage.subject,
        "seconds": round(seconds, 1),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "commit": commit(),
        "cores": os.cpu_count(),
    }
    with (work / JOURNAL).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")


class _Clock:
    """How long the rest will take: the expected time, corrected by what the first took.

    A label autoencoder with a limit of time takes that, whatever the machine.
    """

    def __init__(self, todo: Sequence[Stage]) -> None:
        self._left = list(todo)
        self._taken = self._expected = 0.0

    def note(self, stage: Stage, seconds: float) -> None:
        """A stage took so long."""
        self._left.remove(stage)
        if not _is_timed(stage):
            self._taken += seconds
            self._expected += stage.expected

    def left(self) -> float:
        """Seconds until all is done."""
        # The first stages, or some that found most of their work done, say little of the others.
        pace = min(max((self._taken + 30) / (self._expected + 30), 0.5), 5.0)
        return sum(s.expected * (1 if _is_timed(s) else pace) for s in self._left)


def _is_timed(stage: Stage) -> bool:
    return bool(stage.inputs.get("minutes"))
