"""The tasks of a cluster in this process: what they compute is what one index gives."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from labelkin import Document, Indexer, Settings
from labelkin.annotator import AnnotationJob, Annotator
from labelkin.cli.annotate import _CountedDocuments, _ShownDocuments
from labelkin.cli.cluster import Cluster
from labelkin.cli.neighbours import _searched_on
from labelkin.cli.progress import Meter, Stages
from labelkin.cluster.annotation import ClusterAnnotation, _open_annotator
from labelkin.cluster.arrays import array_record
from labelkin.cluster.collection_files import export_collection, read_documents
from labelkin.cluster.evaluation import rank_on_cluster
from labelkin.cluster.records import annotate_each
from labelkin.cluster.replica import Replica, make_replica, open_replica
from labelkin.cluster.search import ClusterSearch, term_representation
from labelkin.cluster.session import Session, TaskProgress
from labelkin.cluster.sizes import characters, sendable, taken_documents, task_slices, text_alone
from labelkin.cluster.task import Task
from labelkin.cluster.terms import AnalysisSettings, extract_terms, take_back
from labelkin.cluster.workspace import Workspace
from labelkin.corpus import Corpus
from labelkin.exceptions import (
    ClusterError,
    CollectionBusyError,
    CollectionError,
    ConfigError,
    VocabularyError,
)
from labelkin.neighbours.sample_search import nearest_places
from labelkin.neighbours.training import NearestRows, find_nearest
from labelkin.represent.cache import TermCache
from labelkin.represent.representation import make_representation
from labelkin.store.config import RepresentationSection, update_config

from ..inline_session import InlineSession  # noqa: TID252

_WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in "kmnrt"]


def made_document(number: int, generator: random.Random) -> Document:
    # Few different texts, so that there are many ties.
    words = generator.choices(_WORDS[:40], k=4)
    labels = tuple(sorted(set(generator.choices(_WORDS[40:60], k=3))))
    return Document(
        f"d{number}", " ".join(words[:2]), " ".join(words), language="en", labels=labels
    )


@pytest.fixture(params=[1.5, 0.0], ids=["headings", "texts"])
def indexer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Indexer]:
    pytest.importorskip("pyarrow")
    generator = random.Random(1)
    with Indexer.create(tmp_path / "c") as indexer:
        indexer.add([made_document(number, generator) for number in range(1500)])
        indexer.add([Document("without", "no labels", language="en")])
        changes = {
            "cluster": {"part_rows": 200, "shard_rows": 400, "queries": 64},
            "neighbours": {"heading_weight": request.param},
        }
        update_config(tmp_path / "c" / "labelkin.toml", changes)
        yield indexer


@pytest.fixture
def queries() -> list[Document]:
    generator = random.Random(2)
    new = [made_document(number, generator) for number in range(5000, 5150)]
    stored = [made_document(number, random.Random(number)) for number in range(50)]
    return [*new, *stored, Document("empty", "", language="en")]


@pytest.fixture
def copied(indexer: Indexer) -> Iterator[tuple[Workspace, Replica]]:
    """A workspace with a copy of the collection, which tasks open in this process."""
    with Workspace(indexer.collection) as workspace:
        replica = make_replica(indexer.collection, workspace, indexer.collection.generation())
        yield workspace, replica
        open_replica(replica).close()
        open_replica.cache_clear()
        _open_annotator.cache_clear()


def cluster_search(indexer: Indexer, session: Session, workspace: Workspace) -> ClusterSearch:
    context = indexer.runtime.indexes.context
    return ClusterSearch(indexer.snapshot(), context, "stems", session, workspace)


@pytest.mark.parametrize("k", [1, 7, 40])
def test_shards_find_what_one_index_finds(
    indexer: Indexer, queries: list[Document], k: int
) -> None:
    session = InlineSession()
    with Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, session, workspace)
        found = search.search(search.texts(queries), k)
        expected = indexer.neighbour_arrays(queries, k)
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_allclose(found.distances(), expected.distances(), atol=1e-5)
        assert found.ids == expected.ids
        assert found.fingerprint == expected.fingerprint
        assert found.duplicates == expected.duplicates


class ShrinkingSession(InlineSession):
    """Loses its workers one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 64

    @property
    def slots(self) -> int:
        self.left = max(self.left - 10, 1)
        return self.left


