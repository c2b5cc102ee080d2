"""Commands on a real cluster give what they give on one machine."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from labelkin import Document, Indexer, Settings, read_vocabulary
from labelkin.annotator import AnnotationJob, Annotator
from labelkin.cli.cluster import ClusterProvider
from labelkin.cluster.annotation import ClusterAnnotation
from labelkin.cluster.replica import make_replica
from labelkin.cluster.session import Session
from labelkin.cluster.terms import no_cache
from labelkin.cluster.workspace import Workspace
from labelkin.corpus import read_corpus
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import MissingExtraError
from labelkin.experiments.preparation import NeighbourStage
from labelkin.experiments.runner import run as run_plan
from labelkin.neighbours import Neighbours
from labelkin.represent.language_model import find_language_model
from labelkin.scoring.annotation import AnnotationReport, MapBatches, Suggest, annotate
from labelkin.store.config import update_config
from labelkin.vocab import Vocabulary

from ..experiments.small_grid import GRID, Silent, plan_of, write_data  # noqa: TID252
from ..runtime_data import DOCUMENTS, fresh_documents, make_trained  # noqa: TID252
from .conftest import OPTIONS, Standalone, begin, labelkin, printed_json, with_packages

pytestmark = pytest.mark.cluster

METHOD = '''
from labelkin import Method, Ranking


class Picky(Method):
    """Suggests the first heading, but not for texts that it does not like."""

    name = "picky"

    def depth(self, settings):
        return 0

    def rank(self, queries, settings):
        if any("unlikeable" in one.text for one in queries.documents):
            raise ValueError("I do not like it")
        return Ranking.from_lists([[0]] * len(queries), [[1.0]] * len(queries))
'''


def set_cluster(collection: Path, *options: str, **values: object) -> None:
    changes = {"options": [*OPTIONS, *options], "executor_memory": "512m", **values}
    update_config(collection / "labelkin.toml", {"cluster": changes})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A small collection with all models, and the methods that it can use."""
    path = tmp_path_factory.mktemp("trained") / "c"
    methods = make_trained(path)
    set_cluster(path, part_rows=100, shard_rows=200, queries=50)
    return path, methods


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts, one of which is broken."""
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    lines = [
        json.dumps({"id": f"q{number}", "title": one.title, "body": one.body})
        for number, one in enumerate(fresh_documents(120))
    ]
    lines.insert(7, '{"id": "broken')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_annotate_writes_the_same_file(
    standalone: Standalone, trained: tuple[Path, list[str]], texts: Path, tmp_path: Path
) -> None:
    collection, methods = trained
    method = "rerank" if "rerank" in methods else "knn"
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    labelkin("annotate", collection, texts, "-o", here, "--method", method)
    printed = labelkin(
        "annotate", collection, texts, "-o", there, "--method", method, "--on", standalone.master
    )
    assert there.read_bytes() == here.read_bytes()
    assert "Spark: http://127.0.0.1:" in printed
    assert "texts.jsonl, line 8: broken JSON" in printed
    assert "\tat " not in printed


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled documents that the collection does not have."""
    path = tmp_path_factory.mktemp("labelled") / "labelled.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for one in list(demo_documents(DOCUMENTS + 700, 0))[DOCUMENTS:]:
            record = {
                "id": one.id,
                "title": one.title,
                "body": one.body,
                "labels": list(one.labels),
            }
            file.write(json.dumps(record) + "\n")
    return path


def test_eval_gives_the_same_values(
    standalone: Standalone, trained: tuple[Path, list[str]], labelled: Path
) -> None:
    collection, methods = trained
    asked = [part for method in methods for part in ("--method", method)]
    here = printed_json("eval", collection, labelled, *asked)
    there = printed_json("eval", collection, labelled, *asked, "--on", standalone.master)
    assert there == here
    assert not list((collection / "cache" / ".cluster" / "rankings").iterdir())


def _model_files(collection: Path) -> dict[str, Path]:
    """The files of all models by what they hold; their names end with a checksum."""
    paths = [*(collection / "models").rglob("*.safetensors"), *collection.rglob("models/*/*-*.txt")]
    return {f"{path.parent.name}/{path.name.partition('-')[0]}": path for path in paths}


