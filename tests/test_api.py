"""The public names of the package, and what `Indexer` adds to the parts that have tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import labelkin
from labelkin import Document, Indexer
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.exceptions import CollectionError, InputError, TrainingError, VocabularyError
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.settings import Settings
from labelkin.training_plan import TrainingObserver, TrainingReport
from labelkin.vocab import Vocabulary

AUTOENCODER = TrainingSettings(preset="8", epochs=2, batch_size=32, device="cpu")
RERANKER = RerankTrainingSettings(documents=45, rounds=12, linear=False, threads=1)
RERANK = Settings(method="rerank")
DOCUMENTS = 320


def test_exported_names_are_listed_and_can_be_imported() -> None:
    listed = dir(labelkin)
    for name in labelkin.__all__:
        assert name in listed
        assert getattr(labelkin, name) is not None
    assert listed == sorted(listed)


def test_importing_the_package_loads_none_of_its_parts() -> None:
    code = "import sys, labelkin; print([n for n in sys.modules if n.startswith('labelkin.')])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "['labelkin._version', 'labelkin.lazy']\n"


def test_open_or_create(tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]) -> None:
    path = tmp_path / "c"
    with Indexer.open_or_create(path, vocabulary, name="Bakery", language="en") as indexer:
        indexer.add(documents)
        assert indexer.config.collection.name == "Bakery"
    # An existing collection keeps its own vocabulary and settings.
    with Indexer.open_or_create(path, name="Another") as indexer:
        assert indexer.collection.count() == 3
        assert len(indexer.vocabulary) == len(vocabulary)
        assert indexer.config.collection.name == "Bakery"


def test_open_or_create_leaves_other_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CollectionError):
        Indexer.open_or_create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.fixture
def bakery(tmp_path: Path, vocabulary: Vocabulary, documents: list[Document]) -> Iterator[Indexer]:
    with Indexer.create(tmp_path / "c", vocabulary, language="en") as indexer:
        indexer.add(documents)
        yield indexer


def test_neighbours_have_ids_and_headings(bakery: Indexer) -> None:
    texts = [Document("q", "Baking with dark rye"), Document("e", "zzzz")]
    (near, nobody) = bakery.neighbours(texts, 5, terms=2)
    assert nobody == []
    (first,) = near
    assert (first.id, first.title) == ("d1", "Baking with rye")
    assert [concept.id for concept in first.headings] == ["V1", "V2"]
    assert 0 <= first.distance < 1
    assert first.score > 0
    assert len(first.terms) == 2
    assert first.terms[0].share >= first.terms[1].share
    assert bakery.neighbours(texts[:1])[0][0].terms == ()
    assert bakery.neighbours([]) == []


def test_a_document_is_not_its_own_neighbour(bakery: Indexer) -> None:
    ((first, *_),) = bakery.neighbours([Document("q", "Porridge")])
    assert first.id == "d2"
    assert bakery.neighbours([Document("d2", "Porridge")]) == [[]]


def test_neighbours_as_arrays_are_the_same_documents(bakery: Indexer) -> None:
    texts = [Document("q", "Porridge and rye")]
    arrays = bakery.neighbour_arrays(texts, 3)
    rows = bakery.collection.rows_of(["d1", "d2"])
    near = bakery.neighbours(texts, 3)[0]
    assert [rows[one.id] for one in near] == arrays.rows[0, : len(near)].tolist()
    assert [one.score for one in near] == arrays.scores[0, : len(near)].tolist()


def test_an_answer_names_its_generation(bakery: Indexer) -> None:
    texts = [Document("q", "Porridge")]
    first = bakery.answer(texts)
    assert first.generation == bakery.collection.generation().number
    assert first.suggestions == bakery.suggest(texts)
    bakery.add([Document("d4", "Porridge at night", language="en", labels=("V1",))])
    second = bakery.answer(texts)
    assert second.generation == bakery.snapshot().generation().number > first.generation
    assert len(second.suggestions[0]) >= len(first.suggestions[0])


def test_several_settings_over_one_search(bakery: Indexer, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [Document("", "Porridge and rye bread"), Document("d1", "Baking with rye")]
    settings = [
        Settings(),
        Settings().changed(k=1),
        Settings(method="lexical"),
        Settings().changed(k=2, limit=1),
    ]
    expected = [bakery.answer(texts, settings=one) for one in settings]
    search = bakery.search()
    asked: list[int] = []
    found = type(search).search

    def searching(self: Any, queries: Any, k: int) -> Any:
        asked.append(k)
        return found(self, queries, k)

    monkeypatch.setattr(type(search), "search", searching)
    assert bakery.answers(texts, settings) == expected
    assert asked == [Settings().k]
    assert bakery.answers(texts, []) == []
    assert [one.suggestions for one in bakery.answers([], settings)] == [[]] * 4
    with pytest.raises(InputError):
        bakery.answers("text", settings)  # type: ignore[arg-type]


class Recorder(TrainingObserver):
    """Keeps everything that it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def planned(self, report: TrainingReport) -> None:
        self.events.append(("planned", report))

    def stage(self, name: str, done: int, total: int) -> None:
        self.events.append((name, (done, total)))

    def epoch(self, progress: Any) -> None:
        self.events.append(("epoch", progress.epoch))

    def trained_label_ae(self, report: Any) -> None:
        self.events.append(("trained label-ae", report))

    def trained_reranker(self, report: Any) -> None:
        self.events.append(("trained reranker", report))

    def names(self) -> list[str]:
        """The names of the events in the order in which they came first."""
        return list(dict.fromkeys(name for name, _ in self.events))


