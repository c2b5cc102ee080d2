from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.plots.reliability import trained_reliability
from labelkin.rerank.model import reranker_info
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.scoring.settings import RerankSettings
from labelkin.vocab import Vocabulary

pytest.importorskip("lightgbm", reason="needs the extra `rerank`")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reliability") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(300, 0))
        indexer.train_reranker(settings=RerankTrainingSettings(rounds=10, linear=False, threads=1))
    return path


@pytest.fixture
def indexer(trained: Path) -> Iterator[Indexer]:
    with Indexer.open(trained) as opened:
        yield opened


def test_of_training(indexer, trained):
    found = indexer.reliability()
    calibration = reranker_info(trained / "models" / "rerank").calibration
    assert found.bins == calibration.reliability
    assert found.error == calibration.error
    weighted = sum(one.count * abs(one.score - one.precision) for one in found.bins)
    assert found.error == pytest.approx(weighted / sum(one.count for one in found.bins), abs=1e-5)
    assert found.documents == calibration.documents > 0
    assert found.review == calibration.threshold(0.5)
    assert all(one.start <= one.score <= one.end for one in found.bins)


def test_bands_that_no_score_reaches(trained):
    info = reranker_info(trained / "models" / "rerank")
    precision = (*(0.1 for _ in range(100)), 0.8)
    info = replace(info, calibration=replace(info.calibration, precision=precision))
    found = trained_reliability(info, RerankSettings(accept=0.9, review=0.7))
    assert found is not None
    assert (found.accept, found.review) == (None, 1.0)


def test_models_of_earlier_versions_recorded_nothing(trained):
    info = reranker_info(trained / "models" / "rerank")
    info = replace(info, calibration=replace(info.calibration, reliability=()))
    assert trained_reliability(info, RerankSettings()) is None


def test_of_documents(indexer):
    """As many right as the labels say: counted by hand from what is ranked."""
    documents = list(demo_documents(340, 0))[300:]
    found = indexer.reliability(documents)
    assert found.documents == 40
    evaluation = indexer.evaluate(documents, settings=indexer_settings(indexer))
    last = max(found.bins, key=lambda one: one.start)
    assert last.start >= 0.5
    high = evaluation.ranked.scores >= last.start
    assert last.count == high.sum() > 0
    assert last.precision == pytest.approx(evaluation.ordered_hits[high].mean())
    wrong = [Document(one.id, one.title, one.body, labels=("LK0001",)) for one in documents]
    assert indexer.reliability(wrong).error > found.error


def indexer_settings(indexer: Indexer):
    from labelkin import Settings

    return Settings.from_config(indexer.config, "rerank")