def _suggested(collection: Path) -> list[list[str]]:
    with Indexer.open(collection, read_only=True) as indexer:
        return [[one.concept.id for one in found] for found in indexer.suggest(fresh_documents())]


@pytest.mark.soak
def test_train_makes_the_same_models(standalone: Standalone, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    here, there = tmp_path / "here", tmp_path / "there"
    with Indexer.create(here, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
    set_cluster(here, part_rows=100, shard_rows=200, queries=100)
    shutil.copytree(here, there)
    asked = ("--epochs", "2", "--device", "cpu")
    labelkin("train", here, *asked)
    printed = labelkin("train", there, *asked, "--on", standalone.master)
    assert "Spark: http://127.0.0.1:" in printed
    workspace = there / "cache" / ".cluster"
    assert list(workspace.glob("shards-*/*"))
    assert not list((workspace / "neighbours").iterdir())
    ours, theirs = _model_files(there), _model_files(here)
    assert ours.keys() == theirs.keys()
    for kind in ("rerank/linear", "rerank/statistics", "rerank/terms"):
        assert ours[kind].read_bytes() == theirs[kind].read_bytes()
    # The last digits of similarities differ between the engines, and with them what depends on
    # similarities.
    weights, expected = (load_file(files["label-ae/weights"]) for files in (ours, theirs))
    assert weights.keys() == expected.keys()
    for name in expected:
        assert weights[name] == pytest.approx(expected[name], abs=1e-4), name
    assert _suggested(there) == _suggested(here)


@pytest.mark.soak
def test_experiment_gives_the_same_report(
    standalone: Standalone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setattr("labelkin.cluster.search._FEWEST", 1)
    data, grid = tmp_path / "data", tmp_path / "small.toml"
    write_data(data)
    options = json.dumps([*OPTIONS])
    settings = f'executor_memory = "512m"\npart_rows = 50\nshard_rows = 100\noptions = {options}'
    grid.write_text(f"{GRID}\n[collection.settings.cluster]\n{settings}\n", encoding="utf-8")
    here, there = (plan_of(grid, tmp_path / name, data) for name in ("here", "there"))
    run_plan(here, Silent())
    run_plan(there, Silent(), lambda indexer: ClusterProvider(indexer, standalone.master))
    searched = [stage for stage in there.stages if isinstance(stage, NeighbourStage)]
    assert searched
    assert list(there.work.rglob(".cluster/shards-*/*"))
    for one, other in zip(here.ends, there.ends, strict=True):
        assert one.path.read_bytes() == other.path.read_bytes()


def test_every_method_gives_the_same_records(
    standalone: Standalone,
    trained: tuple[Path, list[str]],
    texts: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    collection, methods = trained
    documents = list(read_corpus(texts, texts=True).documents())
    batches = [documents[:50], documents[50:100], documents[100:]]
    with (
        Indexer.open(collection) as indexer,
        Workspace(indexer.collection) as workspace,
        Session(standalone.master, workspace.settings, workspace.folder) as session,
    ):
        indexer.build()
        replica = make_replica(indexer.collection, workspace, indexer.collection.generation())
        for method in methods:
            settings = Settings.from_config(indexer.config, method)
            job = AnnotationJob(collection, settings, None, False, "en", False)
            annotator = Annotator(indexer, job)
            progress: list[int] = []
            mapped = ClusterAnnotation(
                session, workspace, replica, job, {"method": method}, progress.append
            ).map(annotator, batches)
            expected = [json.loads(json.dumps(annotator(batch))) for batch in batches]
            assert list(mapped) == expected, method
            assert progress[-1] == len(documents)


def test_every_format_and_a_run_that_is_resumed(
    standalone: Standalone,
    trained: tuple[Path, list[str]],
    texts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setattr("labelkin.scoring.annotation._BATCH", 50)
    collection, _ = trained
    documents = list(read_corpus(texts, texts=True).documents())
    with (
        Indexer.open(collection) as indexer,
        Workspace(indexer.collection) as workspace,
        Session(standalone.master, workspace.settings, workspace.folder) as session,
    ):
        indexer.build()
        replica = make_replica(indexer.collection, workspace, indexer.collection.generation())
        settings = Settings.from_config(indexer.config, "knn")
        job = AnnotationJob(collection, settings, None, False, "en", False)
        annotator = Annotator(indexer, job)
        ahead: list[int] = []
        work = ClusterAnnotation(session, workspace, replica, job, {}, ahead.append)

        def written(name: str, map_batches: MapBatches) -> AnnotationReport:
            labels = [one.id for one in indexer.vocabulary]
            return annotate(
                documents, annotator, tmp_path / name, labels=labels, settings={},
                progress=kept.append, map_batches=map_batches,
            )  # fmt: skip

        def interrupted(
            suggest: Suggest, batches: Iterable[list[Document]]
        ) -> Iterator[list[dict[str, Any]]]:
            yield from islice(work.map(suggest, batches), 1)
            raise KeyboardInterrupt

        for name in ("headings.csv", "headings.tsv", "headings.json", "headings.npz"):
            kept: list[int] = []
            written(name, map)
            expected = (tmp_path / name).read_bytes()
            (tmp_path / name).unlink()
            with pytest.raises(KeyboardInterrupt):
                written(name, interrupted)
            assert not (tmp_path / name).exists()
            kept, ahead[:] = [], []
            assert written(name, work.map).resumed == 50
            assert (tmp_path / name).read_bytes() == expected
            assert kept == [50, 100, len(documents)]
            assert ahead[-1] == len(documents) - 50


def test_a_failing_record_is_reported_by_its_line(
    standalone: Standalone, trained: tuple[Path, list[str]], tmp_path: Path
) -> None:
    collection, _ = trained
    packages = tmp_path / "packages"
    metadata = packages / "picky-1.0.dist-info"
    metadata.mkdir(parents=True)
    (packages / "picky.py").write_text(METHOD)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: picky\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[labelkin.methods]\npicky = picky:Picky\n")
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lines = [
        {"id": "a", "title": "good"},
        {"id": "b", "title": "unlikeable"},
        {"id": "c", "title": "x"},
    ]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    set_cluster(collection, f"spark.executorEnv.PYTHONPATH={with_packages(packages)}")
    try:
        printed = labelkin(
            "annotate", collection, source, "-o", output, "--method", "picky",
            "--on", standalone.master, code=3, packages=packages,
        )  # fmt: skip
    finally:
        set_cluster(collection)
    assert f"{source}, line 2: b: ValueError: I do not like it" in printed
    written = [json.loads(line)["id"] for line in output.read_text().splitlines()]
    assert written == ["a", "c"]


def _has_spacy_model() -> bool:
    try:
        find_language_model("en_core_web_sm")
    except MissingExtraError:
        return False
    return True


@pytest.mark.skipif(not _has_spacy_model(), reason="needs tests/requirements-model.txt")
def test_spacy_terms_are_the_same(
    standalone: Standalone, trained: tuple[Path, list[str]], tmp_path: Path
) -> None:
    collection, _ = trained
    printed = labelkin(
        "build", collection, "--representation", "lemmas+nps", "--on", standalone.master
    )
    assert "Took the terms of 400 documents from the cluster." in printed
    with Indexer.open(collection) as indexer:
        from labelkin.represent.representation import make_representation

        kinds = make_representation("lemmas+nps", indexer.config.representation).kinds
        documents = list(indexer.snapshot().texts_of(range(400)).values())
        cache = indexer.runtime.indexes.context.cache
        assert len(documents) == 400
        # Both kinds together, as a build here extracts them.
        expected = no_cache().terms(kinds, documents, store=False)
        assert cache.terms(kinds, documents, store=False) == expected


def test_an_interrupted_job_continues(
    standalone: Standalone, trained: tuple[Path, list[str]], texts: Path, tmp_path: Path
) -> None:
    collection, _ = trained
    found, expected = tmp_path / "there.npz", tmp_path / "here.npz"
    process = begin("neighbours", collection, texts, "-o", found, "--on", standalone.master)
    folder = collection / "cache" / ".cluster"
    _wait_for(process, folder, "terms-*/*.parquet", 1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not found.exists()
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("terms-*/*.parquet")}
    assert kept
    labelkin("neighbours", collection, texts, "-o", found, "--on", standalone.master)
    labelkin("neighbours", collection, texts, "-o", expected)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    _assert_equal(found, expected)


def test_a_worker_without_labelkin(
    standalone: Standalone, trained: tuple[Path, list[str]], texts: Path, tmp_path: Path
) -> None:
    collection, _ = trained
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True
    )
    python = tmp_path / "bare" / "bin" / "python"
    set_cluster(collection, python=str(python))
    try:
        output = tmp_path / "out.jsonl"
        printed = labelkin(
            "annotate", collection, texts, "-o", output, "--on", standalone.master, code=1
        )
    finally:
        set_cluster(collection, python="")
    (line,) = [line for line in printed.splitlines() if "error" in line.lower()]
    assert f"the Python of the workers, {python}, has no labelkin; install" in line
    assert "Traceback" not in printed
    assert not output.exists()


def test_out_of_memory(
    standalone: Standalone, trained: tuple[Path, list[str]], texts: Path, tmp_path: Path
) -> None:
    collection, _ = trained
    set_cluster(collection, "spark.executor.pyspark.memory=150m")
    try:
        output = tmp_path / "out.jsonl"
        printed = labelkin(
            "annotate", collection, texts, "-o", output, "--on", standalone.master, code=1
        )
    finally:
        set_cluster(collection)
    (line,) = [line for line in printed.splitlines() if "error" in line.lower()]
    assert "an executor ran out of memory" in line
    assert "Traceback" not in printed


@pytest.mark.mount
def test_no_shared_file_system(
    new_cluster: Standalone, trained: tuple[Path, list[str]], texts: Path, tmp_path: Path
) -> None:
    collection, _ = trained
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    hide = f'mount -t tmpfs none {collection.parent} && exec "$0" "$@"'
    new_cluster.start_worker(["unshare", "-m", "sh", "-c", hide])
    output = tmp_path / "out.jsonl"
    printed = labelkin(
        "annotate", collection, texts, "-o", output, "--on", new_cluster.master, code=1
    )
    assert "on a file system that all of them share at the same path" in printed
    assert "Traceback" not in printed
    assert not output.exists()


@pytest.fixture(scope="module")
def mesh47k(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A collection of all training records of mesh47k."""
    path = tmp_path_factory.mktemp("mesh47k") / "c"
    vocabulary = read_vocabulary(shared_data / "mesh" / "descriptors.tsv.gz")
    with Indexer.create(path, vocabulary, language="en") as indexer:
        indexer.add(read_corpus(shared_data / "mesh47k" / "train.json.gz"))
    yield path


@pytest.mark.shared
def test_a_killed_worker_changes_nothing_but_time(
    new_cluster: Standalone, mesh47k: Path, shared_data: Path, tmp_path: Path
) -> None:
    texts = tmp_path / "texts.jsonl"
    documents = [
        Document(str(one["pmid"]), one["title"], one["abstractText"], language="en")
        for name in ("test", "l1000")
        for one in json.loads(
            gzip.decompress((shared_data / "mesh47k" / f"{name}.json.gz").read_bytes())
        )["articles"]
    ][:2000]
    with texts.open("w", encoding="utf-8") as file:
        for one in documents:
            record = {"id": one.id, "title": one.title, "body": one.body, "language": "en"}
            file.write(json.dumps(record) + "\n")
    set_cluster(mesh47k, part_rows=2000, shard_rows=12000, queries=500)
    new_cluster.start_worker()
    killed = new_cluster.start_worker()
    found = tmp_path / "there.npz"
    process = begin("neighbours", mesh47k, texts, "-o", found, "--on", new_cluster.master)
    _wait_for(process, mesh47k / "cache" / ".cluster", "terms-*/*.parquet", 4)
    new_cluster.kill(killed)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    expected = tmp_path / "here.npz"
    labelkin("neighbours", mesh47k, texts, "-o", expected)
    assert len(Neighbours.load(found)) == 2000
    _assert_equal(found, expected)


def _wait_for(process: subprocess.Popen[str], folder: Path, pattern: str, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob(pattern))) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _assert_equal(found: Path, expected: Path) -> None:
    ours, theirs = Neighbours.load(found), Neighbours.load(expected)
    assert ours.ids == theirs.ids
    overlaps = [
        len(set(mine) & set(other)) / len(set(other))
        for mine, other in zip(ours.rows.tolist(), theirs.rows.tolist(), strict=True)
    ]
    assert np.mean(overlaps) == 1.0
    np.testing.assert_allclose(ours.distances(), theirs.distances(), atol=1e-5)