@pytest.fixture(scope="module")
def demo(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, TrainingReport, Recorder]:
    """A collection with both models, and how its training went."""
    pytest.importorskip("torch", reason="needs the extra `train`")
    pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
    pytest.importorskip("sklearn", reason="needs the extra `rerank`")
    path, recorder = tmp_path_factory.mktemp("api") / "demo", Recorder()
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(DOCUMENTS, 0))
        report = indexer.train(label_ae=AUTOENCODER, rerank=RERANKER, observer=recorder)
    return path, report, recorder


@pytest.fixture
def trained(demo: tuple[Path, TrainingReport, Recorder]) -> Iterator[Indexer]:
    with Indexer.open(demo[0]) as indexer:
        yield indexer


@pytest.fixture(scope="module")
def new_document() -> Document:
    return list(demo_documents(DOCUMENTS + 1, 0))[-1]


def test_training_does_both_models(demo: tuple[Path, TrainingReport, Recorder]) -> None:
    path, report, _ = demo
    assert report.skipped == []
    assert report.label_ae is not None
    assert report.rerank is not None
    assert (report.plan.documents, report.plan.held_out, report.plan.unseen) == (DOCUMENTS, 45, 45)
    assert report.rerank.info.training["held_out"] == 45
    assert "autoencoder" in report.rerank.info.groups
    assert report.method_before == "knn"
    assert report.method == ("rerank" if report.rerank.score > report.rerank.votes else "knn")
    config = tomllib.loads((path / "labelkin.toml").read_text())
    assert config["suggest"]["method"] == report.method
    assert config["rerank"]["threshold"] == report.rerank.threshold


def test_an_observer_sees_all_stages(demo: tuple[Path, TrainingReport, Recorder]) -> None:
    _, report, recorder = demo
    names = recorder.names()
    in_order = ["planned", "Indexing", "epoch", "trained label-ae", "Reading texts"]
    in_order += ["Scoring held-out documents", "Training trees", "trained reranker"]
    assert [name for name in names if name in in_order] == in_order
    assert names[0] == "planned"
    assert names[-1] == "trained reranker"
    events = dict(recorder.events)
    assert events["planned"] is report
    assert events["trained label-ae"] is report.label_ae
    assert events["trained reranker"] is report.rerank
    for name, value in recorder.events:
        if isinstance(value, tuple):
            done, total = value
            assert 0 <= done <= total, name
    for name in ("Indexing", "Reading texts", "Training trees"):
        done, total = events[name]
        assert done == total


