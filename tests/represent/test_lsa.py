from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from labelkin.corpus import Document
from labelkin.demo import demo_documents
from labelkin.exceptions import ModelDamagedError
from labelkin.indexer import Indexer
from labelkin.represent.lsa import LsaEncoder, LsaModel, check_lsa, fit_lsa
from labelkin.store.config import CONFIG_NAME, update_config

TEXTS = [
    ["bread", "rye", "oven"],
    ["bread", "oven", "dough"],
    ["rye", "dough", "bread"],
    ["river", "water", "fish"],
    ["river", "fish", "boat"],
    ["water", "boat", "fish", "once"],
    ["bread", "fish"],
]


def test_directions_are_those_of_the_exact_decomposition() -> None:
    model = fit_lsa(TEXTS, 3)
    assert "once" not in model.terms
    counts = np.array([[text.count(term) for term in model.terms] for text in TEXTS], float)
    weighted = counts * model.idf
    weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    _, _, exact = np.linalg.svd(weighted)
    products = model.directions.astype(float).T @ exact[:3].T
    assert np.abs(products) == pytest.approx(np.eye(3), abs=2e-3)


def test_a_model_is_saved_and_loaded(tmp_path: Path) -> None:
    model = fit_lsa(TEXTS, 3, {"dimensions": 3})
    model.save(tmp_path / "m")
    loaded = LsaModel.load(tmp_path / "m")
    assert loaded is not None
    assert loaded.fingerprint == model.fingerprint
    assert loaded.about == {"dimensions": 3}
    assert fit_lsa(TEXTS, 3).fingerprint == model.fingerprint
    check_lsa(tmp_path / "m")
    next((tmp_path / "m").glob("*.npz")).write_bytes(b"damaged")
    assert LsaModel.load(tmp_path / "m") is None


@pytest.mark.parametrize("name", ["model.json", "*.npz"])
@pytest.mark.parametrize("kept", [None, 0.0, 0.9])
def test_a_model_that_is_not_complete(tmp_path: Path, name: str, kept: float | None) -> None:
    fit_lsa(TEXTS, 3).save(tmp_path)
    (path,) = tmp_path.glob(name)
    content = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ModelDamagedError, match="the next search by lsa fits it again"):
        check_lsa(tmp_path)


def test_it_is_fitted_once_and_again_on_request(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        documents = list(demo_documents(60))
        indexer.add(documents[:40])
        indexer.build("lsa")
        before = LsaEncoder("lsa", indexer.collection).version
        indexer.add(documents[40:])
        assert indexer.build("lsa") == 20
        assert LsaEncoder("lsa", indexer.collection).version == before
        with Indexer.open(tmp_path / "c") as other:
            other.build("lsa")
            assert indexer.build("lsa", relearn=True) == 60
            assert LsaEncoder("lsa", indexer.collection).version != before
            # An indexer that had the old model open switches to the new one.
            ours = indexer.neighbour_arrays(documents[:3], 5, representation="lsa")
            theirs = other.neighbour_arrays(documents[:3], 5, representation="lsa")
            assert np.array_equal(ours.scores, theirs.scores)
        assert len(list((tmp_path / "c" / "indexes").glob("vectors-*"))) == 1


def test_a_collection_that_is_empty_at_first(tmp_path: Path) -> None:
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        query = [Document("q", "rye bread", language="en")]
        assert (indexer.neighbour_arrays(query, 3, representation="lsa").rows == -1).all()
        indexer.add(
            Document(f"d{n}", "rye bread" if n else "fish and boats", labels=("L",), language="en")
            for n in range(3)
        )
        assert indexer.neighbour_arrays(query, 2, representation="lsa").rows.tolist() == [[1, 2]]


def test_a_collection_that_has_grown_since(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    documents = list(demo_documents(60))
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(documents[:6])
        indexer.build("lsa")
        indexer.add(documents[6:50])
        LsaEncoder("lsa", indexer.collection).close()
        assert not caplog.messages
        indexer.add(documents[50:])
        LsaEncoder("lsa", indexer.collection).close()
        assert "build --representation lsa --relearn" in caplog.messages[0]
        indexer.build("lsa", relearn=True)
        caplog.clear()
        LsaEncoder("lsa", indexer.collection).close()
        assert not caplog.messages


def test_a_reader_with_other_settings_fits_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = list(demo_documents(40))
    with Indexer.create(tmp_path / "c", language="en") as indexer:
        indexer.add(documents)
        indexer.build("lsa")
    fitted: list[int] = []

    def counted(texts: Sequence[Sequence[str]], *others: object) -> LsaModel:
        fitted.append(len(texts))
        return fit_lsa(texts, *others)  # type: ignore[arg-type]

    monkeypatch.setattr("labelkin.represent.lsa.fit_lsa", counted)
    with Indexer.open(tmp_path / "c", read_only=True) as reader:
        update_config(tmp_path / "c" / CONFIG_NAME, {"dense": {"dimensions": 8}})
        for _ in range(3):
            assert reader.neighbour_arrays(documents[:2], 3, representation="lsa").rows.min() >= 0
    assert fitted == [40]
