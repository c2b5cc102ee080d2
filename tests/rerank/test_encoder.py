"""A reranker with an encoder: what it records, what it refuses, and that it goes on learning."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_documents
from labelkin.exceptions import ConfigError, MissingExtraError, ModelMismatchError
from labelkin.inspection import model_states
from labelkin.represent.encoder import located_encoder
from labelkin.represent.lsa import LsaEncoder
from labelkin.rerank.features import Evidence, Features, find_candidates
from labelkin.rerank.model import RerankInfo, RerankModel
from labelkin.rerank.signals import SIGNALS
from labelkin.rerank.training import RerankTrainer
from labelkin.scoring.queries import Queries
from labelkin.scoring.settings import RERANK_DEPTH, Settings
from labelkin.store.collection import Collection

from .rerank_data import DOCUMENTS, QUICK, made

pytest.importorskip("faiss", reason="needs the extra `dense`")

SETTINGS = replace(QUICK, encoder="lsa")
METHOD = Settings(method="rerank")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection whose reranker uses the vectors of lsa."""
    path = tmp_path_factory.mktemp("encoder") / "c"
    with made(path, demo_documents(DOCUMENTS, 0)) as indexer:
        indexer.train_reranker(settings=SETTINGS)
    return path


@pytest.fixture
def indexer(original: Path, tmp_path: Path) -> Iterator[Indexer]:
    """A copy that a test may change."""
    shutil.copytree(original, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as opened:
        yield opened


def problem(indexer: Indexer) -> str:
    """Why `info` says that the reranker cannot be used; empty if it can be."""
    (state,) = (one for one in model_states(indexer.snapshot()) if one.name == "rerank")
    assert state.is_usable == (not state.problem)
    return state.problem


def with_encoder(indexer: Indexer, name: str, version: str) -> RerankModel:
    """Let the reranker say that it was trained with another encoder."""
    model = indexer.runtime.models.get(RerankModel)
    encoder = {"representation": {name: version}, "engine": "faiss flat, l2"}
    model.info = replace(model.info, encoder=encoder)
    return model


def test_the_model_records_its_encoder(indexer: Indexer) -> None:
    info = indexer.runtime.models.get(RerankModel).info
    version = indexer.runtime.indexes.encoder_version(indexer.runtime.views(), "lsa")
    assert version.startswith("lsa ")
    assert info.encoder == {"representation": {"lsa": version}, "engine": "faiss flat, l2"}
    assert info.encoder_name == "lsa"
    assert info.training["settings"]["encoder"] == "lsa"
    assert info.groups[-1] == "vectors"
    assert problem(indexer) == ""


def test_models_of_earlier_versions_have_no_encoder(indexer: Indexer) -> None:
    content = json.loads(json.dumps(indexer.runtime.models.get(RerankModel).info.to_json()))
    assert RerankInfo.from_json(content).encoder_name == "lsa"
    del content["encoder"]
    assert RerankInfo.from_json(content).encoder_name == ""


def test_suggestions_are_those_of_the_training_process(indexer: Indexer, fresh) -> None:
    before = indexer.suggest(fresh[:5], settings=METHOD)
    report = indexer.train_reranker(settings=SETTINGS)
    assert report.score > report.votes
    again = indexer.suggest(fresh[:5], settings=METHOD)
    assert [[(one.concept.id, one.score) for one in each] for each in again] == [
        [(one.concept.id, one.score) for one in each] for each in before
    ]


def test_explanations_name_it(indexer: Indexer, fresh) -> None:
    (suggestions,) = indexer.suggest(fresh[:1], settings=METHOD, explain=True)
    assert "meaning" in {signal.name for signal in suggestions[0].signals}


def test_a_new_document_is_a_neighbour_by_vectors_at_once(indexer: Indexer, fresh) -> None:
    text = fresh[0]
    rare = next(one for one in indexer.vocabulary if not one.deprecated and not one.broader)
    knowledge = indexer.runtime.models.get(RerankModel).knowledge
    column = indexer.vocabulary.column(rare.id)

    def first() -> float:
        evidence = Evidence(indexer.queries([text], RERANK_DEPTH), knowledge)
        pairs = find_candidates(evidence).pairs
        features = Features(evidence, pairs)["vector_first"]
        places = pairs.columns == column
        return float(features[places][0]) if places.any() else -1.0

    assert first() != 0
    indexer.suggest([text], settings=METHOD)
    indexer.add([Document("new", text.title, text.body, labels=(rare.id,), language="en")])
    assert first() == 0
    indexer.suggest([text], settings=METHOD)
    indexer.remove(["new"])
    assert first() != 0


def test_a_follower_brings_the_vectors_up_to_date(original: Path, tmp_path: Path, fresh) -> None:
    shutil.copytree(original, tmp_path / "c")
    key = ("search", "lsa")
    with Indexer.open(tmp_path / "c", follow=True) as indexer:
        assert indexer.warm_up(["rerank"]) == ["rerank"]
        assert indexer.runtime.views().has(key)
        indexer.add([replace(fresh[0], id="new")])
        # This thread's next state has them, although it has not asked for anything yet.
        views = indexer.runtime.views(needs_index=False)
        assert views.snapshot.count() == DOCUMENTS + 1
        assert views.has(key)


def test_another_version_of_the_encoder_is_refused(
    indexer: Indexer, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = indexer.collection.path
    indexer.add(demo_documents(DOCUMENTS + 50, 0))
    indexer.build("lsa", relearn=True)
    expected = (
        rf"models/rerank: trained with vectors of lsa \w+, normalised True, now lsa \w+, "
        rf"normalised True; run `labelkin train {path} --only rerank --encoder lsa`$"
    )
    with pytest.raises(ModelMismatchError, match=expected):
        indexer.suggest(fresh[:2], settings=METHOD)
    assert "normalised True, now lsa" in problem(indexer)
    # Other methods are not affected.
    assert indexer.suggest(fresh[:1], settings=Settings(method="knn"))[0]
    indexer.train_reranker(settings=SETTINGS)
    assert indexer.suggest(fresh[:1], settings=METHOD)[0]
    assert problem(indexer) == ""


def test_nothing_is_encoded_for_a_version_that_is_refused(
    original: Path, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Indexer.open(original) as indexer:
        with_encoder(indexer, "lsa", "lsa of yesterday, normalised True")
        monkeypatch.setattr(LsaEncoder, "encode", lambda *_: 1 / 0)
        with pytest.raises(ModelMismatchError, match="lsa of yesterday"):
            indexer.suggest(fresh[:2], settings=METHOD)


def test_an_encoder_without_a_model(indexer: Indexer) -> None:
    shutil.rmtree(indexer.collection.path / "models" / "lsa")
    assert "normalised True, which is gone; run `labelkin train" in problem(indexer)


def test_a_missing_folder(indexer: Indexer, fresh) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `dense`")
    model = with_encoder(indexer, "/no/such/model", "x")
    with pytest.raises(
        ModelMismatchError,
        match=rf"^{model.folder}: its encoder cannot be used: no sentence-transformers model "
        r"'/no/such/model' \(no such folder\); put it back, or run `labelkin train ",
    ):
        indexer.suggest(fresh[:2], settings=METHOD)


def test_a_relative_path_means_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models" / "own").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    absolute = str(tmp_path / "models" / "own")
    assert located_encoder("models/own") == absolute
    assert located_encoder("./models/own/") == absolute
    monkeypatch.setenv("HOME", str(tmp_path))
    assert located_encoder("~/models/own") == absolute
    # Names of the hub, of other encoders, and folders that are not there stay as they are.
    (tmp_path / "lsa").mkdir()
    for name in ("owner/model", "./nothing/here", "~nobody-here/x", "lsa", "wordllama", ""):
        assert located_encoder(name) == name


def test_the_reranker_records_where_its_encoder_is(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(original, tmp_path / "c")
    (tmp_path / "models" / "own").mkdir(parents=True)

    class OwnEncoder(LsaEncoder):
        def __init__(self, name: str, collection: Collection) -> None:
            assert Path(name).is_dir()
            super().__init__(name, collection)

    monkeypatch.setattr(
        "labelkin.neighbours.indexes.open_encoder",
        lambda name, collection: OwnEncoder(name, collection),
    )
    monkeypatch.chdir(tmp_path)
    with Indexer.open(tmp_path / "c") as indexer:
        report = indexer.train_reranker(settings=replace(QUICK, encoder="models/own"))
    assert report.info.encoder_name == str(tmp_path / "models" / "own")
    assert report.info.training["settings"]["encoder"] == str(tmp_path / "models" / "own")


def test_advice_keeps_the_encoder(indexer: Indexer) -> None:
    path = indexer.collection.path
    info = indexer.runtime.models.get(RerankModel).info
    command = f"labelkin train {path} --only rerank --encoder lsa"
    assert info.training_command(path) == command
    assert not replace(info, encoder={}).training_command(path).endswith("lsa")
    with pytest.raises(ModelMismatchError, match=rf"`{command} --representation wordllama`$"):
        METHOD.implementation.check_representation(indexer.runtime.models, "wordllama")


def test_a_training_that_loses_the_encoder_says_so(
    indexer: Indexer, caplog: pytest.LogCaptureFixture
) -> None:
    indexer.train(label_ae=False, rerank=SETTINGS)
    assert "this one will not" not in caplog.text
    indexer.train(label_ae=False, rerank=QUICK)
    assert "has the vectors of lsa, this one will not; give --encoder lsa, or set" in caplog.text
    caplog.clear()
    indexer.train(label_ae=False, rerank=QUICK)
    assert "this one will not" not in caplog.text


def test_without_faiss(indexer: Indexer, fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"faiss; pip install 'labelkin\[dense\]'"):
        indexer.suggest(fresh[:2], settings=METHOD)
    assert "pip install 'labelkin[dense]'" in problem(indexer)


def test_queries_that_cannot_be_searched(indexer: Indexer, fresh) -> None:
    near = indexer.queries(fresh[:2], RERANK_DEPTH)
    cache = indexer.runtime.indexes.context.cache
    given = Queries(
        near.views, near.models, fresh[:2], cache, neighbours=near.neighbours(RERANK_DEPTH)
    )
    with pytest.raises(ModelMismatchError, match=r"^these queries cannot be searched by lsa"):
        METHOD.implementation.rank(given, METHOD)


def test_more_documents_than_a_batch(
    indexer: Indexer, fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = indexer.labels(fresh[:7], METHOD)
    monkeypatch.setattr("labelkin.rerank.method._BATCH", 3)
    parts = indexer.labels(fresh[:7], METHOD)
    assert whole.columns.tolist() == parts.columns.tolist()
    assert whole.scores == pytest.approx(parts.scores)


def test_a_trainer_without_indexes(indexer: Indexer) -> None:
    views = indexer.runtime.views()
    held_out = SETTINGS.held_out(views.snapshot)
    with pytest.raises(ConfigError, match="vectors by lsa needs the indexes"):
        RerankTrainer(views, indexer.runtime.models, indexer.search(), SETTINGS, held_out)


@pytest.mark.parametrize("name", ["stems", "lsa,wordllama", "word llama"])
def test_a_name_that_is_no_encoder(indexer: Indexer, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^no encoder '{name}'; known: lsa, wordllama, and"):
        indexer.train(label_ae=False, rerank=replace(QUICK, encoder=name))
    with pytest.raises(ConfigError, match=rf"^no encoder '{name}'"):
        indexer.train_reranker(settings=replace(QUICK, encoder=name))


def test_given_documents_are_searched_by_vectors_too(indexer: Indexer, fresh) -> None:
    report = indexer.train_reranker(fresh[:25], SETTINGS)
    assert report.info.training["given"] == 25
    assert SIGNALS["vectors"].name in report.info.groups
