from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from labelkin import Document, Indexer
from labelkin.demo import demo_documents

from .rerank_data import DOCUMENTS, QUICK, fresh_documents, made

pytest.importorskip("lightgbm", reason="needs the extra `rerank`")
pytest.importorskip("sklearn", reason="needs the extra `rerank`")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with a reranker."""
    path = tmp_path_factory.mktemp("rerank") / "c"
    with made(path, demo_documents(DOCUMENTS, 0)) as indexer:
        indexer.train_reranker(settings=QUICK)
    return path


@pytest.fixture
def indexer(trained: Path) -> Iterator[Indexer]:
    with Indexer.open(trained) as opened:
        yield opened


@pytest.fixture
def own(trained: Path, tmp_path: Path) -> Iterator[Indexer]:
    """A copy that a test may change."""
    shutil.copytree(trained, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as opened:
        yield opened


@pytest.fixture(scope="session")
def fresh() -> list[Document]:
    """Documents that the collection does not have."""
    return fresh_documents(60)
