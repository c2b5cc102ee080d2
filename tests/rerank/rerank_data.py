"""Small generated collections for tests of the reranker, and settings that are quick."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from labelkin import Document, Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.rerank.settings import RerankTrainingSettings
from labelkin.vocab import Vocabulary

QUICK = RerankTrainingSettings(documents=80, rounds=30, linear=False, threads=1)
DOCUMENTS = 500


def made(path: Path, documents: Iterable[Document]) -> Indexer:
    """A collection of generated documents."""
    indexer = Indexer.create(path, Vocabulary(demo_concepts(0)), language="en")
    indexer.add(documents)
    return indexer


def fresh_documents(count: int) -> list[Document]:
    """Documents of the same kind that are in no collection here."""
    return list(demo_documents(DOCUMENTS + 300 + count, 0))[DOCUMENTS + 300 :]
