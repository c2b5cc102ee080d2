"""Runs a plan stage by stage; finished stages are reused."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from labelkin._version import __version__
from labelkin.exceptions import CollectionBusyError
from labelkin.experiments.plan import Plan
from labelkin.experiments.provenance import commit
from labelkin.experiments.run_context import RunContext
from labelkin.experiments.stage import Stage
from labelkin.store.locks import FileLock

if TYPE_CHECKING:
    from labelkin.experiments.run_context import Prepare

logger = logging.getLogger(__name__)

JOURNAL = "journal.jsonl"


class Observer(Protocol):
    """Receives the progress of a run."""

    def begin(self, stage: Stage, number: int, total: int, seconds_left: float) -> None:
        """A stage begins; `seconds_left` is an estimate for the whole run."""
        ...

    def progress(self, done: int, total: int, note: str) -> None:
        """The progress within the stage; `total` is 0 if unknown."""
        ...

    def end(self, stage: Stage, seconds: float) -> None:
        """A stage is done."""
        ...


@dataclass(frozen=True)
class RunReport:
    """The stages that a run carried out, and those that it reused."""

    made: tuple[Stage, ...]
    reused: tuple[Stage, ...]
    seconds: float


def missing(plan: Plan) -> tuple[list[Stage], list[Stage]]:
    """The stages to run, in order, and those that are done.

    An intermediate result that no missing stage needs counts as done, even if it was
    deleted.
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
    todo = [stage for stage in stages if stage in needed]
    return todo, [stage for stage in stages if stage not in needed]


def run(plan: Plan, observer: Observer, prepare: Prepare | None = None) -> RunReport:
    """Run the missing stages; one run at a time per work folder.

    `prepare` is called with every collection that is opened.
    """
    started = time.monotonic()
    plan.work.mkdir(parents=True, exist_ok=True)
    lock = FileLock(plan.work / ".lock")
    with lock:
        if not lock.take():
            raise CollectionBusyError(
                f"{plan.work}: another run is using this folder; wait for it or use another --work"
            )
        todo, reused = missing(plan)
        clock = _Clock(todo)
        with RunContext(prepare) as context:
            for number, stage in enumerate(todo, start=1):
                observer.begin(stage, number, len(todo), clock.left())
                stage_started = time.monotonic()
                stage.path.parent.mkdir(parents=True, exist_ok=True)
                stage.run(context, observer.progress)
                seconds = time.monotonic() - stage_started
                clock.record(stage, seconds)
                _append_to_journal(plan.work, stage, seconds)
                observer.end(stage, seconds)
    return RunReport(tuple(todo), tuple(reused), time.monotonic() - started)


def read_journal(work: Path) -> dict[str, dict[str, object]]:
    """The last journal entry of each stage, by fingerprint."""
    entries = {}
    try:
        lines = (work / JOURNAL).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    for line in lines:
        try:
            entry = json.loads(line)
            entries[str(entry["fingerprint"])] = entry
        except (ValueError, KeyError, TypeError):
            logger.warning("%s: skipping a damaged line", work / JOURNAL)
    return entries


def _append_to_journal(work: Path, stage: Stage, seconds: float) -> None:
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
    """Estimates the time left from the expected times and the pace of finished stages.

    A label autoencoder with a time limit takes that time on any machine.
    """

    def __init__(self, todo: Sequence[Stage]) -> None:
        self._left = list(todo)
        self._taken = self._expected = 0.0

    def record(self, stage: Stage, seconds: float) -> None:
        """Record the time that a finished stage took."""
        self._left.remove(stage)
        if not _is_timed(stage):
            self._taken += seconds
            self._expected += stage.expected

    def left(self) -> float:
        """Estimated seconds until the last stage is done."""
        # The offset and bounds limit the effect of the first stages and of resumed ones.
        pace = min(max((self._taken + 30) / (self._expected + 30), 0.5), 5.0)
        return sum(s.expected * (1 if _is_timed(s) else pace) for s in self._left)


def _is_timed(stage: Stage) -> bool:
    return bool(stage.inputs.get("minutes"))
