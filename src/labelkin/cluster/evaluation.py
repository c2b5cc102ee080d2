"""Ranking labels for the documents of an evaluation on executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from labelkin.atomic import atomic_file
from labelkin.cluster.records import with_failures_named
from labelkin.cluster.replica import Replica, open_replica
from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.sizes import characters, sendable, task_slices
from labelkin.cluster.task import Task, digest
from labelkin.cluster.workspace import Workspace
from labelkin.corpus.document import Document
from labelkin.scoring.journal import document_checksum
from labelkin.scoring.ranking import Ranking
from labelkin.scoring.settings import Settings
from labelkin.tensors import npz_arrays

KIND = "rankings"
_BATCH = 500
_ARRAYS = ("starts", "columns", "scores")

# By settings: the labels of documents by rank, and the part of them that is suggested.
Rankings = list[tuple[Ranking, Ranking]]


@dataclass(frozen=True)
class RankingTask(Task):
    """Ranks labels for one batch by several settings, with the copy of the collection."""

    output: Path
    documents: tuple[Document, ...]
    replica: Replica
    settings: tuple[Settings, ...]
    representation: str | None
    is_bulk: bool

    @property
    def characters(self) -> int:
        """The length of the documents."""
        return characters(self.documents)

    def run(self) -> None:
        """Write the arrays of all rankings."""
        indexer = open_replica(self.replica)
        if any(one.k for one in self.settings):
            # All executors search alike.
            indexer.search(self.representation).decide(self.is_bulk)

        def ranked(documents: list[Document]) -> Rankings:
            return indexer.rankings(documents, self.settings, representation=self.representation)

        rankings = with_failures_named(ranked, list(self.documents), self.workspace)
        arrays = {
            _name(number, place, array): getattr(ranking, array)
            for number, pair in enumerate(rankings)
            for place, ranking in enumerate(pair)
            for array in _ARRAYS
        }
        with atomic_file(self.output) as file:
            np.savez(file, **arrays)

    def rankings(self) -> Rankings:
        """What was written."""
        arrays = npz_arrays(self.output)
        return [
            (_ranking(arrays, number, 0), _ranking(arrays, number, 1))
            for number in range(len(self.settings))
        ]


def _name(number: int, place: int, array: str) -> str:
    return f"{number}-{place}-{array}"


def _ranking(arrays: dict[str, Any], number: int, place: int) -> Ranking:
    return Ranking(*(arrays[_name(number, place, array)] for array in _ARRAYS))


def rank_on_cluster(
    session: Session,
    workspace: Workspace,
    replica: Replica,
    documents: Sequence[Document],
    settings: Sequence[Settings],
    representation: str | None,
    depends_on: dict[str, Any],
    *,
    is_bulk: bool,
    progress: TaskProgress | None = None,
) -> Rankings:
    """As `Indexer.rankings`, a batch of documents per task; finished ones are kept."""
    folder = workspace.part(KIND)
    tasks = []
    documents = sendable(documents, replica.max_characters)
    for part in task_slices(documents, _BATCH):
        batch = documents[part]
        name = digest(depends_on, [document_checksum(document) for document in batch])
        tasks.append(
            RankingTask(
                folder / f"{name}.npz", batch, replica, tuple(settings), representation, is_bulk
            )
        )
    session.run(tasks, progress)
    parts = [task.rankings() for task in tasks]
    return [
        (
            Ranking.joined([part[number][0] for part in parts]),
            Ranking.joined([part[number][1] for part in parts]),
        )
        for number in range(len(settings))
    ]
