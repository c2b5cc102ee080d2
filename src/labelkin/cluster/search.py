"""Neighbours over shards: queries go to all of them, and the best of each are merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from labelkin.atomic import atomic_file
from labelkin.cluster.collection_files import export_collection
from labelkin.cluster.records import with_failures_named
from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.shards import build_shards, open_segment, write_headings
from labelkin.cluster.sizes import characters, task_slices, text_alone
from labelkin.cluster.statistics import StatisticsFiles, count_terms, open_statistics
from labelkin.cluster.task import Task, digest
from labelkin.cluster.terms import AnalysisSettings, extract_terms, no_cache
from labelkin.cluster.workspace import Workspace
from labelkin.corpus.document import Document
from labelkin.exceptions import ConfigError
from labelkin.neighbours.engine import TermStatistics, best_hits
from labelkin.neighbours.heading_terms import HeadingTerms, index_fields
from labelkin.neighbours.neighbours import NO_NEIGHBOUR, Neighbours
from labelkin.neighbours.postings_searcher import PostingsSearcher
from labelkin.neighbours.search import NeighbourSearch, SearchContext
from labelkin.neighbours.term_query import TermQueries, TermQuery
from labelkin.neighbours.term_search import TermSearch
from labelkin.represent.cache import text_checksum
from labelkin.represent.encoder import is_encoder
from labelkin.represent.representation import Representation, make_representation
from labelkin.represent.texts import PreparedTexts, Texts
from labelkin.store.config import NeighboursSection, RepresentationSection
from labelkin.store.snapshot import Snapshot
from labelkin.tensors import npz_arrays

RESULTS = "neighbours"
_NO_ROWS: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
# Searchers that a process keeps open, each with the terms that it was asked for.
_OPEN = 4
# Tasks of queries that are searched before the next are begun; what shards find for them is
# on disk meanwhile.
_PARTS_AT_ONCE = 20
_MOST_PARTS = 64
# Texts that are worth a job of Spark, where they can be searched on one machine as well.
_FEWEST = 200

# Called with the name of a stage, the tasks of it that are finished, and all of them.
StageProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class QueryTask(Task):
    """Makes queries of texts that have a language: weighted terms, by global statistics."""

    output: Path
    documents: tuple[Document, ...]
    excluded: tuple[frozenset[int], ...]
    analysis: AnalysisSettings
    settings: str
    statistics: StatisticsFiles

    @property
    def characters(self) -> int:
        """The length of the documents."""
        return characters(self.documents)

    def run(self) -> None:
        """Write a Parquet file: own score, excluded rows, terms and weights by field."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        settings = NeighboursSection.model_validate_json(self.settings)
        made = TermQueries(self.analysis.representation(), settings)
        statistics = open_statistics(self.statistics)

        def queries_of(documents: list[Document]) -> list[TermQuery]:
            texts = PreparedTexts(documents, no_cache())
            return made.of(texts, statistics, settings.max_query_terms)

        queries = with_failures_named(queries_of, list(self.documents), self.workspace)
        columns: dict[str, Any] = {
            "own": pa.array([query.own_score for query in queries], pa.float64()),
            "excluded": pa.array([sorted(one) for one in self.excluded], pa.list_(pa.int64())),
        }
        # The order of fields and terms is that in which scores are added up.
        for field in queries[0].weighted:
            weighted = [query.weighted[field] for query in queries]
            terms = [list(one) for one in weighted]
            weights = [list(one.values()) for one in weighted]
            columns[f"terms {field}"] = pa.array(terms, pa.list_(pa.string()))
            columns[f"weights {field}"] = pa.array(weights, pa.list_(pa.float64()))
        with atomic_file(self.output) as file:
            pq.write_table(pa.table(columns), file)


@dataclass(frozen=True, slots=True)
class SearchTask(Task):
    """Searches one shard with a file of queries."""

    output: Path
    queries: Path
    shard: Path
    statistics: StatisticsFiles
    k: int

    def run(self) -> None:
        """Write the documents of the shard that may be among the best of all."""
        columns = _read_queries(self.queries)
        fields = [name.removeprefix("terms ") for name in columns if name.startswith("terms ")]
        weighted = [
            {
                field: dict(
                    zip(columns[f"terms {field}"][place], columns[f"weights {field}"][place],
                        strict=True)
                )
                for field in fields
            }
            for place in range(len(columns["own"]))
        ]  # fmt: skip
        searcher = _open_searcher(self.shard, self.statistics)
        hits = searcher.candidates(weighted, self.k, columns["excluded"])
        sizes = [len(rows) for rows, _ in hits]
        with atomic_file(self.output) as file:
            np.savez(
                file,
                rows=np.concatenate([_NO_ROWS, *(rows for rows, _ in hits)]),
                scores=np.concatenate([np.zeros(0, np.float32), *(scores for _, scores in hits)]),
                starts=np.cumsum([0, *sizes], dtype=np.int64),
            )


@dataclass(frozen=True, slots=True)
class MergeTask(Task):
    """Merges what shards have found for a file of queries."""

    output: Path
    queries: Path
    hits: tuple[Path, ...]
    k: int

    def run(self) -> None:
        """Write rows and scores of the `k` best, with the same rule for ties as one index."""
        own = np.array(_read_queries(self.queries)["own"], dtype=np.float32)
        parts = [npz_arrays(path) for path in self.hits]
        rows = np.full((len(own), self.k), NO_NEIGHBOUR, dtype=np.int64)
        scores = np.zeros((len(own), self.k), dtype=np.float32)
        for place in range(len(own)):
            found, values = (
                np.concatenate(
                    [part[name][slice(*part["starts"][place : place + 2])] for part in parts]
                )
                for name in ("rows", "scores")
            )
            near, best = best_hits(found, values, self.k)
            rows[place, : len(near)], scores[place, : len(near)] = near, best
        with atomic_file(self.output) as file:
            np.savez(file, rows=rows, scores=scores, own_scores=own)


