"""Progress of long steps: a bar with the time left on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from labelkin.cli.console import errors, print_message, seconds_text
from labelkin.closing import Closing

if TYPE_CHECKING:
    from rich.progress import Progress

_SECONDS_BETWEEN_LINES = 10.0


class Meter:
    """The progress of a step; 0 means an unknown `total`."""

    def __init__(self, title: str, total: int, progress: Progress | None) -> None:
        self._title = title
        self._total = total
        self._progress = progress
        self._task = (
            progress.add_task(title, total=total or None, note="") if progress is not None else None
        )
        self._printed = time.monotonic()
        # Time and progress at the first update: the rate counts from there.
        self._first: tuple[float, int] | None = None

    def update(self, done: int, note: str) -> None:
        """Show that `done` of the total is finished; `note` describes it to the user."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, note=note)
            return
        now = time.monotonic()
        if self._first is None:
            self._first = (now, done)
        if now - self._printed < _SECONDS_BETWEEN_LINES:
            return
        self._printed = now
        left = ""
        since, before = self._first
        if self._total and done > before:
            seconds = (now - since) * (self._total - done) / (done - before)
            left = f", {done / self._total:.0%}, about {seconds_text(seconds)} left"
        print_message(f"{self._title}: {note}{left}")


class Stages(Closing):
    """Meters of stages that follow one another, one at a time.

    `lines` shows no bars: for stages within a step that may have one.
    """

    def __init__(self, *, lines: bool = False) -> None:
        self._lines = lines
        self._stack = ExitStack()
        self._shown: tuple[str, Meter] | None = None

    def at(self, title: str, total: int) -> Meter:
        """The meter of a stage; removes that of the previous stage."""
        if self._shown is None or self._shown[0] != title:
            self._stack.close()
            if self._lines:
                self._shown = (title, Meter(title, total, None))
            else:
                self._shown = (title, self._stack.enter_context(meter(title, total)))
        return self._shown[1]

    def close(self) -> None:
        """Remove the last meter."""
        self._stack.close()
        self._shown = None


@contextmanager
def meter(title: str, total: int) -> Iterator[Meter]:
    """A meter for one step."""
    if not sys.stderr.isatty():
        yield Meter(title, total, None)
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors(), transient=True) as progress:
        yield Meter(title, total, progress)
