from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.training_settings import TrainingSettings
from labelkin.demo import demo_concepts, demo_documents
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.vocab import Vocabulary

DOCUMENTS = 320
HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_LIGHTGBM = all(importlib.util.find_spec(name) for name in ("lightgbm", "sklearn"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection in two languages, with small models as far as they can be trained here."""
    path = tmp_path_factory.mktemp("trained") / "c"
    german = Document("german", "Roggen und Weizen", language="de", labels=("LK0036",))
    with Indexer.create(path, Vocabulary(demo_concepts(0))) as indexer:
        indexer.add([*demo_documents(DOCUMENTS, 0), german])
        if HAS_TORCH or HAS_LIGHTGBM:
            indexer.train(
                label_ae=TrainingSettings(preset="16", epochs=8, batch_size=32, device="cpu"),
                rerank=RerankTrainingSettings(documents=45, rounds=15, linear=False, threads=1),
            )
    return path


@pytest.fixture
def trained_indexer(trained: Path) -> Iterator[Indexer]:
    with Indexer.open(trained) as indexer:
        yield indexer


@pytest.fixture(scope="session")
def new_documents() -> list[Document]:
    """Documents that the collection does not have, one without a text among them."""
    texts = list(demo_documents(DOCUMENTS + 8, 0))[DOCUMENTS:]
    return [*texts[:5], Document("empty", "", language="en"), *texts[5:]]
