from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.latents import LatentFolder, Latents
from labelkin.scoring.label_ae import LabelAe, model_folder
from labelkin.scoring.settings import ScorerSettings

pytest.importorskip("torch", reason="needs the extra `train`")


@pytest.fixture
def indexer(trained: Indexer, tmp_path: Path) -> Iterator[Indexer]:
    """A copy that a test may change."""
    shutil.copytree(trained.collection.path, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as opened:
        yield opened


def latent_folder(indexer: Indexer) -> LatentFolder:
    scorer = LabelAe(indexer.collection, ScorerSettings())
    return LatentFolder(indexer.collection, scorer.model, scorer.columns)


def vectors_of(indexer: Indexer) -> Path:
    (path,) = model_folder(indexer.collection).glob("latents-*.f16")
    return path


def opened(indexer: Indexer) -> Latents:
    return latent_folder(indexer).open(indexer.collection.label_sets())


def expected(indexer: Indexer, rows: np.ndarray) -> np.ndarray:
    scorer = LabelAe(indexer.collection, ScorerSettings())
    return scorer.model.encode(scorer.columns.matrix(indexer.collection.label_sets(), rows))


def new_document(indexer: Indexer, name: str) -> Document:
    some = next(iter(indexer.documents()))
    return Document(name, "a new one", labels=some.labels[:2], language="en")


def test_they_are_those_of_the_label_sets(indexer):
    rows = np.array([0, 5, 599, 5])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)
    assert vectors_of(indexer).stat().st_size == 600 * 16 * 2


def test_added_documents_are_appended(indexer):
    opened(indexer)
    vectors = vectors_of(indexer)
    before = vectors.read_bytes()
    indexer.add([new_document(indexer, "new")])
    found = opened(indexer)
    assert len(found) == 601
    after = vectors.read_bytes()
    assert after[: len(before)] == before
    assert len(after) == 601 * 16 * 2
    rows = np.array([600])
    np.testing.assert_allclose(found.of(rows), expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_leftovers_of_a_kill_are_written_over(indexer):
    opened(indexer)
    vectors = vectors_of(indexer)
    with vectors.open("ab") as file:
        file.write(b"\xff" * 100)
    indexer.add([new_document(indexer, "new")])
    rows = np.array([600])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_another_past_is_not_trusted(indexer):
    opened(indexer)
    path = model_folder(indexer.collection) / "latents.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"token": "elsewhere"}))
    vectors_of(indexer).write_bytes(bytes(600 * 32))
    rows = np.array([3])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["latents.json", "latents-*.f16"])
def test_damage_is_repaired(indexer, name):
    opened(indexer)
    for path in model_folder(indexer.collection).glob(name):
        path.write_bytes(b"x")
    rows = np.array([3])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_a_collection_that_cannot_be_written_to(indexer):
    path = indexer.collection.path
    for file in model_folder(indexer.collection).glob("latents*"):
        file.unlink()
    with Indexer.open(path, read_only=True) as reader:
        rows = np.array([0, 599])
        found = opened(reader).of(rows)
        assert not (model_folder(reader.collection) / "latents.json").exists()
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)