def test_every_row_is_searched_though_workers_are_lost(indexer: Indexer) -> None:
    update_config(indexer.collection.path / "labelkin.toml", {"cluster": {"queries": 10}})
    rows = np.arange(1500)
    with Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, InlineSession(), workspace)
        expected = find_nearest(search, rows, 3)
        for find in (find_nearest, nearest_places):
            found = find(cluster_search(indexer, ShrinkingSession(), workspace), rows, 3)
            near = found.near if isinstance(found, NearestRows) else found
            np.testing.assert_array_equal(near, expected.near)


def test_finished_tasks_are_not_run_again(indexer: Indexer, queries: list[Document]) -> None:
    session = InlineSession()
    with Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, session, workspace)
        first = search.search(search.texts(queries), 5)
        done = session.count
        again = cluster_search(indexer, session, workspace)
        second = again.search(again.texts(queries), 5)
        assert session.count == done
        np.testing.assert_array_equal(first.rows, second.rows)
        again.search(again.texts(queries), 6)
        assert session.count > done


def test_a_change_of_the_collection_is_seen(indexer: Indexer, queries: list[Document]) -> None:
    session = InlineSession()
    with Workspace(indexer.collection) as workspace:
        cluster_search(indexer, session, workspace)
        done = session.count
        indexer.add([made_document(9000, random.Random(9))])
        search = cluster_search(indexer, session, workspace)
        # One part of the terms, its shard, and the frequencies of all shards.
        assert session.count - done == 2 + 4
        found = search.search(search.texts(queries), 7)
        np.testing.assert_array_equal(found.rows, indexer.neighbour_arrays(queries, 7).rows)


def test_no_document_gives_no_neighbour(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c") as indexer, Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, InlineSession(), workspace)
        found = search.search(search.texts([Document("a", "text", language="en")]), 3)
        assert (found.rows == -1).all()
        assert found.k == 3


def test_files_hold_the_documents(indexer: Indexer) -> None:
    with Workspace(indexer.collection) as workspace:
        snapshot = indexer.snapshot()
        files = export_collection(snapshot, workspace)
        stored = {
            row: (document, labels)
            for path in files.paths
            for batch in read_documents(path)
            for row, document, labels in zip(*batch, strict=True)
        }
        assert len(stored) == 1500
        texts = snapshot.texts_of(list(stored))
        labels = snapshot.labels_of(list(stored))
        assert stored == {row: (texts[row], labels[row]) for row in stored}
        assert export_collection(snapshot, workspace) == files


def test_terms_are_taken_back(indexer: Indexer, tmp_path: Path) -> None:
    section = indexer.config.representation
    representation = make_representation("stems", section)
    analysis = AnalysisSettings.of(representation, section)
    with Workspace(indexer.collection) as workspace:
        files = export_collection(indexer.snapshot(), workspace)
        terms = extract_terms(InlineSession(), workspace, files, analysis)
        cache = TermCache(tmp_path / "terms.sqlite")
        assert take_back(terms, representation.kinds, cache) == 1500
        documents = list(indexer.snapshot().texts_of(range(1500)).values())
        assert cache.verify(representation.kinds, documents) == 1500
        cache.close()


def test_an_executor_with_another_analysis_is_refused(indexer: Indexer) -> None:
    section = indexer.config.representation
    analysis = AnalysisSettings.of(make_representation("stems", section), section)
    other = AnalysisSettings(analysis.name, analysis.section, (("stems", "of another version"),))
    with pytest.raises(ClusterError, match=r"other stems .*of another version"):
        other.representation()


def test_a_damaged_shard_is_noticed(indexer: Indexer) -> None:
    with Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, InlineSession(), workspace)
        shard = search._shards[0]
        # A copy, because this process has verified the shard itself.
        copy = shard.with_name("copy")
        copy.mkdir()
        for file in shard.iterdir():
            content = bytearray(file.read_bytes())
            if file.name == "documents.npy":
                content[-1] ^= 1
            (copy / file.name).write_bytes(content)
        with pytest.raises(ClusterError, match=r"documents\.npy"):
            array_record(copy)


