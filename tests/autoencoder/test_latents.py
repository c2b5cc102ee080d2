from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labelkin import Document, Indexer
from labelkin.autoencoder.columns import LabelColumns
from labelkin.autoencoder.latents import Latents, LatentStore, verify_latents
from labelkin.autoencoder.model import MODEL_NAME, LabelModel
from labelkin.scoring.latent_decoder import LatentDecoder
from labelkin.store.derived import StoreDamagedError

from .label_data import QUICK

pytest.importorskip("torch", reason="needs the extra `train`")


@pytest.fixture
def indexer(trained: Indexer, tmp_path: Path) -> Iterator[Indexer]:
    """A copy that a test may change."""
    shutil.copytree(trained.collection.path, tmp_path / "c")
    with Indexer.open(tmp_path / "c") as opened:
        yield opened


@pytest.fixture
def writes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write every new vector, however few there are."""
    monkeypatch.setattr("labelkin.autoencoder.latents._WORTH_WRITING", 1)


def folder_of(indexer: Indexer) -> Path:
    return indexer.collection.path / "models" / MODEL_NAME


def model_and_columns(indexer: Indexer) -> tuple[LabelModel, LabelColumns]:
    model = indexer.runtime.models.get(LabelModel)
    return model, LatentDecoder(indexer.collection.snapshot(), model).columns


def vectors_of(indexer: Indexer) -> Path:
    (path,) = folder_of(indexer).glob("latents-*.f16")
    return path


def opened(indexer: Indexer) -> Latents:
    """The latent vectors of the present state, from a store that has read nothing yet."""
    return LatentStore(*model_and_columns(indexer)).at(indexer.collection.snapshot())


def expected(indexer: Indexer, rows: np.ndarray) -> np.ndarray:
    model, columns = model_and_columns(indexer)
    return model.encode(columns.matrix(indexer.collection.label_sets(), rows))


def new_document(indexer: Indexer, name: str) -> Document:
    some = next(iter(indexer.documents()))
    return Document(name, "a new one", labels=some.labels[:2], language="en")


def test_they_are_those_of_the_label_sets(indexer):
    rows = np.array([0, 5, 599, 5])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)
    assert vectors_of(indexer).stat().st_size == 600 * 16 * 2


def test_added_documents_are_appended(indexer, writes_at_once):
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


def test_a_few_new_documents_are_encoded_but_not_written(indexer):
    opened(indexer)
    before = vectors_of(indexer).read_bytes()
    indexer.add([new_document(indexer, "new")])
    found = opened(indexer)
    assert len(found) == 601
    assert vectors_of(indexer).read_bytes() == before
    rows = np.array([600, 0])
    np.testing.assert_allclose(found.of(rows), expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_many_new_documents_are_written_at_once(indexer, monkeypatch):
    opened(indexer)
    monkeypatch.setattr("labelkin.autoencoder.latents._WORTH_WRITING", 3)
    for count in (601, 602):
        indexer.add([new_document(indexer, f"new {count}")])
        assert len(opened(indexer)) == count
        assert vectors_of(indexer).stat().st_size == 600 * 16 * 2
    indexer.add([new_document(indexer, "new 603")])
    assert len(opened(indexer)) == 603
    assert vectors_of(indexer).stat().st_size == 603 * 16 * 2


def test_compact_drops_the_vectors_of_removed_documents(indexer, writes_at_once):
    opened(indexer)
    old = vectors_of(indexer)
    with Indexer.open(indexer.collection.path) as other:
        earlier = opened(other)
        snapshot = other.snapshot()
        store = LatentStore(*model_and_columns(other))
        store.at(snapshot)
        ids = [document.id for document in indexer.documents()]
        rows = indexer.collection.rows_of([*ids[:100], *ids[300:350], ids[-1]])
        indexer.remove(rows)
        removed = np.array(sorted(rows.values()))
        kept = np.setdiff1d(np.arange(600), removed)
        before = expected(indexer, kept)
        parts = {one.part: one for one in indexer.compact().parts}
        part = parts[f"models/{MODEL_NAME}"]
        assert part.change == "151 removed documents dropped"
        assert part.bytes_after < part.bytes_before
        assert vectors_of(indexer).stat().st_size == 449 * 16 * 2 + 151 * 8
        assert vectors_of(indexer) != old
        # Those who read an earlier state do not notice.
        every = np.arange(600)
        np.testing.assert_allclose(store.at(snapshot).of(every), earlier.of(every), atol=1e-2)
    found = opened(indexer)
    assert len(found) == 600
    np.testing.assert_allclose(found.of(kept), before, rtol=1e-2, atol=1e-2)
    assert not found.of(removed).any()
    left = vectors_of(indexer).with_name(old.name)
    left.write_bytes(b"of a compaction that was killed")
    indexer.compact()
    assert not left.exists()
    assert indexer.compact().parts == []
    assert indexer.check().is_sound
    # New vectors are appended; compacting again drops more.
    indexer.add([new_document(indexer, "new")])
    rows = np.array([600, kept[0], kept[-1]])
    np.testing.assert_allclose(opened(indexer).of(rows), expected(indexer, rows), atol=1e-2)
    assert vectors_of(indexer).stat().st_size == 450 * 16 * 2 + 151 * 8
    assert indexer.check().is_sound
    indexer.remove(["new", ids[200]])
    assert {one.part for one in indexer.compact().parts} > {f"models/{MODEL_NAME}"}
    assert vectors_of(indexer).stat().st_size == 448 * 16 * 2 + 153 * 8
    rows = np.setdiff1d(kept, [200])
    np.testing.assert_allclose(opened(indexer).of(rows), expected(indexer, rows), atol=1e-2)
    assert indexer.check().is_sound


def test_damaged_vectors_are_not_compacted(indexer):
    opened(indexer)
    indexer.remove([next(iter(indexer.documents())).id])
    path = vectors_of(indexer)
    path.write_bytes(b"\xff" + path.read_bytes()[1:])
    (problem,) = [one for one in indexer.compact().parts if one.problem]
    assert (problem.part, vectors_of(indexer)) == (f"models/{MODEL_NAME}", path)
    assert "damaged" in problem.problem


def test_vectors_of_another_model_are_dropped(indexer):
    opened(indexer)
    old = vectors_of(indexer)
    indexer.train_label_ae(replace(QUICK, epochs=1, seed=7))
    rows = np.array([0, 599])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)
    assert vectors_of(indexer) != old


def test_leftovers_of_a_crash_are_overwritten(indexer, writes_at_once):
    opened(indexer)
    vectors = vectors_of(indexer)
    with vectors.open("ab") as file:
        file.write(b"\xff" * 100)
    indexer.add([new_document(indexer, "new")])
    rows = np.array([600])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_vectors_of_another_history_are_not_used(indexer):
    opened(indexer)
    path = folder_of(indexer) / "latents.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"token": "another history"}))
    vectors_of(indexer).write_bytes(bytes(600 * 32))
    rows = np.array([3])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["latents.json", "latents-*.f16"])
def test_damage_is_repaired(indexer, name):
    opened(indexer)
    for path in folder_of(indexer).glob(name):
        path.write_bytes(b"x")
    rows = np.array([3])
    found = opened(indexer).of(rows)
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_a_collection_that_cannot_be_written_to(indexer):
    path = indexer.collection.path
    for file in folder_of(indexer).glob("latents*"):
        file.unlink()
    with Indexer.open(path, read_only=True) as reader:
        rows = np.array([0, 599])
        found = opened(reader).of(rows)
        assert not (folder_of(reader) / "latents.json").exists()
    np.testing.assert_allclose(found, expected(indexer, rows), rtol=1e-2, atol=1e-2)


def test_only_documents_that_are_there_are_compared(indexer):
    opened(indexer)
    path = folder_of(indexer) / "latents.json"
    content = json.loads(path.read_text())
    del content["checksum"], content["checksums"]
    path.write_text(json.dumps(content))
    indexer.remove([next(iter(indexer.documents())).id])
    vectors = np.memmap(vectors_of(indexer), np.float16, "r+", shape=(600, 16))
    vectors[0] += 1
    vectors.flush()
    assert not verify_latents(folder_of(indexer), indexer.collection.snapshot())
    vectors[599] += 1
    vectors.flush()
    with pytest.raises(StoreDamagedError, match="the latent vector of row 599"):
        verify_latents(folder_of(indexer), indexer.collection.snapshot())
