from __future__ import annotations

import pytest

from labelkin.corpus.document import Document
from labelkin.demo import demo_concepts, demo_documents
from labelkin.vocab.concept import Concept


@pytest.fixture(scope="session")
def demo_collection() -> list[Document]:
    """The collection at its default size."""
    return list(demo_documents())


@pytest.fixture(scope="session")
def demo_vocabulary() -> dict[str, Concept]:
    """The concepts of the default seed by id."""
    return {concept.id: concept for concept in demo_concepts()}
