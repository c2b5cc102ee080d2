"""Stores and models that change, break or go away while others use them."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Document, Indexer, Settings, TrainingSettings
from labelkin.autoencoder.model import LabelModel
from labelkin.demo import demo_documents
from labelkin.exceptions import ConfigError, InputError, ModelDamagedError
from labelkin.scoring.decoder import Decoder
from labelkin.store.config import CONFIG_NAME, update_config

from .runtime_data import DOCUMENTS, fresh_documents, make_trained, signature

pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("lightgbm", reason="needs the extra `rerank`")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "c"
    make_trained(path)
    return path


@pytest.fixture
def indexer(trained: Path, tmp_path: Path) -> Iterator[Indexer]:
    shutil.copytree(trained, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as opened:
        yield opened


def asked(method: str) -> Settings:
    return Settings(method=method).changed(limit=5)


def more(count: int, seed: int = 1) -> list[Document]:
    return [replace(one, id=f"{seed} {one.id}") for one in demo_documents(count, seed)]


def test_a_broken_model_does_not_affect_other_methods(indexer: Indexer, caplog) -> None:
    texts = fresh_documents(2)
    for method in ("label-ae", "knn"):
        indexer.suggest(texts, settings=asked(method))
    (indexer.runtime.models.folder / "label-ae" / "model.json").write_text("{", encoding="utf-8")
    indexer.add(more(3))
    assert indexer.suggest(texts, settings=asked("knn"))[0]
    with pytest.raises(ModelDamagedError):
        indexer.suggest(texts, settings=asked("label-ae"))


def test_latents_of_a_state_that_the_store_has_left_behind(indexer: Indexer) -> None:
    old = indexer.runtime.views()
    model = indexer.runtime.models.get(LabelModel)
    settings, texts = asked("label-ae"), fresh_documents(3)
    expected = [signature(one) for one in indexer.suggest(texts, settings=settings)]
    removed = [one.id for one, _ in zip(indexer.documents(), range(40), strict=False)]
    indexer.remove(removed)
    indexer.add(more(300))
    # The newest state encodes all documents, those just removed without their labels.
    for file in (indexer.runtime.models.folder / "label-ae").glob("latents*"):
        file.unlink()
    model.derived.clear()
    indexer.suggest(texts, settings=settings)
    old.drop(("decoder", model.checksum))
    Decoder.at(old, model)
    from labelkin.scoring.queries import Queries

    search = indexer.runtime.indexes.search(old)
    cache = indexer.runtime.indexes.context.cache
    queries = Queries(old, indexer.runtime.models, texts, cache, search)
    method = settings.implementation
    given = method.cut(queries, method.rank(queries, settings), settings)
    assert [signature(one) for one in method.explain(queries, given, settings)] == expected


def test_a_reranker_trained_on_a_later_state_is_used(indexer: Indexer) -> None:
    from labelkin import RerankTrainingSettings

    texts = fresh_documents(2)
    indexer.suggest(texts, settings=asked("knn"))
    with Indexer.open(indexer.collection.path) as other:
        other.add(more(5))
        other.train_reranker(
            settings=RerankTrainingSettings(documents=50, rounds=3, linear=False, threads=1)
        )
    # As if the background thread had not noticed the new documents yet.
    stale = indexer.runtime._current
    assert stale is not None
    indexer.runtime._is_fresh = lambda views: views is stale  # type: ignore[method-assign]
    assert indexer.suggest(texts, settings=asked("rerank"))[0]


def test_retrained_models_do_not_pile_up(indexer: Indexer) -> None:
    text = fresh_documents(1)
    for seed in range(4):
        indexer.train_label_ae(
            TrainingSettings(preset="8", epochs=1, batch_size=64, device="cpu", seed=seed)
        )
        indexer.suggest(text, settings=asked("label-ae"))
    gc.collect()
    folder = indexer.runtime.models.folder
    alive = [
        one for one in gc.get_objects() if type(one) is LabelModel and one.folder.parent == folder
    ]
    assert len(alive) == 1


def test_vectors_that_were_released_are_found_again(indexer: Indexer) -> None:
    pytest.importorskip("faiss", reason="needs the extra `dense`")
    pytest.importorskip("sklearn", reason="needs the extra `dense`")
    (text,) = fresh_documents(1)
    before = [one.id for one in indexer.neighbours([text], 5, representation="lsa")[0]]
    assert len(before) == 5
    search = indexer.search("lsa")
    indexer.release("lsa")
    assert indexer.search("lsa") is not search
    assert [one.id for one in indexer.neighbours([text], 5, representation="lsa")[0]] == before
    # A search that was in use goes on.
    near = search.search(search.texts([text]), 5)
    assert (near.rows >= 0).all()
    fused = [one.id for one in indexer.neighbours([text], 5, representation="stems, lsa")[0]]
    indexer.release("lsa")
    again = [one.id for one in indexer.neighbours([text], 5, representation="stems, lsa")[0]]
    assert fused == again


def test_only_what_requests_use_is_kept_up_to_date(indexer: Indexer) -> None:
    pytest.importorskip("faiss", reason="needs the extra `dense`")
    pytest.importorskip("sklearn", reason="needs the extra `dense`")
    text = fresh_documents(1)
    indexer.neighbours(text, representation="lsa")
    for seed in (1, 2):
        indexer.add(more(2, seed))
        indexer.neighbours(text)
    current = indexer.runtime.views()
    assert not current.has(("search", "lsa"))
    assert current.has(("search", "stems"))


def test_build_beside_a_writer(trained: Path, tmp_path: Path) -> None:
    import threading

    shutil.copytree(trained, tmp_path / "c")
    with Indexer.open(tmp_path / "c", follow=True) as indexer:
        indexer.suggest(fresh_documents(1), settings=asked("knn"))
        done = threading.Event()
        errors: list[BaseException] = []

        def build() -> None:
            try:
                while not done.is_set():
                    indexer.build()
            except BaseException as error:
                errors.append(error)

        builder = threading.Thread(target=build)
        builder.start()
        for number in range(15):
            indexer.add(more(1, seed=100 + number))
        done.set()
        builder.join()
    assert errors == []


def test_the_index_of_another_engine_is_left_alone(indexer: Indexer) -> None:
    other = indexer.collection.path / "indexes" / "terms-ffffffff"
    other.mkdir()
    (other / "somebody-elses").write_text("data", encoding="utf-8")
    indexer.add(more(2))
    indexer.suggest(fresh_documents(1), settings=asked("knn"))
    assert (other / "somebody-elses").exists()


def test_an_unknown_engine_is_one_line_and_leaks_nothing(indexer: Indexer) -> None:
    from .runtime_data import HAS_PROC, descriptors

    update_config(indexer.collection.path / CONFIG_NAME, {"neighbours": {"engine": "nosuch"}})
    with pytest.raises(ConfigError, match="no term engine 'nosuch'; known: tantivy"):
        indexer.suggest(fresh_documents(1), settings=asked("knn"))
    if HAS_PROC:
        gc.collect()
        before = descriptors()
        for _ in range(5):
            with pytest.raises(ConfigError):
                indexer.suggest(fresh_documents(1), settings=asked("knn"))
        gc.collect()
        assert descriptors() <= before


def test_a_value_that_is_not_valid_is_not_written(indexer: Indexer) -> None:
    path = indexer.collection.path / CONFIG_NAME
    before = path.read_text(encoding="utf-8")
    with pytest.raises(ConfigError):
        update_config(path, {"neighbours": {"k": 0}})
    assert path.read_text(encoding="utf-8") == before
    assert indexer.config.neighbours.k == 20
    assert len(before) > DOCUMENTS / 10


def test_the_log_of_the_database_does_not_grow_for_ever(indexer: Indexer, monkeypatch) -> None:
    from labelkin import runtime
    from labelkin.store import database

    monkeypatch.setattr(database, "LONG_LOG", 300_000)
    monkeypatch.setattr(runtime, "LONG_LOG", 300_000)
    with Indexer.open(indexer.collection.path) as opened:
        text = fresh_documents(1)
        sizes = []
        for number in range(25):
            opened.add(more(40, seed=200 + number))
            opened.suggest(text, settings=asked("knn"))
            sizes.append(opened.collection.database.log_bytes())
        assert max(sizes) < 2_000_000
        assert sizes[-1] < 1_000_000


def test_an_index_without_its_main_file_is_rebuilt(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as indexer:
        before = indexer.neighbours(fresh_documents(1), 5)
    (meta,) = (tmp_path / "c").glob("indexes/terms-*/meta.json")
    meta.unlink()
    with Indexer.open(tmp_path / "c") as indexer:
        assert indexer.neighbours(fresh_documents(1), 5) == before


def test_a_database_that_was_replaced_is_not_written_to(indexer: Indexer) -> None:
    from labelkin.exceptions import CollectionDamagedError

    database = indexer.collection.path / "documents.sqlite"
    backup = database.with_name("backup")
    indexer.suggest(fresh_documents(1), settings=asked("knn"))
    shutil.copyfile(database, backup)
    backup.replace(database)
    with pytest.raises(CollectionDamagedError, match="was replaced"):
        indexer.add(more(1))


def test_an_autoencoder_trained_meanwhile_does_not_reach_the_reranker(
    indexer: Indexer, monkeypatch
) -> None:
    from labelkin import RerankTrainingSettings, TrainingObserver

    quick = TrainingSettings(preset="8", epochs=1, batch_size=64, device="cpu")
    used: set[object] = set()
    original = Decoder.at.__func__  # type: ignore[attr-defined]

    def spy(cls, views, model):
        used.add(str(model.info.data.get("left_out")))
        return original(cls, views, model)

    monkeypatch.setattr(Decoder, "at", classmethod(spy))

    class Intruder(TrainingObserver):
        def stage(self, name: str, done: int, total: int) -> None:
            if name == "Reading texts" and done == total:
                with Indexer.open(indexer.collection.path) as other:
                    other.train_label_ae(quick)

    settings = RerankTrainingSettings(documents=50, rounds=3, linear=False, threads=1)
    report = indexer.train_reranker(settings=settings, observer=Intruder())
    assert "autoencoder" in report.info.groups
    assert len(used) == 1
    assert "None" not in used


def test_lists_of_headings_may_be_lists(indexer: Indexer) -> None:
    text = fresh_documents(1)
    for method in ("knn", "label-ae", "rerank", "lexical"):
        indexer.suggest(text, settings=asked(method).changed(include=["A"], exclude=["B"]))
    with pytest.raises(ConfigError, match="give a list"):
        asked("knn").changed(include="A")


def test_an_id_that_utf8_cannot_hold_is_refused(indexer: Indexer) -> None:
    with pytest.raises(InputError, match=r"the id .* has"):
        indexer.add([Document("\ud800id", "Barns", language="en", labels=("LK0005",))])
    assert indexer.document("\ud800id") is None
