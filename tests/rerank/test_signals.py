from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from labelkin import Document, Indexer, registry
from labelkin.autoencoder.model import LabelModel
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_documents
from labelkin.rerank.features import Evidence, Features, Knowledge, find_candidates
from labelkin.rerank.model import RerankModel
from labelkin.rerank.pairs import Pairs
from labelkin.rerank.signal import Arrays, Signal, Values
from labelkin.rerank.signals import SIGNALS, feature_names, ordered
from labelkin.rerank.training import RerankTrainer
from labelkin.rerank.training_data import TrainingContext
from labelkin.scoring.settings import Settings

from .rerank_data import QUICK, fresh_documents, made
from .signal_conformance import SignalConformance, evidence_of

HAS_FAISS = importlib.util.find_spec("faiss") is not None
SETTINGS = replace(QUICK, documents=25, rounds=3, linear=True, encoder="lsa" if HAS_FAISS else "")
AUTOENCODER = TrainingSettings(preset="8", epochs=3, batch_size=32, device="cpu")
HAS_TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexer]:
    """A collection with a label autoencoder, if one can be trained here."""
    path = tmp_path_factory.mktemp("signals") / "c"
    with made(path, demo_documents(240, 0)) as indexer:
        if HAS_TORCH:
            indexer.train_label_ae(AUTOENCODER, held_out=SETTINGS.held_out(indexer.snapshot()))
        yield indexer


def trainer_of(indexer: Indexer) -> RerankTrainer:
    views = indexer.runtime.views()
    return RerankTrainer(
        views,
        indexer.runtime.models,
        indexer.search(),
        SETTINGS,
        SETTINGS.held_out(views.snapshot),
        autoencoder=indexer.runtime.models.get(LabelModel) if HAS_TORCH else None,
        indexes=indexer.runtime.indexes,
    )


@pytest.fixture(scope="module")
def collected(collection: Indexer) -> Knowledge:
    """What was counted and fitted over all documents, for all signals."""
    _, knowledge = trainer_of(collection).collect()
    return knowledge


class OfCollection(SignalConformance):
    @pytest.fixture
    def indexer(self, collection: Indexer) -> Indexer:
        return collection

    @pytest.fixture
    def documents(self) -> Sequence[Document]:
        return [*fresh_documents(6), Document("e", "", language="en")]


@pytest.mark.parametrize("name", SIGNALS.names())
class TestSignals(OfCollection):
    @pytest.fixture
    def signal(self, name: str) -> Signal:
        if name == "autoencoder":
            pytest.importorskip("torch", reason="needs the extra `train`")
        if name == "vectors":
            pytest.importorskip("faiss", reason="needs the extra `dense`")
        return SIGNALS[name]

    @pytest.fixture
    def knowledge(self, collected: Knowledge) -> Knowledge:
        return collected


class ToySignal(Signal):
    """A number that depends on the length of the title and on the documents of the training."""

    name = "toy"
    features = ("toy_length",)
    reason = "length of the title"

    def fit(self, context: TrainingContext) -> np.ndarray:
        return np.bincount(np.diff(context.texts.counts.indptr) % 10, minlength=10)

    def to_arrays(self, fitted: np.ndarray) -> Arrays:
        return {"lengths": fitted}

    def from_arrays(self, arrays: Arrays) -> np.ndarray:
        return arrays["lengths"]

    def values(self, evidence: Evidence, pairs: Pairs, features: Features) -> Mapping[str, Values]:
        lengths = np.array([len(document.title) % 10 for document in evidence.queries.prepared])
        counts = evidence.fitted("toy")[lengths[pairs.documents]] if len(pairs) else np.zeros(0)
        return {"toy_length": counts.astype(np.float32)}


