from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labelkin import Indexer
from labelkin.demo import demo_concepts, demo_documents
from labelkin.vocab import Vocabulary

from .label_data import QUICK


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Indexer]:
    pytest.importorskip("torch", reason="needs the extra `train`")
    path: Path = tmp_path_factory.mktemp("trained") / "c"
    with Indexer.create(path, Vocabulary(demo_concepts(0)), language="en") as indexer:
        indexer.add(demo_documents(600, 0))
        indexer.train_label_ae(QUICK)
        yield indexer
