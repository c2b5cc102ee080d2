"""A session without Spark, for tests of what is done on a cluster."""

from __future__ import annotations

from collections.abc import Sequence

from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.task import Task


class InlineSession(Session):
    """Runs tasks here, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def close(self) -> None:
        pass

    @property
    def address(self) -> None:
        return None

    @property
    def slots(self) -> int:
        return 2

    def run(self, tasks: Sequence[Task], progress: TaskProgress | None = None) -> None:
        for task in tasks:
            if not task.is_done():
                task.run()
                self.count += 1
        if progress is not None:
            progress(len(tasks), len(tasks))