class TestASignalOfAnotherPackage(OfCollection):
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """An installed package with an entry point for the signal."""
        package = ModuleType("toy_package")
        package.ToySignal = ToySignal  # type: ignore[attr-defined]
        points = {"labelkin.signals": {"toy": "toy_package:ToySignal"}}
        monkeypatch.setitem(sys.modules, "toy_package", package)
        monkeypatch.setattr(registry, "_entry_points", lambda group: points.get(group, {}))

    @pytest.fixture
    def signal(self, installed: None) -> Signal:
        return SIGNALS["toy"]

    @pytest.fixture
    def knowledge(self, collection: Indexer, signal: Signal) -> Knowledge:
        _, knowledge = trainer_of(collection).collect()
        assert knowledge.groups[-1] == "toy"
        return knowledge

    def test_the_reranker_is_trained_with_it(
        self, collection: Indexer, documents: Sequence[Document]
    ) -> None:
        collection.train_reranker(settings=replace(SETTINGS, linear=False, encoder=""))
        model = collection.runtime.models.get(RerankModel)
        assert model.info.groups[-1] == "toy"
        assert model.ranker.names[-1] == "toy_length"
        assert model.knowledge.fitted["toy"].sum() == 240
        settings = Settings(method="rerank").changed(limit=2)
        suggestions = collection.suggest(documents[:1], settings=settings, explain=True)[0]
        assert "length of the title" in {one.name for one in suggestions[0].signals}


def test_features_are_named_once_and_in_order() -> None:
    names = feature_names(SIGNALS.names())
    assert len({*names}) == len(names)
    assert [signal.name for signal in SIGNALS] == SIGNALS.names()
    assert [signal.name for signal in ordered(["words", "votes"])] == ["votes", "words"]
    assert feature_names(["words", "votes"]) == [
        *SIGNALS["votes"].features,
        *SIGNALS["words"].features,
    ]


def test_all_signals_take_part(collected: Knowledge) -> None:
    has = {"autoencoder": HAS_TORCH, "vectors": HAS_FAISS}
    assert collected.groups == tuple(name for name in SIGNALS.names() if has.get(name, True))
    assert {*collected.fitted} == {"linear", "vectors"} & {*collected.groups}


def test_headings_without_a_classifier_have_no_margin(
    collection: Indexer, collected: Knowledge
) -> None:
    evidence = evidence_of(collection, collected, fresh_documents(6))
    width = evidence.width
    everything = Pairs(np.arange(6 * width, dtype=np.int64), 6, width)
    features = Features(evidence, everything)
    values = SIGNALS["linear"].values(evidence, everything, features)
    has_one = np.isin(everything.columns, collected.fitted["linear"].stems.columns)
    assert 0 < np.count_nonzero(has_one) < len(has_one)
    for name in SIGNALS["linear"].features:
        np.testing.assert_array_equal(np.isnan(values[name]), ~has_one, err_msg=name)
    assert np.all(np.isfinite(features.first_guess))


def test_the_matrix_has_a_column_per_feature(collection: Indexer, collected: Knowledge) -> None:
    evidence = evidence_of(collection, collected, fresh_documents(3))
    candidates = find_candidates(evidence)
    names = feature_names(collected.groups)
    assert candidates.features.shape == (len(candidates.pairs), len(names))
    assert candidates.features.dtype == np.float32
    features = Features(evidence, candidates.pairs)
    for column, name in enumerate(names):
        expected = features[name].astype(np.float32)
        np.testing.assert_array_equal(candidates.features[:, column], expected, err_msg=name)


def test_each_signal_is_asked_once_for_its_values(
    collection: Indexer, collected: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(usual):
        def values(self, evidence, pairs, features):
            asked.append(self.name)
            return usual(self, evidence, pairs, features)

        return values

    for kind in {type(signal) for signal in ordered(collected.groups)}:
        monkeypatch.setattr(kind, "values", counted(kind.values))
    find_candidates(evidence_of(collection, collected, fresh_documents(2)))
    assert sorted(asked) == sorted(collected.groups)