def _read_queries(path: Path) -> dict[str, list[Any]]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        columns: dict[str, list[Any]] = pq.read_table(file).to_pydict()
    return columns


@lru_cache(maxsize=_OPEN)
def _open_searcher(shard: Path, statistics: StatisticsFiles) -> PostingsSearcher:
    return PostingsSearcher(
        [open_segment(shard)], _NO_ROWS, statistics.fields, open_statistics(statistics)
    )


class ClusterSearch(TermSearch):
    """Searches one snapshot on a cluster, by terms; equal to the search on one machine.

    Documents that were removed do not count in its statistics, as in an index that was
    compacted. `here` searches what is too little for a job of Spark.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        context: SearchContext,
        name: str,
        session: Session,
        workspace: Workspace,
        progress: StageProgress | None = None,
        here: TermSearch | None = None,
    ) -> None:
        NeighbourSearch.__init__(self, snapshot, context)
        self._session = session
        self._workspace = workspace
        self._progress = progress
        self._here = here
        self._bulk = self._bulk_searcher = None
        self.representation = term_representation(name, snapshot.config.representation)
        self._analysis = AnalysisSettings.of(self.representation, snapshot.config.representation)
        has_headings = self._settings.heading_weight > 0
        fields = tuple(sorted(index_fields(self.representation, headings=has_headings)))
        files = export_collection(snapshot, workspace, self._shown("Exporting"))
        terms = extract_terms(
            session, workspace, files, self._analysis, self._shown("Extracting terms")
        )
        headings = None
        if has_headings and files.paths:
            of_headings = HeadingTerms(self.representation.kinds, context.cache)
            headings = write_headings(snapshot, workspace, files, of_headings)
        self._shards = build_shards(
            session,
            workspace,
            files,
            terms,
            headings,
            self.representation,
            fields,
            self._shown("Building shards"),
        )
        self._statistics = count_terms(
            session, workspace, self._shards, fields, self._shown("Counting terms")
        )

    @property
    def batch(self) -> int:
        """How many texts are best searched at a time."""
        parts = min(max(_PARTS_AT_ONCE, self._session.slots), _MOST_PARTS)
        return self._workspace.settings.queries * parts

    def finish(self) -> None:
        """Delete what was found, once it is in the output."""
        self._workspace.sweep(RESULTS)

    def _term_statistics(self) -> TermStatistics:
        return open_statistics(self._statistics)

    def _shown(self, stage: str) -> TaskProgress:
        def show(done: int, total: int) -> None:
            if self._progress is not None:
                self._progress(stage, done, total)

        return show

    def _search(self, texts: Texts, k: int) -> Neighbours:
        if self._here is not None and len(texts) < _FEWEST:
            return self._here.search(texts, k)
        ids = tuple(document.id for document in texts.documents)
        if not ids or not k or not self._shards:
            empty = Neighbours.empty(ids)
            rows = np.full((len(ids), k), NO_NEIGHBOUR, dtype=np.int64)
            return Neighbours(ids, rows, np.zeros(rows.shape, np.float32), empty.own_scores)
        size = self._workspace.settings.queries
        merges: list[MergeTask] = []
        queries: list[QueryTask] = []
        searches: list[SearchTask] = []
        for part in task_slices(texts.prepared, size):
            tasks = self._tasks(texts.prepared[part], texts.own_rows[part], k)
            merges.append(tasks[0])
            if not tasks[0].is_done():
                queries.append(tasks[1])
                searches += tasks[2]
        self._session.run(queries, self._shown("Making queries"))
        # One shard after another: processes then keep the same one open.
        searches.sort(key=lambda task: task.shard)
        self._session.run(searches, self._shown("Searching"))
        self._session.run(merges, self._shown("Merging"))
        for task in searches:
            task.output.unlink(missing_ok=True)
        parts = [npz_arrays(task.output) for task in merges]
        rows, scores, own = (
            np.concatenate([part[name] for part in parts])
            for name in ("rows", "scores", "own_scores")
        )
        return Neighbours(ids, rows, scores, own)

    def _tasks(
        self, documents: Sequence[Document], excluded: Sequence[frozenset[int]], k: int
    ) -> tuple[MergeTask, QueryTask, list[SearchTask]]:
        """The tasks that find the neighbours of some documents."""
        folder = self._workspace.part(RESULTS)
        settings = self._settings.model_dump_json()
        asked = [
            (text_checksum(one).hex(), sorted(rows))
            for one, rows in zip(documents, excluded, strict=True)
        ]
        name = digest(asked, k, settings, self._analysis.versions, self._statistics.name)
        query = QueryTask(
            folder / f"{name}.parquet",
            tuple(map(text_alone, documents)),
            tuple(excluded),
            self._analysis,
            settings,
            self._statistics,
        )
        searches = [
            SearchTask(folder / f"{name}-{place}.npz", query.output, shard, self._statistics, k)
            for place, shard in enumerate(self._shards)
        ]
        hits = tuple(search.output for search in searches)
        return MergeTask(folder / f"{name}.npz", query.output, hits, k), query, searches


def term_representation(name: str, section: RepresentationSection) -> Representation:
    """What a cluster can search by; ConfigError for vectors, fused lists and unknown names."""
    if "," in name or is_encoder(name):
        raise ConfigError(
            f"the representation {name!r} is not only terms; vectors are computed and searched on "
            "one machine: leave out --on"
        )
    return make_representation(name, section)