def test_a_folder_that_is_swept_is_whole_or_gone(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace(indexer.collection) as workspace:
        folder = workspace.part("kind")
        for name in ("old", "kept"):
            (folder / name).mkdir()
            (folder / name / "file").touch()
        with monkeypatch.context() as interrupted:
            interrupted.setattr("shutil.rmtree", lambda *_, **__: None)
            workspace.sweep("kind", [folder / "kept"])
        assert not (folder / "old").exists()
        assert (folder / "kept" / "file").exists()
        workspace.sweep("kind", [folder / "kept"])
        assert list(folder.iterdir()) == [folder / "kept"]


def test_what_no_job_uses_any_more_is_deleted(indexer: Indexer) -> None:
    folder = indexer.collection.path / "cache" / ".cluster"

    def searched(number: int) -> set[str]:
        """The folders that depend on settings after a change of the collection and a job."""
        indexer.add([made_document(number, random.Random(number))])
        with Workspace(indexer.collection) as workspace:
            cluster_search(indexer, InlineSession(), workspace)
        return {path.name for path in folder.iterdir() if "-" in path.name}

    first = searched(9000)
    assert len(first) == 3
    given_up = folder / "terms-0123abcd"
    given_up.mkdir()
    (given_up / "part.parquet").touch()
    assert searched(9001) == searched(9002) == {*first, given_up.name}
    left = folder / ".0123.part"
    left.mkdir()
    week_ago = time.time() - 8 * 24 * 3600
    os.utime(given_up, (week_ago, week_ago))
    assert searched(9003) == first
    assert not left.exists()


def test_a_folder_without_locks_is_told(indexer: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("labelkin.store.locks.fcntl.flock", flock)
    with pytest.raises(CollectionError, match="cannot lock files: mount it so that it can"):
        Workspace(indexer.collection)


def test_long_texts_are_cut_into_more_tasks() -> None:
    documents = [Document(str(number), "1234", "5678", fields={"a": "90"}) for number in range(7)]
    assert characters(documents) == 70
    assert [documents[part] for part in task_slices(documents, 3)] == [
        documents[:3], documents[3:6], documents[6:]
    ]  # fmt: skip
    waiting = iter(documents)
    assert taken_documents(waiting, 5, 11) == documents[:2]
    assert taken_documents(waiting, 5, 1000) == documents[2:]
    assert taken_documents(waiting, 5, 1000) == []


def test_long_texts_have_the_same_neighbours(
    indexer: Indexer, queries: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = InlineSession()
    with Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, session, workspace)
        expected, tasks = search.search(search.texts(queries), 5), session.count
        workspace.sweep("neighbours")
        monkeypatch.setattr("labelkin.cluster.sizes.TASK", 500)
        session.count = 0
        found = search.search(search.texts(queries), 5)
        assert session.count > tasks
        np.testing.assert_array_equal(found.rows, expected.rows)


def test_long_texts_have_the_same_records(
    indexer: Indexer,
    copied: tuple[Workspace, Replica],
    queries: list[Document],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = InlineSession()
    settings = Settings.from_config(indexer.config, "knn")
    job = AnnotationJob(indexer.collection.path, settings, None, False, "en", False)
    annotator = Annotator(indexer, job)
    batches = [queries[:80], queries[80:]]
    expected = [json.loads(json.dumps(annotator(batch))) for batch in batches]
    monkeypatch.setattr("labelkin.cluster.sizes.TASK", 500)
    monkeypatch.setattr("labelkin.cluster.annotation.WAVE", 1000)
    progress: list[int] = []
    work = ClusterAnnotation(session, *copied, job, {}, progress.append)
    assert list(work.map(annotator, batches)) == expected
    assert session.count > len(batches)
    # Each batch is a wave of its own.
    assert progress == [80, len(queries) - 80]


@pytest.mark.parametrize("keep", [False, True])
def test_equal_batches_share_an_output(
    indexer: Indexer, copied: tuple[Workspace, Replica], queries: list[Document], keep: bool
) -> None:
    session, (workspace, replica) = InlineSession(), copied
    settings = Settings.from_config(indexer.config, "knn")
    job = AnnotationJob(indexer.collection.path, settings, None, False, "en", False)
    annotator = Annotator(indexer, job)
    batches = [queries[:10], queries[10:20], queries[:10]]
    work = ClusterAnnotation(session, workspace, replica, job, {}, lambda _: None, keep=keep)
    first, second, third = work.map(annotator, batches)
    assert first == third != second
    # What is kept need not be computed again after an interruption.
    assert len(list((workspace.folder / "annotations").iterdir())) == (2 if keep else 0)
    assert session.count == 2
    assert list(work.map(annotator, batches)) == [first, second, third]
    assert session.count == (2 if keep else 4)


class ShownBar(Meter):
    """What a bar shows."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, str]] = []

    def update(self, done: int, note: str) -> None:
        self.shown.append((done, note))


def test_progress_counts_what_an_earlier_run_has_done(tmp_path: Path) -> None:
    corpus = SimpleNamespace(bytes_read=1000)
    bar, documents = ShownBar(), _CountedDocuments(Document(str(n)) for n in range(100))
    assert len(list(documents)) == 100
    shown = _ShownDocuments(bar, cast("Corpus", corpus), documents)
    shown.kept(60)
    shown.ahead(0)
    shown.ahead(30)
    shown.kept(70)
    shown.kept(90)
    shown.ahead(10)
    assert [done for done, _ in bar.shown] == [600, 600, 900, 900, 900, 1000]
    assert bar.shown[-1][1] == "100 documents"


def test_lines_say_how_far_a_search_is(
    indexer: Indexer,
    queries: list[Document],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("labelkin.cli.progress._SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr("labelkin.cluster.sizes.WAVE", 1500)
    session = InlineSession()
    with Workspace(indexer.collection) as workspace, Stages() as stages:
        search = cluster_search(indexer, session, workspace)
        cluster = Cluster(session, workspace, stages)
        batches = list(_searched_on(cluster, search, iter(queries), 3, None))
    found = [one.id for documents, _, _ in batches for one in documents]
    assert found == [one.id for one in queries]
    lines = [line for line in capsys.readouterr().err.splitlines() if "Neighbours: " in line]
    assert len(lines) == len(batches) + 1 > 2
    assert lines[-1] == f"Neighbours: {len(queries)} documents"


def test_a_stage_that_comes_again_has_a_meter_of_its_own() -> None:
    stages = Stages(lines=True)
    first = stages.at("Searching", 10)
    assert stages.at("Searching", 10) is first
    stages.close()
    assert stages.at("Searching", 20) is not first


def test_one_job_at_a_time(indexer: Indexer) -> None:
    with (
        Workspace(indexer.collection),
        pytest.raises(CollectionBusyError, match="another job"),
    ):
        Workspace(indexer.collection)


@pytest.mark.parametrize("name", ["wordllama", "stems,lsa", "some/model"])
def test_vectors_stay_on_one_machine(name: str) -> None:
    with pytest.raises(ConfigError, match="leave out --on"):
        term_representation(name, RepresentationSection())


def test_a_failing_record_is_left_out_alone(tmp_path: Path) -> None:
    def suggest(documents: list[Document]) -> list[dict[str, object]]:
        if any(one.id == "bad" for one in documents):
            raise ValueError("no such thing")
        return [{"id": one.id} for one in documents]

    documents = [Document("a"), Document("bad", where="f.jsonl, line 2"), Document("b")]
    assert annotate_each(suggest, documents, tmp_path) == [
        {"id": "a"},
        {"failed": "f.jsonl, line 2: bad: ValueError: no such thing"},
        {"id": "b"},
    ]


def test_an_error_of_the_collection_fails_the_batch(tmp_path: Path) -> None:
    def suggest(documents: list[Document]) -> list[dict[str, object]]:
        raise VocabularyError("no heading of that name")

    with pytest.raises(VocabularyError):
        annotate_each(suggest, [Document("a")], tmp_path)


@pytest.mark.parametrize("place", ["elsewhere", "workspace"])
def test_a_missing_file_concerns_the_workspace_or_the_record(place: str, tmp_path: Path) -> None:
    def suggest(documents: list[Document]) -> list[dict[str, object]]:
        (tmp_path / place / "file").open()
        return []

    documents, workspace = [Document("a", where="f.jsonl, line 2")], tmp_path / "workspace"
    if place == "workspace":
        with pytest.raises(FileNotFoundError):
            annotate_each(suggest, documents, workspace)
    else:
        (record,) = annotate_each(suggest, documents, workspace)
        assert record["failed"].startswith("f.jsonl, line 2: a: FileNotFoundError: ")


def test_a_batch_of_failing_records_names_the_first(tmp_path: Path) -> None:
    def suggest(documents: list[Document]) -> list[dict[str, object]]:
        raise ValueError("broken\nin all")

    documents = [Document(f"d{number}", where=f"f.jsonl, line {number}") for number in range(12)]
    expected = "all 12 records .* the first: f.jsonl, line 0: d0: ValueError: broken in all; check"
    with pytest.raises(ClusterError, match=expected):
        annotate_each(suggest, documents, tmp_path)


def test_a_text_that_an_analysis_cannot_take_is_named(
    indexer: Indexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = TermCache.terms

    def picky(self: TermCache, kinds: Any, documents: Sequence[Document], **options: Any) -> Any:
        if any(one.id in {"bad", "d77"} for one in documents):
            raise ValueError("I do not like it")
        return terms(self, kinds, documents, **options)

    session = InlineSession()
    with Workspace(indexer.collection) as workspace:
        search = cluster_search(indexer, session, workspace)
        monkeypatch.setattr(TermCache, "terms", picky)
        texts = [Document("a", "text"), Document("bad", "text", where="f.jsonl, line 2")]
        with pytest.raises(ClusterError, match=r"f\.jsonl, line 2: bad: ValueError: I do"):
            search.search(search.texts(texts), 3)
        workspace.sweep(search._shards[0].parent.name)
        for folder in workspace.folder.glob("terms-*"):
            workspace.sweep(folder.name)
        with pytest.raises(ClusterError, match="document 'd77': d77: ValueError: I do not like"):
            cluster_search(indexer, session, workspace)


def test_a_text_that_a_method_cannot_rank_is_named(
    copied: tuple[Workspace, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rankings(self: Indexer, documents: Sequence[Document], *_: Any, **__: Any) -> Any:
        if any(one.id == "bad" for one in documents):
            raise ValueError("I do not like it")
        return []

    monkeypatch.setattr(Indexer, "rankings", rankings)
    documents = [Document("a"), Document("bad", where="f.jsonl, line 2"), Document("b")]
    with pytest.raises(ClusterError, match="line 2: bad: ValueError: I do not like it; correct"):
        rank_on_cluster(InlineSession(), *copied, documents, [], None, {}, is_bulk=False)


def laden(document: Document) -> Document:
    """A document with all that results do not depend on."""
    return replace(
        document,
        metadata={"fulltext": "x" * 5000},
        labels=("a label",),
        label_names={"a label": "its name"},
        fields={"notes": "y" * 5000},
        where="f.jsonl, line 1",
    )


class KeepingSession(InlineSession):
    """Keeps the tasks that it has run."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Any] = []

    def run(self, tasks: Sequence[Task], progress: TaskProgress | None = None) -> None:
        self.tasks += tasks
        super().run(tasks, progress)

    def sent(self) -> list[Document]:
        return [one for task in self.tasks for one in getattr(task, "documents", ())]


def test_executors_get_texts_alone(
    indexer: Indexer, copied: tuple[Workspace, Replica], queries: list[Document]
) -> None:
    session, (workspace, replica) = KeepingSession(), copied
    replica = replace(replica, max_characters=1000)
    documents = [laden(document) for document in queries[:20]]
    settings = Settings.from_config(indexer.config, "knn")
    job = AnnotationJob(indexer.collection.path, settings, None, False, "en", False)
    annotator = Annotator(indexer, job)
    work = ClusterAnnotation(session, workspace, replica, job, {}, lambda _: None)
    (records,) = work.map(annotator, [documents])
    assert [record["id"] for record in records] == [document.id for document in documents]
    rank_on_cluster(session, workspace, replica, documents, [settings], None, {}, is_bulk=False)
    open_replica(replica).close()
    assert len(session.sent()) == 2 * len(documents)
    for one in session.sent():
        assert one.fields == {"notes": "y" * 1000}
        assert not one.metadata
        assert one.where
    search = cluster_search(indexer, session, workspace)
    session.tasks = []
    search.search(search.texts(documents), 3)
    assert len(session.sent()) == len(documents)
    assert not any(one.metadata or one.labels or one.label_names for one in session.sent())


def test_long_texts_are_cut_before_they_are_sent() -> None:
    one = laden(Document("a", "t" * 2000, "b" * 2000, language="en"))
    (sent,) = sendable([one], 1000)
    assert (sent.title, sent.body) == (one.title, one.body[:1000])
    assert sent.cut(1000) == text_alone(one).cut(1000)
    assert (sent.id, sent.language, sent.where) == (one.id, one.language, one.where)


def test_an_evaluation_is_of_the_state_that_was_ranked(
    indexer: Indexer, queries: list[Document]
) -> None:
    settings = [Settings.from_config(indexer.config, "knn")]
    documents = [replace(document, labels=(_WORDS[50],)) for document in queries]
    (expected,) = indexer.compare(documents, settings)
    snapshot, rankings = indexer.snapshot(), indexer.rankings(documents, settings)
    indexer.add([made_document(9000, random.Random(9))])
    (found,) = indexer.compare(documents, settings, ranked=(snapshot, rankings))
    assert found.training_documents == expected.training_documents
    np.testing.assert_array_equal(found.ranked.columns, expected.ranked.columns)
