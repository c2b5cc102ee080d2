"""The part of a command that runs on a Spark cluster: `--on MASTER`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelkin.cli.console import print_message
from labelkin.cli.progress import Stages
from labelkin.closing import Closing
from labelkin.exceptions import CollectionBusyError, LabelkinError

if TYPE_CHECKING:
    from labelkin.cluster.replica import Replica
    from labelkin.cluster.search import ClusterSearch
    from labelkin.cluster.session import Session
    from labelkin.cluster.workspace import Workspace
    from labelkin.corpus import Document
    from labelkin.indexer import Indexer
    from labelkin.neighbours.term_search import TermSearch
    from labelkin.store.reader import Generation
    from labelkin.store.snapshot import Snapshot

logger = logging.getLogger(__name__)

OnMaster = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="MASTER",
        help="Run on Spark: local[*], spark://HOST:PORT, yarn or k8s://HOST:PORT. Needs "
        "the extra spark and Java 17; see docs/cluster.md.",
    ),
]


@dataclass(frozen=True)
class Cluster:
    """A Spark application, the folder that its machines share, and meters of its stages."""

    session: Session
    workspace: Workspace
    stages: Stages

    def show(self, stage: str, done: int, total: int) -> None:
        """Show how many tasks of a stage are finished."""
        what = "rows" if stage == "Exporting" else "tasks"
        self.stages.at(stage, total).update(done, f"{done:,} of {total:,} {what}")

    def search(self, indexer: Indexer, representation: str | None) -> ClusterSearch:
        """The search of the current state on the cluster, its shards built."""
        from labelkin.cluster.search import ClusterSearch

        snapshot = indexer.snapshot()
        name = representation or snapshot.config.representation.name
        context = indexer.runtime.indexes.context
        search = ClusterSearch(snapshot, context, name, self.session, self.workspace, self.show)
        self.stages.close()
        return search

    def replica(
        self,
        indexer: Indexer,
        generation: Generation,
        depends_on: Mapping[str, Any],
        state: Callable[[], Mapping[str, Any]],
    ) -> Replica:
        """A copy of a collection in the workspace, which executors open.

        `depends_on` is what `state` has given for results of the copy; CollectionBusyError if
        that is no longer so when the copy has been made.
        """
        from labelkin.cluster.replica import make_replica

        copy = make_replica(indexer.collection, self.workspace, generation)
        if state() != depends_on:
            raise CollectionBusyError(
                f"{indexer.collection.path}: its model or settings have changed while it was "
                "copied for the cluster; try again"
            )
        return copy


def warm_up_here(work: Callable[[list[Document]], object]) -> None:
    """Have `work` bring up to date what executors cannot, because their copy is read-only.

    What fails for any text fails on executors as well, where it is reported with the record.
    """
    from labelkin.corpus import Document

    try:
        work([Document("", "warm up")])
    except (LabelkinError, OSError):
        raise
    except Exception as error:
        logger.debug("no warm-up: %r", error)


@contextmanager
def opened_cluster(indexer: Indexer, master: str, *, lines: bool = False) -> Iterator[Cluster]:
    """Start Spark for a collection; prints where to watch it, and progress as bars or lines."""
    from labelkin.cluster.session import Session, check_installed, check_master
    from labelkin.cluster.workspace import Workspace

    check_installed()
    check_master(master)
    with (
        Workspace(indexer.collection) as workspace,
        Session(master, workspace.settings, workspace.folder) as session,
        Stages(lines=lines) as stages,
    ):
        if session.address:
            print_message(f"Spark: {session.address}")
        yield Cluster(session, workspace, stages)


class ClusterProvider(Closing):
    """Analyses and searches on a cluster for an open collection.

    Spark is started by the first thing that needs it. What was found stays in the workspace
    until `finish`, so that an interrupted command need not search again.
    """

    def __init__(self, indexer: Indexer, master: str) -> None:
        from labelkin.cluster.session import check_installed, check_master

        check_installed()
        check_master(master)
        self._indexer = indexer
        self._master = master
        self._stack = ExitStack()
        self._opened: Cluster | None = None
        indexer.runtime.indexes.provider = self

    def close(self) -> None:
        """Search here again, and end Spark."""
        self._indexer.runtime.indexes.provider = None
        self._stack.close()

    def finish(self) -> None:
        """Delete what was found, once nothing needs it any more."""
        from labelkin.cluster.search import RESULTS

        if self._opened is not None:
            self._opened.workspace.sweep(RESULTS)

    def extract(self, snapshot: Snapshot, name: str) -> None:
        """Have the terms of all labelled documents in the collection's cache."""
        from labelkin.cluster.analysis import extract_on_cluster

        cluster, cache = self._cluster(), self._indexer.runtime.indexes.context.cache
        extract_on_cluster(cluster.session, cluster.workspace, snapshot, name, cache, cluster.show)
        cluster.stages.close()

    def search(self, snapshot: Snapshot, name: str, here: TermSearch) -> ClusterSearch:
        """The search of a snapshot on the cluster, its shards built."""
        from labelkin.cluster.search import ClusterSearch

        cluster = self._cluster()
        search = ClusterSearch(
            snapshot, here.context, name, cluster.session, cluster.workspace, cluster.show, here
        )
        cluster.stages.close()
        return search

    def _cluster(self) -> Cluster:
        if self._opened is None:
            opened = opened_cluster(self._indexer, self._master, lines=True)
            self._opened = self._stack.enter_context(opened)
        return self._opened
