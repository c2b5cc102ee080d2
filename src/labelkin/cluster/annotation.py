"""Annotating batches of documents on executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from labelkin.annotator import AnnotationJob, Annotator
from labelkin.atomic import atomic_text
from labelkin.cluster.records import annotate_each
from labelkin.cluster.replica import Replica, open_replica
from labelkin.cluster.session import Session
from labelkin.cluster.sizes import WAVE, characters, sendable, taken, task_slices
from labelkin.cluster.task import Task, digest
from labelkin.cluster.workspace import Workspace
from labelkin.corpus.document import Document
from labelkin.scoring.annotation import Suggest
from labelkin.scoring.journal import Record, document_checksum

_KIND = "annotations"
# Batches for each slot of the cluster before the results are taken, at least so many, and at
# most so many: Spark holds all of them in the driver's memory.
_BATCHES_A_SLOT = 8
_FEWEST, _MOST = 64, 512


@dataclass(frozen=True)
class AnnotationTask(Task):
    """Annotates one batch, with the copy of the collection that executors share."""

    output: Path
    documents: tuple[Document, ...]
    replica: Replica
    job: AnnotationJob

    @property
    def characters(self) -> int:
        """The length of the documents."""
        return characters(self.documents)

    def run(self) -> None:
        """Write a JSON list of records; those of documents that fail say so."""
        annotator = _open_annotator(self.replica, _Frozen(self.job))
        records = annotate_each(annotator, list(self.documents), self.workspace)
        with atomic_text(self.output) as file:
            json.dump(records, file, ensure_ascii=False)

    def records(self) -> list[Record]:
        """What was written."""
        records: list[Record] = json.loads(self.output.read_text(encoding="utf-8"))
        return records


class _Frozen:
    """A job as a key: equal to others of the same content."""

    def __init__(self, job: AnnotationJob) -> None:
        self.job = job
        self._content = repr(job)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and other._content == self._content

    def __hash__(self) -> int:
        return hash(self._content)


@lru_cache(maxsize=1)
def _open_annotator(replica: Replica, frozen: _Frozen) -> Annotator:
    """An annotator, opened once in a process."""
    return Annotator(open_replica(replica), replace(frozen.job, collection=replica.path))


class ClusterAnnotation:
    """Maps batches to records on a cluster.

    `progress` is called with the documents that are finished but not yet given back. With
    `keep`, results stay in the workspace when they have been given back, for a journal that
    an interruption would delete.
    """

    def __init__(
        self,
        session: Session,
        workspace: Workspace,
        replica: Replica,
        job: AnnotationJob,
        depends_on: dict[str, Any],
        progress: Callable[[int], None],
        *,
        keep: bool = False,
    ) -> None:
        self._session = session
        self._folder = workspace.part(_KIND)
        self._replica = replica
        self._job = job
        self._settings = digest(depends_on)
        self._progress = progress
        self._keep = keep

    def map(
        self,
        suggest: Suggest,  # noqa: ARG002 - each executor has its own
        batches: Iterable[list[Document]],
    ) -> Iterator[list[Record]]:
        """The records of each batch, in order; some batches for each slot are read ahead."""
        waiting = iter(batches)
        while several := taken(waiting, self._at_once(), WAVE, characters):
            of_batches = [self._tasks(batch) for batch in several]
            tasks = [task for of_batch in of_batches for task in of_batch]
            sizes = [len(task.documents) for task in tasks]

            def show(done: int, _: int, sizes: list[int] = sizes) -> None:
                self._progress(sum(sizes[:done]))

            self._session.run(tasks, show)
            for of_batch in of_batches:
                yield [record for task in of_batch for record in task.records()]
            # Only now, because equal batches share an output. The journal has all of them.
            for task in () if self._keep else tasks:
                task.output.unlink(missing_ok=True)

    def _at_once(self) -> int:
        """How many batches Spark gets at a time."""
        return min(max(_FEWEST, _BATCHES_A_SLOT * self._session.slots), _MOST)

    def _tasks(self, batch: list[Document]) -> list[AnnotationTask]:
        """A batch as one task, or as several if its texts are long."""
        documents = sendable(batch, self._replica.max_characters)
        return [self._task(documents[part]) for part in task_slices(documents, len(documents))]

    def _task(self, batch: tuple[Document, ...]) -> AnnotationTask:
        name = digest(self._settings, [document_checksum(document) for document in batch])
        return AnnotationTask(self._folder / f"{name}.json", batch, self._replica, self._job)