def test_one_model_alone(demo: tuple[Path, TrainingReport, Recorder], tmp_path: Path) -> None:
    shutil.copytree(demo[0], tmp_path / "c")
    with Indexer.open(tmp_path / "c") as indexer:
        before = indexer.models_checksum("label-ae"), indexer.models_checksum("rerank")
        report = indexer.train(label_ae=False, rerank=RERANKER)
        assert report.label_ae is None
        assert report.rerank is not None
        assert not report.outdated_reranker
        assert indexer.models_checksum("label-ae") == before[0]
        report = indexer.train(label_ae=replace(AUTOENCODER, seed=3), rerank=False)
        assert report.rerank is None
        assert report.outdated_reranker
        assert indexer.models_checksum("label-ae") != before[0]
        assert indexer.models_checksum("rerank") != before[1]


def test_too_few_documents_for_a_reranker(bakery: Indexer) -> None:
    with pytest.raises(TrainingError, match="too few"):
        bakery.train(label_ae=False)


def test_explaining_one_heading(trained: Indexer, new_document: Document) -> None:
    (suggestions,) = trained.suggest([new_document], settings=RERANK.changed(limit=9), explain=True)
    third = suggestions[2]
    (by_id,) = trained.explain(new_document, [third.concept.id], settings=RERANK)
    (by_name,) = trained.explain(new_document, [third.concept.name()], settings=RERANK)
    assert by_id == by_name == third
    assert (by_id.rank, len(by_id.signals) > 3) == (3, True)


def test_explaining_headings_below_the_cut(trained: Indexer, new_document: Document) -> None:
    (suggestions,) = trained.suggest([new_document], settings=RERANK.changed(limit=30))
    asked = [suggestions[place].concept.id for place in (20, 4)]
    explained = trained.explain(new_document, asked, settings=RERANK.changed(threshold=0.99))
    assert [(one.concept.id, one.rank) for one in explained] == [(asked[1], 5), (asked[0], 21)]
    unranked = next(c.id for c in trained.vocabulary if c.deprecated)
    assert trained.explain(new_document, [unranked], settings=RERANK) == []
    with pytest.raises(VocabularyError):
        trained.explain(new_document, ["Unheard of"], settings=RERANK)


@pytest.mark.parametrize("explain", [False, True])
def test_all_methods_side_by_side(trained: Indexer, new_document: Document, explain: bool) -> None:
    others = [Document("", one.title, one.body) for one in list(demo_documents(3, 5))]
    texts = [new_document, *others]
    settings = [Settings.from_config(trained.config, name) for name in trained.usable_methods()]
    settings += [settings[-1].changed(limit=2), Settings().changed(k=3)]
    assert {"knn", "label-ae", "mix", "rerank", "lexical"} <= {one.method for one in settings}
    answers = trained.answers(texts, settings, explain=explain, fold=True)
    assert {one.generation for one in answers} == {trained.snapshot().generation().number}
    for one, answer in zip(settings, answers, strict=True):
        assert answer == trained.answer(texts, settings=one, explain=explain, fold=True)
    # Whatever precedes or follows a method changes nothing.
    assert trained.answers(texts, settings[::-1], explain=explain, fold=True) == answers[::-1]


def test_explaining_by_votes(trained: Indexer, new_document: Document) -> None:
    settings = Settings()
    (suggestions,) = trained.suggest([new_document], settings=settings)
    (explained,) = trained.explain(new_document, [suggestions[0].concept.id], settings=settings)
    assert explained == suggestions[0]


def test_warming_up(trained: Indexer, new_document: Document) -> None:
    assert trained.warm_up() == [trained.config.suggest.method]
    names = trained.usable_methods()
    assert trained.warm_up(names) == names
    made = {key[0] if isinstance(key, tuple) else key for key in trained.runtime.views().used()}
    assert {"search", "decoder"} <= made
    before = trained.runtime.views()
    trained.suggest([new_document])
    assert trained.runtime.views() is before


def test_warming_up_an_empty_collection(tmp_path: Path, vocabulary: Vocabulary) -> None:
    with Indexer.create(tmp_path / "c", vocabulary) as indexer:
        assert indexer.warm_up() == ["knn"]
        assert indexer.warm_up(["lexical"]) == ["lexical"]
